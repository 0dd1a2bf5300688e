"""The first rows of groups in an order, at totally ordered times: of a group no more rows are read than may be among them."""

from __future__ import annotations

import numpy as np

from dlog.engine.operators.arrange import Arranged
from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.groups import Active, Groups, Logic, group
from dlog.engine.operators.readings import Matches, Reading
from dlog.engine.operators.reduce import at_moment, changes, clipped
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.operators.slices import GREATEST, Part, Slices
from dlog.engine.operators.some_rounds import SomeRounds

MARGIN = 16
"""Updates of a group that are read at first beside those of so many rows as are wanted: some may be of rows that have gone."""
FEW = 64
"""Updates of a group, on the average, that are all read: it takes longer to find which ones come first."""


class FirstRows(SomeRounds):
    """Takes an index by a key of `keys` columns and the order. The `logic` makes of each group what its first rows come to, no
    more than `count`, those that are there several times counted as often; the last ones where the order is `descending`."""

    def __init__(
        self, scheduler: Scheduler, scope: Scope, source: Arranged, keys: int, count: int, descending: bool, logic: Logic
    ) -> None:
        super().__init__(scheduler, scope)
        self.source, self.keys, self.count, self.descending, self.logic = source, keys, count, descending, logic
        source.source.trace.slack = 1  # what was there before the batch is told from what it brings
        source.feed(self, 0)
        self.updates_read = 0
        """Updates that it has read."""

    def _run_until(self, end: int, delta: Delta, moment: Moment) -> None:
        active = Active.of_delta(delta, self.keys, before=True)
        groups, numbers = self._groups(self._before(self.source.now(), end), active)
        outcome = self.logic(groups)
        changed = changes(active, numbers[outcome.owners], outcome, after_first=True)
        self.emit(at_moment(active.keys, changed, moment).consolidated())

    def _groups(self, reading: Reading, active: Active) -> tuple[Groups, np.ndarray]:
        """The first rows of each group, as many at each round as are wanted at least, or all; and of which of the active rounds
        they are."""
        found = reading.seek(active.keys, active.count)
        if found.total <= FEW * active.count:
            matches = reading.gather(found)
            self.updates_read += len(matches.probes)
            return self._grouped(active, matches)
        slices = Slices(reading, active.keys, active.count, found)
        margin = np.full(active.count, min(self.count, GREATEST // 8) + MARGIN)
        while True:
            part = self._read(slices, margin)
            groups, numbers = self._grouped(active, part.matches)
            missing = self._missing(active, groups, numbers, part)
            if not len(missing):
                return groups, numbers
            margin[missing] = np.minimum(margin[missing], GREATEST // 8) * 4

    def _grouped(self, active: Active, matches: Matches) -> tuple[Groups, np.ndarray]:
        delta = matches.delta
        return group(active, clipped(Matches(matches.probes, delta.with_columns(delta.columns[self.keys :])), active))

    def _read(self, slices: Slices, margin: np.ndarray) -> Part:
        """So many updates of each group that come first in the order, in each layer."""
        sizes = np.minimum(slices.ends - slices.starts, margin)
        span = (slices.ends - sizes, slices.ends) if self.descending else (slices.starts, slices.starts + sizes)
        part = slices.read(*span)
        self.updates_read += len(part.matches.probes)
        return part

    def _missing(self, active: Active, groups: Groups, numbers: np.ndarray, part: Part) -> np.ndarray:
        """The groups of which there may be more rows than have been read, and too few of those at some round."""
        found = np.zeros(len(active.rounds), np.int64)
        # No more are counted of a row than are wanted: sums of more may need too many bits.
        found[numbers] = groups.sums(np.clip(groups.diffs, 0, self.count))
        complete = part.complete_below if self.descending else part.complete_above
        return np.flatnonzero(~complete & (np.minimum.reduceat(found, active.starts[:-1]) < self.count))
