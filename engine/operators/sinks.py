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
MAX_KEPT_ROWS = 1 << 12
"""Rows of a collection that are kept as they were read last, and updates since then that are kept for the next time."""


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
        self._made: list[Delta] = []
        """What functions have made of what had come: that waits, too."""
        self._latest: Delta | None = None
        """The collection as it was read last, if it is small and much has not come since."""
        self._since: list[Delta] = []
        """What has been made since then."""
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
        if len(self._waiting) + len(self._made) >= MAX_WAITING or self._rows >= MAX_WAITING_ROWS:
            self._seal()

    def _make(self) -> None:
        """Applies functions to what has come."""
        for port, edge in enumerate(self._edges):
            deltas = [delta for at, delta in self._waiting if at == port]
            made = outcome(edge, together(deltas)) if deltas else None
            if made is not None and made.rows:
                self._made.append(made)
                if self._latest is not None:
                    self._since.append(made)
        self._waiting = []

    def _seal(self) -> None:
        """Makes a batch of what waits."""
        self._make()
        if self._made:
            self._trace.insert(together(self._made), *self._last)
        self._made, self._rows = [], 0
        if sum(made.rows for made in self._since) > MAX_KEPT_ROWS:
            self._latest, self._since = None, []

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
        self._make()
        if self._latest is None:
            parts = [*map(Delta.of_layer, self.trace.reading().layers)]
        else:
            parts = [self._latest, *self._since]
            if len(parts) == 1:
                return self._latest
        every = together([empty(self._trace.arity, self._trace.depth), *parts])
        found = Delta(every.columns, np.zeros_like(every.times), every.diffs).consolidated()
        self._latest, self._since = found if found.rows <= MAX_KEPT_ROWS else None, []
        return found
