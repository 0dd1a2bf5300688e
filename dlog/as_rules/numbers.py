"""How often rows of an input that is no set are there: what is committed, and the changes that wait for it.

Rows are words of the engine without the number that the relation has in its last column. Many are columns; few, as they come
with a round of a few changes, are tuples, for which arrays would take longer to make than the round does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.interruption import delayed
from dlog.engine.kernels.trace.gathering import gather_layers, seek_layers
from dlog.engine.operators.delta import Columns, Delta, run_starts
from dlog.engine.operators.readings import Reading
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.spine import Spine
from dlog.engine.values.addresses import address_of
from dlog.engine.values.differences import row_groups
from dlog.sessions.ingest.row_reader import MAX_ROWS_ONE_BY_ONE
from dlog.sessions.ingest.staged_changes import StagedChanges
from dlog.sessions.ingest.staged_relation import Words, bytes_of

MAX_NUMBER = 2**63 - 1
"""How often a row can be there."""
_MAX_FOUND_UPDATES = 4 * MAX_ROWS_ONE_BY_ONE
"""Updates of few rows that there is memory for: until batches are merged, a row may have one in each."""
MAX_WAITING_ROWS = 1 << 12
"""Rows that wait one by one at most."""
_MAX_EXACT_SUM = 2**62
"""Sums of less, and numbers of less that they are added to, are within 64 bits."""


class Numbers:
    """How often each row is there, in a spine: a change takes time by its own size, whatever is there. The last changes of few
    rows are beside it."""

    def __init__(self, arity: int) -> None:
        self._arity, self._spine = arity, Spine(arity, 1)
        self._handle, self._round = self._spine.handle(), 0
        self._recent: dict[Words, int] = {}
        self._reading = Reading((), arity, 1)
        self._lookup = _Lookup(self._reading)

    @property
    def nbytes(self) -> int:
        """Memory of the rows, but for those beside the spine."""
        return self._spine.nbytes

    def of(self, columns: Columns, rows: int) -> np.ndarray:
        """How often each of so many rows is there."""
        self._settle()
        numbers = np.zeros(rows, np.int64)
        found = self._reading.lookup(columns, rows)
        np.add.at(numbers, found.probes, found.delta.diffs)
        return numbers

    def of_few(self, rows: Sequence[Words]) -> list[int]:
        """The same for no more than `MAX_ROWS_ONE_BY_ONE` rows."""
        numbers = [self._recent.get(row, 0) for row in rows]
        if self._reading.layers:
            for place, diff in self._lookup.diffs(rows):
                numbers[place] += diff
        return numbers

    def add(self, columns: Columns, diffs: np.ndarray) -> None:
        """Changes them by differences."""
        self._settle()
        self._insert(columns, diffs)

    def add_few(self, diffs: Iterable[tuple[Words, int]]) -> None:
        """The same for few rows."""
        recent = self._recent
        for row, diff in diffs:
            recent[row] = recent.get(row, 0) + diff
        if len(recent) >= MAX_WAITING_ROWS:
            self._settle()

    @delayed
    def _settle(self) -> None:
        if self._recent:
            self._insert(*_arrays(self._recent, self._arity))
            self._recent = {}

    def _insert(self, columns: Columns, diffs: np.ndarray) -> None:
        spine, round = self._spine, self._round
        self._handle.set_logical_compaction(Antichain.at(round))  # rounds before are told apart no longer
        spine.insert(Batch.of(spine.upper, Antichain.at(round + 1), columns, (round,), diffs, pages=spine.pages))
        layers = [layer for batch in spine.batches for layer in batch.layers]
        self._round, self._reading = round + 1, Reading(layers, self._arity, 1)
        self._lookup = _Lookup(self._reading)


class _Lookup:
    """Looks few rows up in memory made once: arrays for one row take longer to make than to find it."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._arity, self._count = reading, reading.arity, len(reading.layers)
        self._keys = np.zeros(MAX_ROWS_ONE_BY_ONE * self._arity + 1, np.int64)
        self._places = np.zeros(_MAX_FOUND_UPDATES, np.int64)
        self._fields = np.zeros(_MAX_FOUND_UPDATES * (self._arity + reading.depth + 1), np.int64)
        self._layers = np.array([layer.address for layer in reading.layers], np.int64)
        self._ranges = np.zeros(2 * MAX_ROWS_ONE_BY_ONE * self._count + 1, np.int64)
        made = self._layers, self._keys, self._ranges, self._places, self._fields
        self._addresses = tuple(map(address_of, made))

    def diffs(self, rows: Sequence[Words]) -> Iterable[tuple[int, int]]:
        """The places of rows that are found, with their diffs: a row may have several."""
        layers, keys, ranges, places, fields = self._addresses
        self._keys[: len(rows) * self._arity] = list(chain.from_iterable(zip(*rows, strict=True)))
        total = seek_layers(layers, self._count, keys, self._arity, len(rows), ranges)
        if total == 0:
            return ()
        if total > _MAX_FOUND_UPDATES:
            found = self._reading.lookup(tuple(np.array(list(zip(*rows, strict=True)), np.int64)), len(rows))
            return zip(found.probes.tolist(), found.delta.diffs.tolist(), strict=True)
        gather_layers(layers, self._count, ranges, len(rows), total, places, fields)
        first = total * (self._arity + self._reading.depth)  # the diffs are the last field
        return zip(self._places[:total].tolist(), self._fields[first : first + total].tolist(), strict=True)


class Pending:
    """Changes of how often rows are there, that wait for a commit, in any order: they add up."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.few: dict[Words, int] = {}
        self.chunks: list[tuple[Columns, np.ndarray]] = []
        self.nbytes = 0
        """Memory of the chunks."""

    def put_few(self, rows: Sequence[Words], diffs: Sequence[int]) -> None:
        """Rows one by one, and a diff for each."""
        if len(rows) == 1:
            self.few[rows[0]] = self.few.get(rows[0], 0) + diffs[0]
        else:
            self._put_several(rows, diffs)
        if len(self.few) >= MAX_WAITING_ROWS:
            self._settle()

    @delayed
    def _settle(self) -> None:
        """Makes the rows that came one by one a chunk."""
        columns, sums = _arrays(self.few, self.arity)
        self.few = {}
        self.put(columns, sums)

    @delayed
    def _put_several(self, rows: Sequence[Words], diffs: Sequence[int]) -> None:
        few = self.few
        for row, diff in zip(rows, diffs, strict=True):
            few[row] = few.get(row, 0) + diff

    def put(self, columns: Columns, diffs: np.ndarray) -> None:
        """Rows in columns that nobody changes any more, and a diff for each."""
        self.chunks.append((columns, diffs))
        self.nbytes += bytes_of(columns, diffs)

    def copy(self) -> Pending:
        made = Pending(self.arity)
        made.few, made.chunks, made.nbytes = dict(self.few), list(self.chunks), self.nbytes
        return made

    def changes(self, numbers: Numbers) -> FewChanges | ManyChanges:
        """What they come to."""
        if not self.chunks and len(self.few) <= MAX_ROWS_ONE_BY_ONE:
            diffs = {row: diff for row, diff in self.few.items() if diff}
            before = numbers.of_few(list(diffs)) if diffs else []
            return FewChanges({row: (n, n + diffs[row]) for row, n in zip(diffs, before, strict=True)})
        chunks = [*self.chunks, _arrays(self.few, self.arity)] if self.few else self.chunks
        columns = tuple(np.concatenate(parts) for parts in zip(*(columns for columns, _ in chunks), strict=True))
        columns, sums = summed(columns, np.concatenate([diffs for _, diffs in chunks]))
        there = numbers.of(columns, len(sums))
        return ManyChanges(columns, there, _sums(there, sums))


@dataclass(frozen=True, slots=True)
class FewChanges:
    """Rows, and how often each was there and is to be."""

    rows: dict[Words, tuple[int, int]]

    def wrong(self) -> tuple[Words, int] | None:
        """A row that cannot be there so often."""
        return next(((row, after) for row, (_, after) in self.rows.items() if not 0 <= after <= MAX_NUMBER), None)

    def stage(self, staged_changes: StagedChanges, relation: str) -> None:
        """Stages what becomes of the relation."""
        gone = [(*row, before) for row, (before, _) in self.rows.items() if before]
        come = [(*row, after) for row, (_, after) in self.rows.items() if after]
        if gone:
            staged_changes.stage_words(relation, gone, -1)
        if come:
            staged_changes.stage_words(relation, come, 1)

    def keep(self, numbers: Numbers) -> None:
        """What has been committed."""
        numbers.add_few((row, after - before) for row, (before, after) in self.rows.items())


@dataclass(frozen=True, slots=True, eq=False)
class ManyChanges:
    """The same in columns, each row once; numbers that are too great make an array of Python's."""

    columns: Columns
    before: np.ndarray
    after: np.ndarray

    def wrong(self) -> tuple[Words, int] | None:
        return first_wrong(self.columns, self.after)

    def stage(self, staged_changes: StagedChanges, relation: str) -> None:
        columns, diffs = replacing(self.columns, self.before, self.after)
        if len(diffs):
            staged_changes.stage_columns(relation, columns, diffs)

    def keep(self, numbers: Numbers) -> None:
        numbers.add(self.columns, self.after.astype(np.int64) - self.before)


@dataclass(frozen=True, slots=True, eq=False)
class RoundChanges:
    """How often rows are there round by round: each row with its rounds in order, `starts` where those of another begin."""

    columns: Columns
    rounds: np.ndarray
    before: np.ndarray
    after: np.ndarray
    starts: np.ndarray

    def wrong(self) -> tuple[Words, int] | None:
        return first_wrong(self.columns, self.after)

    def replacing(self) -> tuple[Columns, np.ndarray, np.ndarray]:
        """Rows of the relation that go and come, their rounds and diffs."""
        (*columns, rounds, numbers), diffs = replacing((*self.columns, self.rounds), self.before, self.after)
        return (*columns, numbers), rounds, diffs

    def keep(self, numbers: Numbers) -> None:
        if len(self.starts):
            ends = np.append(self.starts[1:], len(self.rounds)) - 1
            diffs = self.after[ends].astype(np.int64) - self.before[self.starts].astype(np.int64)
            numbers.add(tuple(column[self.starts] for column in self.columns), diffs)


def by_round(columns: Columns, rounds: np.ndarray, diffs: np.ndarray, numbers: Numbers) -> RoundChanges:
    """What changes of rows in rounds come to."""
    (*columns_, rounds), diffs = summed((*columns, rounds), diffs)
    columns, rows = tuple(columns_), len(diffs)
    starts = run_starts(columns, rows)
    lengths = np.diff(np.append(starts, rows))
    running = np.cumsum(diffs)
    earlier = running[starts] - diffs[starts]
    begun = numbers.of(tuple(column[starts] for column in columns), len(starts))
    after = _sums(np.repeat(begun, lengths), running - np.repeat(earlier, lengths))
    return RoundChanges(columns, rounds, after - diffs, after, starts)


def summed(columns: Columns, diffs: np.ndarray) -> tuple[Columns, np.ndarray]:
    """Each different row in order, and the sum of its diffs, which is not 0; sums that may be too great for 64 bits are an
    array of Python's numbers."""
    if diffs.dtype == object or np.abs(diffs.astype(np.float64)).sum() >= _MAX_EXACT_SUM:
        order, starts = row_groups(columns, len(diffs))
        sums = np.add.reduceat(diffs[order].astype(object), starts) if len(starts) else diffs
        left = np.flatnonzero(sums)
        return tuple(column[order[starts[left]]] for column in columns), sums[left]
    found = Delta(columns, np.zeros((1, len(diffs)), np.int64), diffs).consolidated()
    return found.columns, found.diffs


def replacing(columns: Columns, before: np.ndarray, after: np.ndarray) -> tuple[Columns, np.ndarray]:
    """Rows with numbers that go, and those that come in their place, and their diffs."""
    gone, come = np.flatnonzero(before), np.flatnonzero(after)
    places = np.concatenate([gone, come])
    numbers = np.concatenate([before[gone], after[come]]).astype(np.int64)
    diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    return (*(column[places] for column in columns), numbers), diffs


def first_wrong(columns: Columns, numbers: np.ndarray) -> tuple[Words, int] | None:
    """The first row with a number that cannot be."""
    wrong = (numbers < 0) | (numbers > MAX_NUMBER)
    if not wrong.any():
        return None
    place = int(np.argmax(wrong))
    return tuple(int(column[place]) for column in columns), int(numbers[place])


def _sums(numbers: np.ndarray, diffs: np.ndarray) -> np.ndarray:
    """Numbers and diffs together, exactly."""
    if diffs.dtype == object or numbers.max(initial=0) >= _MAX_EXACT_SUM:
        return np.asarray(numbers.astype(object) + diffs)
    return np.asarray(numbers + diffs)


def _arrays(few: dict[Words, int], arity: int) -> tuple[Columns, np.ndarray]:
    """Rows one by one as columns, and their diffs."""
    table = np.array(list(few), np.int64).reshape(len(few), arity)
    within = all(abs(diff) <= MAX_NUMBER for diff in few.values())
    return tuple(np.ascontiguousarray(table.T)), np.array(list(few.values()), np.int64 if within else object)
