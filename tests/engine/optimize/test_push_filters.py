"""Filters of readers are asked where rows come in, if all readers have them and the columns pass through the recursion."""

from __future__ import annotations

import pytest

from dlog.engine.optimize.push_filters import push_filters
from tests.engine.compile.rules_of import compiled
from tests.engine.optimize.passing import EDGE, LEFT, RIGHT, after, unchanged


def test_a_relation_of_its_own_for_the_rows_that_are_asked_for() -> None:
    assert after(push_filters, EDGE + RIGHT + "q(x) :- p(x, y), f(y).", "q") == [
        "p{f(to)}(x, y) :- e(x, y), f(y).",
        "p{f(to)}(x, z) :- e(x, y), p{f(to)}(y, z).",
        "q(x) :- p{f(to)}(x, y).",
    ]


def test_a_constant() -> None:
    assert after(push_filters, EDGE + LEFT + "q(y) :- p(1, y).", "q") == [
        "p{from = 1}(x, y) :- e(x, y), x = 1.",
        "p{from = 1}(x, z) :- p{from = 1}(x, y), e(y, z).",
        "q(y) :- p{from = 1}(1, y).",
    ]


@pytest.mark.parametrize(
    ("literals", "name", "asked"),
    [
        ("y < 5", "p{to < 5}", "y < 5"),
        ("5 < y", "p{to > 5}", "y > 5"),
        ("!f(y)", "p{!f(to)}", "!f(y)"),
        ("e(y, _)", "p{e(to, _)}", "e(y, _)"),
        ("!e(3, y)", "p{!e(3, to)}", "!e(3, y)"),
        ("f(y), y != 2", "p{f(to), to != 2}", "f(y), y != 2"),
    ],
)
def test_kinds_of_filters(literals: str, name: str, asked: str) -> None:
    found = after(push_filters, EDGE + RIGHT + f"q(x) :- p(x, y), {literals}.", "q")
    assert sorted(found[0].split(" :- ")[1][:-1].split(", ")) == sorted(f"e(x, y), {asked}".split(", "))
    assert found[1:] == [f"{name}(x, z) :- e(x, y), {name}(y, z).", f"q(x) :- {name}(x, y)."]


@pytest.mark.parametrize(
    "reader",
    [
        "q(x) :- p(x, y), x < y.",
        "q(x) :- p(x, _).",
        "q(x) :- p(1, x).",
        "q(x) :- p(x, y), e(x, y).",
        "q(x) :- p(x, y), y + 1 < 3.",
        "q(x) :- p(x, y), f(y), !p(_, x).",
        "q(x) :- p(x, y), f(y). .decl r(x: number) r(x) :- p(x, _). .output r",
        "q(n) :- n = count : { p(_, _) }.",
        "q(n) :- f(y), n = count : { p(_, y) }.",
    ],
)
def test_readers_that_do_not_ask_for_part_of_the_relation(reader: str) -> None:
    """Only the second column passes through."""
    assert unchanged(push_filters, EDGE + RIGHT + reader, "q", "r")


def test_a_filter_does_not_look_into_what_depends_on_the_relation() -> None:
    text = EDGE + RIGHT + ".decl r(x: number) r(x) :- p(_, x), f(x). q(x) :- p(x, y), r(y)."
    assert unchanged(push_filters, text, "q")


@pytest.mark.parametrize(
    "rules",
    [
        "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).",
        "p(x, y) :- e(x, y). p(y, x) :- p(x, y).",
        "p(x, y) :- e(x, y). p(x, y + 1) :- p(x, y), y < 9.",
        "p(x, y) :- e(x, y). p(x, 3) :- p(x, y), e(y, 3).",
        "p(x, y) :- e(x, y). p(x, z) :- r(x, y), e(y, z). .decl r(x: number, y: number) r(x, z) :- p(x, y), e(y, z).",
        "p(x, 10 / y) :- e(x, y), y != 0.",
        ".decl n(x: number) n(x) :- e(x, _). p(x, v) :- n(x), v = min c : { n(x), c = x ; p(y, c), e(x, y) }.",
    ],
)
def test_columns_that_do_not_pass_through(rules: str) -> None:
    assert unchanged(push_filters, f"{EDGE} {rules} q(x) :- p(x, y), f(y).", "q")


def test_an_observed_relation_is_left_alone() -> None:
    assert unchanged(push_filters, EDGE + RIGHT + "q(x) :- p(x, y), f(y).", "q", "p")


def test_what_all_readers_ask_is_pushed() -> None:
    text = EDGE + RIGHT + ".decl r(x: number) r(x) :- p(x, y), f(y). q(x) :- p(x, y), f(y), y < 5."
    assert after(push_filters, text, "q", "r")[-2:] == ["q(x) :- p{f(to)}(x, y), y < 5.", "r(x) :- p{f(to)}(x, y)."]


def test_few_constants_have_relations_of_their_own() -> None:
    few = " ".join(f"q(y) :- p({i}, y)." for i in range(4))
    found = after(push_filters, EDGE + LEFT + few, "q")
    assert found[-4:] == [f"q(y) :- p{{from = {i}}}({i}, y)." for i in range(4)]
    assert unchanged(push_filters, EDGE + LEFT + few + " q(y) :- p(4, y).", "q")
    assert unchanged(push_filters, EDGE + "p(x, y) :- e(y, x). q(x) :- p(1, x). q(x) :- p(2, x).", "q")


def test_constants_with_other_filters() -> None:
    text = EDGE + LEFT + "q(y) :- p(1, y). q(y) :- p(x, y), x = 2, f(x)."
    assert after(push_filters, text, "q")[-2:] == ["q(y) :- p{from = 1}(1, y).", "q(y) :- p{from = 2}(2, y), f(2)."]


def test_under_negation_and_in_aggregates_the_filters_stay() -> None:
    text = EDGE + RIGHT + "q(n) :- f(y), f(x), !p(x, y), n = count : { p(x, z), f(z) }."
    found = after(push_filters, text, "q")
    assert found[-1] == "q(n) :- f(y), f(x), !p{f(to)}(x, y), n = count : { p{f(to)}(x, z), f(z) } per x."


def test_a_filter_that_is_needed_elsewhere_stays() -> None:
    found = after(push_filters, EDGE + RIGHT + "q(x) :- p(x, y), f(y), e(y, x).", "q")
    assert found[-1] == "q(x) :- p{f(to)}(x, y), f(y), e(y, x)."


def test_filters_go_through_several_relations() -> None:
    text = EDGE + LEFT + ".decl r(a: number, b: number) r(y, x) :- p(x, y), f(y). q(x) :- r(x, 3)."
    asked = ["r{b = 3}(y, x) :- p{from = 3}(x, y), f(y).", "q(x) :- r{b = 3}(x, 3)."]
    assert after(push_filters, text, "q")[-2:] == asked


def test_terms_in_heads() -> None:
    text = EDGE + "p(x, x + y) :- e(x, y). p(x, 1) :- f(x). p(x, 2) :- f(x). p(x, z) :- e(x, y), p(y, z). "
    text += "q(x) :- p(x, y), f(y), y < 5, y != 1."
    assert after(push_filters, text, "q")[:3] == [
        "p{f(to), to != 1, to < 5}(x, _1) :- e(x, y), _1 = (x + y), _1 != 1, _1 < 5, f(_1).",
        "p{f(to), to != 1, to < 5}(x, 2) :- f(x), 2 < 5, f(2).",
        "p{f(to), to != 1, to < 5}(x, z) :- e(x, y), p{f(to), to != 1, to < 5}(y, z).",
    ]


def test_rules_of_other_constants_are_gone() -> None:
    text = EDGE + "p(x, 1) :- f(x). p(x, 2) :- f(x). p(x, z) :- e(x, y), p(y, z). q(x) :- p(x, 2)."
    assert after(push_filters, text, "q")[0] == "p{to = 2}(x, 2) :- f(x)."
    assert len(after(push_filters, text, "q")) == 3


def test_records_in_heads() -> None:
    text = """.type L = [h: number, t: L] .decl e(x: number) .decl l(x: L) .decl g(l: L) .decl q(l: L)
    l([x, nil]) :- e(x). l([x, y]) :- e(x), g(y)."""
    assert after(push_filters, text + "q(x) :- l(x), g(x).", "q") == [
        "l{g(x)}(_1) :- e(x), _1 = L[x, nil], g(_1).",
        "l{g(x)}(_1) :- e(x), g(y), _1 = L[x, y], g(_1).",
        "q(x) :- l{g(x)}(x).",
    ]
    assert after(push_filters, text + "q(nil) :- l(nil).", "q") == ["q(nil) :- l{x = nil}(nil)."]


def test_rows_from_elsewhere_are_asked_too() -> None:
    found = after(push_filters, EDGE + "p(1, 2). " + RIGHT + "q(x) :- p(x, y), f(y).", "q")
    assert "p{f(to)}(from, to) :- p(from, to), f(to)." in found
    assert not any(rule.startswith("p(") for rule in found)


def test_rules_say_what_was_pushed() -> None:
    program = push_filters(compiled(EDGE + RIGHT + "q(x) :- p(x, y), f(y)."), frozenset({"q"}))
    assert [rule.text for rule in program.strata[0].rules] == [
        "p(x, y) :- e(x, y).  [f(to)]",
        "p(x, z) :- e(x, y), p(y, z).  [f(to)]",
    ]
    assert program.relations["p{f(to)}"].attributes == program.relations["p"].attributes
