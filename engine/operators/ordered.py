"""Functions of ordered groups: each row of a group with something that depends on the rows around it in an order.

Outside of loops only what may have changed is worked out again. The changed rows of a key are taken together as *clumps*: what
one can change, no other does. How far that is, a `Reach` says, from what has been read; if that was not enough, more is. Within
loops the whole group is worked out, as any reduction is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.operators.arrange import Arranged
from dlog.engine.operators.delta import Columns, Delta, Moment
from dlog.engine.operators.groups import Active, Groups, Logic, Outcome, group
from dlog.engine.operators.reach import Extent, Reach, Rest, View
from dlog.engine.operators.readings import Matches, Reading, Trace
from dlog.engine.operators.reduce import at_moment, changes, clipped
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Rounds, Scope
from dlog.engine.operators.slices import Slices
from dlog.engine.operators.some_rounds import SomeRounds
from dlog.engine.trace.layer import build


@dataclass(frozen=True, slots=True, eq=False)
class GroupOutput:
    """What is made of groups: `rows` that are there, each with more columns and how often, those of the first group first."""

    rows: np.ndarray
    columns: Columns
    diffs: np.ndarray


OrderedLogic = Callable[[Groups, np.ndarray], GroupOutput]
"""Of groups whose first column is the order, of which words compare as the values do; for some of the rows, a mask."""
Fold = Callable[[Groups, Columns], GroupOutput]
"""The same from a state for each group on. The first column that it makes is the place of a row among those of the same
order, the others are the state."""


def whole_groups(logic: OrderedLogic) -> Logic:
    """The logic of a reduction that does the same."""

    def run(groups: Groups) -> Outcome:
        made = logic(groups, np.ones(len(groups.diffs), bool))
        return Outcome(groups.owners[made.rows], (*(c[made.rows] for c in groups.columns), *made.columns), made.diffs)

    return run


class _Clumps:
    """Changed rows, by their key and order, and the runs of them that are taken together. `starts` are the first of each."""

    def __init__(self, marks: Active, keys: int, starts: np.ndarray, margin: np.ndarray) -> None:
        self.marks, self.keys, self.starts, self.margin = marks, keys, starts, margin
        ends = np.append(starts[1:], marks.count) - 1
        order = marks.keys[keys]
        self.first, self.last = order[starts], order[ends]
        self.key = tuple(column[starts] for column in marks.keys[:keys])

    @staticmethod
    def of(marks: Active, keys: int, slices: Slices, reach: Reach) -> _Clumps:
        """Those with few rows between them taken together."""
        order = marks.keys[keys]
        ranks = (slices.position(order, False) - slices.starts).sum(axis=0)
        apart = _differ(marks.keys[:keys], marks.count)
        if reach.margin < marks.count + int(ranks.max()):
            apart[1:] |= ranks[1:] - ranks[:-1] > 2 * reach.margin
        starts = np.flatnonzero(apart)
        return _Clumps(marks, keys, starts, np.full(len(starts), reach.margin))

    def active(self) -> Active:
        """The clumps at the rounds at which they change, and before."""
        clumps = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=self.marks.count))
        return Active.of((clumps[self.marks.owners],), self.marks.rounds, before=True)

    def next(self, extent: Extent) -> _Clumps | None:
        """With clumps together that reach into each other, and more to be read where that was not enough; None if nothing is
        to be done."""
        apart = _differ(self.key, len(self.starts))
        apart[1:] |= extent.low[1:] > extent.high[:-1]
        if apart.all() and extent.enough.all():
            return None
        kept = np.flatnonzero(apart)
        margin = np.maximum.reduceat(np.where(extent.enough, self.margin, 4 * self.margin), kept)
        return _Clumps(self.marks, self.keys, self.starts[kept], margin)


def _differ(columns: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Whether each row differs from the one before; the first does."""
    found = np.zeros(rows, bool)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


class Ordered(SomeRounds):
    """Takes an index by a key of `keys` columns and the order; emits its rows with the columns that are made of them. Times are
    totally ordered."""

    def __init__(
        self, scheduler: Scheduler, scope: Scope, source: Arranged, keys: int, reach: Reach, logic: OrderedLogic | None
    ) -> None:
        super().__init__(scheduler, scope)
        self.source, self.keys, self.reach, self.logic = source, keys, reach, logic
        source.source.trace.slack = 1  # what was there before the batch is told from what it brings
        source.feed(self, 0)
        self.updates_read = 0
        """Updates that it has read."""

    def _run_until(self, end: int, delta: Delta, moment: Moment) -> None:
        reading = self._before(self.source.now(), end)
        marks = Active.of_delta(delta, self.keys + 1)
        clumps = _Clumps.of(marks, self.keys, Slices(reading, marks.keys[: self.keys], marks.count), self.reach)
        while True:
            view = self._view(clumps, reading)
            extent = self.reach.extent(view)
            following = clumps.next(extent)
            if following is None:
                break
            clumps = following
        outcome = self._outcome(view, extent, clumps.key)
        changed = changes(view.active, view.numbers[outcome.owners], outcome, after_first=True)
        self._send(at_moment(clumps.key, changed, moment).consolidated(), end)

    def _view(self, clumps: _Clumps, reading: Reading) -> View:
        slices = Slices(reading, clumps.key, len(clumps.first))
        part = slices.read(*self.reach.span(slices, clumps.first, clumps.last, clumps.margin))
        self.updates_read += len(part.matches.probes)
        active = clumps.active()
        delta = part.matches.delta
        without = Matches(part.matches.probes, delta.with_columns(delta.columns[self.keys :]))
        groups, numbers = group(active, clipped(without, active))
        keyed = Groups(tuple(k[active.owners[numbers]] for k in clumps.key), groups.starts, groups.columns, groups.diffs)
        return View(clumps.first, clumps.last, part, active, keyed, numbers)

    def _outcome(self, view: View, extent: Extent, key: Columns) -> Outcome:
        """What rows come to that may have changed."""
        clumps, order = view.clumps, view.groups.columns[0]
        made = self._output_of(view, key, (order >= extent.low[clumps]) & (order <= extent.high[clumps]))
        columns = *(c[made.rows] for c in view.groups.columns), *made.columns
        return Outcome(view.groups.owners[made.rows], columns, made.diffs)

    def _output_of(self, view: View, key: Columns, wanted: np.ndarray) -> GroupOutput:
        assert self.logic is not None
        return self.logic(view.groups, wanted)

    def _send(self, made: Delta, end: int) -> None:
        """Emits what has been made of changes of rounds before one."""
        self.emit(made)


class Scan(Ordered):
    """Takes up the fold of a group where it was before the first row that changed: states are kept by key, order and place
    among those of the same order."""

    def __init__(
        self, scheduler: Scheduler, scope: Scope, source: Arranged, keys: int, fold: Fold, start: Sequence[int]
    ) -> None:
        super().__init__(scheduler, scope, source, keys, Rest(), None)
        self.fold, self.start = fold, start
        self.states = Trace(keys + 2 + len(start), scope.depth)

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.states,)

    def _output_of(self, view: View, key: Columns, wanted: np.ndarray) -> GroupOutput:
        clumps = view.active.owners[view.numbers]
        return self.fold(view.groups, tuple(state[clumps] for state in self._states(key, view.first)))

    def _states(self, key: Columns, first: np.ndarray) -> list[np.ndarray]:
        """The states of keys before a place in the order."""
        found = [np.full(len(first), word) for word in self.start]
        wanted, margin = np.arange(len(first)), 4
        while len(wanted):
            slices = Slices(self.states.reading(), tuple(k[wanted] for k in key), len(wanted))
            high = slices.position(first[wanted], False)
            part = slices.read(np.maximum(high - margin, slices.starts), high)
            self.updates_read += len(part.matches.probes)
            probes, columns = _last(part.matches)
            for state, column in zip(found, columns[self.keys + 2 :], strict=True):
                state[wanted[probes]] = column
            missing = ~part.complete_below
            missing[probes] = False
            wanted, margin = wanted[missing], 4 * margin
        return found

    def _send(self, made: Delta, end: int) -> None:
        if made.rows:
            rest = made.columns[self.keys + 1 : len(made.columns) - 1 - len(self.start)]
            place = self.keys + 1 + len(rest)
            states = made.with_columns((*made.columns[: self.keys + 1], *made.columns[place:]))
            self.states.insert(states, Rounds(self.rounds.low, end), ())
            self.emit(made.with_columns((*made.columns[:place], *made.columns[place + 1 :])))


def _last(found: Matches) -> tuple[np.ndarray, Columns]:
    """The last row that is there of each key that has any."""
    layer = build((found.probes, *found.delta.columns), (0,), found.delta.diffs) if len(found.probes) else None
    if layer is None:
        return found.probes[:0], tuple(c[:0] for c in found.delta.columns)
    probes, *columns = layer.columns()
    last = np.flatnonzero(np.append(probes[1:] != probes[:-1], True))
    return probes[last], tuple(c[last] for c in columns)
