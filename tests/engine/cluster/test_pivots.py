"""Workers that maintain a program together: where rules are evaluated and rows go, and what happens when one of them fails."""

from __future__ import annotations

import pytest

from dlog.engine.cluster.sharded_engine import assignment
from dlog.engine.plan.exchange.pivots import PivotPlan, pivot_plan
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program
from tests.rounds import Driver
from tests.shards import exchanging_rounds, sharded_rounds

GENERATIONS = """.decl up(x: number, y: number)
.decl sg(x: number, y: number)
sg(x, y) :- up(x, a), up(y, a).
sg(x, y) :- up(x, a), sg(a, b), up(y, b).
"""
DISTANCES = """.decl e(x: number, y: number)
.decl root(x: number)
.decl node(x: number)
.decl d(x: number, n: number)
node(x) :- e(_, x).
d(x, n) :- node(x), n = min c : { root(x), c = 0 ; d(y, b), e(y, x), c = b + 1 }.
"""
CYCLE = """.decl e(x: number, y: number)
.decl start(x: number)
.decl r(x: number)
r(x) :- start(x).
r(y) :- r(x), e(x, y).
"""


def reads(plan: PivotPlan, head: str) -> list[list[str]]:
    """What each rule of a relation reads."""
    rules = [r for s in plan.program.strata for r in s.rules if r.head.relation == head]
    return [[atom.relation for atom in r.body if hasattr(atom, "relation")] for r in rules]


def sending(plan: PivotPlan) -> set[str]:
    return {s.rules[n].text for s, sends in zip(plan.program.strata, plan.sends, strict=True) for n in sends}


def plan_of(text: str) -> PivotPlan:
    found = pivot_plan(compile_program(text))
    assert found is not None
    return found


def test_a_rule_is_evaluated_where_its_recursion_is_and_sends_what_it_derives() -> None:
    plan = plan_of(GENERATIONS)
    assert reads(plan, "sg") == [["up@1", "up@1"], ["up@1", "sg", "up@all"]]
    assert plan.homes["sg"] == 0
    assert plan.homes["up@all"] == EVERYWHERE
    assert sending(plan) == {"sg(x, y) :- up(x, a), up(y, a).", "sg(x, y) :- up(x, a), sg(a, b), up(y, b)."}


def test_each_alternative_of_a_lattice_has_a_place_of_its_own() -> None:
    plan = plan_of(DISTANCES)
    assert reads(plan, "d") == [["node", "root@0"], ["node@all", "d", "e@0"]]
    assert len(sending(plan)) == 2
    assert "node@all(x) :- node(x)." in sending(plan)


def test_a_rule_without_variables_is_the_first_workers() -> None:
    plan = plan_of(".decl a()\n.decl b()\n.decl c(x: number)\na() :- !b().\nc(1) :- a().")
    assert plan.homes["a"] == ROOT
    assert reads(plan, "a") == [["here@first"]]


@pytest.mark.parametrize("rule", ["s(ord(x)) :- t(x).", ".limitsize s(n=3)\ns(strlen(x)) :- t(x)."])
def test_what_one_worker_must_say_is_not_done_together(rule: str) -> None:
    text = ".decl t(x: symbol)\n.decl s(n: number)\n.input t\n"
    assert pivot_plan(compile_program(text + rule)) is None
    assert pivot_plan(compile_program(text + "s(strlen(x)) :- t(x).")) is not None


def test_what_is_local_stays_local() -> None:
    closure = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\n"
    closure += "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
    assert assignment(compile_program(closure), 2).together is None
    assert assignment(compile_program(GENERATIONS), 2).together is not None
    assert assignment(compile_program(GENERATIONS), 1).together is None


def test_rows_that_only_support_each_other_vanish_though_they_are_on_different_workers() -> None:
    driver = Driver(sharded_rounds, CYCLE)
    ring = [("e", (i, (i + 1) % 20), 1) for i in range(20)]
    driver.commit([[*ring, ("start", (0,), 1)]])
    held = [
        len(k._sessions[driver.engine.number]["together"].engine.table("r").columns[0])
        for k in driver.engine.resident_workers.session_workers
    ]
    assert sum(held) == 20
    assert all(held), "all on some workers: nothing was tested"
    driver.commit([[("start", (0,), -1)]])
    assert driver.rows("r") == set()
    driver.commit([[("start", (7,), 1)], [("e", (9, 10), -1)]])
    assert driver.rows("r") == {(7,), (8,), (9,)}
    assert driver.changes("r")[4] == {f"({i},)": -1 for i in range(20) if i not in (7, 8, 9)}


def test_a_round_that_fails_on_one_worker_leaves_all_as_they_were() -> None:
    text = CYCLE + ".decl q(x: number)\nq(12 / (x - 13)) :- r(x).\n"
    driver = Driver(exchanging_rounds, text)
    chain = [("e", (i, i + 1), 1) for i in range(12)]
    driver.commit([[*chain, ("start", (0,), 1)]])
    before = driver.rows("r"), driver.rows("q")
    for _ in range(2):
        with pytest.raises(DlogError, match="division by zero"):
            driver.commit([[("e", (12, 13), 1), ("e", (13, 14), 1)]])
        assert (driver.rows("r"), driver.rows("q"), driver.engine.round) == (*before, 1)
    driver.commit([[("e", (5, 6), -1)]])
    assert driver.rows("r") == {(i,) for i in range(6)}
    assert driver.changes("r") == {2: {f"({i},)": -1 for i in range(6, 13)}}


def test_a_recursion_without_end_is_stopped_on_all_workers() -> None:
    text = ".decl n(x: number)\n.decl big(x: number)\nn(x + 1) :- n(x), x < 1000.\n.input n\nbig(x) :- n(x), x > 10.\n"
    driver = Driver(exchanging_rounds, text, max_iterations=50)
    driver.commit([[("n", (990,), 1)]])
    with pytest.raises(DlogError, match="more than 50 iterations"):
        driver.commit([[("n", (5,), 1)]])
    assert driver.rows("n") == {(i,) for i in range(990, 1001)}


def test_strings_and_records_made_on_the_way_mean_the_same_to_all() -> None:
    text = """.type L = [head: symbol, tail: L]
.decl e(x: symbol, y: symbol)
.decl way(x: symbol, y: symbol, by: L)
.decl least(y: symbol, n: number)
way(x, cat(y, "!"), [y, nil]) :- e(x, y).
way(x, z, [y, l]) :- way(y, z, l), e(x, y), x != y.
least(y, n) :- way(_, y, _), n = count : { way(_, y, _) }.
"""
    stories = [[("e", (f"n{i}", f"n{i + 1}"), 1) for i in range(8)], [("e", ("n3", "n4"), -1)], [("e", ("n3", "m"), 1)]]
    alone, several = Driver(sharded_rounds, text, size=1), Driver(exchanging_rounds, text, size=3)
    for round in stories:
        alone.commit([round])
        several.commit([round])
        for name in ("way", "least"):
            assert {repr(r) for r in several.rows(name)} == {repr(r) for r in alone.rows(name)}
            assert several.changes(name) == alone.changes(name)
