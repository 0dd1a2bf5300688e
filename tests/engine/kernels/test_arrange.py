"""Arrangements against a dict from keys to rows."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import KeyMap
from dlog.engine.kernels.static import arrange, chains
from dlog.engine.runtime.storage.arrangement import ONLY_MAX, StoredArrangement
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation
from tests.engine.kernels.workbench import EXAMPLES, MANY, Desk, Given, Row, loaded, relation_of, row_lists, rows_of
from tests.examples import examples

KEYS = [(0,), (1,), (0, 1), (1, 0), (2, 0), (2,), (0, 1, 2), ()]


def groups_of(arrangement: StoredArrangement, keys: list[Row]) -> list[int]:
    desk = Desk(arrangement.memory)
    result: list[int] = []
    for registers, n in desk.blocks(keys, len(arrangement.key)):
        arrange.find_groups(arrangement.address, desk.address, registers.address, n, desk.register(7))
        result += desk.registers[7, :n].tolist()
    return result


def matches(arrangement: StoredArrangement, group: int, columns: list[int]) -> list[Row]:
    """The rows of a group in the arrangement's order, as far as these columns go."""
    count = arrange.group_size(arrangement.address, group)
    if count == 0:
        return []
    if arrangement.growing:
        return [tuple(item_cell(arrangement, c, item) for c in columns) for item in chain(arrangement, group)]
    start = int(array(arrangement.struct[L.arrangement.offsets], np.int32, group + 1)[group])
    return [tuple(sorted_cell(arrangement, c, start + i) for c in columns) for i in range(count)]


def sorted_cell(arrangement: StoredArrangement, number: int, at: int) -> int:
    address, width = array(arrangement.struct[L.arrangement.columns], np.int64, 2 * number + 2)[2 * number :].tolist()
    return int(array(address, np.int32 if width == 4 else np.int64, at + 1)[at])


def item_cell(arrangement: StoredArrangement, number: int, item: int) -> int:
    return item if arrangement.struct[L.arrangement.item] == number else int(arrangement.relation.column(number)[item])


def chain(arrangement: StoredArrangement, group: int) -> list[int]:
    """The items of a group, chunk by chunk: 3, 3, 7, 7, 15, 15 ... and after each the place of the next."""
    start, left, *_ = array(arrangement.struct[L.arrangement.chains], np.uint32, 4 * group + 4)[4 * group :].tolist()
    pool = array(arrangement.struct[L.arrangement.pool], np.uint32, arrangement.struct[L.arrangement.pool_size])
    items: list[int] = []
    for size in (2**k - 1 for k in range(2, 32) for _ in range(2)):
        count = min(size, left)
        items += pool[start : start + count].view(np.int32).tolist()
        left -= count
        if left == 0:
            return items
        start = int(pool[start + size])
    raise AssertionError("too long")


def array(address: int, dtype: type, size: int) -> np.ndarray:
    return np.ctypeslib.as_array(pointer(address, dtype), (size,))


def pointer(address: int, dtype: type) -> object:
    import ctypes

    return ctypes.cast(address, ctypes.POINTER(np.ctypeslib.as_ctypes_type(dtype)))


def check(arrangement: StoredArrangement, rows: list[Row], asked: list[Row], columns: list[int]) -> None:
    """Every key that occurs, and those asked for, give the rows that a dict gives."""
    expected: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for row in rows:
        expected[tuple(row[c] for c in arrangement.key)].append(tuple(row[c] for c in columns))
    keys = [*expected, *asked]
    for key, group in zip(keys, groups_of(arrangement, keys), strict=True):
        found = matches(arrangement, group, columns)
        assert sorted(found) == sorted(expected[key]), key
        if arrangement.order:
            at = columns.index(arrangement.order[0])
            assert [f[at] for f in found] == sorted(f[at] for f in found)


def some_keys(given: Given, arity: int) -> list[Row]:
    values = (*given.domain.values, -9, 2**50)
    return list(product(values, repeat=arity))[:150]


@examples(3 * EXAMPLES)
@given(given=row_lists(3, 3), key=st.sampled_from(KEYS), order=st.sampled_from([(), (0,), (1,), (2,)]), ascends=st.booleans())
def test_a_sorted_arrangement_gives_the_rows_of_each_key(given: Given, key: Row, order: Row, ascends: bool) -> None:
    rows = sorted(set(given.rows)) if ascends else given.rows
    relation = loaded(rows, 3)
    arrangement = StoredArrangement(relation, key, () if set(order) <= set(key) else order, growing=False)
    arrangement.build(range(3))
    check(arrangement, list(set(rows)), some_keys(given, len(key)), [0, 1, 2])
    assert sorted(rows_of(relation)) == sorted(set(rows))


@examples(2 * EXAMPLES)
@given(given=row_lists(3, 3), keys=st.sampled_from(list(permutations(KEYS, 2))))
def test_arrangements_of_one_relation_do_not_disturb_each_other(given: Given, keys: tuple[tuple[int, ...], ...]) -> None:
    """The first may reorder the relation, the second must copy."""
    relation = loaded(given.rows, 3)
    made = [StoredArrangement(relation, key, (), growing=False) for key in keys]
    for arrangement in made:
        arrangement.build([2])
    for arrangement in made:
        check(arrangement, list(set(given.rows)), some_keys(given, len(arrangement.key)), [2])


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("extent", [Extent(0, 9), None, Extent(0, -1)])
def test_an_arrangement_of_nothing_finds_nothing(key: tuple[int, ...], extent: Extent | None) -> None:
    relation = relation_of([extent] * 3)
    arrangement = StoredArrangement(relation, key, (), growing=False)
    arrangement.build([2])
    check(arrangement, [], [(3,) * len(key), (0,) * len(key)], [2])


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1, 2**33])
@pytest.mark.parametrize(("key", "order"), [((0,), (1,)), ((1,), (0,)), ((), (1,)), ((1, 0), ())])
def test_a_large_sorted_arrangement(spread: int, key: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Long keys, more groups than a hash map starts with, an order of several radix passes."""
    values = np.random.default_rng(4).integers(-300, 300, (MANY, 2)) * spread
    rows = [(int(x), int(y) * 5) for x, y in values]
    relation = loaded(rows, 2)
    arrangement = StoredArrangement(relation, key, order, growing=False)
    arrangement.build([0, 1])
    expected_map = KeyMap.DENSE if spread == 1 or not key else KeyMap.HASH
    assert arrangement.struct[L.arrangement.map] == expected_map
    check(arrangement, list(set(rows)), [], [0, 1])


def test_rows_that_are_in_order_already_are_not_copied() -> None:
    relation = loaded([(x, y) for x in range(50) for y in range(20)], 2)
    before = relation.column_address(0)
    arrangement = StoredArrangement(relation, (0,), (1,), growing=False)
    arrangement.build([1])
    assert relation.column_address(0) == before
    assert relation.memory.used < 1024 * 8 + 52 * 4 + 8


@examples(2 * EXAMPLES)
@given(rows=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 1)), max_size=60))
def test_an_order_over_the_whole_range_of_words(rows: list[tuple[int, int]]) -> None:
    relation = loaded(rows, 2)
    arrangement = StoredArrangement(relation, (1,), (0,), growing=False)
    arrangement.build([0])
    check(arrangement, list(set(rows)), [(2,)], [0])


# -------------------------------------------------------------------------------------------------------------- growing


def grow(relation: StoredRelation, arrangement: StoredArrangement) -> None:
    assert chains.grow_arrangement(relation.memory.control.address, arrangement.address, relation.rows)


@examples(2 * EXAMPLES)
@given(given=row_lists(3, 3), key=st.sampled_from(KEYS), size=st.integers(1, 20), item=st.integers(-1, 2))
def test_a_growing_arrangement_follows_its_relation(given: Given, key: tuple[int, ...], size: int, item: int) -> None:
    relation = given.relation()
    relation.new_set()
    item = item if relation.widths[0] == 4 else -1
    arrangement = StoredArrangement(relation, key, (), growing=True)
    arrangement.start(item)
    desk = Desk(relation.memory)
    columns = [0, 1, 2] if item < 0 else [item]
    for start in range(0, len(given.rows) + 1, size):
        desk.insert(relation, given.rows[start : start + size])
        rows = rows_of(relation)[: arrangement.struct[L.arrangement.arranged_rows]]
        check(arrangement, rows, some_keys(given, len(key)), columns)
        grow(relation, arrangement)
        check(arrangement, rows_of(relation), some_keys(given, len(key)), columns)


@examples(EXAMPLES)
@given(given=row_lists(3, 3), column=st.integers(0, 2), size=st.integers(1, 20), data=st.data())
def test_a_growing_arrangement_of_some_values(given: Given, column: int, size: int, data: st.DataObject) -> None:
    relation = given.relation()
    relation.new_set()
    wanted = data.draw(st.lists(st.sampled_from(given.domain.values)))
    arrangement = StoredArrangement(relation, (1,), (), growing=True)
    arrangement.start(-1)
    arrangement.only(column, np.array(wanted, np.int64))
    close = not wanted or max(wanted) - min(wanted) < ONLY_MAX
    for start in range(0, len(given.rows) + 1, size):
        Desk(relation.memory).insert(relation, given.rows[start : start + size])
        grow(relation, arrangement)
        rows = [row for row in rows_of(relation) if row[column] in wanted or not close]
        check(arrangement, rows, some_keys(given, 1), [0, 1, 2])


@pytest.mark.parametrize("extent", [Extent(0, 2000), None])
def test_a_growing_arrangement_with_large_and_many_groups(extent: Extent | None) -> None:
    relation = relation_of([extent, extent])
    relation.new_set()
    arrangement = StoredArrangement(relation, (0,), (), growing=True)
    arrangement.start(1 if extent else -1)
    rows = [(i * i % 1500 if i % 2 else 3, i % 2000) for i in range(MANY)]
    desk = Desk(relation.memory)
    for start in range(0, len(rows), 1000):
        desk.insert(relation, rows[start : start + 1000])
        grow(relation, arrangement)
    check(arrangement, list(set(rows)), [(1999,)], [1])


def test_a_chain_takes_a_third_more_room_when_it_is_full() -> None:
    relation = relation_of([Extent(0, 9), Extent(0, 99)])
    relation.new_set()
    arrangement = StoredArrangement(relation, (0,), (), growing=True)
    arrangement.start(1)
    desk = Desk(relation.memory)

    def added(rows: list[tuple[int, int]]) -> int:
        desk.insert(relation, rows)
        grow(relation, arrangement)
        return arrangement.struct[L.arrangement.pool_size]

    assert added([(0, y) for y in range(3)]) == 4
    assert added([(0, y) for y in range(3, 7)]) == 4 + 4 + 8
    assert added([(0, y) for y in range(7, 36)]) == 4 + 4 + 8 + 8 + 16 + 16
    assert added([(1, 0), (2, 1)]) == 4 + 4 + 8 + 8 + 16 + 16 + 4 + 4
    check(arrangement, rows_of(relation), [(4,)], [1])


@pytest.mark.parametrize("extent", [Extent(0, 2000), None])
@pytest.mark.parametrize("growing", [False, True])
def test_a_freed_arrangement_gives_its_memory_back(extent: Extent | None, growing: bool) -> None:
    relation = relation_of([extent, extent], Memory(None))
    relation.new_set()
    Desk(relation.memory).insert(relation, [(i % 700, i) for i in range(2000)])
    arrangement = StoredArrangement(relation, (0,), (), growing=growing)
    held = relation.memory.used
    if growing:
        arrangement.start(-1)
        grow(relation, arrangement)
    else:
        relation.pinned = True  # so that it copies
        arrangement.build([1])
    assert relation.memory.used > held
    arrangement.free()
    assert relation.memory.used == held
