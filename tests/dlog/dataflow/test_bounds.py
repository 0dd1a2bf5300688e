"""Bounds of temporal filters that are null, or no whole numbers: the row is in no round, or in those between."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import AltNeu, Dataflow, apply, col, linear, lit, now
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

NULLS = [None, math.nan, np.datetime64("NaT"), np.float64("nan")]
OBJECTS = [*NULLS, -3, 0, 2, 3, 5, 2.5, 4.0, math.inf, -math.inf, 2**80, -(2**80), Decimal("1.5"), Fraction(7, 2), np.int64(4)]
FLOATS = [math.nan, -3.0, 0.0, 2.0, 2.5, 4.0, math.inf, -math.inf, 2.0**63, -(2.0**63), 1e300]
COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
ROUNDS = 8


def _holds(sign: str, round: int, bound: Any) -> bool:
    """The naive twin: nothing is before or after a null."""
    null = bound is None or bound != bound
    return not null and bool(COMPARED[sign](round, bound))


def _changes(values: list[Any]) -> Any:
    bound = st.sampled_from(values)
    row = st.tuples(bound, bound, st.integers(0, ROUNDS - 2), st.integers(1, 4))
    return st.lists(row, max_size=8)


@pytest.mark.parametrize(("kind", "values"), [(object, OBJECTS), (float, FLOATS)])
@examples(60)
@given(st.data())
def test_1_3_a_row_whose_bound_is_null_is_in_no_round(kind: type, values: list[Any], data: st.DataObject) -> None:
    """Rows come and go, and are there as long as their bounds say, however these are given."""
    changed = data.draw(_changes(values))
    lower, upper = data.draw(st.sampled_from([">", ">=", "=="])), data.draw(st.sampled_from(["<", "<="]))
    flow = Dataflow()
    rows = flow.input(number=int, a=kind, b=kind)
    filtered = rows.filter(COMPARED[lower](now(), col("a")) & COMPARED[upper](now(), col("b")))
    found = {
        "filter": (filtered, lower, upper),
        "temporal": (rows.temporal("a", col("b")), ">=", "<"),
        "from": (rows.join_function(linear.temporal("a")), ">=", None),
        "until": (rows.temporal(upper="b"), None, "<"),
        "function": (rows.temporal(lambda columns: columns["a"], lambda columns: list(columns["b"])), ">=", "<"),
    }
    shown = {name: (made.map("number").capture(history=True), *signs) for name, (made, *signs) in found.items()}
    twice = rows.enter(flow.scope.altneu()).temporal("a", "b").map("number").capture(history=True)
    for number, (a, b, at, rounds) in enumerate(changed):
        rows.insert([(number, a, b)], at=at)
        rows.remove([(number, a, b)], at=at + rounds)
    flow.advance_to(3)
    flow.advance_to(ROUNDS)
    for round in range(ROUNDS):
        there = [(n, a, b) for n, (a, b, at, rounds) in enumerate(changed) if at <= round < at + rounds]
        for name, (captured, *signs) in shown.items():
            pairs = [[(s, bound) for s, bound in zip(signs, bounds, strict=True) if s] for _, *bounds in there]
            holds = {(n,): 1 for (n, *_), pair in zip(there, pairs, strict=True) if all(_holds(s, round, b) for s, b in pair)}
            assert captured.counts(round) == holds, (name, round)
        assert twice.counts(AltNeu((round,), True)) == shown["temporal"][0].counts(round)


@pytest.mark.parametrize(
    "ends",
    [
        lambda columns: [None if x == 2 else x for x in columns["x"].tolist()],
        lambda columns: np.where(columns["x"] == 2, np.nan, columns["x"]),
        lambda columns: np.ma.masked_equal(columns["x"], 2),
        lambda columns: pa.array([None if x == 2 else x for x in columns["x"].tolist()]),
        lambda columns: pa.chunked_array([[None if x == 2 else Decimal(x) for x in columns["x"].tolist()]]),
        lambda columns: [None if x == 2 else date.fromordinal(719163 + x) for x in columns["x"].tolist()],
        lambda columns: np.where(columns["x"] == 2, np.datetime64("NaT"), columns["x"].astype("M8[D]")),
        lambda columns: pa.array([None if x == 2 else date.fromordinal(719163 + x) for x in columns["x"].tolist()]),
        lambda columns: tuple(None if x == 2 else np.uint8(x) for x in columns["x"]),
    ],
)
def test_1_3_bounds_of_functions_may_be_null(ends: Callable[..., Any]) -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    until, since = rows.temporal(upper=ends).capture(history=True), rows.temporal(ends).capture(history=True)
    for x in (1, 2, 3):
        rows.insert([x])
    flow.commit()
    rows.remove([2])
    flow.advance_to(5)
    assert [sorted(until.counts(round)) for round in range(4)] == [[(1,), (3,)], [(3,)], [(3,)], []]
    assert [sorted(since.counts(round)) for round in range(4)] == [[], [(1,)], [(1,)], [(1,), (3,)]]


def test_1_3_bounds_of_compiled_functions_and_of_tables_may_be_null() -> None:
    flow = Dataflow()
    rows, tables = flow.input(x=int), flow.input(name=str, end=object)
    ends = apply(lambda x: math.nan if x < 0 else x / 2, "x", kind=float)
    compiled, read = rows.filter(now() <= ends).capture(history=True), tables.temporal(upper="end").map("name").capture()
    rows.insert([-1, 2, 5])
    tables.insert(pa.table({"name": ["a", "b", "c"], "end": pa.array([None, 3, 1], pa.int32())}))
    tables.insert(pa.table({"name": ["d", "e"], "end": [math.nan, 2.5]}))
    flow.advance_to(3)
    assert [sorted(compiled.counts(round)) for round in range(3)] == [[(2,), (5,)], [(2,), (5,)], [(5,)]]
    assert sorted(read) == [("b",), ("e",)]


def test_1_3_nullable_columns_of_pandas_are_bounds() -> None:
    pd = pytest.importorskip("pandas")
    flow = Dataflow()
    rows = flow.input(name=str, end=object)
    shown = rows.temporal(upper="end").map("name").capture()
    ends = lambda columns: pd.Series([None if pd.isna(end) else end for end in columns["end"]], dtype="Int64")  # noqa: E731
    made = rows.temporal(upper=ends).map("name").capture()
    rows.insert(pd.DataFrame({"name": ["a", "b"], "end": [3, None]}))
    rows.insert([("c", pd.NA), ("d", pd.NaT), ("e", 1)])
    flow.advance_to(2)
    assert sorted(shown) == sorted(made) == [("a",)]


def test_dates_are_bounds_by_their_numbers() -> None:
    flow = Dataflow()
    rows = flow.input(day=object)
    shown = rows.filter(now() > col("day")).capture(history=True)
    never, always = rows.filter(now() < lit(None)).capture(), rows.filter(now() >= date(1970, 1, 1)).capture()
    rows.insert([date(1970, 1, 3), None])
    flow.advance_to(5)
    assert [sorted(shown.counts(round)) for round in range(5)] == [[], [], [], [(date(1970, 1, 3),)], [(date(1970, 1, 3),)]]
    assert not never.counts() and len(always) == 2


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ("o", "'a' is no bound of rounds(.|\n)*it is a whole number, a date or a time; where it is none"),
        (lambda columns: [True] * len(columns["x"]), "True is no bound of rounds"),
        (lambda columns: [datetime(1970, 1, 1), 3][: len(columns["x"])], "3 is among times"),
        (lambda columns: 3, "function of `temporal` must give a bound for each of 2 rows, not 3"),
        (lambda columns: [1], r"function of `temporal` must give a bound for each of 2 rows, not \[1\]"),
        (lambda columns: "ab", "function of `temporal` must give a bound for each of 2 rows, not 'ab'"),
        (lambda columns: np.zeros((2, 2)), "function of `temporal` must give a bound for each of 2 rows, not array"),
        (lambda a, b: a, r"the function of `temporal` gets a dict of columns, but it takes \(a, b\)"),
    ],
)
def test_what_is_no_bound_is_told(bound: Any, message: str) -> None:
    flow = Dataflow()
    rows = flow.input(x=int, o=object)
    with pytest.raises(DlogError, match=message):
        rows.temporal(bound).capture()
        rows.insert([(1, "a"), (2, "a")])
        flow.commit()
