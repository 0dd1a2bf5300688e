"""An input and Python's set of the rows that it is to hold, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.inputs import loading
from dlog.engine.kernels.incremental.loop import batches as batch
from dlog.engine.kernels.incremental.store import indexes, slots
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import view, words
from tests.engine.kernels.workbench import Row

Change = tuple[Row, int]
KEYS = {1: [(), (0,)], 2: [(), (0,), (1,), (0, 1)], 3: [(0,), (1,), (0, 2), (2, 1)]}
"""The indexes kept for rows of each arity."""


class Store:
    """An input of some arity with indexes, which may hold values, and the set of rows that it is to hold."""

    def __init__(self, arity: int, *, valued: bool = False, keys: Sequence[tuple[int, ...]] | None = None) -> None:
        self.memory = Memory(None)
        self.worker = Worker(self.memory)
        self.control = self.worker.control
        self.collection = Collection("c", (Kind.NUMBER,) * arity, Role.INPUT, self.memory)
        self.keys = list(KEYS[arity] if keys is None else keys)
        for key in self.keys:
            index = self.collection.index(key)
            index.proposes = valued
            index.want_values()
        self.rows: set[Row] = set()
        self.seen: set[Row] = set()

    def batch(self, rounds: Sequence[Sequence[Change]], by_columns: bool = False) -> None:
        """One batch of rounds, in the store and in the set; the changes that it logs are those of the set. They come row after
        row, or column after column."""
        control, address = self.control.address, self.collection.address
        listed = [(*row, diff, number) for number, round in enumerate(rounds) for row, diff in round]
        staged = np.array(listed, np.int64).reshape(len(listed), self.collection.arity + 2)
        batch.forget_changes(control, address)
        batch.begin(control, address, len(rounds))
        if by_columns:
            columns = staged.T.copy()
            listed_at = words(int(column.ctypes.data) for column in columns)
            assert loading.bring_changes(control, address, listed_at.address, 0, len(staged))
        else:
            assert loading.bring_in(control, address, int(staged.ctypes.data), 0, len(staged))
        assert batch.settle(control, address)
        assert self.logged(len(rounds)) == [self.followed(round) for round in rounds]

    def followed(self, round: Sequence[Change]) -> set[Change]:
        """What a round changes in all."""
        before = set(self.rows)
        for row, diff in round:
            self.seen.add(row)
            (self.rows.add if diff > 0 else self.rows.discard)(row)
        return {(row, 1) for row in self.rows - before} | {(row, -1) for row in before - self.rows}

    def logged(self, rounds: int) -> list[set[Change]]:
        """What the log says that each round changed; rows that come and go in one round are in it twice."""
        numbers, places, diffs = self.collection.changes()
        totals = [Counter[Row]() for _ in range(rounds)]
        for row, place, diff in zip(self.values(numbers), places.tolist(), diffs.tolist(), strict=True):
            totals[place][row] += diff
        return [{(row, diff) for row, diff in total.items() if diff} for total in totals]

    def values(self, numbers: np.ndarray) -> list[Row]:
        return list(zip(*(column.tolist() for column in self.collection.raw_columns(numbers)), strict=True))

    def check(self) -> None:
        """Everything that can be asked of the store is as the set has it."""
        present = self.values(self.collection.present())
        assert len(present) == len(self.rows) == self.collection.struct[L.collection.live]
        assert set(present) == self.rows
        for row in self.seen:
            assert (self.find(row) >= 0) == (row in self.rows)
        for key in self.keys:
            self.check_index(key)

    def find(self, row: Row) -> int:
        values = words(row)
        hashed = slots.hash_values(values.address, len(row))
        return int(slots.find_values(self.collection.address, values.address, hashed))

    def searched(self, rows: Sequence[Row], making: bool) -> list[int]:
        """What a search ahead says of rows: the likely one, that there is none, or nothing."""
        listed = [words(row) for row in rows]
        hashes = np.array([slots.hash_values(w.address, len(row)) for w, row in zip(listed, rows, strict=True)], np.int64)
        places = np.empty(len(rows), np.int64)
        address = self.collection.address
        slots.search_ahead(address, int(hashes.ctypes.data), len(rows), making, int(places.ctypes.data))
        return [int(place) for place in places]

    def load(self, rows: Sequence[Row]) -> None:
        """A first batch by columns, which may repeat rows."""
        control, address = self.control.address, self.collection.address
        columns = np.array(rows, np.int64).reshape(len(rows), self.collection.arity).T.copy()
        listed = words(int(column.ctypes.data) for column in columns)
        batch.forget_changes(control, address)
        batch.begin(control, address, 1)
        assert loading.bring_in(control, address, 0, listed.address, len(rows))
        assert batch.settle(control, address)
        self.rows |= set(rows)
        self.seen |= set(rows)

    def check_index(self, key: tuple[int, ...]) -> None:
        struct = self.collection.indexes[key].struct
        groups: dict[Row, set[Row]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[c] for c in key), set()).add(row)
        assert struct[L.index.used] == len(groups)
        for wanted in {tuple(row[c] for c in key) for row in self.seen}:
            listed = self.rows_of(key, wanted)
            assert len(listed) == len(set(listed))
            assert set(listed) == groups.get(wanted, set())

    def rows_of(self, key: tuple[int, ...], wanted: Row) -> list[Row]:
        """The rows that an index has for a key."""
        numbers, pooled = self.items(key, wanted)
        if pooled and self.holds_values(key):
            return [(*wanted, value) if key == (0,) else (value, *wanted) for value in numbers.tolist()]
        return self.values(numbers)

    def holds_values(self, key: tuple[int, ...]) -> bool:
        return bool(self.collection.indexes[key].struct[L.index.values])

    def group(self, key: tuple[int, ...], wanted: Row) -> np.ndarray:
        """The row numbers of a key."""
        return self.items(key, wanted)[0]

    def items(self, key: tuple[int, ...], wanted: Row) -> tuple[np.ndarray, bool]:
        """What the slab of a key has, and whether it is in the pool."""
        struct = self.collection.indexes[key].struct
        values = words(wanted)  # must outlive the call: the kernel gets its address
        group = int(indexes.find_group(struct.address, values.address))
        if group < 0:
            return np.empty(0, np.int32), False
        slab = view(struct[L.index.slabs] + group * L.slab.size * 4, L.slab.size, np.int32)
        start, count = int(slab[L.slab.start]), max(int(slab[L.slab.count]), 0)
        if slab[L.slab.capacity] == 0:
            return np.arange(start, start + count, dtype=np.int32), False
        return view(struct[L.index.pool] + start * 4, count, np.int32), True

    def is_dense(self, key: tuple[int, ...]) -> bool:
        return bool(self.collection.indexes[key].struct[L.index.dense])

    def close(self) -> None:
        self.collection.free()
        assert self.memory.used == 0
