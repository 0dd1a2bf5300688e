"""The forms in which rows are given to a run: the same rows in each, and what is no rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

PROGRAM = """.decl e(x: number, y: number)
.input e
.decl r(x: number, y: number)
r(x, y) :- e(x, y).
.output r
"""
ROWS = [(1, 2), (2, 3), (4, -5)]
X, Y = [1, 2, 4], [2, 3, -5]
FORMS: dict[str, Callable[[], Any]] = {
    "tuples": lambda: ROWS,
    "a generator": lambda: (row for row in ROWS),
    "tuples of NumPy's numbers": lambda: [tuple(np.int32(v) for v in row) for row in ROWS],
    "columns": lambda: {"y": Y, "x": X},
    "columns of arrays": lambda: {"x": np.array(X, np.int16), "y": np.array(Y)},
    "an array": lambda: np.array(ROWS),
    "an array by columns": lambda: np.asfortranarray(np.array(ROWS, np.int32)),
    "Arrow": lambda: pa.table({"a": X, "b": Y}),
    "Arrow by name": lambda: pa.table({"y": Y, "x": X}),
    "pandas": lambda: pd.DataFrame({"y": Y, "x": X}),
    "polars": lambda: pl.DataFrame({"x": X, "y": Y}),
    "a relation": lambda: dlog.run(PROGRAM, {"e": ROWS})["r"],
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_the_same_in_every_form(form: str) -> None:
    assert sorted(dlog.run(PROGRAM, {"e": FORMS[form]()})["r"]) == ROWS


def test_an_array_of_one_dimension_is_one_column() -> None:
    text = ".decl n(x: float)\n.input n\n.decl r(x: float)\nr(x + 1.0) :- n(x).\n.output r\n"
    assert sorted(dlog.run(text, {"n": np.array([0.5, 1.5])})["r"]) == [(1.5,), (2.5,)]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2]),
        pd.Index([1, 2]),
        pd.array([1, 2]),
        pl.Series([1, 2]),
        pa.array([1, 2]),
        pa.chunked_array([[1], [2]]),
        pl.Series([{"x": 1}, {"x": 2}]),
        pd.Series([1.0, 2.0]),
    ],
    ids=lambda column: type(column).__module__ + str(getattr(column, "dtype", "")),
)
def test_a_column_is_rows_of_one_attribute(column: Any) -> None:
    text = ".decl n(x: number)\n.input n\n.decl r(x: number)\nr(x + 1) :- n(x).\n"
    assert sorted(dlog.run(text, {"n": column})["r"]) == [(2,), (3,)]
    with dlog.session(text, {"n": column}) as s:
        s.remove("n", column[:1])
        s.commit()
        assert list(s["r"]) == [(3,)]


def test_a_series_of_tuples_is_rows() -> None:
    assert sorted(dlog.run(PROGRAM, {"e": pd.Series(ROWS)})["r"]) == ROWS
    assert sorted(dlog.run(PROGRAM, {"e": pd.MultiIndex.from_tuples(ROWS)})["r"]) == ROWS


@pytest.mark.parametrize(
    ("rows", "code", "message"),
    [
        (np.zeros((2, 3), np.int64), "bad-rows", "an array of shape (2, 3) is no rows of `e`, which has 2 columns"),
        (np.zeros(2, np.int64), "bad-rows", "an array of shape (2,) is no rows of `e`, which has 2 columns"),
        ({"x": [1]}, "bad-columns", "the columns of `e` are x, y"),
        ({"x": [1], "y": [1, 2]}, "bad-columns", "the columns of `e` are not of one length: `x` has 1, `y` has 2 values"),
        ({"x": 1, "y": [1]}, "bad-columns", "1 is no column `x` of `e`"),
        (pd.Series([1, 2]), "bad-fact", "facts for e, row 1: 1 is not a tuple of 2 values"),
        (7, "bad-rows", "7 is no rows of `e`: give tuples, columns or a table"),
        ("1, 2", "bad-rows", "'1, 2' is no rows of `e`: give tuples, columns or a table"),
        ([(1, 2, 3)], "bad-fact", "facts for e, row 1: (1, 2, 3) is not a tuple of 2 values"),
        (np.array([["a", "b"]]), "bad-fact", "facts for e: x: Failed to parse string: 'a' as a scalar of type int64"),
    ],
)
def test_what_is_no_rows_is_said(rows: Any, code: str, message: str) -> None:
    with pytest.raises(DlogError) as caught:
        dlog.run(PROGRAM, {"e": rows})
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize("count", [0, 1, 300])
def test_arrays_of_numbers_are_copied_as_they_are(count: int) -> None:
    """Strided ones, too; what becomes of the arrays later does not matter, and there is one NaN."""
    random = np.random.default_rng(count)
    numbers, floats = random.integers(-9, 9, 2 * count)[::2], random.random(count)
    floats[::3] = np.array(0x7FF8000000000001, np.uint64).view(np.float64)
    columns: dict[str, Any] = {"a": numbers, "u": random.integers(2**63, 2**64, count, np.uint64), "f": floats}
    session = dlog.session(".decl r(a: number, u: unsigned, f: float)\n")
    session.insert("r", columns)
    expected = {(a, u, str(f)) for a, u, f in zip(*(column.tolist() for column in columns.values()), strict=True)}
    for column in columns.values():
        column[:] = 0
    session.commit()
    assert {(a, u, str(f)) for a, u, f in session["r"]} == expected
    session.remove("r", list(session["r"]))
    session.commit()
    assert session.rows("r") == 0


def test_an_array_of_rows_is_copied_as_it_is() -> None:
    session = dlog.session(".decl r(a: number, b: number)\n")
    rows = np.arange(600).reshape(300, 2)
    session.insert("r", rows)
    session.remove("r", rows[:7])
    session.upsert("r", np.array([[8, 5]] * 70))
    rows[:] = 0
    session.commit()
    assert set(session["r"]) == {(2 * k, 2 * k + 1) for k in range(7, 300) if k != 4} - {(8, 9)} | {(8, 5)}


GIVEN: dict[str, Callable[[np.ndarray], Any]] = {
    "columns": lambda column: {"x": column, "s": ["a"] * len(column)},
    "columns that are not written to": lambda column: {"x": np.broadcast_to(column, len(column)), "s": ["a"] * len(column)},
    "pandas": lambda column: pd.DataFrame({"x": column, "s": "a"}, copy=False),
}


@pytest.mark.parametrize("form", GIVEN)
@pytest.mark.parametrize(("name", "before", "after"), [("float", 2.5, 1.5), ("number", 2, 1)])
def test_what_becomes_of_arrays_beside_texts_before_a_commit_does_not_matter(
    form: str, name: str, before: float, after: float
) -> None:
    session = dlog.session(f".decl r(x: {name}, s: symbol)\n")
    column = np.full(100, before)
    session.insert("r", GIVEN[form](column))
    column[:] = after
    session.commit()
    assert set(session["r"]) == {(before, "a")}
