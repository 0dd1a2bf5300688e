"""Functions of numbers as expressions: what they are applied to, and what they give."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

import dlog
from dlog.dataflow import Collection, Dataflow, apply, col, lit
from dlog.grammar.diagnostics import DlogError

ROWS = [(1, 2), (3, 4)]


def results(made: Any) -> set[Any]:
    """What an expression over x and y makes of some rows, in a dataflow; rules say the same."""
    flow = Dataflow()
    rows = flow.input("rows", x=int, y=int)
    plain, found = rows.count(by="y").capture(), rows.map(z=made)
    captured = found.capture()
    rules = dlog.rules(found=found)
    rows.insert(ROWS)
    flow.commit()
    assert plain.counts() == {(2, 1): 1, (4, 1): 1}
    values = {z for (z,) in captured.counts()}
    assert {z for (z,) in rules.counts(rules.run({"rows": ROWS}, threads=1), "found")} == values
    return values


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (lambda x: x * 100, ("x", "y"), "`<lambda>` is applied to 2 arguments, and takes 1"),
        (lambda x, y: x * y, ("x",), "is applied to 1 arguments, and takes 2"),
        (lambda x, y=1: x * y, ("x", "y", "x"), "is applied to 3 arguments, and takes 1 to 2"),
        (lambda: 5, (), "is applied to 0 arguments, and takes 0(.|\n)*`lit"),
        (lambda *x: x[0], ("x",), "one of a fixed number of arguments by position, without `\\*x`"),
        (lambda x, **y: x, ("x",), "without `\\*\\*y`"),
        (lambda x, *, y=1: x, ("x",), "without `y=1`"),
        (lambda x, y="a": x, ("x",), "one whose defaults are numbers, not 'a'"),
        (numba.njit(lambda x: x), ("x", "y"), "is applied to 2 arguments, and takes 1"),
        (np.sqrt, ("x",), "`function` must be a function in Python, not <ufunc 'sqrt'>(.|\n)*`lambda x: np.sqrt"),
        (math.sqrt, ("x",), "`function` must be a function in Python"),
        (5, ("x",), "`function` must be a function in Python"),
    ],
)
def test_a_function_is_applied_to_as_many_columns_as_it_takes(function: Any, arguments: Any, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        apply(function, *arguments)


def test_defaults_are_arguments() -> None:
    assert results(apply(lambda x, by=10: x * by, "x")) == {10, 30}
    assert results(apply(lambda x, by=10: x * by, "x", "y")) == {2, 12}
    assert results(apply(lambda x, by=10, and_=True: x * by + and_, "x", lit(2))) == {3, 7}
    assert results(apply(numba.njit(lambda x, by=0.5: x * by), "x", kind=float)) == {0.5, 1.5}


@pytest.mark.parametrize("use", [Collection.map, Collection.with_columns])
@pytest.mark.parametrize("function", [lambda x: x / 2, lambda x: np.uint64(x), lambda x: 1j * x])
def test_what_is_no_whole_number_is_none(function: Any, use: Any) -> None:
    rows = Dataflow().input(x=int, y=int)
    with pytest.raises(DlogError, match=r"gives (float64|uint64|complex128), which is no int(.|\n)*kind=float"):
        use(rows, z=apply(function, "x"))
    with pytest.raises(DlogError, match="which is no int"):
        use(rows, z=apply(function, "x") + 1)


def test_results_are_of_the_kind_that_is_meant() -> None:
    assert results(apply(lambda x: x / 2, "x", kind=float)) == {0.5, 1.5}
    assert results(apply(lambda x: x > 1, "x")) == {0, 1}
    assert results(apply(lambda x: x & 1 == 0, col("x") + col("y"), kind=bool)) == {False}
    assert results(apply(lambda x: np.uint8(x), "x")) == {1, 3}
    assert results(apply(lambda x: x, "x", kind=float)) == {1.0, 3.0}


def test_arguments_are_numbers() -> None:
    rows = Dataflow().input(s=str, o=object)
    for name in ("s", "o"):
        with pytest.raises(DlogError, match=r"`arguments` must be columns of numbers.* not '(str|object)'"):
            rows.map(z=apply(lambda x: 1, name))


def _nothing(x: int) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: undefined(x), "`<lambda>` of \\(int\\): NameError: name 'undefined' is not defined"),  # noqa: F821
        (_nothing, "cannot compile `_nothing` of \\(int\\): none cannot be represented"),
        (lambda x: (x, x), "UniTuple"),
        (lambda x: "a", "unicode_type cannot be represented(.|\n)*`flat_map` takes any"),
        (lambda x: x if x > 1 else None, "cannot compile"),
        (lambda x: {**x}, "cannot compile"),
    ],
)
def test_functions_that_cannot_be_compiled_are_refused_where_they_are_used(function: Any, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        Dataflow().input(x=int).map(z=apply(function, "x"))
