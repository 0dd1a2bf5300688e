"""Arrangements: a collection indexed by its first columns, shared by all that read it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.operators.delta import Delta, Moment, empty
from dlog.engine.operators.operator import Function, Operator, joined, same
from dlog.engine.operators.readings import Reading, Trace
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.operators.sum_table import SumTable


class Indexed(Operator):
    """An operator that keeps a trace of what it emits, with `keys` columns in front to look rows up by."""

    trace: Trace
    keys: int
    summed = 0
    """Components of the sums that one of its readers needs of each key, and no more than that; 0: none does."""
    table: SumTable | None = None
    """These sums, where nobody else reads it: then there is nothing in the trace."""

    def hold(self) -> None:
        """Has it keep the trace for whoever may want to read it."""

    def catch_up(self) -> None:
        """Has the trace end where the dataflow has come to, though nothing may have come there; and tell apart no more rounds
        than the operator needs then."""

    def now(self) -> Reading:
        """All up to its last moment, that included."""
        return self.trace.reading()

    def before(self) -> Reading:
        """All before its last moment."""
        raise NotImplementedError


class Arrange(Indexed):
    """Keeps what arrives in a trace, and passes it on consolidated; for the one reader of a table of sums, as it comes."""

    def __init__(self, scheduler: Scheduler, scope: Scope, arity: int, keys: int) -> None:
        super().__init__(scheduler, scope)
        self.trace, self.keys = Trace(arity, scope.depth), keys
        self._before = self.trace.reading()
        self._held = self._begun = False

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.trace,)

    @property
    def held(self) -> int:
        return super().held + (0 if self.table is None else self.table.rows)

    def hold(self) -> None:
        self._held = True
        self._leave_table(self.rounds.high)

    def catch_up(self) -> None:
        done = self.scheduler.done * self.scope.scale
        self.trace.end_at((done, *(0,) * (self.scope.depth - 1)))
        self.trace.forget_before(done)

    def before(self) -> Reading:
        return self._before

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is None:
            return
        if not self._begun:
            self._begin()
        if self.table is not None and not self.table.has_room(delta):
            self._leave_table(self.rounds.low)
        if self.table is not None:
            self.emit(delta)
            return
        trace, rounds = self.trace, self.rounds
        self._before = trace.reading()
        trace.end_at(rounds.start(len(moment)))
        inserted = trace.insert(delta, rounds, moment)
        if inserted is not None:
            self.emit(inserted)

    def _begin(self) -> None:
        """Decides what to keep, now that all readers are there."""
        self._begun = True
        columns = self.keys + (2 if self.summed > 1 else 0)
        readers = sum(len(edges) for _, edges in self.edges.values())
        if self.summed and self.trace.arity == columns and readers == 1 and not self._held:
            self.table = SumTable(self.keys, self.summed)

    def _leave_table(self, end: int) -> None:
        """Goes over to the trace, with what has come before a round."""
        if self.table is not None:
            columns, diffs = self.table.updates()
            times = np.full((1, len(diffs)), end - 1)
            self.table = None
            if len(diffs):
                self.trace.begin_with(Delta(columns, times, diffs), end)


@dataclass(frozen=True, slots=True, eq=False)
class Arranged:
    """An arrangement as a scope within sees it, `pads` loops further in."""

    source: Indexed
    pads: int = 0

    @property
    def keys(self) -> int:
        return self.source.keys

    def feed(self, operator: Operator, port: int) -> None:
        """Has a port take its updates."""
        operator.connect(self.source, entering(self.pads), port)

    def precede(self, operator: Operator, port: int) -> None:
        """Has it run before an operator, which takes nothing from it."""
        operator.connect(self.source, nothing, port)

    def now(self) -> Reading:
        return self.source.now().padded(self.pads)

    def before(self) -> Reading:
        return self.source.before().padded(self.pads)


@cache
def entering(loops: int) -> Function:
    """The function that takes updates so many loops further in, to their first iterations."""

    def enter(delta: Delta) -> Delta:
        zeros = np.zeros((loops, delta.rows), np.int64)
        return Delta(delta.columns, np.concatenate([delta.times, zeros]), delta.diffs)

    return enter if loops else same


def nothing(delta: Delta) -> Delta:
    """The function of an edge that is there for the order alone."""
    return empty(len(delta.columns), len(delta.times))
