"""Sums of floats that are infinite, NaN, or grow beyond what a float is."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, col, moving

INF = math.inf
VALUES = [INF, -INF, math.nan, 0.0, 0.5, -0.5, 2.0]
"""Their sums are exact: the order does not matter."""


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@given(st.lists(st.lists(st.sampled_from(VALUES), max_size=5), min_size=1, max_size=4))
def test_sums_are_those_of_the_rows_that_are_there(rounds: list[list[float]]) -> None:
    """Each value comes, and one half of them goes one round later."""
    flow = Dataflow()
    rows = flow.input(v=float)
    sums, weights = rows.sum(t="v").capture(), rows.explode(diff=col("v")).count("t").capture()
    parts = rows.explode(diff=(1, col("v"))).count("n", "t").capture()
    shown: Counter[str] = Counter()
    rows.explode(diff=(0, col("v"))).inspect(lambda _, time, diff: shown.update([str(time)]))
    there: list[float] = []
    for number, values in enumerate(rounds):
        gone = there[::2]
        rows.remove([(value,) for value in gone])
        rows.insert([(value,) for value in values])
        there = there[1::2] + values
        flow.commit()
        total = sum(there)
        expected = {(repr(total + 0.0),)} if there else set()
        assert {(repr(t),) for (t,) in sums.counts()} == expected
        assert {(repr(t),) for (t,) in weights.counts()} == (expected if total else set())
        assert {(n, repr(t)) for n, t in parts.counts()} == ({(len(there), repr(total + 0.0))} if there else set())
        assert shown[str(number)] <= 1


def test_sums_beyond_floats_are_infinite() -> None:
    flow = Dataflow()
    rows = flow.input(k=int, v=float)
    sums, seen = rows.sum(by="k", t="v").capture(), []
    rows.explode("k", diff=(1, col("v"))).inspect(lambda row, time, diff: seen.append((row, diff)))
    rows.insert([(1, 1e308), (1, 1.2e308), (2, -1e308), (2, -1.2e308), (3, 1.0)])
    flow.commit()
    assert sums.counts() == {(1, INF): 1, (2, -INF): 1, (3, 1.0): 1}
    assert seen == [((1,), (2, INF)), ((2,), (2, -INF)), ((3,), (1, 1.0))]
    rows.remove([(1, 1e308), (2, -1e308)])
    flow.commit()
    assert sums.counts() == {(1, 1.2e308): 1, (2, -1.2e308): 1, (3, 1.0): 1}


def test_infinities_of_two_signs_make_nan_in_all_sums() -> None:
    flow = Dataflow()
    rows = flow.input(x=int, v=float)
    made = rows.sum(t="v").capture(), rows.moving("x", rows=2, t=moving.sum("v")).filter(col("x") == 1).map("t").capture()
    rows.insert([(0, INF), (1, -INF)])
    flow.commit()
    assert [[repr(row) for row in each.counts()] for each in made] == [["(nan,)"]] * 2
    rows.remove([(1, -INF)])
    flow.commit()
    assert made[0].counts() == {(INF,): 1}
