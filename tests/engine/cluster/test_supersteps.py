"""Tasks that know nothing of each other, and blocks between supersteps, against the naive evaluator."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from dlog.api import run_text
from dlog.engine.cluster import superstep
from dlog.engine.plan.exchange.supersteps import explain_supersteps, supersteps
from dlog.engine.runtime.static.executor import Executor
from dlog.pipeline import compile_program
from tests.examples import examples
from tests.shards import Tasks, cut_for_tasks, run_in_supersteps
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


@examples(60)
@given(case=random_programs())
def test_supersteps_equal_naive_evaluation_on_random_programs(case: Case) -> None:
    assert executed(case, 3) == by_naive_evaluation(case)


@examples(60)
@given(case=graph_programs())
def test_supersteps_equal_naive_evaluation_on_graphs(case: Case) -> None:
    assert executed(case, 2) == by_naive_evaluation(case)


@pytest.mark.exhaustive
@examples(1500)
@given(case=programs())
def test_supersteps_equal_naive_evaluation_on_thousands_of_programs(case: Case) -> None:
    assert executed(case, 3) == by_naive_evaluation(case)


def test_one_superstep_is_enough_where_nothing_is_sent() -> None:
    plan = supersteps(compile_program(CHAIN), 4)
    tasks = Tasks(plan, 4)
    given: list[superstep.OutputBlock] = [("kept", *f) for f in superstep.blocks_of_facts(compile_program(CHAIN), plan, 4)]
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
    text = GENERATIONS + ".decl least(y: number)\nleast(y) :- many(x, 3), sg(x, y), !many(y, 3).\n"
    assert explain_supersteps(supersteps(compile_program(text), 2)).splitlines() == [
        "step 1, and again from what is new until nothing is sent",
        "  reads up@0 by 0",
        "  reads up@all everywhere",
        "  reads up@1 by 1",
        "  sg by 0: sg(x, y) :- up(x, a), up(y, a).",
        "  sg by 0: sg(x, y) :- up(x, a), sg(a, b), up(y, b).  (sent to the owners)",
        "",
        "step 2",
        "  reads sg by 0",
        "  sg@1 by 1: sg@1(x, y) :- sg(x, y).  (sent to the owners)",
        "  many by 0: many(x, n) :- sg(x, _), n = count : { sg(x, _) }.",
        "  many@all everywhere: many@all(x, n) :- many(x, n).  (sent to the owners)",
        "",
        "step 3",
        "  puts together sg@1 by 1",
        "  puts together many@all everywhere",
        "  reads many by 0",
        "  least by 0: least(y) :- many(x, 3), sg(x, y), !many(y, 3).",
    ]


# ----------------------------------------------------------------------------------------------- what is derived, and how often


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """By rule, the rows that the joins of all tasks in all supersteps make."""
    found: Counter[str] = Counter()
    run = Executor.run

    def counted(executor: Executor) -> None:
        run(executor)
        for rule in executor.profile:
            found[rule.text] += rule.derived

    monkeypatch.setattr(Executor, "run", counted)
    return found


PAIRS = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(x, y) :- e(x, y).\n"
PATH = [(i, i + 1) for i in range(12)]


@pytest.mark.parametrize("tasks", [2, 3])
def test_each_derivation_is_made_once(tasks: int, derived: Counter[str]) -> None:
    both_ends = "p(x, w) :- e(x, y), p(y, z), e(z, w)."
    assert len(run_in_supersteps(PAIRS + both_ends, {"e": PATH}, tasks)["p"]) == 42
    assert derived[both_ends] == 30  # all but the 12 edges are derived in one way
    halves = "p(x, z) :- p(x, y), p(y, z)."
    assert len(run_in_supersteps(PAIRS + halves, {"e": PATH}, tasks)["p"]) == 78
    assert derived[halves] == 13 * 12 * 11 / 6  # one way for each three nodes


def test_each_derivation_from_relations_that_need_each_other_is_made_once(derived: Counter[str]) -> None:
    steps = "q(x, z) :- p(y, x), p(y, z), q(y, _)."
    text = PAIRS + f".decl q(x: number, y: number)\nq(0, 0).\n{steps}\np(x, z) :- q(x, y), p(y, z).\n"
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 0), (4, 5)]
    found = run_in_supersteps(text, {"e": edges}, 3)
    assert derived["p(x, z) :- q(x, y), p(y, z)."] == sum(a == b for _, a in found["q"] for b, _ in found["p"])
    assert found == run_text(text, {"e": edges})


def test_least_values_are_derived_from_those_that_became_less(derived: Counter[str]) -> None:
    text = """.decl e(x: number, y: number)
.decl d(x: number, n: number)
d(x, n) :- e(_, x), n = min c : { x = 0, c = 0 ; d(y, b), e(y, x), c = b + 1 }.
"""
    ring = [*PATH, (12, 0)]
    assert run_in_supersteps(text, {"e": ring}, 3)["d"] == {(i, i) for i in range(13)}
    assert sum(rows for rule, rows in derived.items() if "min c" in rule) == 1 + 13


def test_strata_without_recursion_are_evaluated_once(derived: Counter[str]) -> None:
    text = """.decl e(x: number, y: number)
.decl two(x: number, z: number)
.decl ends(z: number, n: number)
two(x, z) :- e(x, y), e(y, z).
ends(z, n) :- two(_, z), n = count : { two(_, z) }.
"""
    program = compile_program(text)
    assert [(s.settled, s.increment) for s in supersteps(program, 3).steps] == [((), None), (("two@1",), None)]
    assert run_in_supersteps(text, {"e": PATH}, 3)["ends"] == {(z, 1) for z in range(2, 13)}
    assert derived["two(x, z) :- e(x, y), e(y, z)."] == 11


def test_tasks_hand_on_rows_in_a_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ".decl e(x: number, y: number)\n.decl r(x: number)\nr(0).\nr(y) :- r(x), e(x, y).\n"
    program, path = compile_program(text), [(i, i + 1) for i in range(40)]
    most = []
    for limit in (superstep.BLOCKS_MAX, 2):
        monkeypatch.setattr(superstep, "BLOCKS_MAX", limit)
        plan = supersteps(program, 2)
        given: list[superstep.OutputBlock] = [("kept", *fact) for fact in superstep.blocks_of_facts(program, plan, 2)]
        given += cut_for_tasks(program, plan, {"e": path}, 2)
        lots, figures = superstep.run(plan, given, Tasks(plan, 2))
        assert figures["r"] == 41
        most.append(max(Counter(owner for kind, name, owner, _ in lots["r"].of if (kind, name) == ("kept", "r")).values()))
    assert most[0] > 10
    assert most[1] <= 3
