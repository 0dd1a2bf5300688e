"""Transitive rules follow steps; what is not transitive, or would have as many steps as rows, stays."""

from __future__ import annotations

import pytest

from dlog.engine.optimize.linearize import linearize
from tests.engine.optimize.passing import EDGE, after, unchanged

CLOSED = "p(x, z) :- p(x, y), p(y, z). "


@pytest.mark.parametrize("rule", ["p(x, z) :- p(x, y), p(y, z).", "p(x, z) :- p(y, z), p(x, y)."])
def test_what_the_other_rules_derive_are_the_steps(rule: str) -> None:
    text = f"{EDGE} p(x, y) :- e(x, y). p(x, y) :- e(y, x), f(x). {rule}"
    assert after(linearize, text) == [
        "p{step}(x, y) :- e(x, y).",
        "p{step}(x, y) :- e(y, x), f(x).",
        "p(x, z) :- p{step}(x, z).",
        "p(x, z) :- p(x, y), p{step}(y, z).",
    ]


def test_readers_that_fix_the_end_have_steps_come_first() -> None:
    rules = after(linearize, f"{EDGE} p(x, y) :- e(x, y). {CLOSED} q(x) :- p(x, 1).", "q")
    assert "p(x, z) :- p{step}(x, y), p(y, z)." in rules
    rules = after(linearize, f"{EDGE} p(x, y) :- e(x, y). {CLOSED} q(x) :- p(1, x).", "q")
    assert "p(x, z) :- p(x, y), p{step}(y, z)." in rules


def test_several_columns_and_columns_that_stay() -> None:
    columns = "(a: number, g: symbol, b: number, c: number, d: number)"
    rules = "t(a, g, b, c, d) :- s(a, g, b, c, d). t(a, g, b, c, d) :- t(a, g, b, m, n), t(n, g, m, c, d)."
    changed = after(linearize, f".decl s{columns} .decl t{columns} {rules}")
    assert changed[-1] == "t(a, g, b, c, d) :- t(a, g, b, m, n), t{step}(n, g, m, c, d)."


@pytest.mark.parametrize(
    "rules",
    [
        "p(x, z) :- p(x, y), e(y, z).",
        "p(z, x) :- p(x, y), p(y, z).",
        "p(x, z) :- p(x, y), p(z, y).",
        "p(x, z) :- p(x, y), p(y, z), f(y).",
        "p(x, z) :- p(x, y), p(y, z), x < z.",
        "p(x, x) :- p(x, y), p(y, x).",
        "p(x, z) :- p(x, x), p(x, z).",
        "p(x, z) :- p(x, _), p(_, z).",
        "p(x, 1) :- p(x, y), p(y, 1).",
        "p(x, z) :- p(x, y), p(y, z). p(x, y) :- p(y, x).",
        "p(x, z) :- p(x, y), p(y, z). p(1, 2).",
        "p(x, z) :- p(x, y), p(y, z). .input p",
        ".decl r(x: number, y: number) p(x, z) :- p(x, y), p(y, z). p(x, y) :- r(x, y). r(x, y) :- p(a, x), p(a, y).",
    ],
)
def test_what_is_not_a_transitive_rule_over_steps_stays(rules: str) -> None:
    assert unchanged(linearize, f"{EDGE} p(x, y) :- e(x, y). {rules}")


def test_a_transitive_rule_alone_has_no_steps() -> None:
    assert unchanged(linearize, f"{EDGE} {CLOSED}")
