"""Each time twice: `Alt t`, just before the changes at t take place, and `Neu t`, just after.

Changes at one time to several inputs of a join would be counted once for each pair that changes. A collection nudged to `neu`
is seen by changes at `alt` only from the next time on, so every combination is claimed by exactly one of its changes. The
order: `Alt t < Neu t`, and different times compare as they always do, whatever the nudge. This is a lattice whose joins and
meets are those of the times; where the result is the time of neither argument it is `Alt` for a join and `Neu` for a meet.

Differentiating with these times and integrating again is exact on totally ordered times only. On partially ordered ones an
update at `(0, 1)` and one at `(1, 0)` never see each other, though their match belongs to `(1, 1)`; there joins compare times
in the lexicographic order instead (half-joins).

Columns of such times are a (depth, n) array of times with a boolean array of n nudges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dlog.engine.times import columns, lattice
from dlog.engine.times.lattice import Time

NudgedTimes = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class AltNeu:
    """The time `time`, before (`neu` false) or after its changes."""

    time: Time
    neu: bool = False

    def less_equal(self, other: AltNeu) -> bool:
        """
        >>> AltNeu((1,)).less_equal(AltNeu((1,), True)), AltNeu((1,), True).less_equal(AltNeu((2,)))
        (True, True)
        """
        if self.time == other.time:
            return self.neu <= other.neu
        return lattice.less_equal(self.time, other.time)

    def join(self, other: AltNeu) -> AltNeu:
        """The least time at or after both."""
        time = lattice.join(self.time, other.time)
        return AltNeu(time, (self.neu and self.time == time) or (other.neu and other.time == time))

    def meet(self, other: AltNeu) -> AltNeu:
        """The greatest time at or before both."""
        time = lattice.meet(self.time, other.time)
        return AltNeu(time, (self.neu or self.time != time) and (other.neu or other.time != time))

    def advance(self, frontier: Iterable[AltNeu]) -> AltNeu:
        """The representative for readers in advance of `frontier`; itself where that is empty."""
        joins = [self.join(f) for f in frontier]
        if not joins:
            return self
        found = joins[0]
        for other in joins[1:]:
            found = found.meet(other)
        return found


def less_equal(a: NudgedTimes, b: NudgedTimes) -> np.ndarray:
    """A mask of where `a` is at or before `b`: by the nudge at equal times, by the times at different ones."""
    equal = (a[0] == b[0]).all(axis=0)
    return np.where(equal, a[1] <= b[1], columns.less_equal(a[0], b[0]))


def join(a: NudgedTimes, b: NudgedTimes) -> NudgedTimes:
    """Least upper bounds."""
    times = columns.join(a[0], b[0])
    return times, (a[1] & (a[0] == times).all(axis=0)) | (b[1] & (b[0] == times).all(axis=0))


def meet(a: NudgedTimes, b: NudgedTimes) -> NudgedTimes:
    """Greatest lower bounds."""
    times = columns.meet(a[0], b[0])
    return times, (a[1] | (a[0] != times).any(axis=0)) & (b[1] | (b[0] != times).any(axis=0))


def compare(a: NudgedTimes, b: NudgedTimes) -> np.ndarray:
    """-1, 0 or 1 in the total order: lexicographic by time, then alt before neu (int8)."""
    signs = columns.compare(a[0], b[0])
    return np.where(signs == 0, a[1].astype(np.int8) - b[1].astype(np.int8), signs)
