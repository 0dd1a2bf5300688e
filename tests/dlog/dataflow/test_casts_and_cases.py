"""`cast`, `when`, `abs`, `is_in` and `is_between` against Python's own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, col, lit, when
from dlog.dataflow.expressions import Expression
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

Row = tuple[int, float, bool, str]
X, Y, B, S = col("x"), col("y"), col("b"), col("s")
LARGE = [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)]
INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from(LARGE), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.one_of(st.sampled_from([0.0, 1.5, -2.0, 1e300, math.inf]), st.floats(allow_nan=False).map(lambda x: x + 0.0))
ROWS = st.lists(st.tuples(INTEGERS, FLOATS, st.booleans(), INTEGERS.map(str)), max_size=8)


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def values_of(expression: Expression, rows: list[Row], way: str = "tuples") -> Counter[tuple[Any, ...]]:
    flow = Dataflow()
    given_rows = flow.input(x=int, y=float, b=bool, s=str)
    found = given_rows.map(v=expression).capture()
    if way == "kept":
        given_rows.map("s").capture()
    if way == "arrow":
        types = zip("xybs", (pa.int64(), pa.float64(), pa.bool_(), pa.string()), strict=True)
        columns = zip(types, zip(*rows, strict=True) if rows else [[]] * 4, strict=True)
        given_rows.insert(pa.table({name: pa.array(column, type) for (name, type), column in columns}))
    else:
        given_rows.insert(rows)
    flow.commit()
    return Counter(found.counts())


Twin = Callable[[int, float, bool, str], Any]
SAME: list[tuple[Expression, Twin]] = [
    (X.cast(int), lambda x, y, b, s: x),
    (X.cast(float), lambda x, y, b, s: float(x)),
    (X.cast(bool), lambda x, y, b, s: bool(x)),
    (X.cast(str), lambda x, y, b, s: str(x)),
    (Y.cast(float), lambda x, y, b, s: y),
    (Y.cast(bool), lambda x, y, b, s: bool(y)),
    (B.cast(int) + 1, lambda x, y, b, s: int(b) + 1),
    (B.cast(float), lambda x, y, b, s: float(b)),
    (B.cast(str), lambda x, y, b, s: "true" if b else "false"),
    (S.cast(int), lambda x, y, b, s: int(s)),
    (S.cast(float), lambda x, y, b, s: float(s)),
    (S.cast(str), lambda x, y, b, s: s),
    (S.cast(int).cast(str), lambda x, y, b, s: s),
    (X.cast(bool).cast(int), lambda x, y, b, s: int(bool(x))),
    ((X % 7).cast(str).str.len_chars(), lambda x, y, b, s: 1),
    (X.abs(), lambda x, y, b, s: wrapped(abs(x))),
    (Y.abs(), lambda x, y, b, s: abs(y)),
    (B.abs(), lambda x, y, b, s: int(b)),
    (X.is_in([]), lambda x, y, b, s: False),
    (X.is_in([1, 2**63 - 1]), lambda x, y, b, s: x in (1, 2**63 - 1)),
    (X.is_in(range(-2, 12)), lambda x, y, b, s: -2 <= x < 12),
    (X.is_in([1.0, 2.5]), lambda x, y, b, s: x == 1),
    (X.is_in(np.array([1, 2])), lambda x, y, b, s: x in (1, 2)),
    (Y.is_in([1.5, -2]), lambda x, y, b, s: y in (1.5, -2)),
    (B.is_in([True]), lambda x, y, b, s: b),
    (S.is_in(["0", "1"]), lambda x, y, b, s: s in ("0", "1")),
    (X.is_in([date(1970, 1, 2)]), lambda x, y, b, s: x == 1),
    (X.is_between(-1, 2), lambda x, y, b, s: -1 <= x <= 2),
    (Y.is_between(X, 2.5), lambda x, y, b, s: float(x) <= y <= 2.5),
    (X.is_between(date(1970, 1, 1), date(1970, 1, 3)), lambda x, y, b, s: 0 <= x <= 2),
    (when(X > 0).then("x").otherwise(0), lambda x, y, b, s: x if x > 0 else 0),
    (when(X > 0).then("x").otherwise(B), lambda x, y, b, s: x if x > 0 else int(b)),
    (when(X > 0).then("x").otherwise("y"), lambda x, y, b, s: float(x) if x > 0 else y),
    (when(B).then(X * X).otherwise(X - 1), lambda x, y, b, s: wrapped(x * x) if b else wrapped(x - 1)),
    (when(B).then(X == 1).otherwise(X == 2), lambda x, y, b, s: x == (1 if b else 2)),
    (when(B).then("s").when(X > 0).then(lit("+")).otherwise(lit("-")), lambda x, y, b, s: s if b else "+" if x > 0 else "-"),
    (when(~B).then(7).otherwise(S.cast(int)), lambda x, y, b, s: int(s) if b else 7),
    (when(S.str.starts_with("-")).then(S.str.len_chars()).otherwise(X), lambda x, y, b, s: len(s) if s[0] == "-" else x),
]  # fmt: skip


@examples(300)
@given(st.sampled_from(SAME), ROWS, st.sampled_from(["tuples", "arrow", "kept"]))
def test_values_are_those_of_python(pair: tuple[Expression, Twin], rows: list[Row], way: str) -> None:
    expression, twin = pair
    assert values_of(expression, rows, way) == Counter((twin(*row),) for row in rows)


@pytest.mark.parametrize(("expression", "twin"), SAME, ids=[repr(expression) for expression, _ in SAME])
def test_values_of_some_rows_are_those_of_python(expression: Expression, twin: Twin) -> None:
    rows = [(x, y, x % 2 == 0, str(x)) for x, y in zip([0, 1, -1, 2, *LARGE], [0.0, 1.5, -2.0, 2.5, 1e300] * 2, strict=False)]
    assert values_of(expression, rows) == Counter((twin(*row),) for row in rows)


@examples(200)
@given(st.one_of(FLOATS, st.integers(-(10**6), 10**6).map(float)))
def test_floats_as_texts_read_as_the_same(number: float) -> None:
    [(found,)] = values_of(Y.cast(str), [(0, number, False, "")])
    assert float(found) == number and (found == repr(number) or not 1e-4 <= abs(number) < 1e10)
    [(again,)] = values_of(Y.cast(str).cast(float), [(0, number, False, "")])
    assert again == number


@examples(100)
@given(st.floats(-1e19, 1e19))
def test_floats_as_whole_numbers_lose_what_is_behind_the_point(number: float) -> None:
    if -(2.0**63) <= number < 2.0**63:
        assert values_of(Y.cast(int), [(0, number, False, "")]) == {(int(number),): 1}
    else:
        with pytest.raises(DlogError, match="is no int"):
            values_of(Y.cast(int), [(0, number, False, "")])


GOOD = {int: ["007", "+5", "-0", "9223372036854775807"], float: ["1", ".5", "5.", "-1e-3", "1E400", "inf", "-Infinity", "+2"]}
BAD = {
    int: ["", "1.0", "0x1F", " 1", "1_0", "9223372036854775808", "\u0661", "1\n"],
    float: ["", "e5", "0x1", "1_0", " 1", "1,5", "."],
}


@pytest.mark.parametrize("kind", [int, float])
def test_texts_of_numbers_are_read(kind: Any) -> None:
    for text in GOOD[kind]:
        assert values_of(S.cast(kind), [(0, 0.0, False, text)]) == {(kind(text),): 1}
    for text in BAD[kind]:
        with pytest.raises(DlogError, match=f"is no {kind.__name__}") as error:
            values_of(S.cast(kind), [(0, 0.0, False, "1"), (0, 0.0, False, text)])
        assert error.value.diagnostics[0].code == "bad-cast"
    [(nan,)] = values_of(S.cast(float), [(0, 0.0, False, "nan")])
    assert math.isnan(nan)
    with pytest.raises(DlogError, match="nan is no int"):
        values_of(S.cast(float).cast(int), [(0, 0.0, False, "nan")])


def test_what_is_left_out_before_is_not_cast() -> None:
    flow = Dataflow()
    rows = flow.input(s=str, x=int)
    digits = S.str.contains(r"\A[0-9]+\z")
    found = rows.filter(digits).filter(col("x") > 0).map(n=S.cast(int)).capture()
    either = rows.map(n=when(digits).then(S.cast(int)).otherwise(-1)).capture()
    late = rows.filter(col("x") > 5).filter(S.cast(int) > 0).map("x").capture()
    rows.insert([("12", 1), ("x", 2), ("3", 0), ("13", 6)])
    flow.commit()
    assert (found.counts(), either.counts(), late.counts()) == (
        {(12,): 1, (13,): 1}, {(12,): 1, (-1,): 1, (3,): 1, (13,): 1}, {(6,): 1}
    )  # fmt: skip


def test_values_of_any_kind_are_among_others() -> None:
    flow = Dataflow()
    rows = flow.input(o=object)
    found = rows.filter(col("o").is_in([(1, 2), None, "a", 2.0, "unknown"])).capture()
    rows.insert({"o": [(1, 2), (1, 3), None, "a", "b", 2]})
    flow.commit()
    assert set(found) == {((1, 2),), (None,), ("a",), (2,)}
