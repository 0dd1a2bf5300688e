"""Events out of order: they wait until a watermark has passed them; those that come behind it are late.

A watermark is the greatest mark that has ever come, and never goes back. Events wait in a calendar by event time, so that
releasing them costs what is due. Both depend on the order of rounds, not on how these are put into batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.operators.calendar import Calendar
from dlog.engine.operators.delta import Delta, Moment, empty, run_starts, together
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Trace
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.operators.slices import LEAST

RELEASED, LATE, WAITING = range(3)
"""What becomes of an event, in the column behind those of its row."""


class Watermark(Operator):
    """Takes marks, rows of one column, of events that are consolidated; emits the greatest there has been, from its round on
    instead of the one before. A mark that is taken back has been there all the same: also in the round in which another event
    has the same mark."""

    def __init__(self, scheduler: Scheduler, scope: Scope) -> None:
        super().__init__(scheduler, scope)
        self.present = LEAST
        """Before any mark it is the least word."""

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        came = None if delta is None else delta.only(delta.diffs > 0)
        if came is None or not came.rows:
            return
        order = np.argsort(came.rounds, kind="stable")
        rounds, marks = came.rounds[order], np.maximum(np.maximum.accumulate(came.columns[0][order]), self.present)
        last = np.flatnonzero(np.append(rounds[1:] != rounds[:-1], True))
        rounds, marks = rounds[last], marks[last]
        moved = np.flatnonzero(marks > np.append(self.present, marks[:-1]))
        if not len(moved):
            return
        before, self.present = self.present, int(marks[-1])
        self._emit(rounds[moved], marks[moved], before)

    def _emit(self, rounds: np.ndarray, marks: np.ndarray, before: int) -> None:
        """Each mark comes and the one before goes, of which there is none at first."""
        ones = np.ones(len(rounds), np.int64)
        gone = np.append(before, marks[:-1])
        came = Delta((marks,), rounds[None, :], ones)
        went = Delta((gone,), rounds[None, :], -ones).only(gone > LEAST)
        self.emit(together([came, went]))


class Release(Operator):
    """Takes rows, their event time in front, on port 0 and the changes of a watermark on port 1; emits the rows and what
    becomes of them.

    A row is late if the watermark was beyond its time before the round in which it comes; else it waits until it is. A row that
    goes is taken back from where it is; if some of it were late and some were not, from those that were."""

    def __init__(self, scheduler: Scheduler, scope: Scope, arity: int) -> None:
        super().__init__(scheduler, scope)
        self.waiting = Calendar()
        self.late = Trace(arity, scope.depth)
        self._mark = LEAST

    @property
    def ports(self) -> int:
        return 2

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.late,)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        rounds, marks = self._marks(joined(arrived[1]))
        delta = joined(arrived[0])
        delta = empty(self.late.arity, 1) if delta is None else delta.consolidated()
        passed = marks[np.searchsorted(rounds, delta.rounds, side="left")]  # before the round: marks has one more in front
        behind = delta.columns[0] < passed
        late, taken = self._late(delta.only(behind))
        parts = [_with(late, LATE), _with(taken, RELEASED), *self._in_time(delta.only(~behind), rounds, marks)]
        self._mark = int(marks[-1])
        if late.rows:
            self.late.insert(late, self.rounds, moment)
        self.emit(together(parts).consolidated())

    def _marks(self, delta: Delta | None) -> tuple[np.ndarray, np.ndarray]:
        """The rounds at which the watermark moves, and what it is before the first of them and from each on."""
        if delta is None:
            return np.empty(0, np.int64), np.array([self._mark])
        came = delta.only(delta.diffs > 0)
        order = np.argsort(came.rounds, kind="stable")
        return came.rounds[order], np.append(self._mark, came.columns[0][order])

    def _in_time(self, delta: Delta, rounds: np.ndarray, marks: np.ndarray) -> list[Delta]:
        """What begins to wait, and what has waited and is released."""
        if delta.rows:
            times = delta.columns[0]
            self.waiting.add(0, Delta(delta.columns, times[None, :], delta.diffs), int(times.max()))
        due = [found for _, found in self.waiting.take(int(marks[-1]))]
        if not due:
            return [_with(delta, WAITING)]
        released = together(due)
        # The first round from which on the watermark is beyond the time of an event: it came by then, or it would be late.
        at = rounds[np.searchsorted(marks[1:], released.columns[0], side="right")][None, :]
        gone = Delta(released.columns, at, -released.diffs)
        return [_with(delta, WAITING), _with(gone, WAITING), _with(Delta(released.columns, at, released.diffs), RELEASED)]

    def _late(self, delta: Delta) -> tuple[Delta, Delta]:
        """Of changes behind the watermark those of late rows, and those of rows that were not late."""
        if not delta.rows:
            return delta, delta
        starts = run_starts(delta.columns, delta.rows)
        sizes = np.diff(starts, append=delta.rows)
        there = self._late_before(tuple(c[starts] for c in delta.columns), len(starts))
        shares = np.empty(delta.rows, np.int64)
        for k in range(int(sizes.max())):  # the changes of a row, one after the other
            rows = np.flatnonzero(sizes > k)
            diffs = delta.diffs[starts[rows] + k]
            shares[starts[rows] + k] = np.maximum(diffs, -there[rows])
            there[rows] += shares[starts[rows] + k]
        late = Delta(delta.columns, delta.times, shares)
        taken = Delta(delta.columns, delta.times, delta.diffs - shares)
        return late.only(shares != 0), taken.only(taken.diffs != 0)

    def _late_before(self, rows: tuple[np.ndarray, ...], count: int) -> np.ndarray:
        """How often each row is there late."""
        found = self.late.reading().lookup(rows, count)
        there = np.zeros(count, np.int64)
        np.add.at(there, found.probes, found.delta.diffs)
        return there


def _with(delta: Delta, state: int) -> Delta:
    return delta.with_columns((*delta.columns, np.full(delta.rows, state)))
