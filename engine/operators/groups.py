"""The groups of a reduction: the rows of a key at a round, for the rounds at which the key is looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels.trace.reducing import active_rounds, count_groups, fill_groups, sum_groups
from dlog.engine.operators.delta import Columns, Delta
from dlog.engine.operators.readings import Matches, Reading
from dlog.engine.trace.layer import Layer, address_of, build


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
        layer = delta.layer
        if layer is None or (keys < layer.arity and layer.width(layer.arity)):
            return Active.of(delta.columns[:keys], delta.rounds, before)
        return _active(layer, delta.columns[:keys], before)

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

    def sums(self, reading: Reading, components: int) -> np.ndarray:
        """For each component and round the sum of the diffs up to it of the rows that a reading has of the key. Where there are
        several, the column behind the key says to which one a diff belongs."""
        found = np.zeros((components, len(self.rounds)), np.int64)
        packed, ranges = np.array(self.keys, np.int64), np.empty(2 * self.count, np.int64)
        seek = address_of(packed), len(self.keys), self.count, address_of(ranges)
        active = address_of(self.starts), address_of(self.rounds)
        sum_groups(*reading.addressed, *seek, *active, components, address_of(found))
        return found


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


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The rows that a reduction makes of groups: which group each is of, its columns without the key, its diff."""

    owners: np.ndarray
    columns: Columns
    diffs: np.ndarray


Logic = Callable[[Groups], Outcome]


class Sums(ABC):
    """A logic that needs of each group the sum of its diffs alone: of several components, if the column behind the key says to
    which one a diff belongs."""

    components = 1

    @abstractmethod
    def outcome(self, sums: np.ndarray) -> Outcome:
        """Of groups by their sums, for each component an array; nothing comes of sums that are all zero."""

    def __call__(self, groups: Groups) -> Outcome:
        parts = groups.columns[0] if self.components > 1 else np.zeros(len(groups.diffs), np.int64)
        weights = (np.where(parts == component, groups.diffs, 0) for component in range(self.components))
        return self.outcome(np.array([groups.sums(each) for each in weights]))


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
