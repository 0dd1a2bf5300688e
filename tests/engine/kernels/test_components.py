"""Union-find and the values of components against sets that are merged one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.static import components as kernels
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation
from tests.engine.kernels.workbench import EXAMPLES, rows_of
from tests.examples import examples

LOW, HIGH = -3, 12
KEYS = st.integers(LOW - 2, HIGH + 2)
PAIRS = st.lists(st.tuples(KEYS, KEYS), max_size=20)
VALUES = st.dictionaries(st.integers(LOW, HIGH), st.integers(-(2**62), 2**62), max_size=6)


def filled(rows: list[tuple[int, ...]], arity: int, memory: Memory) -> StoredRelation:
    relation = StoredRelation("r", (Kind.NUMBER,) * arity, memory)
    columns = [np.array([row[c] for row in rows], np.int64) for c in range(arity)]
    relation.load(columns, len(rows))
    return relation


def lattice(values: dict[int, int], memory: Memory) -> StoredRelation:
    relation = StoredRelation("p", (Kind.NUMBER, Kind.NUMBER), memory)
    relation.shape([Extent(LOW, HIGH), None])
    relation.key_by((0,), 1, Combine.LEAST)
    for key, value in values.items():
        assert kernels.give(memory.control.address, relation.address, key - LOW, value)
    return relation


def merged(pairs: list[tuple[int, int]], allowed: set[int]) -> list[set[int]]:
    """The components of the keys in range, along pairs of allowed ones."""
    found = [{key} for key in range(LOW, HIGH + 1)]
    for pair in pairs:
        if set(pair) <= allowed:
            touched = [part for part in found if part & set(pair)]
            found = [part for part in found if part not in touched] + [set().union(*touched)]
    return found


@pytest.mark.slow
@examples(EXAMPLES)
@given(PAIRS, VALUES, st.one_of(st.none(), st.lists(KEYS, max_size=12)))
def test_components_have_their_least_value(
    pairs: list[tuple[int, int]], values: dict[int, int], wanted: list[int] | None
) -> None:
    memory = Memory(None)
    edges, relation = filled([(0, *pair) for pair in pairs], 3, memory), lattice(values, memory)
    size = HIGH - LOW + 1
    parents, best, marks = np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size, np.uint8)
    kernels.start_alone(parents.ctypes.data, size)
    level = 0 if wanted is None else 1
    if wanted is not None:
        asked = filled([(key,) for key in wanted], 1, memory)
        kernels.mark_keys(marks.ctypes.data, 0, relation.address, asked.address, 0)
    for first, last in ((0, edges.rows // 2), (edges.rows // 2, edges.rows)):
        kernels.unite(
            relation.address, parents.ctypes.data, marks.ctypes.data, level, edges.address, 1, 2, first, last
        )
    kernels.choose_best(relation.address, parents.ctypes.data, best.ctypes.data)
    assert kernels.spread(memory.control.address, relation.address, parents.ctypes.data, best.ctypes.data, 0, size)
    expected = {}
    for part in merged(pairs, set(range(LOW, HIGH + 1)) & set(range(LOW, HIGH + 1) if wanted is None else wanted)):
        known = [values[key] for key in part if key in values]
        expected |= dict.fromkeys(part, min(known)) if known else {}
    assert sorted(rows_of(relation)) == sorted(expected.items())


@examples(EXAMPLES)
@given(PAIRS, VALUES, st.lists(KEYS, max_size=12))
def test_ends_that_get_no_values_give_theirs(pairs: list[tuple[int, int]], values: dict[int, int], wanted: list[int]) -> None:
    memory = Memory(None)
    edges, relation = filled(list(pairs), 2, memory), lattice(values, memory)
    marks = np.array([key in wanted for key in range(LOW, HIGH + 1)], np.uint8)
    arguments = (marks.ctypes.data, 1, edges.address, 0, 1, 0, edges.rows)
    assert kernels.offer(memory.control.address, relation.address, *arguments)
    expected = dict(values)
    for source, target in (*pairs, *((b, a) for a, b in pairs)):
        if target in wanted and LOW <= target <= HIGH and source in values and source not in wanted:
            expected[target] = min(expected.get(target, values[source]), values[source])
    assert sorted(rows_of(relation)) == sorted(expected.items())
