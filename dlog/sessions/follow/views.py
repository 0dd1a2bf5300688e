"""One round of a session, to be read as long as one likes: what later commits change is undone.

A view of the present round is a consistent snapshot over all relations while other threads commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from dlog.display.preview import Preview
from dlog.engine.compile.past import is_declared
from dlog.engine.ir import rules
from dlog.engine.ir.rules import Program
from dlog.engine.trace.values import ANY, Values
from dlog.engine.values.table import Table
from dlog.relation import Relation, overview
from dlog.sessions.follow.changes import Changes
from dlog.sessions.mistakes import mistake
from dlog.tabular import Previewable


class ViewOwner(Protocol):
    """Who keeps what commits change for those that read the past."""

    def leave(self, view: View) -> None: ...


class Rounds(Protocol):
    """A session, as its views read it: relations by name, as of a round."""

    @property
    def _followers(self) -> ViewOwner: ...
    @property
    def program(self) -> Program: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, relation: object) -> bool: ...
    def _relation_at(self, relation: str, round: int) -> Relation: ...
    def _table_at(self, relation: str, round: int, values: Values) -> Table: ...
    def _answer(self, question: str, view: View) -> Relation: ...
    def _changes_between(self, relation: str, earlier: int, later: int) -> Changes: ...


def present_relations(program: Program) -> dict[str, rules.Relation]:
    """The relations of a program, without those that stand for past rounds."""
    return {name: relation for name, relation in program.relations.items() if is_declared(name)}


class View(Previewable):
    """A mapping from names to relations, as of `round`. A context manager; while it is open, commits note what they change."""

    def __init__(self, session: Rounds) -> None:
        self.round = 0
        self._session: Rounds | None = session
        self._open_relations: dict[str, Relation] = {}

    def __getitem__(self, relation: str) -> Relation:
        found = self._open_relations.get(relation) if isinstance(relation, str) else None
        if found is None:
            found = self._open()._relation_at(relation, self.round)
            self._open_relations[relation] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._open())

    def __len__(self) -> int:
        return len(self._open())

    def __contains__(self, relation: object) -> bool:
        return relation in self._open()

    def table(self, relation: str, values: Values = ANY) -> Table:
        """The rows as the engine's columns; those that have other values than these may be left out."""
        return self._open()._table_at(relation, self.round, values)

    def query(self, question: str) -> Relation:
        """Answers a question as `Session.query` does, about this round."""
        return self._open()._answer(question, self)

    def close(self) -> None:
        """Closes the view; relations that were read stay readable."""
        if self._session is not None:
            self._session._followers.leave(self)
            self._session = None

    def _open(self) -> Rounds:
        if self._session is None:
            raise mistake("closed-view", f"the view of round {self.round} is closed")
        return self._session

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _preview(self) -> Preview:
        if self._session is None:
            return Preview(f"dlog.View of round {self.round}, closed")
        return overview(f"dlog.View of round {self.round}", present_relations(self._session.program))


class Diff(Previewable):
    """What changed from one round to another: a mapping from names to the changes of relations, each row once. A context
    manager; while it is open, both rounds are kept."""

    def __init__(self, earlier: View, later: View) -> None:
        self._views = earlier, later
        self._open_changes: dict[str, Changes] = {}

    @property
    def rounds(self) -> tuple[int, int]:
        """From which one to which."""
        earlier, later = self._views
        return earlier.round, later.round

    def __getitem__(self, relation: str) -> Changes:
        found = self._open_changes.get(relation) if isinstance(relation, str) else None
        if found is None:
            found = self._views[0]._open()._changes_between(relation, *self.rounds)
            self._open_changes[relation] = found
        return found

    def __iter__(self) -> Iterator[str]:
        """The relations that changed."""
        return (name for name in self._views[0]._open() if len(self[name]))

    def close(self) -> None:
        """Closes both; changes that were read stay readable."""
        for view in self._views:
            view.close()

    def __enter__(self) -> Diff:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _preview(self) -> Preview:
        earlier, later = self.rounds
        return overview(f"dlog.Diff of rounds {earlier} to {later}", present_relations(self._views[0]._open().program))
