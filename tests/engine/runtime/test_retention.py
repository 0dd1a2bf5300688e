"""Relations that do not keep all of their rows: subsumption, lattices, `debug_delta`."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog import run_text, session
from dlog.engine.plan.static.iterations import explain_iterated
from dlog.engine.plan.statistics import Declared
from dlog.engine.runtime.incremental.engines.choice import is_incremental, make_engine
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program
from tests.conftest import ROOT
from tests.engine.runtime.runs import variant
from tests.examples import examples
from tests.rounds import Story, check, stories
from tests.shards import run_in_supersteps, run_sharded
from tests.strategies import Case
from tests.strategies_retention import (
    choice_programs,
    plain_subsumption_programs,
    retention_programs,
    subsumption_programs,
)
from tests.test_oracle import by_naive_evaluation, executed

EDGES = ".decl e(x: number, y: number)\n"
PROGRAMS = re.findall(r"```prolog\n(.*?)```", (ROOT / "docs" / "keeping.md").read_text(encoding="utf-8"), re.DOTALL)


@examples(60)
@given(case=retention_programs())
def test_random_programs_agree_with_the_naive_evaluator(case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(20)
@given(case=retention_programs(), hashed=st.booleans(), yielding=st.booleans())
def test_threads_and_kinds_of_sets_do_not_matter(case: Case, hashed: bool, yielding: bool) -> None:
    with variant(bulk=True, hashed=hashed, yielding=yielding):
        assert executed(run_text, case, threads=2) == by_naive_evaluation(case)


@examples(20)
@given(case=choice_programs())
def test_neither_threads_nor_the_order_of_rows_matter_to_a_choice(case: Case) -> None:
    backwards = Case(case.relations, case.rules, {name: rows[::-1] for name, rows in case.facts.items()})
    assert executed(run_text, backwards, threads=2) == executed(run_text, case)


@pytest.mark.slow
@examples(20)
@given(case=subsumption_programs())
def test_several_workers_evaluate_what_is_a_lattice_and_one_all_else(case: Case) -> None:
    assert executed(lambda text, facts, threads=1: run_sharded(text, facts, workers=3), case) == by_naive_evaluation(case)


def test_supersteps_evaluate_a_subsumption_that_is_a_lattice() -> None:
    text = f"{EDGES}.decl d(x: number, n: number) d(1, 0). d(y, n + 1) :- d(x, n), e(x, y). d(x, n) <= d(x, m) :- m < n."
    facts = {"e": [(1, 2), (2, 3), (3, 1), (1, 3), (3, 4)]}
    assert run_in_supersteps(text, facts)["d"] == run_text(text, facts)["d"] == {(1, 0), (2, 1), (3, 1), (4, 2)}


# ------------------------------------------------------------------------------------------------------------- documentation


def test_the_documentation_of_subsumption_runs() -> None:
    trips = run_text(PROGRAMS[0], {})["trip"]
    assert trips == {(x, y, k) for x, y, k in trips} and len(trips) == 9
    assert {("a", "c", 7), ("a", "a", 8), ("b", "a", 5)} <= set(trips)


def test_the_documentation_of_choices_runs() -> None:
    result = run_text(PROGRAMS[1], {})
    assert result["next"] == {("nil", "ann"), ("ann", "bob"), ("bob", "cem")}
    assert result["chosen"] == {("maths", 1, "zoe"), ("maths", 2, "zoe")}


def test_the_documentation_of_iterations_runs() -> None:
    steps = {(1, 2, 0), (2, 3, 0), (3, 4, 0), (1, 3, 1), (2, 4, 1), (1, 4, 2)}
    assert run_text(PROGRAMS[3], {})["steps"] == steps


def test_the_documentation_of_lattices_runs() -> None:
    result = run_text(PROGRAMS[2], {})
    assert result["needs"] == {("log", 5), ("run", 5), ("main", 13)} and result["shared"] == {(5,)}


# --------------------------------------------------------------------------------------------------------------- subsumption


def test_intervals_grow_together() -> None:
    text = """.decl r(a: number, b: number)
r(1, 10). r(1, 1). r(2, 2). r(2, 130). r(200, 201).
r(a, b) <= r(c, d) :- c <= a, b <= d.
r(min(a, c), max(b, d)) :- r(a, b), r(c, d), c < b, a < d."""
    assert run_text(text, {})["r"] == {(1, 130), (200, 201)}


def test_rows_of_an_input_are_dominated_too() -> None:
    text = ".decl r(a: number, b: number)\n.input r\nr(a, b) <= r(a, c) :- b < c."
    assert run_text(text, {"r": [(1, 1), (1, 3), (2, 2), (1, 2)]})["r"] == {(1, 3), (2, 2)}


def test_two_rows_that_dominate_each_other_both_go_if_they_come_together() -> None:
    text = f"{EDGES}.decl r(x: number, y: number) r(x, y) :- e(x, y). r(x, y) <= r(y, x) :- true."
    assert run_text(text, {"e": [(1, 2), (2, 1), (3, 3), (4, 5)]})["r"] == {(3, 3), (4, 5)}


def test_records_are_compared_by_their_fields() -> None:
    text = """.type P = [a: number, b: number]
.decl r(k: number, p: P)
r(1, [1, 2]). r(1, [0, 5]). r(1, [3, 1]). r(2, [9, 9]).
r(k, [a, b]) <= r(k, [c, d]) :- c <= a, b <= d."""
    assert run_text(text, {})["r"] == {(1, (0, 5)), (2, (9, 9))}


def test_an_aggregate_may_derive_what_is_dominated() -> None:
    text = f"{EDGES}.decl r(x: number, n: number) r(x, n) :- e(x, _), n = max y : {{ e(x, y) }}. r(0, 9). r(0, n) :- e(n, _).\n"
    assert run_text(f"{text}r(x, n) <= r(x, m) :- m < n.", {"e": [(3, 4), (3, 7), (0, 5)]})["r"] == {(3, 7), (0, 0)}


def test_the_limit_of_a_relation_ends_its_iterations() -> None:
    text = (
        ".decl r(n: number, m: number) r(0, 0). r(n + 1, n) :- r(n, _). r(n, m) <= r(n, k) :- m < k, n > 5.\n.limitsize r(n=5)"
    )
    assert len(run_text(text, {})["r"]) == 5


def test_division_by_zero_is_told_at_its_rule() -> None:
    text = f"{EDGES}.decl r(x: number) r(x) :- e(x, _). r(x / y) :- r(x), e(x, y). r(x) <= r(y) :- e(x, y), x < y."
    with pytest.raises(DlogError, match="division by zero") as raised:
        run_text(text, {"e": [(1, 0)]})
    assert raised.value.diagnostics[0].labels[0].message == "while evaluating this rule"


LATTICE = "d(x, n) <= d(x, m) :- m < n."


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (f"d(y, n + 1) :- d(x, n), e(x, y). {LATTICE}", True),
        ("d(y, n - 1) :- d(x, n), e(x, y), y > x. d(x, n) <= d(x, m) :- n <= m.", True),
        (f"d(y, n + 1) :- d(x, n), e(x, y), n < 5. {LATTICE}", False),
        (f"d(n, n) :- d(_, n). {LATTICE}", False),
        (f"d(y, 7 - n) :- d(x, n), e(x, y). {LATTICE}", False),
        ("d(y, n) :- d(x, n), e(x, y). d(x, n) <= d(y, n) :- y < x.", False),
        (f"d(y, n) :- d(x, n), e(x, y). {LATTICE} d(x, n) <= d(x, m) :- n < m.", False),
        (f"d(y, n) :- f(y, n). f(y, n) :- d(x, n), e(x, y). .decl f(x: number, n: number) {LATTICE}", False),
    ],
)
def test_what_is_monotone_is_a_lattice(rules: str, kept: bool) -> None:
    program = compile_program(f"{EDGES}.decl d(x: number, n: number) d(x, y) :- e(x, y). {rules}")
    assert ("d" in program.lattices, "d" in program.iterated) == (kept, not kept)


# ------------------------------------------------------------------------------------------------------------------- lattices

BITS = ".lattice number<> { Bottom -> 0, Top -> -1, Lub -> _ bor _, Glb -> _ band _ }\n"


@pytest.mark.parametrize(
    ("lub", "iterated", "rows"),
    [("max(_, _)", False, {(1, 6), (2, 5)}), ("min(_, _)", False, {(1, 3), (2, 5)}), ("_ bor _", True, {(1, 7), (2, 5)})],
)
def test_a_lattice_of_max_or_min_is_kept_by_dominance(lub: str, iterated: bool, rows: set[tuple[int, int]]) -> None:
    text = f".lattice number<> {{ Lub -> {lub} }}\n{EDGES}.decl r(x: number, y: number<>) r(x, y) :- e(x, y)."
    assert run_text(text, {"e": [(1, 3), (1, 6), (2, 5)]})["r"] == rows
    assert ("r" in compile_program(text).iterated) == iterated


def test_many_values_of_one_key_are_joined() -> None:
    text = f"{BITS}.decl e(x: number)\n.decl r(y: number<>) r(1 bshl x) :- e(x)."
    assert run_text(text, {"e": [(n,) for n in range(40)]})["r"] == {(2**40 - 1,)}


def test_values_of_lattices_meet() -> None:
    text = f"""{BITS}.decl a(x: number, v: number<>)
a(1, 3). a(1, 8). a(2, 6). a(3, 4).
.decl p(x: number, y: number, v: number)
p(x, y, v) :- a(x, v), a(y, v), x < y.
.decl q(x: number)
q(x) :- a(x, 6).
.decl t(v: number)
t(v) :- a(1, v), a(2, v), a(3, _)."""
    result = run_text(text, {})
    assert result["a"] == {(1, 11), (2, 6), (3, 4)}
    assert result["p"] == {(1, 2, 2), (2, 3, 4)} and result["q"] == {(2,)} and result["t"] == {(2,)}


VALUES = f"""{BITS}.decl n(k: symbol, v: number<>)
n("a", 3). n("b", 6). n("c", 8).
.decl q(x: number)
q(2). q(3). q(4). q(7).
.decl r(k: symbol, v: number)
"""


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("r(k, v) :- q(v), n(k, v).", {("a", 2), ("a", 3), ("b", 2), ("b", 4)}),
        ("r(k, v) :- n(k, v), v = 2.", {("a", 2), ("b", 2)}),
        ("r(k, v) :- n(k, v), n(_, v), q(v).", {("a", 2), ("a", 3), ("b", 2), ("b", 4)}),
        ("r(k, 0) :- n(k, 2 + 4).", {("b", 0)}),
        ("r(k, v) :- q(v), n(k, _), !n(k, v).", {("a", 4), ("c", 2), ("c", 3), ("c", 4), ("c", 7)}),
        ("r(k, 0) :- n(k, _), !n(k, 2).", {("c", 0)}),
        ('r(k, v) :- q(v), k = "z", !n(k, v).', {("z", 2), ("z", 3), ("z", 4), ("z", 7)}),
        ('r(k, v) :- q(v), n(k, _), !n(k, v), !n("a", v).', {("a", 4), ("c", 4)}),
        ("r(k, 0) :- n(k, _), !(n(k, 1) ; n(k, 4)).", {("c", 0)}),
    ],
)
def test_what_has_a_value_is_below_those_of_atoms_and_apart_from_those_of_negated_ones(
    rule: str, expected: set[tuple[str, int]]
) -> None:
    assert run_text(VALUES + rule, {})["r"] == expected
    with session(f"{VALUES}.input n\n{rule}") as live:
        live.commit()
        live.insert("n", [("a", 12), ("b", 1), ("d", 7)])
        live.commit()
        again = f'{VALUES}n("a", 12). n("b", 1). n("d", 7).\n{rule}'
        assert set(live["r"]) == run_text(again, {})["r"]


def test_values_of_a_lattice_that_has_no_meet_are_plain() -> None:
    text = ".lattice number<> { Lub -> max(_, _) }\n.decl n(k: number, v: number<>) n(1, 3). n(1, 5). n(2, 3).\n"
    text += ".decl r(k: number, v: number)\nr(k, 0) :- n(k, 3). r(k, 1) :- n(k, _), !n(k, 3). r(k, v) :- v = 5, n(k, v)."
    assert run_text(text, {})["r"] == {(2, 0), (1, 1), (1, 5)}


def test_values_are_joined_by_functors_of_the_user() -> None:
    def together(a: int, b: int) -> int:
        return a | b

    text = f"""{EDGES}.functor together(a: number, b: number): number
.lattice number<> {{ Bottom -> 0, Lub -> @together(_, _) }}
.decl r(x: number, v: number<>)
r(x, v) :- e(x, v).
r(x + 1, v) :- r(x, v), x < 3."""
    assert run_text(text, {"e": [(1, 1), (1, 4), (2, 2)]}, functors={"together": together})["r"] == {(1, 5), (2, 7), (3, 7)}


def test_a_relation_of_a_cycle_may_be_an_equivalence() -> None:
    text = f"""{EDGES}.decl same(x: number, y: number) eqrel
same(x, y) :- e(x, y).
same(x, y) :- r(x, y).
.decl r(x: number, y: number) choice-domain x
r(x, y) :- same(x, y), x < y."""
    result = run_text(text, {"e": [(1, 2), (2, 3), (7, 8)]})
    assert result["r"] == {(1, 2), (2, 3), (7, 8)} and len(result["same"]) == 13


def test_two_columns_are_joined_apart() -> None:
    text = """.lattice number<> { Lub -> max(_, _) }
.lattice float<> { Lub -> min(_, _) }
.decl r(k: symbol, n: number<>, f: float<>)
r("a", 1, 2.5). r("a", 7, 3.5). r("b", 2, 0.5). r("a", 3, 1.5)."""
    assert run_text(text, {})["r"] == {("a", 7, 1.5), ("b", 2, 0.5)}


# ------------------------------------------------------------------------------------------------------------------- sessions


def test_sessions_maintain_a_lattice_and_compute_all_else_anew() -> None:
    text = f"""{EDGES}.decl d(x: number, n: number) d(1, 0). d(y, n + 1) :- d(x, n), e(x, y). {LATTICE}
.decl t(x: number, y: number) choice-domain y
t(0, 1). t(x, y) :- t(_, x), e(x, y)."""
    with session(text) as s:
        s.insert("e", [(1, 2), (2, 3), (1, 4), (4, 3)])
        s.commit()
        assert set(s["d"]) == {(1, 0), (2, 1), (4, 1), (3, 2)} and set(s["t"]) == {(0, 1), (1, 2), (1, 4), (2, 3)}
        s.remove("e", [(2, 3)])
        s.commit()
        assert set(s["d"]) == {(1, 0), (2, 1), (4, 1), (3, 2)} and set(s["t"]) == {(0, 1), (1, 2), (1, 4), (4, 3)}


@examples(30)
@given(story=stories(plain_subsumption_programs()))
def test_sessions_maintain_a_subsumption_without_recursion(story: Story) -> None:
    check(make_engine, story)


def test_what_sessions_maintain_and_what_they_compute_anew() -> None:
    rules = {
        "r(x, y) :- e(x, y). r(x, y) <= r(x, z) :- e(y, z).": True,
        "r(1, 2). r(x, y) :- e(x, y). r(x, y) <= r(y, x) :- x < y.": True,
        "r(x, y) :- e(x, y). r(x, y) <= r(x, z) :- r(y, z).": False,
        "r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z). r(x, y) <= r(x, z) :- e(y, z).": False,
        ".input r r(x, y) :- e(x, y). r(x, y) <= r(x, z) :- e(y, z).": False,
        "r(x, y) :- e(x, y). r(x, y) <= r(x, z) :- e(y, z), y / z < 2.": True,
        "r(x, y) :- e(x, y). r(x, y) <= r(x, z) :- e(y, z), z / (y / x) < 2.": True,
    }
    for text, maintained in rules.items():
        program = compile_program(f"{EDGES}.decl r(x: number, y: number)\n{text}")
        assert is_incremental(program) == maintained, text


def test_the_plan_says_what_is_kept() -> None:
    text = f"{EDGES}.decl r(x: number, y: number) choice-domain x\nr(x, y) :- e(x, y).\n.decl d = debug_delta(r)"
    program = compile_program(text)
    shown = explain_iterated(program.strata[0], program, Declared())
    assert shown.splitlines()[:3] == [
        "stratum r, d, iteration by iteration",
        "  r keeps the first row for each x",
        "  d has the rows of r with the iterations at which they came",
    ]


def test_rules_may_read_the_number_of_the_iteration() -> None:
    text = f"""{EDGES}.decl r(x: number, n: unsigned)
r(0, recursive_iteration_cnt()).
r(y, recursive_iteration_cnt()) :- r(x, _), e(x, y), recursive_iteration_cnt() < 3.
.decl q(n: unsigned)
q(recursive_iteration_cnt() + x) :- r(_, x)."""
    chain = [(n, n + 1) for n in range(5)]
    assert run_text(text, {"e": chain})["r"] == {(0, 0), (1, 1), (2, 2)} and run_text(text, {})["q"] == {(0,)}
    with session(text) as s:
        s.insert("e", chain)
        s.commit()
        assert set(s["r"]) == {(0, 0), (1, 1), (2, 2)}


def product_of(*sizes: int) -> list[tuple[Any, ...]]:
    return list(product(*map(range, sizes)))


def test_a_matching_of_many_rows() -> None:
    text = f"{EDGES}.decl r(x: number, y: number) choice-domain x, y\nr(x, y) :- e(x, y)."
    assert run_text(text, {"e": product_of(120, 90)}, threads=2)["r"] == {(n, n) for n in range(90)}
