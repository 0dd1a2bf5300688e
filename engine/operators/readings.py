"""Traces as operators write and read them.

What a trace holds when an operator looks is a *reading*: its layers, which stay as they are whatever is inserted later. A loop
may read a trace of the scope around it; the times it finds there get iterations of 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels.trace.gathering import gather_layers, seek_layers
from dlog.engine.operators.delta import Columns, Delta, run_starts, together
from dlog.engine.operators.scope import Rounds
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import Layer
from dlog.engine.trace.overflow import HEAVY, check_history
from dlog.engine.trace.spine import Spine
from dlog.engine.values.addresses import address_of

CATCH_UP_ROWS = 1 << 12
"""Updates after which merging goes on by itself, of batches of several rounds, which stay apart until they are merged: small
batches alone would not pay for that. Updates of one round are told apart no longer than those of others; of a load, whose
times are forgotten, most of the trace is."""
MERGED_PER_ROW = 4
"""Updates that are then merged for each."""
GONE = 4
"""Updates for each row that is left, from which on most are of rows that have gone: merging goes on by itself then, too, where
one in so many has come since it last did. Merging as updates come keeps less than three, but not of what came long before."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The updates found for keys, those of the first key first: `probes` are the numbers of their keys."""

    probes: np.ndarray
    delta: Delta

    def only(self, chosen: np.ndarray) -> Matches:
        return Matches(self.probes[chosen], self.delta.only(chosen))


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Where the rows of each key are in each layer, and how many there are in all."""

    ranges: np.ndarray
    probes: int
    total: int


class Reading:
    """Layers of rows of `arity` columns at times of `depth` coordinates, to which as many as `pads` are added. Updates of
    rounds from `end` on are left out, where it is given."""

    __slots__ = ("_addresses", "arity", "depth", "end", "layers", "pads")

    def __init__(self, layers: Sequence[Layer], arity: int, depth: int, pads: int = 0, end: int | None = None) -> None:
        self.layers, self.arity, self.depth, self.pads, self.end = layers, arity, depth, pads, end
        self._addresses = np.array([layer.address for layer in layers], np.int64)

    @property
    def addressed(self) -> tuple[int, int]:
        """The address of those of its layers, and how many there are."""
        return address_of(self._addresses), len(self.layers)

    def padded(self, pads: int) -> Reading:
        return Reading(self.layers, self.arity, self.depth, pads, self.end) if pads != self.pads else self

    def below(self, end: int) -> Reading:
        return Reading(self.layers, self.arity, self.depth, self.pads, end)

    def seek(self, keys: Sequence[np.ndarray], probes: int) -> Ranges:
        """Finds the rows that begin with each of so many keys, given by their columns."""
        return self.seek_packed(np.ascontiguousarray(np.stack(keys)) if keys else np.empty((0, probes), np.int64), probes)

    def seek_packed(self, keys: np.ndarray, probes: int) -> Ranges:
        """The same of keys in a contiguous array, column by column."""
        ranges = np.empty((len(self.layers), 2, probes), np.int64)
        if not probes or not self.layers:
            return Ranges(ranges, probes, 0)
        found = seek_layers(*self.addressed, address_of(keys), len(keys), probes, address_of(ranges))
        return Ranges(ranges, probes, int(found))

    def gather(self, found: Ranges) -> Matches:
        """The updates there are."""
        numbers = np.empty(found.total, np.int64)
        fields = np.empty((self.arity + self.depth + 1, found.total), np.int64)
        if found.total:
            out = address_of(numbers), address_of(fields)
            gather_layers(*self.addressed, address_of(found.ranges), found.probes, found.total, *out)
        times = fields[self.arity : -1]
        if self.pads:
            times = np.concatenate([times, np.zeros((self.pads, found.total), np.int64)])
        matches = Matches(numbers, Delta(tuple(fields[: self.arity]), times, fields[-1]))
        return matches if self.end is None else matches.only(times[0] < self.end)

    def lookup(self, keys: Sequence[np.ndarray], probes: int) -> Matches:
        return self.gather(self.seek(keys, probes))


class Trace:
    """The history of a collection, in a spine. It is kept apart from the batch at work on; from `slack` rounds before, where
    half-joins have to tell earlier rounds from those of the batch."""

    def __init__(self, arity: int, depth: int) -> None:
        self.spine = Spine(arity, depth)
        self.slack = 0
        self._weight = 0  # at least the sum of all |diff|
        self._unmerged = 0  # updates for which merging is to be made up
        self._come = 0  # those that have come since it last was
        self._sum = 0  # of all diffs: about as many rows are left
        self.keeps_all = False
        self._handle = self.spine.handle()
        self._reading: Reading | None = None

    @property
    def arity(self) -> int:
        return self.spine.arity

    @property
    def depth(self) -> int:
        return self.spine.depth

    def reading(self) -> Reading:
        """What it holds now."""
        if self._reading is None:
            layers = [layer for batch in self.spine.batches for layer in batch.layers]
            self._reading = Reading(layers, self.arity, self.depth)
        return self._reading

    def insert(self, delta: Delta, rounds: Rounds, moment: tuple[int, ...]) -> Delta | None:
        """Adds the updates of a moment; returns them consolidated, if any are left."""
        self.forget_before(rounds.low)
        layer = delta.built(self.spine.pages)
        if layer is not None:
            self._weigh(layer)
        self.spine.insert(Batch.holding(self.spine.upper, rounds.after(moment), layer, Antichain.start(self.depth)))
        if layer is None:
            return None
        self._reading = None
        self._come += layer.rows
        self._sum += delta.total
        rows = self.spine.rows
        if rounds.high - rounds.low > 1 or 2 * layer.rows > rows:
            self._unmerged += layer.rows
        elif rows > CATCH_UP_ROWS + GONE * max(self._sum, 0) and GONE * self._come >= rows:
            self._unmerged = rows
        return Delta.of_layer(layer)

    @property
    def heavy(self) -> bool:
        """Whether sums of its diffs, of whichever rows, may need more than 64 bits."""
        if self._weight >= HEAVY:  # much may have cancelled out
            self._weight = sum(max(layer.weight, layer.rows) for layer in self.reading().layers)
        return self._weight >= HEAVY

    def _weigh(self, layer: Layer) -> None:
        """Raises DlogError where rows of a layer to be inserted would be there too often."""
        before = self.heavy
        self._weight += layer.weight
        if before or self._weight >= HEAVY:
            columns, times, diffs = layer.updates()
            starts = run_starts(columns, layer.rows)
            found = self.reading().lookup([column[starts] for column in columns], len(starts))
            owners = np.repeat(np.arange(len(starts)), np.diff(starts, append=layer.rows))
            every = together([Delta((owners,), times, diffs), found.delta.with_columns((found.probes,))])
            check_history(every.columns[0], every.times, every.diffs, "the diffs of a row")

    def begin_with(self, delta: Delta, end: int) -> None:
        """Adds all that has accumulated before a round to a trace that is empty."""
        self.insert(delta, Rounds(end, end), ())

    def end_at(self, time: Time) -> None:
        """Has it end no earlier, where nothing more has come until then."""
        upper = self.spine.upper
        if upper.elements != (time,) and upper.precedes(end := Antichain((time,))):
            self.spine.insert(Batch.holding(upper, end, None, Antichain.start(self.depth)))

    def exert(self, fuel: int) -> bool:
        """Merges about so many updates; whether there is more to merge."""
        self._reading = None
        return self.spine.exert(fuel)

    def forget_before(self, round: int) -> None:
        """Has rounds before this one, and before what `slack` asks for, told apart no longer; unless all are kept."""
        start: Time = (max(round - self.slack, 0), *(0,) * (self.depth - 1))
        if not self.keeps_all and self._handle.frontier.elements != (start,):
            self._handle.set_logical_compaction(Antichain((start,)))
            if self._unmerged >= CATCH_UP_ROWS:
                # What is merged already began before these rounds could be forgotten, and is merged once more.
                while self.spine.exert(MERGED_PER_ROW * self._unmerged) and self._unmerged:
                    self._unmerged //= 2
                self._unmerged, self._come, self._reading = 0, 0, None


def key_of(delta: Delta, keys: int) -> Columns:
    """The key columns, which are the first ones."""
    return delta.columns[:keys]
