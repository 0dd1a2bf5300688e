"""Tables that grow while rows come and go: pairs, slots and groups, against Python's sets; with hashes that meet, and without
memory in the midst."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.incremental.inputs import input_changes, loading
from dlog.engine.kernels.incremental.loop import batches
from dlog.engine.kernels.incremental.store import indexes, keyed, slots
from dlog.engine.runtime.static.worker import Worker
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, words
from tests.examples import examples

pytestmark = pytest.mark.skipif(not JIT, reason="tables that grow by instalments are large")
_MIX = np.int64(-7046029254386353131)
ROWS = 24_000
"""They make all tables grow several times, some of these by instalments."""
FEW = 600
"""They make a table that is filled grow a few times."""
CROWD = 1_500
"""Rows with nearly the same hash."""


def mixed(hashed: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`storage.mix`."""
    with np.errstate(over="ignore"):
        product = (hashed ^ values) * _MIX
    return product ^ (product >> 29 & 0x7FFFFFFFF)


def homes(rows: np.ndarray, kind: str) -> np.ndarray:
    """The 32 bits that a table looks at."""
    nothing = np.zeros(len(rows), np.int64)
    if kind == "pairs":
        hashed = mixed(nothing, (rows[:, 1] ^ -(2**31)) << 32 | rows[:, 0] & 0xFFFFFFFF)
    else:
        hashed = mixed(nothing, rows[:, 0])
        for column in range(1, 1 if kind == "groups" else rows.shape[1]):
            hashed = mixed(hashed, rows[:, column])
    return hashed >> 32 & 0xFFFFFFFF


def universe(kind: str, seed: int, crowd: str) -> np.ndarray:
    """Different rows in random order, among them a crowd: at the end of all hashes, at their beginning or amid."""
    draw = np.random.default_rng(seed)
    columns = 3 if kind == "wide slots" else 2
    most = 1 << 40 if kind == "narrow slots" else 1 << 31
    rows = draw.integers(0, most, (ROWS, columns))
    if crowd:
        low = {"end": 2**32 - 2**23, "front": 0, "amid": 2**31}[crowd]
        many = draw.integers(0, most, (CROWD << 10, columns))
        hashed = homes(many, kind)
        rows[:CROWD] = many[(hashed >= low) & (hashed < low + 2**23)][:CROWD]
    return draw.permutation(rows)


class Store:
    """An input, and the rows that it is to hold as numbers of a universe."""

    def __init__(self, kind: str, rows: np.ndarray) -> None:
        self.kind, self.all = kind, rows
        self.memory = Memory(None)
        self.worker = Worker(self.memory)
        self.collection = Collection("c", (Kind.NUMBER,) * rows.shape[1], Role.INPUT, self.memory)
        if kind == "groups":
            self.collection.index((0,))
        else:
            self.collection.quieten()
        self.there = np.zeros(len(rows), bool)
        self.grew = False

    @property
    def table(self) -> tuple[Struct, int]:
        """Where the homes of the table that is looked at are."""
        if self.kind == "groups":
            return self.collection.indexes[(0,)].struct, L.index.slot_homes_count
        return self.collection.struct, L.collection.pair_homes_count if self.kind == "pairs" else L.collection.slot_homes_count

    def change(self, numbers: np.ndarray, diff: int, limit: int | None = None) -> bool:
        """One batch. False where memory ended in it, and it was taken back."""
        control, address, arity = self.worker.control, self.collection.address, self.all.shape[1]
        if self.kind == "groups" and limit is not None:
            return self.grow_groups(limit)
        staged = np.zeros((len(numbers), arity + 2), np.int64)
        staged[:, :arity], staged[:, arity] = self.all[numbers], diff
        batches.begin(control.address, address, 2)
        unlimited = control[L.control.limit]
        control[L.control.limit] = unlimited if limit is None else self.memory.used + limit
        done = bool(input_changes.apply_input(control.address, address, int(staged.ctypes.data), len(staged)))
        done = done and bool(loading.enter_changed(control.address, address))
        control[L.control.limit] = unlimited
        if not done:
            assert control[L.control.error] == Error.MEMORY
            control[L.control.error] = 0
            self.undo(numbers, diff)
        assert batches.settle(control.address, address)
        batches.forget_changes(control.address, address)
        if done:
            self.there[numbers] = diff > 0
        struct, homes = self.table
        self.grew = self.grew or struct[homes + L.homes.edge] != 0
        return done

    def grow_groups(self, limit: int) -> bool:
        """Makes room for one more group, again and again, until memory ends: there is no way back from rows in some indexes."""
        control, index = self.worker.control, self.collection.indexes[(0,)].struct
        unlimited, control[L.control.limit] = control[L.control.limit], self.memory.used + limit
        for _ in range(50 if index[L.index.slots] else 0):
            keyed.grow_slots(control.address, index.address, index[L.index.used] + 1 & ~7)
        control[L.control.limit] = unlimited
        control[L.control.error] = 0
        return False

    def undo(self, numbers: np.ndarray, diff: int) -> None:
        """As an engine does: what was there is there again."""
        control, address, arity = self.worker.control, self.collection.address, self.all.shape[1]
        changed = numbers[self.there[numbers] != (diff > 0)]
        staged = np.zeros((len(changed), arity + 2), np.int64)
        staged[:, :arity], staged[:, arity], staged[:, arity + 1] = self.all[changed], -diff, 1
        assert input_changes.apply_input(control.address, address, int(staged.ctypes.data), len(staged))

    def check(self, some: np.ndarray) -> None:
        columns, count = self.collection.read()
        found = np.column_stack([column.astype(np.int64) for column in columns])
        assert count == self.there.sum()
        expected = self.all[self.there]
        assert np.array_equal(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)])
        if "slots" in self.kind:
            for number in some:
                values = words(self.all[number].tolist())
                hashed = slots.hash_values(values.address, self.all.shape[1])
                assert (slots.find_values(self.collection.address, values.address, hashed) >= 0) == self.there[number]
        if self.kind == "groups":
            struct = self.collection.indexes[(0,)].struct
            assert struct[L.index.used] == len(np.unique(expected[:, 0]))
            for number in some:
                key = words([int(self.all[number, 0])])
                assert (indexes.find_group(struct.address, key.address) >= 0) == (self.all[number, 0] in expected[:, 0])

    def close(self) -> None:
        self.collection.free()
        assert self.memory.used == 0


def story(store: Store, draw: np.random.Generator, limits: Iterator[int | None]) -> None:
    """Batches of rows that come, and of some that go, until all have come; then most go, and come again."""
    for first in range(0, ROWS, 500):
        coming = np.arange(first, first + 500)
        for part in np.array_split(coming, draw.integers(1, 8)):
            while not store.change(part, 1, next(limits)):
                store.check(draw.choice(ROWS, 5))
        there = np.flatnonzero(store.there)
        store.change(draw.choice(there, draw.integers(1, 200), replace=False), -1)
        if first % 3000 == 0:
            store.check(draw.choice(ROWS, 20))
    for _ in range(2):
        store.change(draw.choice(ROWS, ROWS // 2, replace=False), -1)
        store.check(draw.choice(ROWS, 20))
        for part in np.array_split(draw.permutation(ROWS), 40):
            store.change(part, 1)
        store.check(draw.choice(ROWS, 20))


@pytest.mark.slow
@pytest.mark.parametrize("crowd", ["", "end", "front", "amid"])
@pytest.mark.parametrize("kind", ["pairs", "narrow slots", "wide slots", "groups"])
@examples(2)
@given(seed=st.integers(0, 2**32))
def test_tables_grow_while_rows_come_and_go(kind: str, crowd: str, seed: int) -> None:
    store = Store(kind, universe(kind, seed, crowd))
    story(store, np.random.default_rng(seed), iter(lambda: None, 0))
    assert store.grew
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pairs", "narrow slots", "wide slots", "groups"])
@examples(2)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_lost_where_memory_ends_while_a_table_grows(kind: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    refused = 0

    def limits() -> Iterator[int | None]:
        nonlocal refused
        while True:
            for room in (0, int(draw.integers(1, 4000)), int(draw.integers(4000, 200_000)), None):
                yield room
                refused += 1

    store = Store(kind, universe(kind, seed, "end" if seed % 2 else ""))
    story(store, draw, limits())
    assert store.grew
    assert refused
    store.close()


def fresh_table(done: int, left: int, limit: int | None = None) -> tuple[int, int]:
    """The slots of rows that a path derives of an empty collection, with so many of its changes behind and before it, and the
    memory in use."""
    store = Store("narrow slots", universe("narrow slots", 1, "")[:FEW])
    control, address = store.worker.control, store.collection.address
    path, level = Struct(L.path.size), Struct(L.level.size)
    path[L.path.target] = address
    level[L.level.at], level[L.level.end] = done, done + left
    control.point(L.control.run_path, path)
    control.point(L.control.levels, level)
    control[L.control.running] = 1
    staged = np.zeros((FEW, 4), np.int64)
    staged[:, :2], staged[:, 2] = store.all, 1
    batches.begin(control.address, address, 1)
    if limit is not None:
        control[L.control.limit] = limit
    for row in staged:
        assert input_changes.apply_input(control.address, address, int(row.ctypes.data), 1)
    assert control[L.control.error] == 0
    store.there[:] = True
    found = store.collection.struct[L.collection.slot_homes_count], store.memory.used
    assert batches.settle(control.address, address)
    store.check(np.arange(0, FEW, 7))
    return found


@pytest.mark.parametrize(("done", "left", "hoped"), [(100, 0, 1), (100, 100, 2), (100, 1_500, 8), (1, 1_000, 1), (0, 100, 1)])
def test_a_table_that_is_filled_gets_slots_for_what_comes_of_the_changes_left(done: int, left: int, hoped: int) -> None:
    homes, _ = fresh_table(done, left)
    assert hoped * FEW <= homes * 8 // 7 and homes <= 3 * hoped * FEW


def test_a_table_that_is_filled_grows_where_it_is_when_memory_is_short() -> None:
    (_, plain), (_, wide) = fresh_table(100, 0), fresh_table(100, 1_500)
    limit = (plain + wide) // 2
    assert fresh_table(100, 1_500, limit)[1] <= limit
