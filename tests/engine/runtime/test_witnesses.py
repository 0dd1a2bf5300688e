"""Witnesses: values beside which a least or greatest one stands, used outside of the aggregate."""

from __future__ import annotations

import pytest

from dlog import run_text
from dlog.grammar.diagnostics import DlogError

DATA = """.decl s(name: symbol, height: number)
s("Anna", 170). s("Rachel", 177). s("Quarantina", 180). s("Zoe", 180).
.decl r(name: symbol, n: number)
"""


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("r(x, n) :- n = max h : { s(x, h) }.", {("Quarantina", 180), ("Zoe", 180)}),
        ("r(x, n) :- n = min h / 2 : { s(x, h) }.", {("Anna", 85)}),
        ("r(x, n) :- n = count : { s(_, h), h > min k : { s(x, k) } }.", {("Anna", 2)}),
        ("r(x, n) :- n = sum h : { s(_, h), h < max k : { s(x, k) } }.", {("Quarantina", 347), ("Zoe", 347)}),
    ],
)
def test_a_witness_stands_where_the_extreme_does(rule: str, rows: set[tuple[str, int]]) -> None:
    assert run_text(DATA + rule, {})["r"] == rows


def test_a_witness_that_depends_on_the_aggregate_around_it_does_not_reach_out() -> None:
    with pytest.raises(DlogError, match="is not bound"):
        run_text(DATA + "r(x, n) :- n = count : { s(y, h), h > min k : { s(x, k), x != y } }.", {})
