"""The groups of a reduction: the rows of a key at a round, for the rounds at which the key is looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels.trace.reducing import active_rounds, change_outcomes, count_groups, fill_groups, sum_groups
from dlog.engine.operators.delta import Columns, Delta
from dlog.engine.operators.readings import Matches, Reading
from dlog.engine.trace.layer import Layer, build
from dlog.engine.trace.overflow import HEAVY, check_runs, weight_of
from dlog.engine.values.addresses import address_of


@dataclass(frozen=True, slots=True, eq=False)
class Active:
    """The rounds at which keys are looked at: `owners` are the numbers of the keys, `rounds` ascend for each. Every key has at
    least one."""

    keys: Columns
    owners: np.ndarray
    rounds: np.ndarray
    starts: np.ndarray
    """Where the rounds of each key begin, and behind the last."""

    @staticmethod
    def of(keys: Columns, rounds: np.ndarray, before: bool = False) -> Active:
        """Of keys that may repeat, each with a round, of which there is at least one; with `before`, also the round before the
        first one of each key."""
        layer = build(keys, rounds[None, :], 1)
        assert layer is not None
        return _active(layer, layer.updates()[0], before)

    @staticmethod
    def of_delta(delta: Delta, keys: int, before: bool = False) -> Active:
        """The same of updates at totally ordered times, of which so many columns are the key."""
        layer = _by_round(delta, keys)
        return _active(layer, layer.columns()[:keys] if layer is not delta.layer else delta.columns[:keys], before)

    @property
    def count(self) -> int:
        """How many keys there are."""
        return len(self.starts) - 1

    @property
    def first(self) -> np.ndarray:
        """The first round of each key."""
        return np.asarray(self.rounds[self.starts[:-1]])

    def also(self, owners: np.ndarray, rounds: np.ndarray) -> Active:
        """With more rounds for some keys."""
        every = Active.of((np.concatenate([self.owners, owners]),), np.concatenate([self.rounds, rounds]))
        return Active(self.keys, every.keys[0][every.owners], every.rounds, every.starts)


def _by_round(delta: Delta, keys: int) -> Layer:
    """Updates at totally ordered times, of which there are some, as a layer in which the rounds of each key ascend; so many
    columns are the key."""
    layer = delta.layer
    if layer is None or (keys < layer.arity and layer.width(layer.arity)):
        layer = build(delta.columns[:keys], delta.rounds[None, :], 1)
        assert layer is not None
    return layer


def _active(layer: Layer, keys: Columns, before: bool) -> Active:
    """Of a layer that begins with key columns, in which the rounds of each key ascend."""
    size = layer.rows + 1
    found = np.empty(6 * size, np.int64)
    at = address_of(found)
    places = at, at + 8 * size, at + 16 * size, at + 32 * size
    count = active_rounds(layer.address, len(keys), int(before), *places)
    firsts, starts = found[:count], found[size : size + count + 1]
    end = int(starts[-1])
    owners, rounds = found[2 * size : 2 * size + end], found[4 * size : 4 * size + end]
    return Active(tuple(column[firsts] for column in keys), owners, rounds, starts)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows by group. A group has at least one row, in ascending order of the columns; no diff is zero."""

    keys: Columns
    """The key columns, a value for each group."""
    starts: np.ndarray
    """Where the rows of each group begin, and behind the last."""
    columns: Columns
    """The other columns, a value for each row."""
    diffs: np.ndarray

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @property
    def owners(self) -> np.ndarray:
        """The number of the group of each row."""
        return np.repeat(np.arange(self.count), np.diff(self.starts))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum over each group of a value for each row."""
        return np.asarray(np.add.reduceat(values, self.starts[:-1])) if self.count else values[:0]

    def sums_of_diffs(self, chosen: np.ndarray | None = None) -> np.ndarray:
        """The sum over each group of its diffs, those of the chosen rows alone. Raises DlogError where one needs more than 64
        bits."""
        diffs = self.diffs if chosen is None else np.where(chosen, self.diffs, 0)
        if weight_of(diffs) >= HEAVY:
            check_runs(diffs, self.starts[:-1], "the diffs of a group")
        return self.sums(diffs)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The rows that a reduction makes of groups: which group each is of, its columns without the key, its diff."""

    owners: np.ndarray
    columns: Columns
    diffs: np.ndarray


Logic = Callable[[Groups], Outcome]


class Sums(ABC):
    """A logic that needs of each group the sum of its diffs alone: of several components, if the column behind the key says to
    which one a diff belongs. It makes one row of a group at most."""

    components = 1
    shown = 0
    """How many of the sums are the columns of the row."""
    once = False
    """Whether the row is there once, of all groups that have a sum."""

    @abstractmethod
    def diffs(self, sums: np.ndarray) -> np.ndarray:
        """How often the row of each group is there, by the sums, of each component an array; never where all are zero."""

    def __call__(self, groups: Groups) -> Outcome:
        chosen = [groups.columns[0] == k for k in range(self.components)] if self.components > 1 else [None]
        sums = np.array([groups.sums_of_diffs(rows) for rows in chosen])
        diffs = self.diffs(sums)
        kept = np.flatnonzero(diffs)
        return Outcome(kept, tuple(sums[: self.shown, kept]), diffs[kept])


def changed_sums(delta: Delta, keys: int, reading: Reading, logic: Sums) -> Delta:
    """What changes, at totally ordered times, in the outcome of sums where some updates have come, which a reading has
    already: so many columns are the key."""
    layer, components, shown = _by_round(delta, keys), logic.components, logic.shown
    size = layer.rows + 1
    found = np.empty(size * (keys + 7 + 2 * components), np.int64)
    at = address_of(found)
    active, rounds, first = at + 8 * size * keys, at + 8 * size * (keys + 1), size * (keys + 7)
    sums = at + 8 * first
    probes = sum_groups(layer.address, keys, *reading.addressed, components, at, active, rounds, sums)
    groups = int(found[size * keys + probes])
    diffs = logic.diffs(found[first : first + components * groups].reshape(components, groups))
    room = 2 * (groups - probes)
    changed = np.empty((keys + shown + 2, room), np.int64)
    places = at, active, rounds, sums, shown, address_of(diffs)
    count = change_outcomes(probes, keys, *places, room, address_of(changed))
    return Delta.of_block(np.ascontiguousarray(changed[:, :count]), keys + shown)


def group(active: Active, found: Matches) -> tuple[Groups, np.ndarray]:
    """The groups that have rows, and of which of the active rounds they are. `found` are updates of the active keys, whose
    rounds are no earlier than the first active one; their key columns have been left out."""
    delta = found.delta
    layer = build((found.probes, *delta.columns), delta.times[:1], delta.diffs)
    if layer is None:
        none = np.empty(0, np.int64)
        return Groups(tuple(k[:0] for k in active.keys), np.zeros(1, np.int64), (none,) * len(delta.columns), none), none
    sizes = np.zeros(len(active.rounds), np.int64)
    shared = layer.address, address_of(active.starts), address_of(active.rounds)
    total = count_groups(*shared, address_of(sizes))
    places, numbers = np.cumsum(sizes) - sizes, np.flatnonzero(sizes)
    starts, filled = np.append(places[numbers], total), np.empty((layer.arity, total), np.int64)
    fill_groups(*shared, address_of(places), total, address_of(filled))
    *columns, weights = filled
    return Groups(tuple(k[active.owners[numbers]] for k in active.keys), starts, tuple(columns), weights), numbers
