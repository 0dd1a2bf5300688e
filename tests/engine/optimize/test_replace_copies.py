"""Relations that hold the rows of another one, column for column, are read there."""

from __future__ import annotations

import pytest

from dlog.engine.optimize.replace_copies import replace_copies
from tests.engine.optimize.passing import EDGE, after, unchanged


def test_a_copy_is_read_where_its_rows_come_from() -> None:
    assert after(replace_copies, EDGE + "p(x, y) :- e(x, y). q(x) :- p(x, 1), f(x).", "q") == ["q(x) :- e(x, 1), f(x)."]


def test_columns_in_another_order() -> None:
    text = EDGE + "p(y, x) :- e(x, y). q(x) :- p(x, 1), !p(2, x), f(x), 1 = count : { p(x, 3) }."
    assert after(replace_copies, text, "q") == ["q(x) :- e(1, x), !e(x, 2), f(x), _1 = 1, _1 = count : { e(3, x) } per x."]


def test_copies_of_copies() -> None:
    text = EDGE + ".decl r(x: number, y: number) p(y, x) :- e(x, y). r(y, x) :- p(x, y). q(x) :- r(x, 7)."
    assert after(replace_copies, text, "q") == ["q(x) :- e(x, 7)."]


def test_a_copy_within_a_recursion() -> None:
    text = EDGE + ".decl r(x: number, y: number) r(x, y) :- e(x, y). p(x, y) :- r(x, y). r(x, z) :- p(x, y), e(y, z)."
    assert after(replace_copies, text + "q(x) :- r(x, x).", "q") == [
        "r(x, y) :- e(x, y).",
        "r(x, z) :- r(x, y), e(y, z).",
        "q(x) :- r(x, x).",
    ]


@pytest.mark.parametrize(
    "rules",
    [
        "p(x, y) :- e(x, y), f(x).",
        "p(x, x) :- e(x, _).",
        "p(x, y) :- e(x, y). p(x, y) :- e(y, x).",
        "p(x, 1) :- f(x).",
        "p(x, x) :- e(x, x).",
        "p(x, y) :- e(x, y). p(1, 2).",
        "p(x, y) :- e(x, y). .input p",
        "p(x, y) :- r(x, y). .decl r(x: number, y: number) r(x, y) :- p(x, y).",
        "p(x + 1, y) :- e(x, y).",
    ],
)
def test_what_is_not_merely_a_copy_stays(rules: str) -> None:
    assert unchanged(replace_copies, f"{EDGE} {rules} q(x) :- p(x, 1).", "q")


def test_an_observed_copy_stays() -> None:
    assert unchanged(replace_copies, EDGE + "p(x, y) :- e(x, y). q(x) :- p(x, 1).", "q", "p")
