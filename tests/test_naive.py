"""The naive evaluator on programs so small that their answers are written out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.naive import DivisionByZero, NotSettled, TooBig, Ungrounded, evaluate

Rows = set[tuple[Any, ...]]
EDGES = {"e": [(1, 2), (2, 3), (3, 1), (3, 4)]}
GRAPH = ".decl e(x: number, y: number)\n"


def run(text: str, facts: dict[str, list[tuple[Any, ...]]] | None = None) -> dict[str, Rows]:
    return evaluate(parse(Source(text)), facts)


def result(declaration: str, rules: str, facts: dict[str, list[tuple[Any, ...]]] | None = None) -> Rows:
    return run(f"{GRAPH}.decl r({declaration})\n{rules}", facts or EDGES)["r"]


def single(kind: str, term: str) -> Any:
    ((value,),) = result(f"v: {kind}", f"r({term}).", {})
    return value


def test_facts_and_given_rows_are_united() -> None:
    assert run(GRAPH + "e(7, 8). e(1, 2).", EDGES)["e"] == {(1, 2), (2, 3), (3, 1), (3, 4), (7, 8)}


def test_rule_joins_on_repeated_variables() -> None:
    assert result("x: number, z: number", "r(x, z) :- e(x, y), e(y, z).") == {(1, 3), (2, 1), (2, 4), (3, 2)}


def test_repeated_variable_in_one_atom_selects_equal_columns() -> None:
    assert result("x: number", "r(x) :- e(x, x).", {"e": [(1, 1), (1, 2)]}) == {(1,)}


def test_computed_argument_may_use_a_variable_of_the_same_atom() -> None:
    assert result("x: number", "r(x) :- e(x, x + 1).") == {(1,), (2,), (3,)}


def test_constants_and_anonymous_arguments_select() -> None:
    assert result("x: number", "r(x) :- e(x, 4). r(y) :- e(_, y), e(_, 2), y > 3.") == {(3,), (4,)}


def test_linear_and_nonlinear_recursion_close_a_graph() -> None:
    chain = {"e": [(1, 2), (2, 3), (3, 4)]}
    closure = {(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)}
    assert result("x: number, y: number", "r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z).", chain) == closure
    assert result("x: number, y: number", "r(x, y) :- e(x, y). r(x, z) :- r(x, y), r(y, z).", chain) == closure


def test_mutual_recursion_alternates() -> None:
    text = (
        GRAPH + ".decl even(x: number)\n.decl odd(x: number)\neven(1). odd(y) :- even(x), e(x, y). even(y) :- odd(x), e(x, y)."
    )
    found = run(text, {"e": [(1, 2), (2, 3), (3, 4)]})
    assert (found["even"], found["odd"]) == ({(1,), (3,)}, {(2,), (4,)})


def test_one_body_may_have_several_heads() -> None:
    found = run(GRAPH + ".decl a(x: number)\n.decl b(x: number)\na(x), b(y) :- e(x, y), y = 4.", EDGES)
    assert (found["a"], found["b"]) == ({(3,)}, {(4,)})


def test_disjunction_is_union() -> None:
    assert result("x: number", "r(x) :- e(x, y), (y = 4 ; x = 1).") == {(1,), (3,)}


def test_negation_keeps_what_is_absent() -> None:
    assert result("y: number", "r(y) :- e(_, y), !e(y, _).") == {(4,)}


def test_negated_disjunction_holds_when_no_alternative_does() -> None:
    assert result("x: number", "r(x) :- e(x, _), !(x = 1 ; e(x, 4)).") == {(2,)}


def test_nullary_relations_are_true_or_false() -> None:
    found = run(
        GRAPH + ".decl yes()\n.decl no()\n.decl r(x: number)\nyes() :- e(3, 4). no() :- e(4, 3). r(1) :- yes(), !no().", EDGES
    )
    assert (found["yes"], found["no"], found["r"]) == ({()}, set(), {(1,)})


def test_true_and_false_are_bodies() -> None:
    assert result("x: number", "r(1) :- true. r(2) :- false. r(3) :- e(_, _), true.") == {(1,), (3,)}


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("x = 2", {(2,)}),
        ("x != 2", {(1,), (3,)}),
        ("x < 2", {(1,)}),
        ("x <= 2", {(1,), (2,)}),
        ("x > 2", {(3,)}),
        ("x >= 2", {(2,), (3,)}),
    ],
)
def test_constraints_compare(constraint: str, expected: Rows) -> None:
    assert result("x: number", f"r(x) :- e(x, _), {constraint}.") == expected


def test_match_is_of_the_whole_text_and_contains_of_a_part() -> None:
    text = '.decl s(x: symbol)\ns("ab"). s("abc"). s("").\n.decl m(x: symbol)\nm(x) :- s(x), match("a.", x).'
    found = run(text + '\n.decl c(x: symbol)\nc(x) :- s(x), contains("bc", x).')
    assert (found["m"], found["c"]) == ({("ab",)}, {("abc",)})


def test_symbols_are_ordered_by_text() -> None:
    assert run('.decl s(x: symbol)\ns("b"). s("a").\n.decl r(x: symbol)\nr(x) :- s(x), x < "b".')["r"] == {("a",)}


@pytest.mark.parametrize(
    ("kind", "term", "expected"),
    [
        ("number", "9223372036854775807 + 1", -(2**63)),
        ("number", "2147483647 + 1", 2147483648),
        ("number", "-7 / 2", -3),
        ("number", "-7 % 2", -1),
        ("number", "7 - 10", -3),
        ("number", "-(3)", -3),
        ("number", "2 ^ 10", 1024),
        ("number", "1 + 2 * 3", 7),
        ("number", "0x1f + 0b101", 36),
        ("number", "6 band 3", 2),
        ("number", "6 bor 3", 7),
        ("number", "6 bxor 3", 5),
        ("number", "bnot 0", -1),
        ("number", "1 bshl 63", -(2**63)),
        ("number", "-8 bshr 1", -4),
        ("number", "-1 bshru 63", 1),
        ("number", "5 land 0", 0),
        ("number", "5 lor 0", 1),
        ("number", "lnot 5", 0),
        ("number", "min(3, 1, 2)", 1),
        ("number", "max(3, 1, 2)", 3),
        ("number", 'strlen("abc")', 3),
        ("number", 'to_number("-12")', -12),
        ("unsigned", "0u - 1u", 2**64 - 1),
        ("unsigned", "18446744073709551615 + 2", 1),
        ("unsigned", "18446744073709551615 / 2", 2**63 - 1),
        ("float", "1 / 2", 0.5),
        ("float", "1.5 + 1", 2.5),
        ("float", "to_float(3)", 3.0),
        ("symbol", 'cat("a", "b")', "ab"),
        ("symbol", 'substr("hello", 1, 3)', "ell"),
        ("symbol", "to_string(12)", "12"),
    ],
)
def test_functors_compute(kind: str, term: str, expected: Any) -> None:
    assert single(kind, term) == expected
    assert type(single(kind, term)) is type(expected)


def test_integer_literal_in_a_float_place_is_a_float() -> None:
    ((value,),) = run(".decl r(x: float)\nr(1).")["r"]
    assert isinstance(value, float)


def test_division_by_zero_is_reported_unless_a_test_excludes_it() -> None:
    with pytest.raises(DivisionByZero):
        result("x: number", "r(1 / (x - 1)) :- e(x, _).")
    assert result("x: number", "r(6 / y) :- e(x, _), y = x - 1, y != 0.") == {(6,), (3,)}


def test_records_are_made_unpacked_and_compared() -> None:
    text = """.type List = [head: number, tail: List]
.decl l(x: List)
l(nil). l([1, nil]). l([2, [1, nil]]).
.decl head(x: number)
head(h) :- l([h, _]).
.decl tail(x: List)
tail(t) :- l(x), x = [_, t], t != nil.
.decl longer(x: List)
longer([9, x]) :- l(x), x != nil.
"""
    found = run(text)
    assert found["head"] == {(1,), (2,)}
    assert found["tail"] == {((1, None),)}
    assert found["longer"] == {((9, (1, None)),), ((9, (2, (1, None))),)}


def test_count_counts_the_rows_of_one_atom_and_the_named_variables_of_several() -> None:
    assert result("n: number", "r(n) :- n = count : { e(_, _) }.") == {(4,)}
    assert result("n: number", "r(n) :- n = count : { e(_, _), e(3, _) }.") == {(1,)}
    assert result("n: number", "r(n) :- n = count : { e(x, y), e(3, z) }.") == {(8,)}
    assert result("n: number", "r(n) :- n = count : { e(_, y), e(y, _) }.") == {(3,)}
    assert result("n: number", "r(n) :- n = count : { e(9, _) }.") == {(0,)}


def test_aggregate_of_a_disjunction_counts_distinct_bindings() -> None:
    assert result("n: number", "r(n) :- n = count : { (e(x, _) ; e(_, x)) }.") == {(4,)}


def test_aggregate_is_grouped_by_the_outer_variables_it_mentions() -> None:
    degrees = "r(x, n) :- (e(x, _) ; e(_, x)), n = count : { e(x, _) }."
    assert result("x: number, n: number", degrees) == {(1, 1), (2, 1), (3, 2), (4, 0)}


def test_outer_variable_may_only_be_compared_inside() -> None:
    smaller = "r(x, s) :- e(x, _), s = sum y : { e(y, _), y < x }."
    assert result("x: number, s: number", smaller) == {(1, 0), (2, 1), (3, 1 + 2)}


def test_variable_of_the_target_is_the_aggregates_own() -> None:
    assert result("x: number, s: number", "r(x, s) :- e(x, _), s = sum x : { e(x, _) }.") == {(1, 9), (2, 9), (3, 9)}
    assert result("x: number", "r(x) :- x = max x : { e(x, _) }.") == {(3,)}


def test_sum_adds_equal_values_of_different_rows() -> None:
    assert result("s: number", "r(s) :- s = sum x : { e(x, _) }.") == {(9,)}


def test_min_max_and_mean() -> None:
    assert result("a: number, b: number", "r(a, b) :- a = min x : { e(_, x) }, b = max x : { e(_, x) }.") == {(1, 4)}
    text = ".decl f(x: float)\nf(1). f(2).\n.decl r(x: float)\nr(m) :- m = mean x : { f(x) }."
    assert run(text)["r"] == {(1.5,)}


def test_min_of_nothing_fails_and_so_does_a_head_of_it() -> None:
    assert result("x: number", "r(x) :- x = min y : { e(9, y) }.") == set()
    assert result("x: number", "r(1 + min y : { e(9, y) }) :- e(_, _).") == set()


def test_sum_of_numbers_wraps_around() -> None:
    rows = {"e": [(1, 2**63 - 1), (2, 1)]}
    assert result("s: number", "r(s) :- s = sum x : { e(_, x) }.", rows) == {(-(2**63),)}


def test_aggregates_nest() -> None:
    largest = "r(n) :- n = max d : { e(x, _), d = count : { e(x, _) } }."
    assert result("n: number", largest) == {(2,)}


def test_strata_follow_dependencies_and_not_the_text() -> None:
    text = GRAPH + ".decl a(x: number)\n.decl b(x: number)\nb(x) :- e(x, _), !a(x).\na(x) :- e(x, 4)."
    assert run(text, EDGES)["b"] == {(1,), (2,)}


@pytest.mark.parametrize(
    "rule", ["r(x) :- e(x, _), !r(x).", "r(n) :- n = count : { r(_) }, n < 1.", "r(x) :- e(x, _), count : { r(_) } < 1."]
)
def test_rows_that_depend_on_themselves_have_no_result(rule: str) -> None:
    with pytest.raises(NotSettled):
        result("x: number", rule)


def test_negation_and_totals_in_a_cycle_have_a_result_where_no_row_depends_on_itself() -> None:
    moves = ".decl e(x: number, y: number)\n.decl win(x: number)\nwin(x) :- e(x, y), !win(y)."
    assert run(moves, {"e": [(1, 2), (2, 3), (3, 4), (5, 3)]})["win"] == {(1,), (3,)}
    parts = ".decl e(x: number, y: number)\n.decl n(x: number, n: number)\nn(x, 1) :- e(_, x), !e(x, _).\n"
    parts += "n(x, n) :- e(x, _), n = sum m : { e(x, y), n(y, m) }."
    assert run(parts, {"e": [(1, 2), (1, 3), (2, 3), (2, 4)]})["n"] == {(1, 3), (2, 2), (3, 1), (4, 1)}


def test_unbound_variable_is_refused() -> None:
    with pytest.raises(Ungrounded):
        result("x: number", "r(x) :- !e(x, 1).")


def test_budget_bounds_the_work() -> None:
    program = parse(Source(GRAPH + ".decl r(x: number)\nr(x) :- e(x, _), e(_, _), e(_, _)."))
    with pytest.raises(TooBig):
        evaluate(program, EDGES, budget=20)


def test_recursion_through_min_finds_shortest_paths() -> None:
    text = """.decl node(x: number)
.decl source(x: number)
.decl edge(x: number, y: number, w: number)
.decl dist(x: number, d: number)
dist(x, d) :- node(x), d = min c : { source(x), c = 0 ; dist(y, b), edge(y, x, w), c = b + w }.
"""
    facts = {
        "node": [(1,), (2,), (3,), (4,), (5,)],
        "source": [(1,)],
        "edge": [(1, 2, 10), (1, 3, 2), (3, 2, 3), (2, 4, 1), (4, 2, 0), (5, 1, 1)],
    }
    assert run(text, facts)["dist"] == {(1, 0), (2, 5), (3, 2), (4, 6)}


CONTROL = """.decl owns(x: number, y: number, s: number)
.decl company(x: number)
.decl controls(x: number, y: number)
company(x), company(y) :- owns(x, y, _).
controls(x, x) :- company(x).
controls(x, z) :- company(x), company(z), sum s : { controls(x, y), owns(y, z, s) } > 50.
"""
EDGE = """.decl e(x: number, y: number)
.decl gone(x: number, y: number)
"""


def test_recursion_through_a_bounded_sum_finds_company_control() -> None:
    owns = [(1, 2, 60), (1, 3, 30), (2, 3, 30), (3, 4, 51), (4, 5, 50)]
    found = run(CONTROL, {"owns": owns})["controls"]
    assert {(x, y) for x, y in found if x != y} == {(1, 2), (1, 3), (1, 4), (3, 4)}


def test_recursion_through_a_bounded_count_of_what_is_left_finds_the_truss() -> None:
    rule = "gone(x, y) :- e(x, y), n = count : { e(x, z), e(y, z), !gone(x, z), !gone(y, z) }, n < 2."
    clique = [(x, y) for x in range(4) for y in range(4) if x != y]
    tail = [(3, 4), (4, 3), (2, 4), (4, 2)]
    assert run(EDGE + rule, {"e": [*clique, *tail]})["gone"] == set(tail)


@pytest.mark.parametrize(
    "rule",
    [
        "gone(x, y) :- e(x, y), count : { gone(y, z) } < 2.",
        "gone(x, y) :- e(x, y), count : { e(y, z), !gone(y, z) } >= 2.",
    ],
)
def test_bounds_that_more_rows_may_break_may_have_no_result(rule: str) -> None:
    with pytest.raises(NotSettled):
        run(EDGE + rule, {"e": [(1, 1), (1, 2), (2, 1)]})
