"""Joins of two arrangements: all pairs of rows with the same key, at the join of their times, their diffs multiplied.

What is new on one side meets all of the other side: first before, then after what is new there has come. So every pair is found
once, when the later of the two arrives.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.operators.arrange import Arranged
from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Reading, key_of
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.times import columns as T
from dlog.engine.trace.overflow import products

OUTPUT_ROWS = 1 << 22
"""Pairs that are made at a time, unless one row has more."""


class Join(Operator):
    """Emits the key columns, the other columns of the left side, then those of the right one."""

    def __init__(self, scheduler: Scheduler, scope: Scope, left: Arranged, right: Arranged) -> None:
        super().__init__(scheduler, scope)
        self.left, self.right, self.keys = left, right, left.keys
        left.feed(self, 0)
        right.feed(self, 1)

    @property
    def ports(self) -> int:
        return 2

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        left, right = joined(arrived[0]), joined(arrived[1])
        if left is not None:
            self._meet(left, self.right.now() if right is None else self.right.before(), False)
        if right is not None:
            self._meet(right, self.left.now(), True)

    def _meet(self, delta: Delta, other: Reading, swapped: bool) -> None:
        """Emits the pairs of new rows with what a reading has; `swapped` if those are the left ones."""
        found = other.seek(key_of(delta, self.keys), delta.rows)
        if found.total > OUTPUT_ROWS and delta.rows > 1:
            middle = delta.rows // 2
            self._meet(delta.only(np.arange(middle)), other, swapped)
            self._meet(delta.only(np.arange(middle, delta.rows)), other, swapped)
            return
        if not found.total:
            return
        matches = other.gather(found)
        new, old = delta.only(matches.probes), matches.delta
        first, second = (old, new) if swapped else (new, old)
        columns = (*first.columns, *second.columns[self.keys :])
        self.emit(Delta(columns, T.join(new.times, old.times), products(new.diffs, old.diffs, "a join")))
