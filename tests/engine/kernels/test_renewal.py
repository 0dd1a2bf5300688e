"""Inputs that much has come to and gone from are put in order again, or leave their base where they are small: rows, groups and
changes are as before, and the memory is a small multiple of that of loading what is there."""

from __future__ import annotations

from random import Random

import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.runtime.storage.memory_map import collection_arrays, index_arrays
from tests.engine.kernels.store import Change, Store
from tests.engine.kernels.workbench import Row

ROWS = 1600
KEYS = 150
FEW = 1 << 17
"""Rows below which an input leaves its base instead."""
MANY = 1 << 18
"""Rows from which an input that an eighth of the rows has gone from is refilled (test_refilling.py)."""
BATCHES = 150 if JIT else 30
"""Batches that put a store in order more than once: without the JIT, just once."""
compiled = pytest.mark.skipif(not JIT, reason="without the JIT so many rows take minutes to load")


def loaded(
    random: Random, keys: list[tuple[int, ...]], valued: bool = False, arity: int = 2, rows: int = ROWS, of: int = KEYS
) -> Store:
    """A store of so many rows with so many values in their first column."""
    store = Store(arity, keys=keys, valued=valued)
    found: set[Row] = set()
    while len(found) < rows:
        found.add((random.randrange(of), *(random.randrange(10**6) for _ in range(arity - 1))))
    store.load(sorted(found))
    return store


def churn(random: Random, store: Store, count: int, of: int = KEYS) -> list[Change]:
    """As many rows come as go, under the same keys."""
    gone = random.sample(list(store.rows), count)
    come = [(random.randrange(of), *(random.randrange(10**6) for _ in row[1:])) for row in gone]
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


def churned(random: Random, store: Store, batches: int, count: int, of: int) -> tuple[int, int, int]:
    """Goes through batches that replace so many rows; how often it was put in order, and what it held at most after any of
    them: row numbers, and bytes."""
    renewed, numbers, size = 0, 0, 0
    for _ in range(batches):
        before = removed(store)
        store.batch([churn(random, store, count, of)])
        renewed += removed(store) < before
        numbers = max(numbers, int(store.collection.struct[L.relation.rows]))
        size = max(size, held(store))
    assert set(store.values(store.collection.present())) == store.rows
    return renewed, numbers, size


@pytest.mark.parametrize(
    ("keys", "bound"), [([(0,)], 5.0), ([(0,), (1,)], 2.2), ([(0, 1)], 2.2), ([()], 4.0), ([(1,)], 2.2)], ids=str
)
@pytest.mark.parametrize("valued", [False, True])
def test_few_rows_that_come_and_go_for_long_take_a_bounded_multiple_of_the_memory_of_loading_them(
    keys: list[tuple[int, ...]], bound: float, valued: bool
) -> None:
    """Their base goes when half of it has; loaded, those by their one key take 10 bytes each, others up to 30."""
    random = Random(3)
    store = loaded(random, keys, valued)
    store.check()
    _, numbers, size = churned(random, store, BATCHES, 40, KEYS)
    store.check()
    assert base_rows(store) == 0
    assert numbers <= 1.6 * len(store.rows)
    assert size <= bound * held_when_loaded(store, valued)
    store.close()


@pytest.mark.slow
@compiled
@pytest.mark.parametrize(("keys", "bound"), [([(0,)], 3.5), ([(0,), (1,)], 1.8)], ids=str)
def test_more_rows_are_put_in_order_when_half_as_many_have_gone(keys: list[tuple[int, ...]], bound: float) -> None:
    random = Random(3)
    store = loaded(random, keys, rows=FEW + 4000, of=FEW // 10)
    renewed, numbers, size = churned(random, store, 40, 4000, FEW // 10)
    assert renewed >= 2
    assert numbers <= 1.45 * len(store.rows)
    assert size <= bound * held_when_loaded(store, False)
    store.close()


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("keys", [[(0,)], [(0,), (1,)]])
def test_many_rows_that_come_and_go_for_long_take_little_more_memory_than_loading_them(keys: list[tuple[int, ...]]) -> None:
    random = Random(3)
    store = loaded(random, keys, rows=MANY + 8000, of=MANY // 10)
    renewed, numbers, size = churned(random, store, 20, 8000, MANY // 10)
    assert renewed == 0
    assert numbers <= 1.2 * len(store.rows)
    assert size <= 2.5 * held_when_loaded(store, False)
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "rows", "share"),
    [
        pytest.param([(0,), (1,)], FEW // 2 * 3, 2, id="more than few", marks=compiled),
        pytest.param([(0,)], FEW // 2 * 3, 2, id="more than few with an implied key", marks=compiled),
        pytest.param([(0,), (1,)], MANY // 2 * 3, 4, id="many", marks=compiled),
        pytest.param([(0,)], MANY // 2 * 3, 8, id="many with an implied key", marks=compiled),
    ],
)
def test_an_input_is_put_in_order_when_a_share_of_its_rows_has_gone(keys: list[tuple[int, ...]], rows: int, share: int) -> None:
    """The more rows there are and, of many, the fewer bytes a row takes, the sooner."""
    store = loaded(Random(4), keys, rows=rows // (share + 1) * (share + 1), of=rows // 10)
    before, gone = base_rows(store), sorted(store.rows)[:: share + 1]
    store.batch([[(row, -1) for row in gone[:-1]]])
    store.batch([[(gone[-1], -1)]])
    assert base_rows(store) == before
    other = next(iter(store.rows))[0]
    store.batch([[((other, -1), 1)]])
    assert base_rows(store) == before - len(gone)
    assert removed(store) == 0
    store.close()


@pytest.mark.parametrize("rows", [ROWS, pytest.param(FEW + 64, marks=[compiled, pytest.mark.slow])])
def test_a_batch_that_finds_an_input_worn_logs_what_it_changes_itself(rows: int) -> None:
    """`Store.batch` compares every log; so it does in the batch in which row numbers change, of several rounds."""
    random = Random(5)
    store = loaded(random, [(0,), (1,)], arity=3, rows=rows, of=rows // 10)
    gone = sorted(store.rows)[::3]
    store.batch([[(row, -1) for row in gone] + [((row[0], row[1] + 10**6, row[2]), 1) for row in gone]])
    before = base_rows(store)
    for _ in range(20):
        changes = churn(random, store, rows // 30, rows // 10)
        again = [(row, 1) for row, _ in changes[: rows // 90]]
        store.batch([changes[: rows // 30], changes[rows // 30 :], again])
        if base_rows(store) != before:
            break
    assert base_rows(store) != before == rows
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


def test_an_input_stays_as_it_is_while_memory_lacks_for_ordinary_rows() -> None:
    random = Random(9)
    store = loaded(random, [(0,)])
    control = store.control
    store.batch([[(row, -1) for row in sorted(store.rows)[:60]]])
    limit, control[L.control.limit] = control[L.control.limit], store.memory.used + 8 * ROWS
    for _ in range(14):
        store.batch([[(row, -1) for row in sorted(store.rows)[:60]]])
    assert base_rows(store) == ROWS
    store.check()
    control[L.control.limit] = limit
    store.batch([churn(random, store, 1)])
    assert base_rows(store) == 0
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
    for _ in range(6 if JIT else 3):
        for key in range(40 if JIT else 8):
            store.batch([[((key, value), 1) for value in range(200)]])
            store.batch([[((key, value), -1) for value in range(1, 200)]])
        sizes.append(int(store.collection.indexes[0,].struct[L.index.pool_size]))
    assert sizes[-1] == sizes[0] < 1500
    store.check()
    store.close()


@pytest.mark.parametrize("arity", [2, 3])
@pytest.mark.parametrize("gone", [0, 10])
def test_a_base_that_is_outgrown_is_left(arity: int, gone: int) -> None:
    random = Random(arity + gone)
    store = loaded(random, [(0,)], arity=arity, rows=100, of=20)
    store.batch([[(row, -1) for row in random.sample(sorted(store.rows), gone)]])
    came = 0
    while base_rows(store):
        assert came <= 480
        come = {(random.randrange(20), *(random.randrange(10**6) for _ in range(arity - 1))) for _ in range(40)} - store.rows
        store.batch([[(row, 1) for row in come]])
        store.check()
        came += len(come)
    assert came >= 400
    store.batch([[(row, -1) for row in random.sample(sorted(store.rows), 200)]])
    store.check()
    store.close()
