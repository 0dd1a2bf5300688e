"""Collections and their indexes against Python's sets: rows come and go over batches, as inputs do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.incremental.store import base, slots
from dlog.engine.runtime.storage.native import words
from tests.engine.kernels.store import Change, Store
from tests.engine.kernels.workbench import EXAMPLES, MANY, MAX, MIN, Row
from tests.examples import examples

# Near each other, far apart, below the first, at the borders of 32 and 64 bits.
VALUES = st.sampled_from([0, 1, 2, 3, -1, -4097, 4096, 9000, 2**31 - 1, 2**31, -(2**31) - 1, 2**40, MAX, MAX - 1, MIN, MIN + 1])


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, list[list[list[Change]]]]:
    """An arity and batches of rounds of changes; rows come that are there, and go that are not."""
    arity = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[VALUES] * arity), min_size=1, max_size=12, unique=True))
    change = st.tuples(st.sampled_from(rows), st.sampled_from([1, 1, -1]))
    everything = [(row, -1) for row in rows]
    round = st.one_of(st.lists(change, max_size=8), st.just(everything), st.just([(row, 1) for row in rows]))
    return arity, draw(st.lists(st.lists(round, min_size=1, max_size=3), min_size=1, max_size=6))


@pytest.mark.slow
@examples(2 * EXAMPLES)
@given(told=batches())
def test_rows_and_groups_follow_every_batch(told: tuple[int, list[list[list[Change]]]]) -> None:
    arity, listed = told
    store = Store(arity)
    for rounds in listed:
        store.batch(rounds)
        store.check()
    store.close()


def inserted(rows: Iterable[Row]) -> list[list[Change]]:
    return [[(row, 1) for row in rows]]


def removed(rows: Iterable[Row]) -> list[list[Change]]:
    return [[(row, -1) for row in rows]]


@pytest.mark.slow
@pytest.mark.parametrize("low", [0, -5000, 2**31 - 50, MIN, MAX - 4000, 2**40])
def test_a_dense_index_grows_upwards_and_downwards(low: int) -> None:
    store = Store(1)
    middle = low + 2000
    for distance in range(0, 2000, 37):
        store.batch(inserted([(middle + distance,), (middle - distance,)] if distance else [(middle,)]))
    store.check()
    store.batch(removed(sorted(store.rows)[::2]))
    store.check()
    store.close()


@pytest.mark.parametrize("far", [10**6, -(10**6), MAX, MIN])
def test_a_dense_index_becomes_one_by_hash_when_a_key_is_far_away(far: int) -> None:
    store = Store(2)
    store.batch(inserted((x, x % 3) for x in range(40)))
    store.batch(removed([(x, x % 3) for x in range(0, 40, 4)]))
    assert store.is_dense((0,))
    store.batch(inserted([(far, 1)]))
    assert not store.is_dense((0,))
    store.check()
    store.batch(inserted([(x, 7) for x in range(0, 80, 5)]))
    store.check()
    store.close()


def test_groups_that_were_empty_when_an_index_turned_to_hashes_are_used_again() -> None:
    store = Store(2)
    store.batch(inserted((x, 0) for x in range(60)))
    store.batch(removed((x, 0) for x in range(0, 60, 2)))
    store.batch(inserted([(10**6, 0)]))
    assert not store.is_dense((0,))
    store.batch(inserted((10**6 + x, 0) for x in range(1, 30)))
    assert store.collection.indexes[0,].struct[L.index.groups] == 60
    store.check()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 3, 1000, 2**33])
def test_a_store_that_is_loaded_at_once_equals_one_that_grew(step: int) -> None:
    count = max(MANY // 8, 1100)
    store = Store(2)
    rows = [(i % 300 * step, i) for i in range(count)]
    store.batch(inserted(rows))
    store.check()
    store.batch(removed(rows[::3]))
    store.batch(inserted((i * step, -1 - i) for i in range(400)))
    store.check()
    store.batch(removed(store.rows))
    store.check()
    store.batch(inserted((x, y + 1) for x, y in rows))
    store.check()
    store.close()


def test_rows_that_come_and_go_need_no_more_memory() -> None:
    """Slots of removed rows, row numbers, slabs and groups are used again."""
    store, random = Store(2), Random(1)
    used = []
    for number in range(40 if JIT else 4):
        rows = [(random.randrange(10**9), random.randrange(50)) for _ in range(100)]
        store.batch([*inserted(rows), *inserted([(-1, number)])])
        store.batch([*removed(rows[:60]), *removed(rows[60:]), *removed([(-1, number)])])
        used.append(store.memory.used)
    assert not store.rows
    store.check()
    assert store.collection.struct[L.relation.rows] <= 202
    assert max(used[20:], default=0) <= max(used[:20]) * 11 // 10
    store.close()


def test_one_batch_may_toggle_a_row_thousands_of_times() -> None:
    store = Store(2)
    rounds = 4000 if JIT else 100
    store.batch([[((5, 6), 1)], [((7, 8), 1)]])
    store.batch([[((5, 6), -1 if number % 2 == 0 else 1)] for number in range(rounds)])
    assert store.rows == {(5, 6), (7, 8)}
    store.check()
    store.batch([[((5, 6), -1 if number % 2 == 0 else 1)] for number in range(rounds + 1)])
    assert store.rows == {(7, 8)}
    store.check()
    store.close()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_value_beyond_32_bits_widens_a_column_with_rows(place: int) -> None:
    store = Store(3)
    store.batch(inserted((i, -i, i * 7) for i in range(100)))
    large = [0, 0, 0]
    large[place] = 2**31
    store.batch([*inserted([tuple(large)]), *removed([(3, -3, 21)])])
    store.batch(inserted([(MIN, MAX, MIN), (-(2**31), 2**31 - 1, 0)]))
    store.check()
    store.close()


def test_removing_any_row_of_a_large_group_leaves_the_others() -> None:
    store = Store(2)
    rows = [(1, y) for y in range(200)]
    store.batch(inserted(rows))
    for row in Random(2).sample(rows, 199):
        store.batch(removed([row]))
        assert len(store.group((0,), (1,))) == len(store.rows)
    store.check()
    store.close()


@pytest.mark.slow
def test_an_index_by_hash_becomes_dense_when_its_keys_have_filled_their_range() -> None:
    store, random = Store(2), Random(2)
    keys = list(range(2**20, 2**20 + 6000))
    random.shuffle(keys)
    store.batch(inserted([(0, 0), (2**20, 0)]))
    store.batch(removed([(0, 0)]))
    for first in range(0, 6000, 500):
        store.batch(inserted((key, key % 7) for key in keys[first : first + 500]))
        dense = store.is_dense((0,))
        assert dense or first < 3000
        store.check_index((0,))
    store.batch(inserted([(10**9, 1)]))
    assert not store.is_dense((0,))
    store.check()
    store.close()


def test_an_index_by_hash_of_scattered_keys_stays_one() -> None:
    store = Store(2)
    for first in range(0, 4000, 500):
        store.batch(inserted((key * 1000, 0) for key in range(first, first + 500)))
    assert not store.is_dense((0,))
    store.check()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("wide", [1, 2**31, MAX // 5000])
def test_columns_are_loaded_as_rows_are(wide: int) -> None:
    store, random = Store(2), Random(3)
    rows = [(random.randrange(3000) * wide, -random.randrange(40)) for _ in range(MANY // 4)]
    store.load([*rows, *rows[::7]])
    store.check()
    store.batch(removed(rows[::3]))
    store.batch(inserted((x + 1, y) for x, y in rows[::5]))
    store.check()
    store.close()


# ---------------------------------------------------------------------------------------------------------------- values


def valued_store(rows: Sequence[Row]) -> Store:
    """A store whose indexes hold values: a base of these rows."""
    store = Store(2, valued=True)
    store.load(rows)
    assert store.holds_values((0,)) and store.holds_values((1,)) and not store.holds_values((0, 1))
    store.check()
    return store


SMALL = [(x, y) for x in range(40) for y in range(40) if (x + y) % 4]


@pytest.mark.slow
@examples(EXAMPLES)
@given(told=st.data())
def test_indexes_of_values_follow_every_batch(told: st.DataObject) -> None:
    store = valued_store(SMALL)
    value = st.one_of(st.integers(-2, 40), st.integers(-2, 40), st.sampled_from([4000, 10**7, 2**31, MIN]))
    row = st.one_of(st.sampled_from(SMALL), st.tuples(value, value))
    change = st.tuples(row, st.sampled_from([1, -1]))
    for rounds in told.draw(st.lists(st.lists(st.lists(change, max_size=30), min_size=1, max_size=3), max_size=4)):
        store.batch(rounds)
        store.check()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize(("row", "holding"), [
    ((31, 31), {(0,), (1,)}),
    ((10**8, 3), {(1,)}),  # a key far away: an index by hash finds its groups by rows
    ((3, 10**8), {(0,)}),
    ((3, 2**40), set()),  # a value of 8 bytes, and far away as a key
    ((2**40, 2**40), set()),
])  # fmt: skip
def test_an_index_of_values_becomes_one_of_rows_when_it_must(row: Row, holding: set[Row]) -> None:
    store = valued_store(SMALL)
    store.batch([*inserted([(1, 33), row, (2, 33)]), *removed(SMALL[::50])])
    store.check()
    assert {key for key in [(0,), (1,)] if store.holds_values(key)} == holding
    store.batch([*removed([row]), *inserted(SMALL[::100])])
    store.check()
    store.batch(removed(store.rows))
    store.check()
    store.load(SMALL)
    store.check()
    store.close()


@pytest.mark.parametrize("making", [False, True])
def test_a_search_ahead_never_denies_a_row_that_is_there(making: bool) -> None:
    store = Store(2)
    assert store.searched([(1, 2), (3, 4)], making) == [slots.ABSENT] * 2
    rows = [(i % 60, -i) for i in range(500)]  # in no order, or they would have no slots
    store.batch(inserted(rows))
    store.batch(removed(rows[::4]))
    there, gone = [row for row in rows if row in store.rows], rows[::4]
    assert store.searched(there[:1], making) == [slots.UNKNOWN]
    places = store.searched(there, making)
    found = [place for place in places if place != slots.UNKNOWN]
    # Another row of the same tag may be nearer to the home of a row's hash, but seldom is.
    assert slots.ABSENT not in places
    assert sum(place == store.find(row) for place, row in zip(places, there, strict=True)) > 0.8 * len(there)
    assert len(found) > 0.9 * len(there)
    assert store.searched(gone, making).count(slots.ABSENT) > len(gone) // 3
    store.close()


@st.composite
def loads(draw: st.DrawFn) -> tuple[list[Row], list[list[list[Change]]]]:
    """Rows of a few near values, or of a key with many near ones, enough for a base; and batches that change them."""
    arity, seed = draw(st.integers(1, 3)), draw(st.integers(0, 2**16))
    random = Random(seed)
    low = draw(st.sampled_from([0, -3, 10**6, -(2**31), 2**31 - 200]))
    others = draw(st.sampled_from([2, 40, 2**31, 2**40]))
    place = draw(st.integers(0, arity - 1))

    def row() -> Row:
        values = [random.randrange(-others, others) for _ in range(arity)]
        values[place] = low + random.randrange(draw_range)
        return tuple(values)

    draw_range = draw(st.sampled_from([1, 7, 100]))
    rows = [row() for _ in range(draw(st.sampled_from([100, 130])))]
    rows += rows[::5]
    batches = []
    for share in draw(st.lists(st.sampled_from([0.1, 0.4, 1.0]), max_size=5)):
        gone = [(r, -1) for r in rows if random.random() < share]
        come = [(r, 1) for r in rows if random.random() < 0.2] + [(row(), 1) for _ in range(random.randrange(8))]
        batches.append([gone, come] if random.random() < 0.5 else [random.sample(gone + come, len(gone) + len(come))])
    return rows, batches


@examples(2 * EXAMPLES)
@given(told=loads())
def test_rows_that_were_loaded_come_and_go_as_others_do(told: tuple[list[Row], list[list[list[Change]]]]) -> None:
    rows, listed = told
    store = Store(len(rows[0]))
    store.load(rows)
    assert store.collection.struct[L.collection.base_rows] == len(set(rows))
    store.check()
    for rounds in listed:
        store.batch(rounds)
        store.check()
    if not store.rows:
        store.load(rows)
        store.check()
    store.close()


def test_a_base_that_is_mostly_dead_gives_way_to_ordinary_rows() -> None:
    store = Store(2)
    rows = [(x % 100, x) for x in range(1200)]
    store.load(rows)
    store.batch(removed(rows[:600]))
    assert store.collection.struct[L.collection.base_rows] == 1200
    store.batch(removed(rows[600:601]))
    assert store.collection.struct[L.collection.base_rows] == 1200
    store.check()
    store.batch(inserted((-5, y) for y in range(601)))
    assert store.collection.struct[L.collection.base_rows] == 0
    assert store.collection.struct[L.relation.rows] == 1200
    store.check()
    store.close()


def test_loaded_rows_of_a_key_need_no_place_in_its_index_until_one_in_their_middle_goes() -> None:
    store = Store(2)
    store.load([(x // 6, x) for x in range(1800)])
    index = store.collection.indexes[0,].struct
    assert index[L.index.pool_size] == 0
    store.batch(removed([(0, 0), (1, 11), (2, 12), (2, 17)]))
    assert index[L.index.pool_size] == 0
    store.check()
    store.batch(removed([(3, 20)]))
    assert index[L.index.pool_size] > 0
    store.batch(inserted([(0, 0), (4, 1), (3, 20)]))
    store.check()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("values", [range(3000), range(0, 30000, 10), [MIN, MAX, 0, -1, 2**40], range(5000, 0, -1)])
def test_rows_of_one_column_are_found_directly_while_their_values_are_close(values: Sequence[int]) -> None:
    store, listed = Store(1), [(v,) for v in values]
    Random(4).shuffle(listed)
    for first in range(0, len(listed), 300):
        store.batch(inserted(listed[first : first + 300]))
    close = max(values) - min(values) < 2 * len(listed)
    assert (store.collection.struct[L.collection.direct_count] > 0) == close
    store.check()
    store.batch(removed(listed[::2]))
    store.batch(inserted([(10**9,), (-(10**9),)]))
    assert store.collection.struct[L.collection.direct_count] == 0
    store.check()
    store.batch(removed(store.rows))
    store.check()
    store.close()


@pytest.mark.parametrize(("arity", "key"), [(2, 0), (2, 1), (3, 0), (3, 2)])
def test_rows_of_a_base_are_found_together(arity: int, key: int) -> None:
    """Keys with none, few and many rows; values beside them, between them and beyond 32 bits."""
    random = Random(arity + key)
    store = Store(arity)
    rows = set()
    while len(rows) < 1200:
        row = [random.randrange(-3, 300) * 2 for _ in range(arity)]
        row[key] = random.choice([5, 6, random.randrange(40)])
        rows.add(tuple(row))
    store.load(sorted(rows))
    assert store.collection.struct[L.collection.base_rows] == len(rows)
    store.batch(removed(sorted(rows)[::5]))
    asked = [*sorted(rows), *(tuple(x + 1 for x in row) for row in sorted(rows)[::3])]
    asked += [tuple(far if c == place else 5 for c in range(arity)) for place in range(arity) for far in (MIN, MAX, 2**31)]
    random.shuffle(asked)
    columns = np.array(asked, np.int64).T.copy()
    listed = words(int(column.ctypes.data) for column in columns)
    places, buffer = np.full(len(asked), -7, np.int64), np.zeros(arity, np.int64)
    half = len(asked) // 2
    for first, count in ((0, half), (half, len(asked) - half)):
        at, room = int(places[first:].ctypes.data), int(buffer.ctypes.data)
        base.search_base(store.collection.address, listed.address, 1, first, count, at, room)
    found = dict(zip(asked, places.tolist(), strict=True))
    assert {row for row, place in found.items() if place >= 0} == rows
    numbers = np.array([found[row] for row in sorted(rows)])
    assert store.values(numbers) == sorted(rows)
    store.close()
