"""Key columns that the offsets of a base imply: rows, groups and changes are as with a column, and there is one again where
that is needed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dlog.engine.kernels import block
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.incremental.steps import joins
from dlog.engine.kernels.incremental.store import base, implied
from dlog.engine.runtime.storage.native import words
from tests.engine.kernels.store import Change, Store
from tests.engine.kernels.workbench import Row

ROWS = 7000


def loaded(random: Random, arity: int, key: int) -> Store:
    """Keys with no rows, few and many, some below 0."""
    rows: set[Row] = set()
    while len(rows) < ROWS:
        row = [random.randrange(10**6) for _ in range(arity)]
        row[key] = random.choice([7, random.randrange(-50, 50), random.randrange(-50, 4000) // 40 * 40])
        rows.add(tuple(row))
    store = Store(arity, keys=[(key,)])
    store.load(sorted(rows, key=lambda _: random.random()))
    assert is_implied(store, key)
    return store


def is_implied(store: Store, key: int) -> bool:
    return int(store.collection.widths[0][key * L.column.size + L.column.width]) == L.IMPLIED


def changes(random: Random, store: Store, key: int, count: int) -> list[Change]:
    gone = [(row, -1) for row in random.sample(sorted(store.seen), count)]
    arity = store.collection.arity
    fresh = [tuple(random.randrange(-60, 4100) if c == key else -k for c in range(arity)) for k in range(count)]
    return gone + [(row, 1) for row in fresh] + [(row, 1) for row, _ in random.sample(gone, count // 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("arity", "key"), [(2, 0), (2, 1), (3, 1), (1, 0)])
def test_rows_come_and_go_as_with_a_column(arity: int, key: int) -> None:
    random = Random(10 * arity + key)
    if arity == 1:
        store = Store(1, keys=[(0,)])
        store.load([(x,) for x in range(ROWS)])
    else:
        store = loaded(random, arity, key)
    store.check()
    for _ in range(4 if JIT else 1):
        store.batch([changes(random, store, key, 40) for _ in range(3)])
        store.check()
    store.close()


def test_every_key_is_found_from_the_number_of_a_row() -> None:
    random = Random(5)
    store = loaded(random, 2, 0)
    store.batch([changes(random, store, 0, 30)])
    column = store.collection.widths[0].address
    rows = store.collection.struct[L.relation.rows]
    one_by_one = [implied.cell_at(column, row) for row in range(rows)]
    numbers = np.arange(rows)
    found = np.empty(rows, np.int64)
    joins.take_cells(column, int(numbers.ctypes.data), rows, int(found.ctypes.data))
    assert found.tolist() == one_by_one
    store.collection.hold_keys()
    assert not is_implied(store, 0)
    block.gather(column, int(numbers.ctypes.data), rows, int(found.ctypes.data))
    assert found.tolist() == one_by_one
    store.check()
    store.close()


def test_a_key_of_eight_bytes_makes_a_column_of_all() -> None:
    random = Random(6)
    store = loaded(random, 2, 0)
    store.batch([[((2**40, 1), 1), ((2**40, 2), 1), (next(iter(store.rows)), -1)]])
    assert not is_implied(store, 0)
    store.check()
    store.close()


def test_another_index_makes_a_column() -> None:
    store = loaded(Random(7), 2, 1)
    store.collection.index((0,))
    store.keys.append((0,))
    assert not is_implied(store, 1)
    store.check()
    store.close()


@pytest.mark.slow
def test_the_key_is_implied_as_long_as_half_of_the_base_is_left() -> None:
    random = Random(8)
    store = loaded(random, 2, 0)
    rows = sorted(store.rows)
    for left, based in ((ROWS - 2400, ROWS), (1000, 0)):
        store.batch([[(row, -1) for row in sorted(store.rows)[left:]]])
        store.batch([[(rows[0], -1)]])
        assert store.collection.struct[L.collection.base_rows] == based
        assert is_implied(store, 0) == (based != 0)
        store.check()
        store.batch([[(rows[0], 1)]])
    store.batch([[(row, 1) for row in rows[-300:]]])
    store.check()
    store.batch([[(row, -1) for row in sorted(store.rows)]])
    store.load(rows)
    assert is_implied(store, 0)
    store.check()
    store.close()


def test_other_indexes_keep_the_column_from_the_start() -> None:
    store = Store(2)
    store.load([(x // 6, x) for x in range(ROWS)])
    assert store.collection.struct[L.collection.base_rows] == ROWS
    assert not is_implied(store, 0)
    store.close()


def test_rows_are_found_by_their_values() -> None:
    store = loaded(Random(9), 2, 0)
    rows = sorted(store.rows)
    asked = [*rows[::7], *((x, y + 10**6) for x, y in rows[::11])]
    columns = np.array(asked, np.int64).T.copy()
    listed = words(int(column.ctypes.data) for column in columns)
    places, buffer = np.empty(len(asked), np.int64), np.zeros(2, np.int64)
    at, room = int(places.ctypes.data), int(buffer.ctypes.data)
    base.search_base(store.collection.address, listed.address, 1, 0, len(asked), at, room)
    assert store.values(places[: len(rows[::7])]) == rows[::7]
    assert (places[len(rows[::7]) :] == -1).all()
    store.close()
