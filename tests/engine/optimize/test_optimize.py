"""All passes together: observed relations have the rows they had, by the executor and by a slow evaluator that checks the
normal form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.optimize import optimize
from dlog.grammar.diagnostics import InternalError
from dlog.grammar.source import Source
from tests.engine.compile.interpret import run
from tests.engine.optimize.passing import execute, written
from tests.examples import examples
from tests.strategies import Case, counting_programs, graphs, programs, rows

Draw = Any

DECLARED = """.type Pair = [a: number, b: number]
.decl e(x: number, y: number) .decl g(x: number) .decl v(x: number, w: float)
.decl p(x: number, y: number) .decl c(x: number, y: number) .decl s(x: Pair, y: float)
.decl f(x: number) .decl o(x: number) .decl u(n: number)
f(x) :- g(x), !e(x, x).
"""
RECURSIVE = [
    "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).",
    "p(x, y) :- e(x, y). p(x, z) :- e(x, y), p(y, z).",
    "p(x, y) :- e(x, y). p(x, z) :- e(x, y), !f(y), p(y, z).",
    "p(x, y) :- e(y, x). p(x, y) :- e(x, a), p(a, y), v(y, _). p(x, y) :- e(x, x), p(y, y), p(x, y).",
    "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).",
    "p(x, y) :- e(x, y). p(x, y) :- c(x, y), g(y). p(x, z) :- p(x, y), p(y, z).",
    "p(x, y) :- e(y, x). p(x, z) :- p(y, z), p(x, y).",
    "p(x, y) :- e(a, x), e(a, y). p(x, y) :- e(a, x), p(a, b), e(b, y).",
    "p(x, x + 1) :- g(x). p(x, 1) :- g(x). p(2, y) :- e(y, _). p(x, z) :- e(x, y), p(y, z).",
    "p(x, n) :- g(x), n = count : { e(x, _) }. p(x, z) :- e(x, y), p(y, z).",
    "p(x, y) :- c(x, y). c(x, y) :- e(x, y). c(x, z) :- p(x, y), e(y, z).",
    "p(x, y) :- e(x, y), f(y). p(x, y) :- p(x, y), g(y). p(a, b) :- e(a, b), f(b).",
]
COPIES = ["c(y, x) :- p(x, y).", "c(x, y) :- p(x, y), g(x).", "c(x, y) :- p(x, y), x < 4.", "c(x, z) :- p(x, y), p(y, z)."]
RECORDS = ["", "s([x, y], w) :- p(x, y), v(y, w)."]
GIVEN = ["", "", "p(1, 2). p(3, 1)."]
FILTERS = ["f({})", "!f({})", "{} < 3", "2 <= {}", "{} != 2", "{} = 1", "{} = 2", "e({}, _)", "v({}, w), w < 1.5"]
READERS = [
    "o(x) :- {r}(x, y), {filter}.",
    "o(y) :- {r}(x, y), {filter}, g(x).",
    "o(x) :- {r}(x, y), {filter}, e(x, y), {r}(a, x), {other}.",
    "o(x) :- g(x), g(y), {filter}, !{r}(x, y).",
    "u(n) :- n = count : {{ {r}(x, y), {filter} }}.",
    "u(n) :- g(x), n = sum y : {{ {r}(x, y), {filter} }}.",
    "u(n) :- n = max y : {{ {r}(x, y), {filter}, g(y) ; {r}(y, x), {other} }}.",
]
"""Ways to read a relation, all with one filter on one column: on x or y and, for a second atom, on its column."""
OTHERS = [
    "o(y) :- p(1, y), p(2, y).",
    "o(x) :- g(x), f(x), !p(x, 2), !p(1, x).",
    "o(x) :- p(x, x), f(x), x > 0.",
    "u(n) :- n = max y : { p(1, y), g(y) ; p(2, y) }.",
    "o(x) :- s([x, 1], w), w < 2.5, v(x, w).",
    "u(n) :- n = count : { s(_, 0.0) }.",
]


@st.composite
def readers(draw: Draw) -> list[str]:
    """Two rules at most that read one relation and ask the same of one column."""
    relation, column, test = draw(st.sampled_from("ppcc")), draw(st.sampled_from([1, 1, 0])), draw(st.sampled_from(FILTERS))
    chosen = draw(st.lists(st.sampled_from(READERS), min_size=1, max_size=2, unique=True))
    return [
        reader.format(r=relation, filter=test.format("xy"[column]), other=test.format(second[column]))
        for reader in chosen
        for second in ["ax" if "(a, x)" in reader else "yx"]
    ]


@st.composite
def filtered_programs(draw: Draw) -> tuple[str, dict[str, list[tuple[Any, ...]]]]:
    """A recursive relation, what is computed from it, and a few readers that ask for some of its rows."""
    rules = [draw(st.sampled_from(pool)) for pool in (RECURSIVE, COPIES, RECORDS, GIVEN)]
    rules += draw(st.one_of(readers(), readers(), st.lists(st.sampled_from(OTHERS), min_size=1, max_size=2)))
    facts = {"e": draw(graphs(5, 10)), "g": draw(rows(("number",))), "v": draw(rows(("number", "float")))}
    facts["g"] = [(x % 5,) for (x,) in facts["g"]]
    return DECLARED + "\n".join(rules), facts


def compiled(text: str) -> Program:
    return compile_source(Source(text))


@examples(300)
@given(case=filtered_programs(), observed=st.sampled_from([{"o", "u"}, {"o", "u"}, {"o", "u", "f"}, {"o", "u", "c"}]))
def test_filtered_programs_keep_what_is_observed(case: Any, observed: set[str]) -> None:
    text, facts = case
    program = compiled(text)
    better = optimize(program, frozenset(observed))
    event("filters pushed" if set(better.relations) - set(program.relations) else "none")
    expected = written(run(program, facts), observed)
    assert written(run(better, facts), observed) == expected
    assert written(execute(better, facts), observed) == expected


@examples(100)
@given(case=st.one_of(programs(), counting_programs()), data=st.data())
def test_random_programs_keep_what_is_observed(case: Case, data: st.DataObject) -> None:
    program = compiled(case.text)
    derived = [r.name for r in case.relations if r.stratum]
    observed = data.draw(st.sets(st.sampled_from(derived))) if derived else set()
    expected = written(execute(program, case.facts), observed)
    assert written(execute(optimize(program, frozenset(observed)), case.facts), observed) == expected


@pytest.mark.exhaustive
@examples(3000)
@given(case=filtered_programs(), observed=st.sets(st.sampled_from(["o", "u", "c", "s", "p", "f"])))
def test_thousands_of_filtered_programs_keep_what_is_observed(case: Any, observed: set[str]) -> None:
    text, facts = case
    program = compiled(text)
    expected = written(execute(program, facts), observed)
    assert written(execute(optimize(program, frozenset(observed)), facts), observed) == expected


def test_a_chain_of_many_relations_is_optimized_quickly() -> None:
    """Filters do not add up along the chain."""
    rules = [f".decl r{i}(x: number, y: number) r{i}(x, y) :- r{i - 1}(x, y), x < {i}." for i in range(1, 200)]
    text = "\n".join([".decl r0(x: number, y: number) .decl o(x: number)", *rules, "o(y) :- r199(1, y)."])
    better = optimize(compiled(text), frozenset({"o"}))
    assert max(len(rule.body) for stratum in better.strata for rule in stratum.rules) == 6


def test_a_pass_that_breaks_a_promise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from dlog.engine import optimize as passes

    def forget(program: Program, observed: frozenset[str]) -> Program:
        return replace(program, relations={})

    monkeypatch.setattr(passes, "PASSES", ((forget, "to see it fail"),))
    with pytest.raises(InternalError, match="forget"):
        optimize(compiled(".decl a(x: number) .decl b(x: number) b(x) :- a(x)."), frozenset({"b"}))
