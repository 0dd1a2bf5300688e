"""Proofs: every one is checked independently, is as short as the recursion allows, and never runs in a circle."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterator
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import dlog
from dlog.engine.ir.rules import Program
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.runtime.incremental.engines import choice
from dlog.engine.runtime.incremental.engines.paired import paired_engine
from dlog.engine.runtime.incremental.engines.recompute import Recompute
from dlog.proofs import Absent, Aggregated, Holds, Proof
from tests.dlog.proof_checker import Refuted, check, rows_of
from tests.examples import examples
from tests.strategies import Case, alternating_programs, counting_programs, graphs, programs, weighted_graphs
from tests.strategies_values import VALUES

CLOSURE = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
DISTANCES = """
.decl root(x: number)
.decl edge(x: number, y: number, l: number)
.decl node(x: number)
node(x) :- root(x).
node(y) :- edge(_, y, _).
.decl distance(x: number, d: number)
distance(y, d) :- node(y), d = min c : { root(y), c = 0 ; distance(x, b), edge(x, y, l), c = b + l }.
"""


@pytest.fixture(params=["maintained", "recomputed"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both engines: one that knows the ranks of rows, and one that does not."""
    if request.param == "recomputed":
        monkeypatch.setattr(choice, "make_engine", recomputing)
    yield request.param


def every_row(session: dlog.Session, most: int) -> list[tuple[str, Any]]:
    return [(name, row) for name in session for row in sorted(session[name], key=repr)[:most]]


def check_all(
    session: dlog.Session, case_text: str, facts: dict[str, list[Any]], most: int, circles: bool = False
) -> None:
    rows = {name: list(session[name]) for name in session}
    for name, row in every_row(session, most):
        proof = session.why(name, row)
        assert check(proof, case_text, rows, facts, circles) >= proof.height
        assert str(proof)


# ---------------------------------------------------------------------------------------------------------------- random


@examples(60)
@given(programs())
def test_every_proof_of_a_random_program_checks(case: Case) -> None:
    with dlog.session(case.text, case.facts) as session:
        check_all(session, case.text, case.facts, 4)


@examples(40)
@given(counting_programs())
def test_proofs_of_recursion_through_count_and_sum_check(case: Case) -> None:
    with dlog.session(case.text, case.facts) as session:
        check_all(session, case.text, case.facts, 4)


@examples(60)
@given(alternating_programs())
def test_proofs_of_recursion_through_negation_and_aggregates_check(case: Case) -> None:
    try:
        session = dlog.session(case.text, case.facts)
    except dlog.DlogError as error:
        assert [d.code for d in error.diagnostics] == ["not-settled"]
        reject()
    with session:
        check_all(session, case.text, case.facts, 4, circles=True)


def test_a_row_that_needs_itself_is_shown_once(engine: str) -> None:
    text = """.decl w(x: number, y: number, n: number)
    .decl p(x: number, n: number)
    p(x, n) :- w(x, _, _), n = sum k * m : { w(x, y, k), p(y, m) }."""
    with dlog.session(text, {"w": [(0, 0, 0)]}) as session:
        proof = session.why("p", (0, 0))
        assert (proof.height, len(list(proof))) == (1, 2)
        assert str(proof).splitlines()[-1] == "    `-- p(0, 0)  as above"


def recomputing(program: Program, **options: Any) -> RoundsEngine:
    """An engine that knows nothing of ranks."""
    return paired_engine(Recompute(program, **options))


@examples(25)
@given(counting_programs())
def test_proofs_of_recursion_through_count_and_sum_need_no_ranks(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "make_engine", recomputing)
        with dlog.session(case.text, case.facts) as session:
            check_all(session, case.text, case.facts, 3)


@examples(25)
@given(programs())
def test_proofs_need_no_ranks_from_the_engine(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "make_engine", recomputing)
        with dlog.session(case.text, case.facts) as session:
            check_all(session, case.text, case.facts, 3)


@examples(25)
@given(graphs(), graphs())
def test_proofs_follow_the_rounds(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    with dlog.session(CLOSURE, {"edge": first}) as session:
        session.commit()
        session.remove("edge", first[::2])
        session.insert("edge", second)
        session.commit()
        check_all(session, CLOSURE, {"edge": list(session["edge"])}, 10)


@examples(25)
@given(graphs())
def test_the_height_of_a_linear_closure_is_the_distance(edges: list[tuple[int, int]]) -> None:
    graph = nx.DiGraph(edges)
    with dlog.session(CLOSURE, {"edge": edges}) as session:
        for x, y in session["path"]:
            assert session.why("path", (x, y)).height == distance(graph, x, y)


def distance(graph: nx.DiGraph, x: int, y: int) -> int:
    """Steps from x to y, at least one."""
    return 1 + min(nx.shortest_path_length(graph, z, y) for z in graph[x] if nx.has_path(graph, z, y))


@examples(25)
@given(weighted_graphs())
def test_proofs_of_shortest_distances_check(edges: list[tuple[int, int, int]]) -> None:
    facts = {"edge": edges, "root": [(0,)]}
    with dlog.session(DISTANCES, facts) as session:
        check_all(session, DISTANCES, facts, 10)


@examples(40)
@given(programs(), st.data())
def test_what_does_not_hold_is_explained(case: Case, data: st.DataObject) -> None:
    with dlog.session(case.text, case.facts) as session:
        derived = [r for r in case.relations if r.stratum and r.types]
        if not derived:
            return
        relation = data.draw(st.sampled_from(derived))
        row = tuple(data.draw(VALUES[t]) for t in relation.types)
        if row in set(session[relation.name]):
            return
        why = session.why_not(relation.name, row)
        heads = [r for r in case.rules for h in r.heads if h.startswith(f"{relation.name}(") and r.body]
        assert len(why.failures) >= len(heads) - 1  # a rule that can never hold is dropped by the compiler
        assert str(why).startswith(f"{relation.name}(")


# ----------------------------------------------------------------------------------------------------------------- shapes


def test_a_proof_is_a_tree_of_rows(engine: str) -> None:
    with dlog.session(CLOSURE, {"edge": [(1, 2), (2, 3), (3, 1)]}) as session:
        proof = session.why("path", (1, 3))
        assert str(proof) == (
            "path(1, 3)  by path(x, z) :- path(x, y), edge(y, z).\n"
            "|-- path(1, 2)  by path(x, y) :- edge(x, y).\n"
            "|   `-- edge(1, 2)  fact\n"
            "`-- edge(2, 3)  fact"
        )
        assert proof.bindings == {"x": 1, "y": 2, "z": 3}
        assert proof.height == 2
        assert proof.text(1).splitlines()[1:] == ["|-- path(1, 2)  ...", "`-- edge(2, 3)  fact"]


def test_a_circle_is_not_a_proof(engine: str) -> None:
    """Each row of the cycle supports the others; only the way from the fact counts."""
    text = CLOSURE + "path(y, x) :- path(x, y), path(y, y).\n"
    edges = [(1, 2), (2, 3), (3, 1), (3, 4)]
    with dlog.session(text, {"edge": edges}) as session:
        check_all(session, text, {"edge": edges}, 100)
        assert session.why("path", (1, 1)).height == 3


def test_mutual_recursion(engine: str) -> None:
    text = """
.decl next(x: number, y: number)
.decl even(x: number)
.decl odd(x: number)
even(0).
odd(y) :- even(x), next(x, y).
even(y) :- odd(x), next(x, y).
"""
    facts = {"next": [(i, i + 1) for i in range(9)]}
    with dlog.session(text, facts) as session:
        proof = session.why("odd", (9,))
        assert proof.height == 9
        assert rows_of(proof.premises) == [("even", (8,)), ("next", (8, 9))]
        assert check(proof, text, {name: list(session[name]) for name in session}, facts) == 19


def test_negation_constraints_and_anonymous_arguments(engine: str) -> None:
    text = """
.decl edge(x: number, y: number)
.decl leaf(x: number, name: symbol)
leaf(y, cat("n", to_string(y))) :- edge(_, y), !edge(y, _), y * 2 > 5.
"""
    with dlog.session(text, {"edge": [(1, 2), (2, 3)]}) as session:
        proof = session.why("leaf", (3, "n3"))
        kinds = [type(premise) for premise in proof.premises]
        assert kinds == [Proof, Absent, Holds]
        assert proof.premises[1:] == (Absent("edge", "edge(3, _)"), Holds("3 * 2 > 5"))
        with pytest.raises(dlog.DlogError, match=r"leaf\(2, \"n2\"\) does not hold"):
            session.why("leaf", (2, "n2"))


def test_aggregates_show_what_they_are_made_of(engine: str) -> None:
    text = """
.decl pay(who: symbol, month: number, euros: number)
.decl total(who: symbol, n: number)
.decl most(n: number)
.decl average(n: float)
total(w, n) :- pay(w, _, _), n = sum e : { pay(w, _, e) }.
most(n) :- n = max e : { pay(_, _, e) }.
average(n) :- n = mean e : { pay(_, _, e) }.
"""
    pays = [("Ada", month, month * 10) for month in range(1, 25)] + [("Bo", 1, 7)]
    with dlog.session(text, {"pay": pays}) as session:
        [_, total] = session.why("total", ("Ada", 3000)).premises
        assert isinstance(total, Aggregated)
        assert (total.text, total.value, total.matches) == ("sum e : { pay(w, _, e) }", 3000, 24)
        assert len(rows_of([total])) == 10
        assert len(rows_of(session.why("total", ("Ada", 3000), limit=100).premises)) == 25
        [most] = session.why("most", (240,)).premises
        assert rows_of([most]) == [("pay", ("Ada", 24, 240))]
        [mean] = session.why("average", (3007 / 25,)).premises
        assert isinstance(mean, Aggregated)
        assert mean.matches == 25


def test_records_are_taken_apart(engine: str) -> None:
    text = """
.type List = [head: number, tail: List]
.decl edge(x: number, y: number)
.decl walk(way: List, n: number)
walk([x, nil], 1) :- edge(x, _), x = 1.
walk([y, [x, t]], n + 1) :- walk([x, t], n), edge(x, y), n < 4.
"""
    with dlog.session(text, {"edge": [(1, 2), (2, 3), (3, 1)]}) as session:
        proof = session.why("walk", ((3, (2, (1, None))), 3))
        assert proof.bindings == {"y": 3, "x": 2, "t": (1, None), "n": 2}
        assert proof.height == 3


def test_a_lattice_is_proved_by_the_match_that_gave_its_value(engine: str) -> None:
    facts = {"root": [(1,)], "edge": [(1, 2, 5), (1, 3, 1), (3, 2, 1), (2, 1, 0)]}
    with dlog.session(DISTANCES, facts) as session:
        proof = session.why("distance", (2, 2))
        [node, reached] = proof.premises
        assert isinstance(node, Proof)
        assert isinstance(reached, Aggregated)
        assert rows_of([reached]) == [("distance", (3, 1)), ("edge", (3, 2, 1))]
        assert proof.height == 4
        assert check(proof, DISTANCES, {name: list(session[name]) for name in session}, facts) > 5
        why = session.why_not("distance", (2, 5))
        assert why.closest == ((2, 2),)


def test_a_lattice_whose_values_were_capped_is_proved_by_its_history(engine: str) -> None:
    """In the end 1 has 9 because 2 has 5, and 2 has 5 because 1 has 9 or anything above 5: what came first was 7."""
    text = """
.decl start(x: number, v: number)
.decl cap(x: number, y: number)
.decl add(x: number, y: number)
.decl best(x: number, v: number)
best(x, m) :- start(x, _),
    m = max c : { start(x, c) ; best(y, b), cap(y, x), c = min(b, 5) ; best(y, b), add(y, x), c = b + 4 }.
"""
    with dlog.session(text, {"start": [(1, 7), (2, 0)], "cap": [(1, 2)], "add": [(2, 1)]}) as session:
        assert set(session["best"]) == {(1, 9), (2, 5)}
        proof = session.why("best", (1, 9))
        found = {(node.relation, node.row): node.superseded for node in proof if node.relation == "best"}
        assert found == {("best", (1, 9)): False, ("best", (2, 5)): False, ("best", (1, 7)): True}
        assert proof.height == 3
        assert "best(1, 7)  (since replaced by a better value)  by best" in str(proof)


def test_facts_of_derived_relations_are_facts(engine: str) -> None:
    with dlog.session(CLOSURE + "path(7, 8).\n", {"edge": [(8, 9)]}) as session:
        assert session.why("path", (7, 8)).is_fact
        assert session.why("path", (7, 9)).height == 1


@pytest.mark.slow
def test_deep_proofs_are_no_trouble(engine: str) -> None:
    length = 3000
    with dlog.session(CLOSURE, {"edge": [(i, i + 1) for i in range(length)] + [(5, 5)]}) as session:
        text = ".decl far(x: number)\nfar(y) :- edge(0, y).\nfar(z) :- far(y), edge(y, z).\n"
        session.add_rules(text)
        proof = session.why("far", (length,))
        assert proof.height == length
        assert len(str(proof).splitlines()) == 2 * length


def test_a_proof_is_about_its_round() -> None:
    with dlog.session(CLOSURE, {"edge": [(1, 2), (2, 3)]}) as session:
        proof = session.why("path", (1, 3))
        session.remove("edge", (1, 2))
        session.commit()
        assert proof.height == 2
        with pytest.raises(dlog.DlogError, match="does not hold"):
            session.why("path", (1, 3))


# --------------------------------------------------------------------------------------------------------------- absences


def test_why_not_names_the_literal_that_fails(engine: str) -> None:
    with dlog.session(CLOSURE, {"edge": [(1, 2), (2, 3), (4, 5)]}) as session:
        why = session.why_not("path", (1, 5))
        assert [(f.matched, f.literal) for f in why.failures] == [((), "edge(x, y)"), (("path(x, y)",), "edge(y, z)")]
        assert why.failures[1].bindings == ({"x": 1, "z": 5, "y": 2}, {"x": 1, "z": 5, "y": 3})
        assert why.failures[1].reasons == ("there is no edge(2, 5)", "there is no edge(3, 5)")


def test_why_not_tells_values_of_tests_negations_and_aggregates(engine: str) -> None:
    text = """
.decl a(x: number)
.decl b(x: number)
.decl small(x: number)
.decl free(x: number)
.decl n(x: number)
.decl seven(x: number)
.decl twice(x: number)
small(x) :- a(x), x < 3.
free(x) :- a(x), !b(x).
n(c) :- c = count : { a(_) }.
seven(7).
seven(7) :- b(7).
twice(x * 2) :- a(x).
"""
    with dlog.session(text, {"a": [(1,), (5,)], "b": [(5,)]}) as session:
        reasons = {
            relation: session.why_not(relation, (value,)).failures[0].reasons
            for relation, value in (("small", 5), ("free", 5), ("n", 3), ("seven", 8), ("twice", 4))
        }
        assert reasons == {
            "small": ("5 < 3 is false",),
            "free": ("there is b(5)",),
            "n": ("`count : { a(_) }` is 2, not 3",),
            "seven": ("the head does not match",),
            "twice": ("1 * 2 is not 4", "5 * 2 is not 4"),
        }


def test_why_not_of_what_holds_is_refused() -> None:
    with dlog.session(CLOSURE, {"edge": [(1, 2)]}) as session:
        with pytest.raises(dlog.DlogError, match=r"path\(1, 2\) holds"):
            session.why_not("path", (1, 2))
        why = session.why_not("edge", (1, 3))
        assert (why.failures, why.closest) == ((), ((1, 2),))
        with pytest.raises(dlog.DlogError, match="unknown relation `pth`"):
            session.why("pth", (1, 2))


@pytest.mark.parametrize("module", ["model", "solve", "wording"])
def test_the_examples_in_the_documentation_are_true(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"dlog.proofs.{module}"))
    assert (failed, tried > 0) == (0, True)


# --------------------------------------------------------------------------------------------------------- the checker itself


def test_the_checker_refuses_forged_proofs() -> None:
    facts = {"edge": [(1, 2), (2, 3)]}
    with dlog.session(CLOSURE, facts) as session:
        proof = session.why("path", (1, 3))
        rows = {name: list(session[name]) for name in session}
        assert check(proof, CLOSURE, rows, facts) == 4
        with pytest.raises(Refuted, match="is no fact"):
            check(proof, CLOSURE, rows, {"edge": [(1, 2)]})
        proof.row = (1, 4)
        with pytest.raises(Refuted, match="does not follow"):
            check(proof, CLOSURE, rows, facts)


def test_a_row_may_follow_from_one_that_a_subsumption_removed() -> None:
    text = """.decl e(x: number)
.decl r(x: number, y: number)
.decl d = debug_delta(r)
r(x, 0) :- e(x).
r(x, y + 1) :- r(x, y), y < 2.
r(x, y) <= r(x, z) :- y < z."""
    with dlog.session(text) as s:
        s.insert("e", [(1,)])
        s.commit()
        assert set(s["r"]) == {(1, 2)}
        lines = str(s.why("r", (1, 2))).splitlines()
        assert lines[0] == "r(1, 2)  by r(x, y + 1) :- r(x, y), y < 2."
        assert "r(1, 1)  (since replaced by a better value)" in lines[1]
        assert str(s.why("d", (1, 2, 2))) == "d(1, 2, 2)  fact"
        assert "the body holds, but the relation does not keep the row" in str(s.why_not("r", (1, 0)))


def test_a_choice_is_proved_from_what_was_chosen() -> None:
    text = """.decl e(x: number, y: number)
.decl r(x: number, y: number) choice-domain x
r(x, y) :- e(x, y).
r(y, x) :- r(x, y)."""
    with dlog.session(text) as s:
        s.insert("e", [(1, 2), (1, 3)])
        s.commit()
        assert str(s.why("r", (2, 1))).splitlines()[1] == "`-- r(1, 2)  by r(x, y) :- e(x, y)."
