"""The first rows of each group of a collection that only grows: nothing else of it is kept.

As nothing goes, a row that is not among the first ones never will be: it is forgotten. What a batch changes is found round by
round, or, where it has more rounds than groups have places, place by place: what holds the first place is the best of all that
has come; what comes and is no better, or is displaced, is what comes to the second place, and so on. At totally ordered times
only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.engine.operators.delta import Columns, Delta, Moment, run_starts
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Trace
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.grammar.diagnostics import DlogError

Order = Callable[[Columns], Sequence[np.ndarray]]
"""From the columns without the key: words by which rows are compared, before all columns decide."""
BEFORE = -1
"""The round at which stands what there was before a batch."""


class FirstInserted(Operator):
    """Emits the first `count` rows of each group; one that is there several times counts as often. `refused` makes a mistake of
    an update that takes a row away."""

    def __init__(
        self,
        scheduler: Scheduler,
        scope: Scope,
        arity: int,
        keys: int,
        count: int,
        order: Order,
        refused: Callable[[Delta], DlogError],
    ) -> None:
        super().__init__(scheduler, scope)
        self.keys, self.count, self.order, self.refused = keys, count, order, refused
        self.first = Trace(arity, scope.depth)

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.first,)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is None or not (delta := delta.consolidated()).rows:
            return
        gone = np.flatnonzero(delta.diffs < 0)
        if len(gone):
            raise self.refused(delta.only(gone[[delta.rounds[gone].argmin()]]))
        made = self._changed(delta)
        if made.rows:
            self.first.insert(made, self.rounds, moment)
            self.emit(made)

    def _changed(self, delta: Delta) -> Delta:
        """What changes in the first rows where some rows have come, which are in order."""
        starts = run_starts(delta.columns[: self.keys], delta.rows)
        keys = tuple(column[starts] for column in delta.columns[: self.keys])
        alone = self.count == 1 and self.rounds.high - self.rounds.low == 1
        delta, owners = self._candidates(delta, starts, alone)
        there = self._before(keys, len(starts))
        fields = zip((*there.columns, there.diffs), (owners, *delta.columns[self.keys :], delta.diffs), strict=True)
        owners, *columns, diffs = (np.concatenate(pair) for pair in fields)
        by = [*self.order(tuple(columns)), *columns]
        if alone:
            numbers, diffs = _first_at_once(owners, by, there.rows)
            rounds = np.full(len(numbers), self.rounds.low)
        else:
            rounds = np.concatenate([np.full(there.rows, BEFORE), delta.rounds])
            rows = _Rows(owners, rounds, _ranks(by, len(owners)))
            find = _by_rounds if len(np.unique(rounds)) <= self.count + 1 else _by_places
            numbers, rounds, diffs = find(rows, np.minimum(diffs, self.count), self.count)
        made = Delta((*(key[owners[numbers]] for key in keys), *(c[numbers] for c in columns)), rounds[None, :], diffs)
        return made.only(rounds > BEFORE).consolidated()

    def _candidates(self, delta: Delta, starts: np.ndarray, alone: bool) -> tuple[Delta, np.ndarray]:
        """The rows of a batch that may be among the first ones, and the numbers of their groups. Where one of each group is, of
        one column, and they stand in its order or the opposite one, it is at one end."""
        ends = np.append(starts[1:], delta.rows)
        if alone and len(starts) < delta.rows and delta.arity == self.keys + 1:
            (by,) = self.order(delta.columns[self.keys :])
            rises = by[1:] >= by[:-1]
            rises[starts[1:] - 1] = True
            if rises.all():
                return delta.only(starts), np.arange(len(starts))
            falls = by[1:] <= by[:-1]
            falls[starts[1:] - 1] = True
            if falls.all():
                return delta.only(ends - 1), np.arange(len(starts))
        return delta, np.repeat(np.arange(len(starts)), ends - starts)

    def _before(self, keys: Columns, count: int) -> Delta:
        """The first rows of so many keys as they are before the batch, with the number of the key in front."""
        found = self.first.reading().lookup(keys, count)
        columns = found.probes, *found.delta.columns[self.keys :]
        return Delta(columns, np.zeros_like(found.delta.times), found.delta.diffs).consolidated()


def _first_at_once(owners: np.ndarray, by: Sequence[np.ndarray], there: int) -> tuple[np.ndarray, np.ndarray]:
    """What changes in the first rows of groups in one round, as numbers and diffs: those that were `there` stand in front."""
    order = np.lexsort([*by[::-1], owners])
    best = order[run_starts((owners[order],), len(order))]
    comes = best[best >= there]
    displaced = np.zeros(len(best), bool)
    displaced[owners[comes]] = True
    goes = np.flatnonzero(displaced[owners[:there]])
    return np.concatenate([comes, goes]), np.repeat([1, -1], [len(comes), len(goes)])


Found = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Changes: the numbers of the rows, rounds and diffs."""


class _Rows:
    """Rows that come to a place: their numbers, groups, rounds and ranks."""

    def __init__(self, owners: np.ndarray, rounds: np.ndarray, ranks: np.ndarray, numbers: np.ndarray | None = None) -> None:
        self.owners, self.rounds, self.ranks = owners, rounds, ranks
        self.numbers = np.arange(len(owners)) if numbers is None else numbers

    def only(self, chosen: np.ndarray, rounds: np.ndarray | None = None) -> _Rows:
        """Some of them, at other rounds where they are given."""
        at = self.rounds[chosen] if rounds is None else rounds
        return _Rows(self.owners[chosen], at, self.ranks[chosen], self.numbers[chosen])

    def first(self) -> tuple[Found, _Rows]:
        """What comes to hold the first place of its group, and goes from there; and what comes to the next place."""
        rows = self.only(np.lexsort((self.ranks, self.rounds, self.owners)))
        below = rows.ranks - rows.owners * (1 + int(rows.ranks.max(initial=0)))  # less for each group than for all before
        best = np.minimum.accumulate(below)
        holds = np.ones(len(best), bool)
        holds[1:] = best[1:] < best[:-1]
        holders = np.flatnonzero(holds)
        follows = rows.owners[holders[1:]] == rows.owners[holders[:-1]]
        displaced, at = holders[:-1][follows], rows.rounds[holders[1:][follows]]
        held = (
            np.concatenate([rows.numbers[holders], rows.numbers[displaced]]),
            np.concatenate([rows.rounds[holders], at]),
            np.concatenate([np.ones(len(holders), np.int64), np.full(len(displaced), -1)]),
        )
        others = np.flatnonzero(~holds)
        return held, rows.only(np.concatenate([others, displaced]), np.concatenate([rows.rounds[others], at]))


def _by_places(rows: _Rows, diffs: np.ndarray, count: int) -> Found:
    """All changes, by the places of groups: rows that are there several times are as many."""
    rows, parts = rows.only(np.repeat(np.arange(len(diffs)), diffs)), []
    for _ in range(count):
        held, rows = rows.first()
        parts.append(held)
        if not len(rows.numbers):
            break
    return _together(parts)


def _by_rounds(rows: _Rows, diffs: np.ndarray, count: int) -> Found:
    """All changes, by the rounds that there are. `held` is how often each row is among the first ones."""
    held, parts = np.where(rows.rounds == BEFORE, diffs, 0), []
    for round in np.unique(rows.rounds[rows.rounds > BEFORE]):
        there = np.flatnonzero((held > 0) | (rows.rounds == round))
        there = there[np.lexsort((rows.ranks[there], rows.owners[there]))]
        wanted = np.where(rows.rounds[there] == round, diffs[there], held[there])
        before = np.cumsum(wanted) - wanted
        starts = run_starts((rows.owners[there],), len(there))
        before -= np.repeat(before[starts], np.diff(starts, append=len(there)))
        taken = np.clip(count - before, 0, wanted)
        changed = np.flatnonzero(taken != held[there])
        parts.append((there[changed], np.full(len(changed), round), (taken - held[there])[changed]))
        held[there] = taken
    return _together(parts)


def _together(parts: Sequence[Found]) -> Found:
    numbers, rounds, diffs = (np.concatenate(field) for field in zip(*parts, strict=True))
    return numbers, rounds, diffs


def _ranks(by: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Numbers that compare as the rows do; equal ones have one."""
    if not by:
        return np.zeros(rows, np.int64)
    order = np.lexsort(by[::-1])
    differs = np.zeros(rows, np.int64)
    for column in by:
        differs[1:] |= column[order[1:]] != column[order[:-1]]
    found = np.empty(rows, np.int64)
    found[order] = np.cumsum(differs)
    return found
