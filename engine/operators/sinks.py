"""Where updates leave a dataflow: operators that feed no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.engine.operators.delta import Delta, Moment, empty, together
from dlog.engine.operators.operator import Edge, Function, Operator, joined, outcome
from dlog.engine.operators.readings import Trace
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Rounds, Scope
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time
from dlog.engine.trace.cursor import Cursor


class Inspect(Operator):
    """Shows each delta to a function, as it arrives for a moment, consolidated."""

    def __init__(self, scheduler: Scheduler, scope: Scope, show: Callable[[Delta], None]) -> None:
        super().__init__(scheduler, scope)
        self.show = show

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        delta = None if delta is None else delta.consolidated()
        if delta is not None and delta.rows:
            self.show(delta)


MAX_WAITING = 128
"""Deltas that wait to become one batch of a trace that is only read from outside: trades memory against making batches."""
MAX_WAITING_ROWS = 1 << 12
"""Updates that wait: more of them are worth a batch."""


class Capture(Operator):
    """Keeps a collection to be read from outside: as it is, and with `history` as it was at any time. The latest updates wait,
    as they came, until there are enough of them for a batch, or until they are read; so do functions of them (`total`)."""

    defers = True

    def __init__(self, scheduler: Scheduler, scope: Scope, arity: int, history: bool) -> None:
        super().__init__(scheduler, scope)
        self._trace = Trace(arity, scope.depth)
        self._trace.keeps_all = history
        self._edges: list[Edge] = []
        self._waiting: list[tuple[int, Delta]] = []
        """What has come, with the number of the edge."""
        self._rows = 0
        self._last: tuple[Rounds, Moment] = Rounds(0, 0), ()

    @property
    def ports(self) -> int:
        return len(self._edges)

    def connect(self, source: Operator, function: Function, port: int = 0, feedback: bool = False) -> Edge:
        self._edges.append(super().connect(source, function, len(self._edges), feedback))
        return self._edges[-1]

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        for port, deltas in enumerate(arrived):
            for delta in deltas:
                self._waiting.append((port, delta))
                self._rows += delta.rows
        self._last = self.rounds, moment
        if len(self._waiting) >= MAX_WAITING or self._rows >= MAX_WAITING_ROWS:
            self._seal()

    def _seal(self) -> None:
        """Makes a batch of what waits."""
        if self._waiting:
            came = [(edge, [d for p, d in self._waiting if p == port]) for port, edge in enumerate(self._edges)]
            parts = [outcome(edge, together(deltas)) for edge, deltas in came if deltas]
            found = [part for part in parts if part.rows]
            if found:
                self._trace.insert(together(found), *self._last)
            self._waiting, self._rows = [], 0

    @property
    def trace(self) -> Trace:
        """All that has come."""
        self._seal()
        return self._trace

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.trace,)

    def cursor(self) -> Cursor:
        """All up to the rounds that are done, as far as times are still told apart."""
        end = Antichain((self.rounds.end(self.scope.depth - 1),))
        trace = self.trace
        trace.forget_before(max(self.rounds.high - 1, 0))
        spine = trace.spine
        return Cursor(spine.arity, spine.depth, spine.batches, spine.since, end)

    def read_at(self, time: Time) -> Delta:
        """The collection at a time."""
        found = self.cursor().read_at(time)
        return Delta(found.columns, found.times, found.diffs)

    def updates(self) -> Delta:
        """All updates, at the times they are told apart by, in order of (row, time)."""
        layers = self.trace.reading().layers
        none = empty(self.trace.arity, self.trace.depth)
        return together([none, *map(Delta.of_layer, layers)]).consolidated()

    def latest(self) -> Delta:
        """The collection after all that has come: at the last round, whatever the iteration."""
        found = self.updates()
        times = np.zeros_like(found.times)
        return Delta(found.columns, times, found.diffs).consolidated()
