"""Inputs that much has come to and gone from are put in order again: rows, groups and changes are as before, and the memory is
that of loading what is there."""

from __future__ import annotations

from random import Random

import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.storage.memory_map import collection_arrays, index_arrays
from tests.engine.kernels.store import Change, Store
from tests.engine.kernels.workbench import Row

ROWS = 1600
KEYS = 150


def loaded(random: Random, keys: list[tuple[int, ...]], valued: bool = False, arity: int = 2) -> Store:
    store = Store(arity, keys=keys, valued=valued)
    rows: set[Row] = set()
    while len(rows) < ROWS:
        rows.add((random.randrange(KEYS), *(random.randrange(10**6) for _ in range(arity - 1))))
    store.load(sorted(rows))
    return store


def churn(random: Random, store: Store, count: int) -> list[Change]:
    """As many rows come as go, under the same keys."""
    gone = random.sample(sorted(store.rows), count)
    come = [(random.randrange(KEYS), *(random.randrange(10**6) for _ in row[1:])) for row in gone]
    return [(row, -1) for row in gone] + [(row, 1) for row in come if row not in store.rows]


def base_rows(store: Store) -> int:
    return int(store.collection.struct[L.collection.base_rows])


def removed(store: Store) -> int:
    """Rows that have gone since the store was put in order."""
    return int(store.collection.struct[L.collection.base_removed])


def held(store: Store) -> int:
    """Bytes for rows and groups, without what a batch has for its changes."""
    collection = store.collection
    own = {collection.struct.address, collection.widths[0].address}
    found = [array for array in collection_arrays(collection) if array.struct.address in own]
    for index in collection.indexes.values():
        found += index_arrays(index)
    return sum(array.size for array in found if array.struct[array.field])


def held_when_loaded(store: Store, valued: bool) -> int:
    other = Store(store.collection.arity, keys=list(store.keys), valued=valued)
    other.load(sorted(store.rows))
    found = held(other)
    other.close()
    return found


@pytest.mark.parametrize("keys", [[(0,)], [(0,), (1,)], [(0, 1)], [()], [(1,)]])
@pytest.mark.parametrize("valued", [False, True])
def test_rows_that_come_and_go_for_long_take_little_more_memory_than_loading_them(
    keys: list[tuple[int, ...]], valued: bool
) -> None:
    random = Random(3)
    store, renewed = loaded(random, keys, valued), 0
    store.check()
    before = removed(store)
    for _ in range(60):
        store.batch([churn(random, store, 40)])
        renewed, before = renewed + (removed(store) < before), removed(store)
    store.check()
    assert renewed > 5
    assert store.collection.struct[L.relation.rows] <= 1.2 * len(store.rows)
    assert held(store) <= 2.5 * held_when_loaded(store, valued)
    store.close()


def test_a_batch_that_finds_an_input_worn_logs_what_it_changes_itself() -> None:
    """`Store.batch` compares every log; so it does in the batch in which row numbers change, of several rounds."""
    random = Random(5)
    store = loaded(random, [(0,), (1,)], arity=3)
    for _ in range(40):
        before = removed(store)
        changes = churn(random, store, 30)
        again = [(row, 1) for row, _ in changes[:10]]
        store.batch([changes[:30], changes[30:], again])
        if removed(store) < before:
            break
    assert removed(store) < before
    store.check()
    store.close()


def test_rows_that_only_come_leave_the_base_as_it_is() -> None:
    store = loaded(Random(7), [(0,)])
    for number in range(10):
        store.batch([[((key, -1 - number * KEYS - key), 1) for key in range(KEYS)]])
    assert base_rows(store) == ROWS < len(store.rows)
    store.check()
    store.close()


def test_rows_that_return_leave_the_base_as_it_is() -> None:
    store = loaded(Random(8), [(0,)])
    some = sorted(store.rows)[::20]
    for _ in range(30):
        store.batch([[(row, -1) for row in some]])
        store.batch([[(row, 1) for row in some]])
    assert base_rows(store) == ROWS == store.collection.struct[L.relation.rows]
    store.check()
    store.close()


def test_an_input_stays_as_it_is_while_memory_lacks_to_put_it_in_order() -> None:
    random = Random(9)
    store = loaded(random, [(0,)])
    control = store.control
    store.batch([[(row, -1) for row in sorted(store.rows)[:60]]])
    limit, control[L.control.limit] = control[L.control.limit], store.memory.used + 8 * ROWS
    for _ in range(7):
        store.batch([[(row, -1) for row in sorted(store.rows)[:60]]])
    assert base_rows(store) == ROWS
    store.check()
    control[L.control.limit] = limit
    store.batch([churn(random, store, 1)])
    assert base_rows(store) == ROWS - 8 * 60
    store.check()
    store.close()


def test_an_input_whose_values_lie_far_apart_by_now_has_ordinary_rows() -> None:
    random = Random(10)
    store = loaded(random, [(0,)])
    far = [(2**31 + 2**20 * number, 2**33 * number) for number in range(ROWS)]
    rows = sorted(store.rows)
    store.batch([[(row, -1) for row in rows[:-50]] + [(row, 1) for row in far]])
    store.batch([churn(random, store, 2)])
    assert base_rows(store) == 0
    store.check()
    store.batch([[(row, 1) for row in rows[:100]]])
    store.check()
    store.close()


def test_a_key_whose_rows_go_gives_its_place_in_the_pool_back() -> None:
    """Groups of an index that grew and shrank take the places of one another."""
    store = Store(2, keys=[(0,)])
    key = 0
    sizes = []
    for _ in range(6):
        for key in range(40):
            store.batch([[((key, value), 1) for value in range(200)]])
            store.batch([[((key, value), -1) for value in range(1, 200)]])
        sizes.append(int(store.collection.indexes[0,].struct[L.index.pool_size]))
    assert sizes[-1] < 1200
    store.check()
    store.close()
