"""Variables of loops: what they are at an iteration is what their definition was at the one before."""

from __future__ import annotations

import numpy as np

from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.operator import Operator, joined


class Variable(Operator):
    """Passes on what arrives, consolidated: what cancels out goes no further, and in the end the loop rests."""

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is not None:
            self.emit(delta.consolidated())


Consolidate = Variable
"""Outside of loops it is the operator that consolidates."""


class Gathered(Operator):
    """Passes on what arrives, as it is: what functions make of it on the way here is there for several that read it."""

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is not None:
            self.emit(delta)


def next_iteration(delta: Delta) -> Delta:
    """The updates one iteration later."""
    times = delta.times.copy()
    times[-1] += 1
    return Delta(delta.columns, times, delta.diffs)


def negated(delta: Delta) -> Delta:
    return Delta(delta.columns, delta.times, -delta.diffs)


def without_loop_time(delta: Delta) -> Delta:
    """The updates as the scope around their loop has them."""
    return Delta(delta.columns, np.ascontiguousarray(delta.times[:-1]), delta.diffs)
