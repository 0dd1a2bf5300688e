"""Relations are computed as far as their rows are asked for: by values that are passed on sideways through bodies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.optimize import optimize
from dlog.engine.optimize.demand import demand
from dlog.engine.runtime.static.executor import Executor
from dlog.grammar.source import Source
from dlog.pipeline import compile_program
from tests.engine.compile.interpret import run
from tests.engine.optimize.passing import EDGE, LEFT, RIGHT, after, execute, unchanged, written
from tests.engine.optimize.test_optimize import filtered_programs
from tests.examples import examples
from tests.strategies import SHAPE_RELATIONS, SHAPES, Case, counting_programs, graphs, programs, weighted_graphs

NONLINEAR = "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z). "


def test_what_is_asked_for_is_passed_on() -> None:
    assert after(demand, EDGE + RIGHT + "q(z) :- p(1, z).", "q") == [
        "p[from]?(1).",
        "p[from]?(y) :- p[from]?(x), e(x, y).",
        "p[from](x, y) :- p[from]?(x), e(x, y).",
        "p[from](x, z) :- p[from]?(x), e(x, y), p[from](y, z).",
        "q(z) :- p[from](1, z).",
    ]


def test_a_demand_for_the_same_values_is_no_rule() -> None:
    assert after(demand, EDGE + LEFT + "q(z) :- p(1, z).", "q") == [
        "p[from]?(1).",
        "p[from](x, y) :- p[from]?(x), e(x, y).",
        "p[from](x, z) :- p[from]?(x), p[from](x, y), e(y, z).",
        "q(z) :- p[from](1, z).",
    ]


def test_answers_are_what_further_ones_are_asked_by() -> None:
    found = after(demand, EDGE + NONLINEAR + "q(z) :- p(1, z).", "q")
    assert "p[from]?(y) :- p[from]?(x), p[from](x, y)." in found


def test_atoms_are_read_from_what_is_known() -> None:
    """Not in the order of the text: from the last column backwards here."""
    assert "p[to]?(y) :- p[to]?(z), e(y, z)." in after(demand, EDGE + LEFT + "q(x) :- p(x, 3).", "q")


def test_a_relation_is_asked_for_in_several_ways() -> None:
    found = after(demand, EDGE + RIGHT + "q(x) :- p(1, x), p(x, 2).", "q")
    assert {rule for rule in found if rule.startswith("q")} == {"q(x) :- p[from](1, x), p[from, to](x, 2)."}


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ("q(x) :- p(y, x), y = 1.", "p[from]?(1)."),
        ("q(x) :- f(y), p(y, x).", "p[from]?(y) :- f(y)."),
        ("q(x) :- f(y), p(y + 1, x).", "p[from]?(_1) :- f(y), _1 = (y + 1)."),
        ("q(x) :- f(x), !p(x, 3).", "p[from, to]?(x, 3) :- f(x)."),
        ("q(x) :- f(x), !p(_, x).", "p[to]?(x) :- f(x)."),
        ("q(n) :- f(x), x < 3, n = count : { p(x, _) }.", "p[from]?(x) :- f(x), x < 3."),
        ("q(n) :- f(x), n = sum z : { e(x, y), p(y, z) }.", "p[from]?(y) :- f(x), e(x, y)."),
    ],
)
def test_where_values_come_from(rule: str, asked: str) -> None:
    first = after(demand, EDGE + RIGHT + rule, "q")[0]
    assert first == asked


@pytest.mark.parametrize(
    "rules",
    [
        RIGHT + "q(x) :- p(x, _).",
        RIGHT + "q(x) :- e(x, _).",
        RIGHT + "q(x) :- f(y), p(x, _), y / x = 2.",
        "p(x, 10 / y) :- e(x, y), y != 0. q(x) :- p(x, 5).",
        ".decl n(x: number) n(x) :- e(x, _). p(x, v) :- n(x), v = min c : { n(x), c = x ; p(y, c), e(x, y) }. q(x) :- p(x, 2).",
        RIGHT + ".limitsize p(n=3) q(x) :- p(1, x).",
    ],
)
def test_what_cannot_be_asked_for_is_computed_whole(rules: str) -> None:
    assert unchanged(demand, EDGE + rules, "q")


def test_computed_values_are_not_asked_for_in_a_recursion() -> None:
    """There would be no end of them."""
    rules = "p(x, y) :- e(x, y). p(x, y) :- p(x + 1, y), p(y, x)."
    found = after(demand, EDGE + rules + " q(x) :- p(1, x).", "q")
    assert not any("p[from]?(_1)" in rule for rule in found)
    assert execute(demand(compiled(EDGE + rules + " q(x) :- p(1, x)."), frozenset("q")), {"e": [(1, 2)]})["q"] == {(2,)}


def test_floats_are_not_asked_for_where_they_are_computed() -> None:
    """The computed one may be another zero than the one that is asked for."""
    text = ".decl v(x: float) .decl p(x: float) .decl q(x: float)\np(0.0 * x) :- v(x). q(y) :- v(y), p(y)."
    assert unchanged(demand, text, "q")
    assert execute(compiled(text), {"v": [(-1.0,), (0.0,)]})["q"] == {(0.0,)}


def test_a_program_that_would_not_be_stratified_keeps_what_is_negated() -> None:
    rules = RIGHT + "q(x) :- f(x). q(y) :- q(x), e(x, y), !p(y, 1)."
    found = after(demand, EDGE + ".decl o(x: number) " + rules + " o(1) :- q(5).", "o")
    assert found[:2] == ["p(x, y) :- e(x, y).", "p(x, z) :- e(x, y), p(y, z)."]
    assert "q[x](y) :- q[x]?(y), q[x](x), e(x, y), !p(y, 1)." in found


def test_given_rows_of_derived_relations_are_asked_for_too() -> None:
    text = EDGE + RIGHT + "p(1, 9). .input p\nq(z) :- p(1, z)."
    assert "p[from](from, to) :- p[from]?(from), p(from, to)." in after(demand, text, "q")


def test_a_relation_is_whole_where_one_reader_needs_all_of_it() -> None:
    text = EDGE + RIGHT + ".decl o(x: number) o(x) :- p(x, _), f(x). q(x) :- p(1, x)."
    assert "p(x, z) :- e(x, y), p(y, z)." in after(demand, text + " q(x) :- p(x, _).", "q")
    assert "p[from](x, z) :- p[from]?(x), e(x, y), p[from](y, z)." in after(demand, text, "q", "o")


def compiled(text: str) -> Program:
    return compile_source(Source(text))


# ---------------------------------------------------------------------------------------------------------------- answers

QUESTIONS = [
    "asked(x) :- {r}(1, x).",
    "asked(x) :- {r}(x, 2).",
    "asked(1) :- {r}(1, 2).",
    "asked(x) :- {r}(x, x), x = 1.",
    "asked(x) :- {r}(1, y), {r}(y, x).",
    "asked(x) :- e(1, x), !{r}(x, 2).",
    "asked(x) :- e(1, x), !{r}(_, x).",
    "asked(n) :- e(1, x), n = count : {{ {r}(x, _) }}.",
    "asked(n) :- e(1, x), n = sum y : {{ {r}(x, y), !{r}(y, x) }}.",
    "asked(n) :- e(1, x), n = max y : {{ {r}(x, y), e(y, _) ; {r}(y, x) }}.",
    "asked(x) :- e(1, x), e(x, y), {r}(y + 1, x).",
]
BINARY = ["linear", "nonlinear", "same generation", "mutual", "triangles of a closure", "complement", "distances", "degrees"]
BINARY += ["ranks", "neighbours", "shortest paths", "components", "recursive triangles", "widest paths"]


@st.composite
def questions(draw: Any) -> tuple[str, dict[str, list[tuple[Any, ...]]]]:
    """One of the shapes of programs, and one or two questions with a constant."""
    rules = SHAPES[draw(st.sampled_from(BINARY))]
    mentioned = " ".join(rules)
    declared = [r for r in SHAPE_RELATIONS if f"{r.name}(" in mentioned or r.name == "e"]
    readable = [r.name for r in declared if len(r.types) == 2 and set(r.types) == {"number"} and r.stratum]
    asked = [
        draw(st.sampled_from(QUESTIONS)).format(r=draw(st.sampled_from(readable))) for _ in range(draw(st.integers(1, 2)))
    ]
    lines = [f".decl {r.name}({', '.join(f'c{i}: {t}' for i, t in enumerate(r.types))})" for r in declared]
    facts = {"e": draw(graphs(6, 12)), "w": draw(weighted_graphs(6, 10)), "f": [(1, 0.5), (2, -0.0), (3, 2.5)]}
    present = {r.name: facts[r.name] for r in declared if not r.stratum}
    return "\n".join([*lines, ".decl asked(x: number)", *rules, *asked]), present


@examples(150)
@given(case=questions())
def test_questions_have_the_answers_of_the_whole_program(case: Any) -> None:
    text, facts = case
    program = compiled(text)
    better = demand(program, frozenset({"asked"}))
    event("asked" if better != program else "whole")
    expected = written(run(program, facts), ["asked"])
    assert written(run(better, facts), ["asked"]) == expected
    assert written(execute(better, facts), ["asked"]) == expected
    assert written(execute(optimize(better, frozenset({"asked"})), facts), ["asked"]) == expected


@examples(100)
@given(case=filtered_programs(), observed=st.sampled_from([{"o", "u"}, {"o"}, {"u"}, {"o", "c"}]))
def test_filtered_programs_keep_what_is_observed(case: Any, observed: set[str]) -> None:
    text, facts = case
    program = compiled(text)
    better = demand(program, frozenset(observed))
    event("asked" if better != program else "whole")
    expected = written(run(program, facts), observed)
    assert written(run(better, facts), observed) == expected
    assert written(execute(better, facts), observed) == expected


@examples(80)
@given(case=st.one_of(programs(), counting_programs()), data=st.data())
def test_random_programs_keep_what_is_observed(case: Case, data: st.DataObject) -> None:
    program = compiled(case.text)
    derived = [r.name for r in case.relations if r.stratum]
    observed = data.draw(st.sets(st.sampled_from(derived), max_size=2)) if derived else set()
    better = demand(program, frozenset(observed))
    event("asked" if better != program else "whole")
    expected = written(execute(program, case.facts), observed)
    assert written(execute(better, case.facts), observed) == expected


def test_subsumption_is_not_asked_for_by_demand() -> None:
    text = """.decl e(x: number, y: number) magic
e(1, 2). e(1, 3). e(2, 9). e(1, 7).
.decl f(x: number) magic
f(3). f(2).
.decl r(x: number, y: number) magic
r(x, y) :- e(x, y).
r(x, y1) <= r(x, y2) :- f(y1), y1 < y2.
.decl q(y: number)
.output q
q(y) :- r(1, y)."""
    program = optimize(compile_program(text), frozenset({"q"}))
    executor = Executor(program)
    executor.run()
    assert sorted(executor.table("q").columns[0]) == [7]
