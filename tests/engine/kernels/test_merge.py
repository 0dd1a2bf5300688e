"""Keyed relations against dicts, and the order in which a lattice hands out its changes."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.static import merge as kernels
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import view, words
from dlog.engine.runtime.storage.relation import StoredRelation
from tests.engine.kernels.workbench import EXAMPLES, MANY, WORDS, Desk, rows_of
from tests.examples import examples

KEYS = {"dense": Extent(-2, 3), "hash": None}
FLOATS = st.sampled_from([0.0, 1.0, -1.0, 0.25, -7.5, 1e300, -1e300, 5e-324, math.inf, -math.inf])


def bits(value: float) -> int:
    """There is one NaN."""
    return struct.unpack("q", struct.pack("d", value if value == value else math.nan))[0]


def double(word: int) -> float:
    return struct.unpack("d", struct.pack("q", word))[0]


def signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def unsigned(word: int) -> int:
    return word % 2**64


def same(word: int) -> int:
    return word


MERGES: dict[int, tuple[Kind, Callable[[int, int], int]]] = {
    Combine.SUM: (Kind.NUMBER, lambda a, b: signed(a + b)),
    Combine.SUM_FLOAT: (Kind.FLOAT, lambda a, b: bits(double(a) + double(b))),
    Combine.LEAST: (Kind.NUMBER, min),
    Combine.GREATEST: (Kind.NUMBER, max),
    Combine.LEAST_UNSIGNED: (Kind.UNSIGNED, lambda a, b: min(a, b, key=unsigned)),
    Combine.GREATEST_UNSIGNED: (Kind.UNSIGNED, lambda a, b: max(a, b, key=unsigned)),
    Combine.LEAST_FLOAT: (Kind.FLOAT, lambda a, b: min(a, b, key=double)),
    Combine.GREATEST_FLOAT: (Kind.FLOAT, lambda a, b: max(a, b, key=double)),
}
ORDERS: dict[int, tuple[Callable[[int], float], bool]] = {
    Combine.LEAST: (same, False),
    Combine.GREATEST: (same, True),
    Combine.LEAST_UNSIGNED: (unsigned, False),
    Combine.GREATEST_UNSIGNED: (unsigned, True),
    Combine.LEAST_FLOAT: (double, False),
    Combine.GREATEST_FLOAT: (double, True),
}
"""Per lattice merge how a word is compared, and whether the greatest comes first."""


def values_of(kind: Kind) -> st.SearchStrategy[int]:
    return FLOATS.map(bits) if kind is Kind.FLOAT else WORDS


def keyed(kinds: Sequence[Kind], keys: int, extent: Extent | None, merge: int, heap: bool = False) -> StoredRelation:
    relation = StoredRelation("r", kinds, Memory(None))
    relation.shape([extent] * keys + [None] * (len(kinds) - keys))
    relation.key_by(range(keys), keys, merge)
    if heap:
        relation.order_changes()
    assert relation.set_kind == (SetKind.HASH if extent is None else SetKind.DENSE)
    return relation


def add(desk: Desk, relation: StoredRelation, rows: Sequence[tuple[int, ...]], size: int = L.BLOCK) -> int:
    keys = words(relation.key)
    codes, _, _ = desk.scratches()
    return sum(
        kernels.merge_block(desk.address, relation.address, registers.address, keys.address, n, codes)
        for registers, n in desk.blocks(rows, relation.arity, size)
    )


@pytest.mark.slow
@examples(4 * EXAMPLES)
@given(data=st.data(), merge=st.sampled_from(sorted(MERGES)), extent=st.sampled_from(sorted(KEYS)), keys=st.integers(0, 3))
def test_merging_is_a_fold_per_key(data: st.DataObject, merge: int, extent: str, keys: int) -> None:
    kind, fold = MERGES[merge]
    extent = "dense" if keys == 0 else extent
    row = st.tuples(*[st.integers(-2, 3)] * keys, values_of(kind))
    rows = data.draw(st.lists(row, max_size=30))
    relation = keyed([Kind.NUMBER] * keys + [kind], keys, KEYS[extent], merge)
    expected: dict[tuple[int, ...], int] = {}
    for *key, value in rows:
        at = tuple(key)
        expected[at] = fold(expected[at], value) if at in expected else value
    desk = Desk(relation.memory)
    add(desk, relation, rows, size=data.draw(st.sampled_from([1, 4, 512])))
    assert {r[:-1]: r[-1] for r in rows_of(relation)} == expected
    assert relation.rows == len(expected)


@pytest.mark.slow
@examples(EXAMPLES)
@given(counted=st.lists(st.tuples(st.integers(-2, 3), st.integers(-90, 90)), max_size=40), extent=st.sampled_from(list(KEYS)))
def test_a_mean_keeps_sum_and_count(counted: list[tuple[int, int]], extent: str) -> None:
    rows = [(key, value / 4) for key, value in counted]
    relation = keyed([Kind.NUMBER, Kind.FLOAT, Kind.NUMBER], 1, KEYS[extent], Combine.SUM_FLOAT)
    add(Desk(relation.memory), relation, [(key, bits(value), 1) for key, value in rows], 7)
    expected = {}
    for key, value in rows:
        total, count = expected.get(key, (0.0, 0))
        expected[key] = (total + value, count + 1)
    assert {key: (double(total), count) for key, total, count in rows_of(relation)} == expected


@pytest.mark.parametrize("extent", [None, Extent(0, MANY)])
def test_many_groups(extent: Extent | None) -> None:
    relation = keyed([Kind.NUMBER, Kind.NUMBER], 1, extent, Combine.SUM)
    add(Desk(relation.memory), relation, [(i * 7 % (MANY // 3), i) for i in range(MANY)])
    expected = [0] * (MANY // 3)
    for i in range(MANY):
        expected[i * 7 % (MANY // 3)] += i
    assert dict(rows_of(relation)) == dict(enumerate(expected))


# ----------------------------------------------------------------------------------------------------------------- heap


def popped(desk: Desk, relation: StoredRelation) -> list[int]:
    """The rows of the next changes; none when there are no changes left."""
    count = kernels.next_changes(desk.address, relation.address)
    assert count == relation.struct[L.relation.queue_rows]
    return view(relation.struct[L.relation.queue], count, np.int32).tolist()


@pytest.mark.slow
@examples(3 * EXAMPLES)
@given(data=st.data(), merge=st.sampled_from(sorted(ORDERS)))
def test_the_heap_gives_the_best_values_first_and_equal_ones_together(data: st.DataObject, merge: int) -> None:
    order, greatest_first = ORDERS[merge]
    kind = MERGES[merge][0]
    rows = data.draw(st.lists(st.tuples(st.integers(0, 30), values_of(kind)), max_size=50))
    relation = keyed([Kind.NUMBER, kind], 1, None, merge, heap=True)
    desk = Desk(relation.memory)
    add(desk, relation, rows)
    values = [order(value) for _, value in rows_of(relation)]
    batches = []
    while batch := popped(desk, relation):
        batches.append([values[row] for row in batch])
    assert [sorted(b) for b in batches] == [[v] * values.count(v) for v in sorted(set(values), reverse=greatest_first)]


@examples(2 * EXAMPLES)
@given(data=st.data(), merge=st.sampled_from(sorted(ORDERS)))
def test_every_change_comes_once_more_even_where_values_fall_behind(data: st.DataObject, merge: int) -> None:
    """Merges between the pops, of better values than those popped already."""
    kind = MERGES[merge][0]
    relation = keyed([Kind.NUMBER, kind], 1, KEYS["dense"], merge, heap=True)
    desk = Desk(relation.memory)
    known: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 6))):
        add(desk, relation, data.draw(st.lists(st.tuples(st.integers(-2, 3), values_of(kind)), max_size=8)))
        for row in popped(desk, relation) if data.draw(st.booleans()) else ():
            key, value = rows_of(relation)[row]
            assert known.get(key) != value, "handed out twice with the same value"
            known[key] = value
    while batch := popped(desk, relation):
        known.update(rows_of(relation)[row] for row in batch)
    assert known == dict(rows_of(relation))


@examples(EXAMPLES)
@given(starts=st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4), steps=st.lists(st.integers(0, 9), max_size=30))
def test_where_values_only_rise_each_row_comes_once(starts: list[int], steps: list[int]) -> None:
    """As in Dijkstra's algorithm: what is added while a batch is expanded is not better than the batch."""
    relation = keyed([Kind.NUMBER, Kind.NUMBER], 1, None, Combine.LEAST, heap=True)
    desk = Desk(relation.memory)
    add(desk, relation, list(enumerate(starts)))
    seen: list[int] = []
    while batch := popped(desk, relation):
        seen += batch
        for row in batch:
            key, value = rows_of(relation)[row]
            if steps:
                add(desk, relation, [((key * 5 + steps[0]) % 11, value + steps.pop())])
    assert sorted(seen) == sorted(set(seen)) == list(range(relation.rows))


def test_the_heap_of_many_values() -> None:
    relation = keyed([Kind.NUMBER, Kind.NUMBER], 1, None, Combine.LEAST, heap=True)
    desk = Desk(relation.memory)
    add(desk, relation, [(i, i * 7919 % 1000 - 500) for i in range(MANY)])
    values = [value for _, value in rows_of(relation)]
    firsts = []
    while batch := popped(desk, relation):
        assert len({values[row] for row in batch}) == 1
        firsts.append(values[batch[0]])
    assert firsts == list(range(-500, 500))


@pytest.mark.parametrize("extent", [None, Extent(0, 5000)])
def test_a_lattice_gives_all_its_memory_back(extent: Extent | None) -> None:
    relation = keyed([Kind.NUMBER, Kind.NUMBER], 1, extent, Combine.LEAST, heap=True)
    desk = Desk(relation.memory)
    add(desk, relation, [(i, i % 3) for i in range(2000)])
    popped(desk, relation)
    relation.free()
    assert relation.memory.used == 0
