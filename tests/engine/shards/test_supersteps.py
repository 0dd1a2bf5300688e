"""Tasks that know nothing of each other, and blocks between supersteps, against the naive evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from dlog.api import run_text
from dlog.engine.plan.supersteps import explain_supersteps, supersteps
from dlog.engine.shards import superstep
from dlog.pipeline import compile_program
from tests.shards import Tasks, run_in_supersteps
from tests.strategies import Case, graph_programs, programs, random_programs
from tests.test_oracle import Answer, by_naive_evaluation, written

GENERATIONS = """.decl up(x: number, y: number)
.decl sg(x: number, y: number)
.decl many(x: number, n: number)
sg(x, y) :- up(x, a), up(y, a).
sg(x, y) :- up(x, a), sg(a, b), up(y, b).
many(x, n) :- sg(x, _), n = count : { sg(x, _) }.
"""
CHAIN = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"


def executed(case: Case, tasks: int) -> Answer:
    return written(run_in_supersteps(case.text, case.facts, tasks), case)


@settings(max_examples=60)
@given(case=random_programs())
def test_supersteps_equal_naive_evaluation_on_random_programs(case: Case) -> None:
    assert executed(case, 3) == by_naive_evaluation(case)


@settings(max_examples=60)
@given(case=graph_programs())
def test_supersteps_equal_naive_evaluation_on_graphs(case: Case) -> None:
    assert executed(case, 2) == by_naive_evaluation(case)


@pytest.mark.slow
@settings(max_examples=1500)
@given(case=programs())
def test_supersteps_equal_naive_evaluation_on_thousands_of_programs(case: Case) -> None:
    assert executed(case, 3) == by_naive_evaluation(case)


def test_one_superstep_is_enough_where_nothing_is_sent() -> None:
    plan = supersteps(compile_program(CHAIN), 4)
    tasks = Tasks(plan, 4)
    given: list[superstep.Piece] = [("kept", *f) for f in superstep.blocks_of_facts(compile_program(CHAIN), plan, 4)]
    superstep.run(plan, given, tasks)
    assert [number for names, number in tasks.supersteps if "p" in names] == [1]


@pytest.mark.parametrize("text", ["t(ord(x)) :- s(x).", ".limitsize t(n=1)\nt(strlen(x)) :- s(x)."])
def test_what_must_be_in_one_place_is_one_tasks(text: str) -> None:
    program = ".decl s(x: symbol)\n.decl t(n: number)\n" + text
    assert supersteps(compile_program(program), 3).alone
    assert run_in_supersteps(program, {"s": [("a",)]}, 1) == run_text(program, {"s": [("a",)]})


def test_values_keep_their_types_on_the_way() -> None:
    text = """.type L = [head: symbol, tail: L]
.decl e(x: symbol, f: float, u: unsigned)
.decl a(x: symbol, l: L, f: float)
.decl b(u: unsigned, l: L)
a(cat(x, "!"), [x, nil], f * 2) :- e(x, f, _).
a(y, [y, l], -0.0) :- a(x, l, f), e(y, g, _), f > g.
b(u, l) :- a(x, l, _), e(_, _, u), u > 1.
"""
    facts = {"e": [("p", 0.5, 2**64 - 1), ("q", -0.0, 1), ("grün", 1e300, 7)]}
    assert {n: set(map(repr, r)) for n, r in run_in_supersteps(text, facts, 3).items()} == {
        n: set(map(repr, r)) for n, r in run_text(text, facts).items()
    }


def test_the_plan_says_what_is_sent() -> None:
    assert explain_supersteps(supersteps(compile_program(GENERATIONS), 2)).splitlines() == [
        "stratum sg, recursive, in supersteps until nothing is new",
        "  reads up@0 by 0",
        "  reads up@all everywhere",
        "  reads up@1 by 1",
        "  sg by 0: sg(x, y) :- up(x, a), up(y, a).",
        "  sg by 0: sg(x, y) :- up(x, a), sg(a, b), up(y, b).  (sent to the owners)",
        "",
        "stratum many, in one superstep",
        "  reads sg by 0",
        "  many by 0: many(x, n) :- sg(x, _), n = count : { sg(x, _) }.",
    ]
