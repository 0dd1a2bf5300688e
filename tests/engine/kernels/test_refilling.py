"""Places of a base whose rows have gone are given to rows with keys nearby: rows, groups and changes are as before, and few
rows move at a time."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.incremental.inputs import refilling
from dlog.engine.kernels.incremental.inputs.refilling import STRETCH_PLACES as STRETCH
from dlog.engine.kernels.incremental.inputs.renewal import REFILLED_IF_IMPLIED, REFILLED_PER_REMOVAL, SHARE_OF_MANY
from tests.engine.kernels.store import Store
from tests.engine.kernels.workbench import Row

MANY = 1 << 18
"""Rows from which a base is refilled."""
ROWS = 1600
BATCHES = 12 if JIT else 4
KEYS = 150


def row(random: Random, arity: int, keys: int, far: int) -> Row:
    return (random.randrange(keys), *(random.randrange(far) for _ in range(arity - 1)))


def loaded(
    random: Random, keys: list[tuple[int, ...]], valued: bool, arity: int, far: int, rows: int = ROWS, many: int = 0
) -> Store:
    """A store with so many rows, of so many keys; as many for each as elsewhere, if that is 0."""
    store = Store(arity, keys=keys, valued=valued)
    found: set[Row] = set()
    while len(found) < rows:
        found.add(row(random, arity, many or KEYS * rows // ROWS, far))
    store.load(sorted(found))
    return store


def figures(store: Store) -> tuple[int, int]:
    """Dead places, and rows that are not of the base."""
    base_rows, dead, live = (
        int(store.collection.struct[field]) for field in (L.collection.base_rows, L.collection.base_dead, L.collection.live)
    )
    return dead, live - base_rows + dead


def refilled(store: Store) -> None:
    """One step, between batches."""
    control, address = store.control.address, store.collection.address
    number = refilling.home_index(address)
    assert number >= 0
    assert refilling.refill_stretch(control, address, number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "valued", "arity", "far", "rows"),
    [
        ([(0,)], False, 2, 10**6, ROWS),
        ([(0,)], True, 2, 10**6, ROWS),
        ([(0,)], False, 2, 10**6, 3 * ROWS),
        ([(0,)], False, 2, 2**40, ROWS),
        ([(0,), (1,)], True, 2, 600, ROWS),
        ([(1,), (0,)], False, 2, 600, ROWS),
        ([(1,), (0,), (0, 1)], False, 3, 40, ROWS),
    ],
    ids=["rows", "values", "implied key", "eight bytes", "two of values", "two of rows", "by hash"],
)
def test_rows_that_came_later_take_dead_places_of_near_keys(
    keys: list[tuple[int, ...]], valued: bool, arity: int, far: int, rows: int
) -> None:
    random = Random(1)
    store = loaded(random, keys, valued, arity, far, rows)
    for number in range(BATCHES):
        gone = random.sample(sorted(store.rows), 60)
        again = random.sample(sorted(store.seen), 20)
        come = [row(random, arity, KEYS * rows // ROWS, far) for _ in range(40 if number % 2 else 80)]
        store.batch([[(each, -1) for each in gone] + [(each, 1) for each in come + again]])
        before = figures(store)
        for _ in range(2):
            refilled(store)
        after = figures(store)
        assert after[0] < before[0] and before[0] - after[0] == before[1] - after[1]
        assert rows > ROWS or min(after) <= 20
        store.check()
    store.close()


def test_a_stretch_of_which_rows_are_in_long_groups_of_another_index_is_left_as_it_is() -> None:
    store = Store(3, keys=[(0,), (2,)])
    store.load([(n % KEYS, n, 0) for n in range(ROWS)])
    store.batch([[((n % KEYS, n, 0), -1) for n in range(100)] + [((n % KEYS, -1 - n, 0), 1) for n in range(100)]])
    refilled(store)
    assert figures(store) == (100, 100)
    store.check()
    store.close()


def test_an_input_with_an_index_of_all_rows_or_none_by_its_base_is_not_refilled() -> None:
    for keys in ([(0,), ()], [(0, 1)]):
        store = loaded(Random(3), keys, False, 2, 10**6)
        assert refilling.home_index(store.collection.address) < 0
        store.close()


def test_a_stretch_is_left_as_it_is_while_memory_lacks() -> None:
    store = loaded(Random(4), [(0,)], False, 2, 10**6)
    store.batch([[(each, -1) for each in sorted(store.rows)[:50]] + [((key, -1), 1) for key in range(KEYS)]])
    before, control = figures(store), store.control
    limit, control[L.control.limit] = control[L.control.limit], store.memory.used + 100
    refilled(store)
    assert figures(store) == before
    control[L.control.limit] = limit
    refilled(store)
    refilled(store)
    assert figures(store) < before
    store.check()
    store.close()


def cells(store: Store) -> np.ndarray:
    """Values of the base's places, dead ones too."""
    return np.array(store.collection.raw_columns(np.arange(store.collection.struct[L.collection.base_rows])))


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="without the JIT so many rows take minutes to load")
@pytest.mark.parametrize(
    ("keys", "share", "least"),
    [([(0,)], REFILLED_IF_IMPLIED, 2 * REFILLED_IF_IMPLIED), ([(0,), (1,)], REFILLED_PER_REMOVAL, SHARE_OF_MANY)],
    ids=["implied key", "two indexes"],
)
def test_places_of_a_large_input_are_looked_at_once_many_are_dead(
    keys: list[tuple[int, ...]], share: int, least: int
) -> None:
    """None before one in `least` has gone (by then, groups that are no runs of an only index take an eighth of all memory);
    then as many as `share` times the rows that go, a stretch at a time: none in most batches."""
    random = Random(5)
    store = loaded(random, keys, False, 2, 10**6, MANY + 8000, MANY // 40)
    listed, size = sorted(store.rows), len(store.rows)
    first, rest = listed[: 20 * STRETCH], listed[20 * STRETCH :]
    dead = size // least - 1
    others = rest[:: len(rest) // dead][:dead]
    most, kept = first[-1][0], -(-STRETCH // (2 * share))
    before = cells(store)
    for part in range(8):
        store.batch([[change for key, value in others[part::8] for change in (((key, value), -1), ((key, -1 - value), 1))]])
    assert figures(store) == (len(others), len(others)) and (cells(store) == before).all()
    store.seen = set(first)
    moved = []
    for number in range(24):
        before = cells(store)
        gone = [(each, -1) for each in first[number::40][:: STRETCH // (2 * kept)][:kept]]
        store.batch([gone + [((place * most // kept, -10**7 - number), 1) for place in range(kept)]])
        moved.append(int((cells(store) != before).any(axis=0).sum()))
    assert [places > 0 for places in moved] == [number > 1 and number % 2 == 0 for number in range(24)]
    assert max(moved) <= 2 * STRETCH
    assert store.collection.struct[L.collection.base_rows] == size
    assert figures(store)[0] < len(others) + 24 * kept
    store.check()
    store.close()


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="without the JIT so many rows take minutes to load")
def test_places_of_a_large_input_are_left_while_little_memory_is_to_be_had() -> None:
    """Rows that go by whole keys leave runs: as many as in the test before, but what they take is not an eighth."""
    store = loaded(Random(6), [(0,)], False, 2, 10**6, MANY + 8000, MANY // 40)
    listed, size = sorted(store.rows), len(store.rows)
    before = cells(store)
    for part in range(4):
        gone = listed[part * size // 120 : (part + 1) * size // 120]
        store.batch([[(each, -1) for each in gone] + [((KEYS + key, -1 - value), 1) for key, value in gone]])
    dead, slotted = figures(store)
    assert dead == slotted > size // 40 and (cells(store) == before).all()
    store.check()
    store.close()
