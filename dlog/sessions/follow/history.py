"""The history of a session: the changes of its recent rounds, shared by everybody who reads a past one.

It goes back as far as the window asks for, in rounds or in time, and as far as open views do: each relation has a trace of its
changes (`dlog.engine.trace.changes`). Nothing is noted where nobody asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np

from dlog.arguments import whole
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.trace.changes import ChangeTrace, undone
from dlog.engine.trace.layer import Layer
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.follow.changes import none

MARKS = 1024
"""Moments that a window of time is told by: it is longer than it was asked for by up to a part in so many."""


@dataclass(frozen=True, slots=True)
class Window:
    """How far back rounds can be read: so many, or so long; and of some relations at least so many."""

    rounds: int = 0
    duration: timedelta | None = None
    own: Mapping[str, int] = field(default_factory=dict)

    @property
    def general(self) -> bool:
        """Whether it is for all relations."""
        return bool(self.rounds or self.duration)

    def __bool__(self) -> bool:
        return self.general or bool(self.own)


def window(given: int | timedelta) -> Window:
    """The window that is meant. Raises DlogError for what means none."""
    if isinstance(given, timedelta) and given >= timedelta(0):
        return Window(duration=given or None)
    try:
        return Window(whole("history", given, 0, "a number of rounds, 0 or more, or a timedelta"))
    except DlogError as error:
        raise DlogError([replace(found, code="bad-history") for found in error.diagnostics]) from None


@dataclass(frozen=True, slots=True)
class Mark:
    """The round that was the last one at a time, in nanoseconds since 1970."""

    round: int
    time: int


class History:
    """The changes of the rounds up to `last`. For one thread at a time."""

    def __init__(self, window: Window, clock: Callable[[], int] = time.time_ns) -> None:
        self.window = window
        self.last = 0
        self._clock = clock
        self._general = 0
        """The oldest round of which all relations can be read,"""
        self._own: dict[str, int] = {}
        """and that of relations with windows of their own."""
        self._traces: dict[str, tuple[tuple[Kind, ...], ChangeTrace]] = {}
        """By relation, those that changed last at the end."""
        self._marks: list[Mark] = []

    # ------------------------------------------------------------------------------------------------------------- writing

    def note(self, before: int, last: int, relations: Mapping[str, Relation], changes: Mapping[str, Updates], all: bool) -> None:
        """Takes in the changes of the rounds after `before` up to `last`: of all relations that changed or, if not `all`, of
        those with windows of their own."""
        if before != self.last:
            self.begin(before)
        self._mark(last)
        for name, updates in changes.items():
            if updates.rows:
                self._trace(name, relations[name].kinds, before).note(updates, self._oldest_of(name))
        self.last = last
        if not all:
            self._general = last

    def begin(self, round: int) -> None:
        """Forgets everything: no round before this one can be read."""
        self.last = self._general = round
        self._own, self._traces, self._marks = dict.fromkeys(self.window.own, round), {}, []

    def skip(self, last: int) -> None:
        """Does without the changes of the rounds up to `last`."""
        if self._traces or self._marks or self.window.own:
            self.begin(last)
        self.last = self._general = last

    def _trace(self, name: str, kinds: tuple[Kind, ...], before: int) -> ChangeTrace:
        """The trace of a relation, which is now the last in order; a new one where its rows are of other kinds now."""
        found = self._traces.pop(name, None)
        if found is None or found[0] != kinds:
            found = kinds, ChangeTrace(len(kinds), before)
        self._traces[name] = found
        return found[1]

    def drop(self, relations: Iterable[str]) -> None:
        """Forgets relations: what has their names from now on is another one."""
        for name in relations:
            self._traces.pop(name, None)

    def _mark(self, last: int) -> None:
        """Notes the time of a commit, but for those that come in quick succession."""
        if self.window.duration is not None:
            now = self._clock()
            if not self._marks:
                self._marks = [Mark(self.last, now)]
            apart = self.window.duration // timedelta(microseconds=1) * 1000 // MARKS
            if len(self._marks) > 1 and now - self._marks[-2].time < apart:
                self._marks.pop()
            self._marks.append(Mark(last, now))

    def forget(self, readers: Iterable[int]) -> None:
        """Gives up rounds that neither the window nor any of these readers needs."""
        held = min(readers, default=self.last)
        self._general = max(self._general, min(self._wanted(), held))
        for name, rounds in self.window.own.items():
            oldest = min(self._wanted(), self.last - rounds, held)
            self._own[name] = max(self._own.get(name, self._general), oldest)
        while self._traces:
            name = next(iter(self._traces))
            if self._traces[name][1].last > self._oldest_of(name):
                return
            del self._traces[name]

    def trim(self) -> None:
        """Frees what has been given up at once; else that is done bit by bit, as changes come."""
        for name, (_, trace) in self._traces.items():
            trace.forget(self._oldest_of(name))

    def _wanted(self) -> int:
        """The oldest round that the window asks for."""
        if self.window.duration is None:
            return self.last - self.window.rounds
        start = self._clock() - self.window.duration // timedelta(microseconds=1) * 1000
        while len(self._marks) > 1 and self._marks[1].time <= start:
            del self._marks[0]
        return self._marks[0].round if self._marks else self.last

    def _oldest_of(self, name: str) -> int:
        return min(self._own.get(name, self._general), self._general)

    # ------------------------------------------------------------------------------------------------------------- reading

    @property
    def oldest(self) -> int:
        """The oldest round of which any relation can be read."""
        return min([self._general, *self._own.values()])

    def oldest_of(self, relation: str) -> int:
        """The oldest round of which a relation can be read."""
        return self._oldest_of(relation)

    def between(self, relation: Relation, after: int, upto: int) -> Updates:
        """The changes of a relation in the rounds after a readable one up to another, round by round."""
        trace = self._trace_of(relation)
        return none(relation.arity) if trace is None else trace.between(after, upto)

    def net(self, relation: Relation, after: int, upto: int) -> Layer | None:
        """What these changes come to."""
        trace = self._trace_of(relation)
        return None if trace is None else trace.net(after, upto)

    def table(self, relation: Relation, now: Table, round: int) -> Table:
        """The rows as of a readable round, of those of now."""
        return before(relation, now, self.net(relation, round, self.last))

    def _trace_of(self, relation: Relation) -> ChangeTrace | None:
        kinds, trace = self._traces.get(relation.name, (relation.kinds, None))
        return trace if kinds == relation.kinds else None

    # ---------------------------------------------------------------------------------------------------------- persistence

    @property
    def nbytes(self) -> int:
        """Bytes of the batches of all relations."""
        return sum(trace.nbytes for _, trace in self._traces.values())

    @property
    def rows(self) -> int:
        """Changes that are kept."""
        return sum(trace.rows for _, trace in self._traces.values())


def before(relation: Relation, table: Table, net: Layer | None) -> Table:
    """The rows that a table had before these changes."""
    if net is None:
        return table
    columns, rows = undone(table.columns, table.rows, net)
    return Table(relation.kinds, columns, rows)


def changes_of(relation: Relation, net: Layer | None, round: int) -> Updates:
    """Net changes as those of a round."""
    if net is None:
        return none(relation.arity)
    return Updates(net.columns(), net.diffs(), np.full(net.rows, round, np.int64))
