"""The changes of a relation in its recent rounds: what they come to between two rounds, and the relation as of a past one.

They are kept in a spine without what was there before them: the relation as it is now is there anyhow, and as of round r it is
that without what came after r. Rounds that nobody can read any more go batch by batch. The latest changes wait, as they came,
until there are enough of them for a batch, or until they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dlog.engine.kernels.trace.removing import copy_without
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import Layer, address_of, build
from dlog.engine.trace.spine import Spine
from dlog.engine.values.differences import Columns
from dlog.engine.values.updates import Updates, joined

MAX_WAITING = 128
"""Commits whose changes wait to become one batch: trades their memory, some hundred bytes a commit, against making batches."""
MAX_WAITING_ROWS = 1 << 12
"""Changes that wait: more of them are worth a batch."""
SLOTS_PER_ROW = 4
"""Slots of a hash table: most rows of a table meet an empty one."""
FILTER_BYTES_PER_ROW = 16
MAX_FILTER_BYTES = 1 << 22
"""Bytes of the filter by which most rows of a table go: few of those that stay have another's byte, and it fits the cache."""
MAX_ROUND = MAX_WEIGHT = 1 << 62
"""Rounds, and the sum of all |diff|, are less: with as much again they are words."""
SAMPLE_ROWS = 256
"""Rows that are looked at for the column to filter by."""


class ChangeTrace:
    """The changes after the round `begin`. For one thread at a time; batches are for any."""

    def __init__(self, arity: int, begin: int) -> None:
        self.arity, self.last = arity, begin
        self._spine = Spine(arity, 1, begin=begin)
        self._handle = self._spine.handle()
        self._waiting: list[Updates] = []
        self._rows = 0

    @staticmethod
    def of(arity: int, batches: Sequence[Batch]) -> ChangeTrace:
        """Those that batches hold, of which there is one at least, the oldest first. Raises ValueError where nobody can have
        written them."""
        ends = [batch.description.upper for batch in batches]
        if [batch.description.lower for batch in batches[1:]] != ends[:-1]:
            raise ValueError("batches do not touch")
        if any(len(f) != 1 or len(f.elements[0]) != 1 for batch in batches for f in _frontiers(batch)):
            raise ValueError("a frontier is no round")
        if any((layer.arity, layer.depth) != (arity, 1) for batch in batches for layer in batch.layers):
            raise ValueError("layers have other columns than their relation")
        _refuse_strange(batches)
        found, spine = ChangeTrace(arity, 0), Spine(arity, 1)
        spine.upper = batches[0].description.lower
        for batch in batches:
            spine.insert(batch)
        since = max(time[0] for batch in batches for time in batch.description.since)
        found._spine, found._handle = spine, spine.handle(Antichain.at(since))
        found.last = spine.upper.elements[0][0] - 1
        return found

    @property
    def begin(self) -> int:
        """The oldest round that can be read."""
        return self._handle.frontier.elements[0][0]

    @property
    def rows(self) -> int:
        """Changes that are kept."""
        return self._spine.rows + self._rows

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All changes."""
        self._seal()
        return self._spine.batches

    @property
    def nbytes(self) -> int:
        """Bytes of the batches; what waits is not counted."""
        return self._spine.nbytes

    # ------------------------------------------------------------------------------------------------------------- writing

    def note(self, updates: Updates, oldest: int) -> None:
        """Adds the changes of further rounds, each row at most once a round. They must stay as they are. Rounds before `oldest`
        are given up at times."""
        self._waiting.append(updates)
        self._rows += updates.rows
        self.last = updates.last
        if len(self._waiting) >= MAX_WAITING or self._rows >= MAX_WAITING_ROWS:
            self.forget(oldest)
            self._seal()

    def _seal(self) -> None:
        """Makes a batch of what waits."""
        if self._waiting:
            all = joined(self._waiting)
            upper = Antichain.at(self.last + 1)
            batch = Batch.of(self._spine.upper, upper, all.columns, all.rounds[None], all.diffs, pages=self._spine.pages)
            self._spine.insert(batch)
            self._waiting, self._rows = [], 0

    def forget(self, oldest: int) -> None:
        """Gives up rounds before `oldest`."""
        if oldest > self.begin:
            self._handle.set_logical_compaction(Antichain.at(oldest))
            self._spine.drop_before(Antichain.at(oldest + 1))
            if self._waiting and oldest >= self._waiting[-1].last:
                self._waiting, self._rows = [], 0

    # ------------------------------------------------------------------------------------------------------------- reading

    def between(self, after: int, upto: int) -> Updates:
        """The changes of the rounds after `after` up to `upto`, round by round."""
        parts = list(self._parts(after, upto))
        if not parts:
            return none(self.arity)
        all = Updates(*_joined(parts, self.arity))
        order = np.argsort(all.rounds, kind="stable")
        return Updates(tuple(column[order] for column in all.columns), all.diffs[order], all.rounds[order])

    def net(self, after: int, upto: int) -> Layer | None:
        """What these changes come to, each row once, at time 0; None where that is nothing."""
        parts = list(self._parts(after, upto))
        if not parts:
            return None
        columns, diffs, _ = _joined(parts, self.arity)
        return build(columns, (0,), diffs)

    def _parts(self, after: int, upto: int) -> Iterable[tuple[Columns, np.ndarray, np.ndarray]]:
        """Columns, diffs and rounds of the changes in between, layer by layer."""
        self._seal()
        lower, upper = Antichain.at(after + 1), Antichain.at(upto + 1)
        for batch in self._spine.batches:
            if batch.description.may_lie_between(lower, upper):
                for layer in batch.layers:
                    rounds = layer.times()[0]
                    chosen = (rounds > after) & (rounds <= upto)
                    if chosen.all():
                        yield layer.columns(), layer.diffs(), rounds
                    elif chosen.any():
                        yield tuple(c[chosen] for c in layer.columns()), layer.diffs()[chosen], rounds[chosen]


def _refuse_strange(batches: Sequence[Batch]) -> None:
    """Raises ValueError where nobody can have written the rounds of batches: merges advance them, and readers that have seen
    what they add up to would see it change."""
    for batch in batches:
        (lower,), (upper,), (since,) = (f.elements[0] for f in _frontiers(batch))
        if not 0 <= lower < upper < MAX_ROUND or not 0 <= since < MAX_ROUND:
            raise ValueError("rounds do not ascend")
        for layer in batch.layers:
            rounds = layer.times()[0]
            settled = batch.oldest and layer.settled
            if not settled and not max(lower, 1) <= rounds.min() <= rounds.max() < max(upper, since + 1):
                raise ValueError("changes are not of the rounds of their batch")
    if compacted_to(batches) >= batches[-1].description.upper.elements[0][0]:
        raise ValueError("the last rounds are given up")
    if sum(layer.weight for batch in batches for layer in batch.layers) >= MAX_WEIGHT:
        raise ValueError("there are more changes than can be counted")


def _frontiers(batch: Batch) -> tuple[Antichain, Antichain, Antichain]:
    return batch.description.lower, batch.description.upper, batch.description.since


def compacted_to(batches: Sequence[Batch]) -> int:
    """The first round that batches of a trace tell apart from those before; 0 where that is all of them."""
    since = max(time[0] for batch in batches for time in batch.description.since)
    return since if since >= batches[0].description.lower.elements[0][0] else 0


def _joined(parts: Sequence[tuple[Columns, np.ndarray, np.ndarray]], arity: int) -> tuple[Columns, np.ndarray, np.ndarray]:
    columns = tuple(np.concatenate([columns[c] for columns, _, _ in parts]) for c in range(arity))
    return columns, np.concatenate([diffs for _, diffs, _ in parts]), np.concatenate([rounds for _, _, rounds in parts])


def net_of(updates: Updates) -> Layer | None:
    """What changes come to, as `ChangeTrace.net` has it."""
    return build(updates.columns, (0,), updates.diffs) if updates.rows else None


def none(arity: int) -> Updates:
    """No changes."""
    empty = np.empty(0, np.int64)
    return Updates((empty,) * arity, empty, empty)


def undone(columns: Sequence[np.ndarray], rows: int, net: Layer) -> tuple[Columns, int]:
    """The rows of a set before what changed in it all in all (`ChangeTrace.net`), and how many there are: columns of 4 or 8
    bytes, as those of the set, or wider where the values ask for it. What came is in the set, what went is not."""
    diffs = net.diffs()
    gone = np.flatnonzero(diffs < 0)
    came = net.rows - len(gone)
    if not columns:
        return (), min(max(rows - came + len(gone), 0), 1)
    back = [net.values(c, gone) for c in range(net.arity)]
    inputs = [_wide_enough(np.ascontiguousarray(column), values) for column, values in zip(columns, back, strict=True)]
    outputs = tuple(np.empty(rows + len(gone), column.dtype) for column in inputs)
    kept = _without(inputs, rows, net, outputs) if came else _whole(inputs, rows, outputs)
    for output, values in zip(outputs, back, strict=True):
        output.view(np.int32 if output.itemsize == 4 else np.int64)[kept : kept + len(gone)] = values
    return tuple(output[: kept + len(gone)] for output in outputs), kept + len(gone)


def _wide_enough(column: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A column that has room for further values."""
    narrow = column.itemsize == 4 and len(values)
    return column.astype(np.int64) if narrow and not -(2**31) <= values.min() <= values.max() < 2**31 else column


def _without(columns: Sequence[np.ndarray], rows: int, net: Layer, outputs: Sequence[np.ndarray]) -> int:
    """Copies the rows that did not come; returns how many there are."""
    slots = np.zeros(SLOTS_PER_ROW * net.rows + 1, np.int32)
    filter = np.zeros(min(1 << (FILTER_BYTES_PER_ROW * net.rows).bit_length(), MAX_FILTER_BYTES), np.uint8)
    column = _most_selective(net)
    stored, target = (
        np.array([(address_of(array), array.itemsize) for array in arrays], np.int64) for arrays in (columns, outputs)
    )
    tables = address_of(slots), len(slots), address_of(filter), len(filter) - 1
    return int(copy_without(net.address, *tables, column, address_of(stored), address_of(target), rows))


def _most_selective(net: Layer) -> int:
    """The column with the most values."""
    first = min(net.rows, SAMPLE_ROWS)
    spread = np.unique(np.linspace(0, net.rows - 1, first).astype(np.int64))
    return max(range(net.arity), key=lambda c: len(np.unique(net.values(c, spread))))


def _whole(columns: Sequence[np.ndarray], rows: int, outputs: Sequence[np.ndarray]) -> int:
    """Copies all rows."""
    for column, output in zip(columns, outputs, strict=True):
        output[:rows] = column
    return rows
