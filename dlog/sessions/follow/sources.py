"""What a subscription is about: a relation, or the answers to a question, as it is at moments and as it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from dlog.codec import Codec
from dlog.engine.compile.past import moments
from dlog.engine.ir.rules import Program, Relation
from dlog.engine.trace.values import Values
from dlog.engine.values.differences import difference, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates, joined
from dlog.sessions.follow.changes import none
from dlog.sessions.mistakes import mistake
from dlog.sessions.queries.compiled import NAME, Question

Tables = Callable[[str, Values], Table]


class Moments(Protocol):
    """Rounds up to `last`, as far back as somebody keeps them."""

    @property
    def program(self) -> Program: ...
    @property
    def last(self) -> int: ...
    @property
    def codec(self) -> Codec: ...
    def table_at(self, relation: str, round: int) -> Table:
        """The rows of a relation as of a round."""

    def changes_after(self, relation: str, round: int) -> Updates:
        """The changes of a relation in the rounds after one."""


class Source(Protocol):
    """A set of rows that follows from a session's relations."""

    name: str

    @property
    def relation(self) -> Relation:
        """What the rows are rows of."""

    def codec(self, moments: Moments) -> Codec:
        """Between its rows and values."""

    def there(self, program: Program) -> bool:
        """Whether it means something in a program, which may be another one than before."""

    def rows(self, moments: Moments, round: int) -> Table:
        """The rows as of a round."""

    def changes(self, moments: Moments, after: int) -> Updates:
        """The changes of the rounds after one, which `rows` has been asked for or up to which they were told."""


class Named:
    """A relation."""

    def __init__(self, relation: Relation) -> None:
        self.name, self.relation = relation.name, relation

    def codec(self, moments: Moments) -> Codec:
        return moments.codec

    def there(self, program: Program) -> bool:
        found = program.relations.get(self.name)
        if found is None or found.kinds != self.relation.kinds:
            return False
        self.relation = found
        return True

    def rows(self, moments: Moments, round: int) -> Table:
        return moments.table_at(self.name, round)

    def changes(self, moments: Moments, after: int) -> Updates:
        return moments.changes_after(self.name, after)


class Answers:
    """The answers to a question: asked anew at each round that changes what it reads, and compared. `compiled` gives the
    question as the present program has it, `answer` what it is answered over some tables."""

    def __init__(self, name: str, compiled: Callable[[], Question], answer: Callable[[Question, Tables], Table]) -> None:
        self.name, self._compiled, self._answer = name, compiled, answer
        self._question = _followed(compiled())
        self._rows: Table | None = None
        """As of the last round that was looked at."""
        self._anew = False
        """Whether it may mean something else than then."""

    @property
    def relation(self) -> Relation:
        return self._question.relation

    def codec(self, moments: Moments) -> Codec:
        return Codec(self._question.program, moments.codec.symbols, moments.codec.records)

    def there(self, program: Program) -> bool:
        before, self._question = self._question, _followed(self._compiled())
        self._anew = True
        return before.relation.attributes == self.relation.attributes

    def rows(self, moments: Moments, round: int) -> Table:
        self._rows = self._answer(self._question, lambda name, _: moments.table_at(name, round))
        return self._rows

    def changes(self, moments: Moments, after: int) -> Updates:
        found = []
        for round in self._rounds(moments, after):
            before = self._rows if self._rows is not None else self.rows(moments, after)
            found.append(_between(before, self.rows(moments, round), round))
        return joined(found) if found else none(self.relation.arity)

    def _rounds(self, moments: Moments, after: int) -> Iterable[int]:
        """The rounds that changed what the question reads; the last one where its rules have changed."""
        read = self._question.program.relations.keys() - self._question.own - {NAME}
        changed = [moments.changes_after(name, after).rounds for name in sorted(read)]
        if self._anew:
            changed.append(np.array([moments.last]))
            self._anew = False
        return [int(round) for round in np.unique(np.concatenate([np.empty(0, np.int64), *changed]))]


def _followed(question: Question) -> Question:
    """A question that can be followed. Raises DlogError for one about past rounds."""
    for past in moments(question.program.relations):
        message = f"a question that is followed is about one round at a time, not about `{past.name}`"
        raise mistake("past-atom", message, "give a relation a rule that reads it, and follow that")
    return question


def _between(old: Table, new: Table, round: int) -> Updates:
    """The changes from one table to another."""
    pair = [tuple(words(column) for column in table.columns) for table in (old, new)]
    columns, diffs = difference(pair[0], old.rows, pair[1], new.rows)
    return Updates(columns, diffs, np.full(len(diffs), round, np.int64))
