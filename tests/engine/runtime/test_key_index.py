"""Rows by key outside of dataflows, against a set: what an upsert replaces, and rows that come and go beside."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels.core.jit import JIT
from dlog.engine.runtime.storage.key_index import MAX_KEPT_CHANGES, KeyIndex
from tests.engine.kernels.workbench import EXAMPLES, MAX, MIN, Row
from tests.examples import examples

VALUES = st.sampled_from([0, 1, 2, 3, -1, -4097, 9000, 2**31 - 1, 2**31, -(2**31) - 1, MAX, MIN])


def columns_of(rows: Sequence[Row], arity: int) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), arity).T.copy()


class Twin:
    """An index and the set of its rows, which is searched for each upsert."""

    def __init__(self, key: tuple[int, ...], arity: int, rows: Sequence[Row]) -> None:
        self.key, self.arity, self.rows = key, arity, set(rows)
        self.index = KeyIndex(key, tuple(columns_of(rows, arity)), len(rows))

    def replace(self, rows: Sequence[Row]) -> None:
        expected: list[tuple[set[Row], Row]] = []
        for row in rows:
            gone = {old for old in self.rows if old != row and all(old[k] == row[k] for k in self.key)}
            self.rows = self.rows - gone | {row}
            expected.append((gone, row))
        found = [(tuple(row), diff) for *row, diff in self.index.replace(columns_of(rows, self.arity)).tolist()]
        for gone, row in expected:
            listed, found = found[: len(gone)], found[len(gone) :]
            assert {old for old, _ in listed} == gone
            assert {diff for _, diff in listed} <= {-1}
            assert found.pop(0) == (row, 1)
        assert not found
        assert len(self.index) == len(self.rows)

    def follow(self, changes: Sequence[tuple[Row, int]]) -> None:
        for row, diff in changes:
            (self.rows.add if diff > 0 else self.rows.discard)(row)
        self.index.follow(columns_of([(*row, diff) for row, diff in changes], self.arity + 1))
        assert len(self.index) == len(self.rows)


@examples(2 * EXAMPLES)
@given(data=st.data())
def test_upserts_and_changes_follow_one_another(data: st.DataObject) -> None:
    arity = data.draw(st.integers(1, 4))
    key = data.draw(st.lists(st.integers(0, arity - 1), min_size=1, max_size=arity, unique=True).map(tuple))
    row = st.tuples(*[VALUES] * arity)
    twin = Twin(key, arity, data.draw(st.lists(row, max_size=20)))
    for _ in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()):
            twin.replace(data.draw(st.lists(row, min_size=1, max_size=8)))
        else:
            twin.follow(data.draw(st.lists(st.tuples(row, st.sampled_from([1, -1])), min_size=1, max_size=8)))
    for one in data.draw(st.lists(row, max_size=4)):
        twin.replace([one])


@pytest.mark.parametrize("wide", [0, 2**40])
def test_rows_that_were_loaded_are_replaced_and_go(wide: int) -> None:
    rows = 40_000 if JIT else 1_500
    twin = Twin((0,), 2, [(x % (rows // 2), x + wide) for x in range(rows)])
    random = Random(3)
    for _ in range(20):
        keys = random.sample(range(rows), 3)
        twin.replace([(k, -k) for k in keys])
        twin.follow([((k, -k), -1) for k in keys[:2]] + [((k, 7), 1) for k in keys[:1]])


@pytest.mark.parametrize("rows", [1_000, 1_030, 3_000])
def test_all_rows_of_a_long_group_are_replaced_and_their_numbers_used_again(rows: int) -> None:
    twin = Twin((1,), 2, [(x, 5) for x in range(rows)] + [(1, 6)])
    twin.follow([((x, 5), -1) for x in range(0, rows, 3)] + [((x + rows, 5), 1) for x in range(40)])
    twin.follow([((x, 5), diff) for x in range(1, 90, 3) for diff in (-1, 1)])
    twin.replace([(7, 5), (rows, 6), (8, 5)])
    assert twin.rows == {(8, 5), (rows, 6)}
    twin.replace([(9, 5), (9, 6)])


def test_what_an_index_holds_is_given_back() -> None:
    index = KeyIndex((0,), tuple(columns_of([(x, x) for x in range(5_000)], 2)), 5_000)
    index.replace(columns_of([(x, 1) for x in range(MAX_KEPT_CHANGES)], 2))
    memory = index._collection.memory
    assert memory.used > 5_000 * 8
    del index
    gc.collect()
    assert memory.used == 0
