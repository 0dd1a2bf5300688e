"""The executor against the naive evaluator on random programs, and against itself on programs that mean the same; every engine
on graphs too large for the naive evaluator. Random programs meet several workers in `engine/cluster` and in `spark`."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from dlog import DlogError, api
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.conftest import RunText
from tests.engines import EVERY_ENGINE
from tests.examples import examples
from tests.naive import USER_FUNCTIONS, NotSettled, TooBig, evaluate
from tests.shards import run_sharded
from tests.strategies import (
    Case,
    alternating_programs,
    calling_programs,
    counting_programs,
    dated_programs,
    graph_programs,
    programs,
    random_programs,
    shuffled,
)
from tests.strategies_aggregates import aggregating_programs
from tests.strategies_components import ComponentCase, component_programs
from tests.strategies_short import short_programs

BUDGET = 200_000
"""Rows the naive evaluator may look at: about a second."""

Answer = dict[str, list[str]]
NO_ANSWER: Answer = {"": ["not settled"]}
"""That of a program whose rows depend on themselves."""


def written(relations: dict[str, set[tuple[Any, ...]]], case: Case) -> Answer:
    """Rows as text, sorted: equal only if the values have the same types, and -0.0 is not 0.0."""
    return {r.name: sorted(map(repr, relations[r.name])) for r in case.relations}


def by_naive_evaluation(case: Case) -> Answer:
    try:
        return written(evaluate(parse(Source(case.text)), case.facts, BUDGET), case)
    except NotSettled:
        return NO_ANSWER
    except TooBig:
        reject()


def executed(run_text: RunText, case: Case, threads: int = 1) -> Answer:
    try:
        return written(run_text(case.text, case.facts, threads=threads), case)
    except DlogError as error:
        if [d.code for d in error.diagnostics] == ["not-settled"]:
            return NO_ANSWER
        raise


@examples(150)
@given(case=random_programs())
def test_executor_equals_naive_evaluator_on_random_programs(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(40)
@given(case=dated_programs())
def test_executor_and_workers_equal_naive_evaluation_on_programs_with_dates(case: Case) -> None:
    expected = by_naive_evaluation(case)
    assert written(api.run_text(case.text, case.facts), case) == expected
    assert written(run_sharded(case.text, case.facts), case) == expected


@pytest.mark.slow
@examples(60)
@given(case=short_programs())
def test_executor_and_workers_equal_naive_evaluation_on_programs_with_numbers_of_32_bits(case: Case) -> None:
    expected = by_naive_evaluation(case)
    assert written(api.run_text(case.text, case.facts), case) == expected
    assert written(run_sharded(case.text, case.facts), case) == expected


@examples(100)
@given(case=graph_programs())
def test_executor_equals_naive_evaluator_on_graphs(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(150)
@given(case=counting_programs())
def test_executor_equals_naive_evaluation_on_recursion_through_count_and_sum(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(150)
@given(case=aggregating_programs())
def test_executor_equals_naive_evaluation_on_aggregates_of_one_body(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(150)
@given(case=alternating_programs())
def test_executor_equals_naive_evaluation_on_recursion_through_negation_and_aggregates(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(60)
@given(case=calling_programs())
def test_executor_and_workers_equal_naive_evaluation_on_programs_that_call_functors(case: Case) -> None:
    expected = by_naive_evaluation(case)
    assert written(api.run_text(case.text, case.facts, functors=USER_FUNCTIONS), case) == expected
    assert written(run_sharded(case.text, case.facts, functors=USER_FUNCTIONS), case) == expected


@pytest.mark.exhaustive
@examples(4000)
@given(case=counting_programs())
def test_executor_equals_naive_evaluation_on_thousands_of_counting_programs(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@pytest.mark.exhaustive
@examples(4000)
@given(case=alternating_programs())
def test_executor_equals_naive_evaluation_on_thousands_of_alternating_programs(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(100)
@given(cases=component_programs())
def test_programs_in_components_equal_naive_evaluation_and_the_same_program_without(
    run_text: RunText, cases: tuple[ComponentCase, Case]
) -> None:
    case, plain = cases
    found = executed(run_text, case)
    assert found == by_naive_evaluation(case)
    assert list(found.values()) == list(executed(run_text, plain).values())


@pytest.mark.exhaustive
@examples(4000)
@given(case=programs())
def test_executor_equals_naive_evaluator_on_thousands_of_programs(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case) == by_naive_evaluation(case)


@examples(40)
@given(case=programs(), seed=st.integers(0, 1000))
def test_order_of_rules_and_literals_does_not_matter(run_text: RunText, case: Case, seed: int) -> None:
    assert executed(run_text, shuffled(case, seed)) == executed(run_text, case)


@examples(40)
@given(case=programs())
def test_order_and_repetition_of_rows_do_not_matter(run_text: RunText, case: Case) -> None:
    again = Case(case.relations, case.rules, {name: rows[::-1] + rows for name, rows in case.facts.items()})
    assert executed(run_text, again) == executed(run_text, case)


@examples(40)
@given(case=programs())
def test_two_threads_give_the_same_answer(run_text: RunText, case: Case) -> None:
    assert executed(run_text, case, threads=2) == executed(run_text, case)


# ------------------------------------------------------------------------- graphs too large for the naive evaluator

EDGE = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\n"
THREADS = pytest.mark.parametrize("threads", [1, 2])


def random_graph(nodes: int, edges: int, seed: int) -> Any:
    return nx.gnm_random_graph(nodes, edges, seed=seed, directed=True)


def edges_of(graph: Any) -> dict[str, list[tuple[int, int]]]:
    return {"e": list(graph.edges)}


@pytest.mark.slow
@EVERY_ENGINE
@THREADS
@pytest.mark.parametrize("step", ["p(x, y), e(y, z)", "e(x, y), p(y, z)", "p(x, y), p(y, z)"])
def test_closure_of_a_larger_graph(run_text: RunText, step: str, threads: int) -> None:
    graph = random_graph(400, 900, seed=7)
    found = run_text(f"{EDGE}p(x, y) :- e(x, y). p(x, z) :- {step}.", edges_of(graph), threads=threads)
    assert found["p"] == {(x, z) for x in graph for y in graph[x] for z in {y, *nx.descendants(graph, y)}}


@EVERY_ENGINE
@THREADS
def test_triangles_of_a_graph_with_hubs(run_text: RunText, threads: int) -> None:
    graph = nx.barabasi_albert_graph(1500, 8, seed=3)
    graph.add_edges_from((0, x) for x in range(1, 1500))
    text = ".decl e(x: number, y: number)\n.decl t(x: number, y: number, z: number)\nt(x, y, z) :- e(x, y), e(y, z), e(x, z)."
    ordered = {"e": [(min(e), max(e)) for e in graph.edges]}
    later = {x: {y for y in graph[x] if y > x} for x in graph}
    expected = {(x, y, z) for x in graph for y in later[x] for z in later[x] & later[y]}
    assert run_text(text, ordered, threads=threads)["t"] == expected


@EVERY_ENGINE
@THREADS
def test_shortest_paths_of_a_larger_graph(run_text: RunText, threads: int) -> None:
    graph = random_graph(2000, 8000, seed=5)
    for x, y in graph.edges:
        graph[x][y]["weight"] = (x * 31 + y * 17) % 100
    text = """.decl w(x: number, y: number, w: number)
.decl node(x: number)
.decl d(x: number, d: number)
node(x), node(y) :- w(x, y, _).
d(x, d) :- node(x), d = min c : { x = 0, node(x), c = 0 ; d(y, b), w(y, x, l), c = b + l }.
"""
    found = run_text(text, {"w": list(graph.edges(data="weight"))}, threads=threads)
    assert found["d"] == set(nx.single_source_dijkstra_path_length(graph, 0).items())


@EVERY_ENGINE
@THREADS
def test_a_chain_takes_as_many_iterations_as_it_has_links(run_text: RunText, threads: int) -> None:
    chain = {"e": [(i, i + 1) for i in range(5000)]}
    text = ".decl e(x: number, y: number)\n.decl r(x: number)\nr(0). r(y) :- r(x), e(x, y)."
    assert run_text(text, chain, threads=threads)["r"] == {(i,) for i in range(5001)}


@EVERY_ENGINE
@THREADS
def test_aggregates_of_many_groups(run_text: RunText, threads: int) -> None:
    graph = random_graph(3000, 20000, seed=11)
    text = """.decl e(x: number, y: number)
.decl s(x: number, n: number, t: number, a: number, b: number)
s(x, n, t, a, b) :- e(x, _), n = count : { e(x, _) }, t = sum y : { e(x, y) }, a = min u : { e(x, u) }, b = max v : { e(x, v) }.
"""
    expected = {(x, len(ys), sum(ys), min(ys), max(ys)) for x in graph if (ys := list(graph[x]))}
    assert run_text(text, edges_of(graph), threads=threads)["s"] == expected


@EVERY_ENGINE
@THREADS
def test_negation_of_a_larger_relation(run_text: RunText, threads: int) -> None:
    graph = random_graph(600, 6000, seed=13)
    found = run_text(f"{EDGE}p(x, z) :- e(x, y), e(y, z), !e(x, z), x != z.", edges_of(graph), threads=threads)
    expected = {(x, z) for x, y in graph.edges for z in graph[y] if z != x and z not in graph[x]}
    assert found["p"] == expected
