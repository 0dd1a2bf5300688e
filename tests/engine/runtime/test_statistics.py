"""What the planner is told of a relation, against exact counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dlog.engine.ir.rules import Kind
from dlog.engine.runtime.storage import statistics
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation

RANDOM = np.random.default_rng(17)
LARGE = 200_000
assert LARGE > 2 * statistics.SAMPLE


def relation_of(*columns: np.ndarray) -> StoredRelation:
    """A relation of these columns and one that tells all rows apart."""
    rows = len(columns[0])
    made = StoredRelation("r", (Kind.NUMBER,) * (len(columns) + 1), Memory(None))
    made.load([*columns, np.arange(rows)], rows)
    assert made.rows == rows
    return made


def spread(name: str, rows: int) -> np.ndarray:
    match name:
        case "unique":
            return RANDOM.permutation(rows)
        case "constant":
            return np.full(rows, 7)
        case "few":
            return RANDOM.integers(0, 10, rows)
        case "pairs":
            return RANDOM.permutation(rows) // 2
        case "uniform":
            return RANDOM.integers(0, rows // 5, rows)
        case "hub":
            return np.where(RANDOM.random(rows) < 0.5, 0, RANDOM.integers(0, rows, rows))
        case _:
            return np.minimum(RANDOM.zipf(1.5, rows), 2**40)


SPREADS = ["unique", "constant", "few", "pairs", "uniform", "hub", "zipf"]


def pairs(values: np.ndarray) -> int:
    return sum(n * n for n in Counter(values.tolist()).values())


@pytest.mark.parametrize("name", SPREADS)
def test_figures_of_a_small_relation_are_exact(name: str) -> None:
    values = spread(name, 3000)
    relation = relation_of(values)
    assert statistics.distinct_values(relation, (0,)) == len(set(values.tolist()))
    assert statistics.second_moment(relation, (0,)) == pairs(values)
    assert statistics.distinct_values(relation, (0, 1)) == 3000
    assert statistics.second_moment(relation, (0, 1)) == 3000


@pytest.mark.parametrize("name", SPREADS)
def test_figures_of_a_large_relation_are_near(name: str) -> None:
    values = spread(name, LARGE)
    relation = relation_of(values)
    factor = 4 if name in ("hub", "zipf") else 1.5
    exact = len(set(values.tolist()))
    assert exact / factor <= statistics.distinct_values(relation, (0,)) <= exact * factor
    assert pairs(values) / 2.5 <= statistics.second_moment(relation, (0,)) <= pairs(values) * 2.5


def test_two_columns_are_counted_together() -> None:
    relation = relation_of(RANDOM.integers(0, 30, LARGE), RANDOM.integers(0, 40, LARGE))
    assert 1100 <= statistics.distinct_values(relation, (0, 1)) <= 1200
    assert 0.5 <= statistics.second_moment(relation, (0, 1)) / (LARGE**2 / 1200) <= 2


def test_nothing_and_no_columns() -> None:
    empty, three = relation_of(np.arange(0)), relation_of(np.arange(3))
    assert [statistics.distinct_values(r, c) for r in (empty, three) for c in ((0,), ())] == [0, 0, 3, 1]
    assert [statistics.second_moment(r, c) for r in (empty, three) for c in ((0,), ())] == [0, 0, 3, 9]
