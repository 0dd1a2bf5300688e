"""Engines of rounds against the naive evaluator, and graphs that change against networkx.

`engine` runs every test on each engine; `pytest tests/test_rounds_oracle.py -k chosen` on the one that sessions use. "closed"
keeps equivalence relations as pairs.
"""

from __future__ import annotations

from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given

from dlog.engine.runtime.incremental.engines.choice import make_engine
from dlog.engine.runtime.incremental.engines.recompute import Recompute
from dlog.functors import linked
from tests.engine.runtime.maintaining import (
    anew_rounds,
    beside_rounds,
    fused_rounds,
    layered_rounds,
    replanned_rounds,
    with_classes_kept,
)
from tests.examples import examples
from tests.naive import USER_FUNCTIONS
from tests.rounds import Driver, MakeEngine, Story, check, check_settled, stories
from tests.shards import exchanging_rounds, sharded_rounds
from tests.strategies import (
    alternating_programs,
    calling_programs,
    counting_programs,
    dated_programs,
    graph_programs,
    random_programs,
)
from tests.strategies_aggregates import aggregating_programs
from tests.strategies_components import component_programs
from tests.strategies_retention import retention_programs
from tests.strategies_short import short_stories

ENGINES: dict[str, MakeEngine] = {
    "recompute": with_classes_kept(Recompute),
    "chosen": with_classes_kept(make_engine),
    "closed": make_engine,
    "fusing": with_classes_kept(fused_rounds),
    "layered": with_classes_kept(layered_rounds),
    "replanned": with_classes_kept(replanned_rounds),
    "anew": with_classes_kept(anew_rounds),
    "beside": with_classes_kept(beside_rounds),
    "sharded": sharded_rounds,
    "exchanging": exchanging_rounds,
}


@pytest.fixture(params=ENGINES, scope="session")
def engine(request: pytest.FixtureRequest) -> MakeEngine:
    return ENGINES[request.param]


@examples(40)
@given(story=stories(random_programs()))
def test_every_round_equals_naive_evaluation_on_random_programs(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.slow
@examples(30)
@given(story=short_stories())
def test_every_round_equals_naive_evaluation_on_programs_with_numbers_of_32_bits(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.slow
@examples(20)
@given(story=stories(aggregating_programs()))
def test_every_round_equals_naive_evaluation_on_aggregates_of_one_body(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.slow
@examples(20)
@given(story=stories(alternating_programs()))
def test_every_round_equals_naive_evaluation_on_recursion_through_negation_and_aggregates(
    engine: MakeEngine, story: Story
) -> None:
    check_settled(engine, story)


@pytest.mark.slow
@examples(20)
@given(story=stories(dated_programs()))
def test_every_round_equals_naive_evaluation_on_programs_with_dates(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.slow
@examples(20)
@given(story=stories(component_programs().map(lambda cases: cases[0])))
def test_every_round_equals_naive_evaluation_on_programs_in_components(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@examples(60)
@given(story=stories(graph_programs()))
def test_every_round_equals_naive_evaluation_on_graphs(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.slow
@examples(60)
@given(story=stories(counting_programs()))
def test_every_round_equals_naive_evaluation_on_recursion_through_count_and_sum(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.slow
@examples(30)
@given(story=stories(retention_programs()))
def test_every_round_equals_naive_evaluation_of_what_relations_keep(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.slow
@examples(30)
@given(story=stories(calling_programs()))
def test_every_round_equals_naive_evaluation_on_programs_that_call_functors(engine: MakeEngine, story: Story) -> None:
    check(lambda program, **options: engine(linked(program, USER_FUNCTIONS), **options), story)


@pytest.mark.exhaustive
@examples(2000)
@given(story=stories(counting_programs(), most=12))
def test_every_round_equals_naive_evaluation_on_thousands_of_counting_programs(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@pytest.mark.exhaustive
@examples(2000)
@given(story=stories(most=12))
def test_every_round_equals_naive_evaluation_on_thousands_of_programs(engine: MakeEngine, story: Story) -> None:
    check(engine, story)


@examples(20)
@given(story=stories(graph_programs()))
def test_the_grouping_of_rounds_into_commits_does_not_matter(engine: MakeEngine, story: Story) -> None:
    together, apart = Driver(engine, story.case.text), Driver(engine, story.case.text)
    together.commit(story.rounds)
    last = together.engine.round
    found: dict[str, dict[int, dict[str, int]]] = {r.name: {} for r in story.case.relations}
    for round in story.rounds[:last]:
        apart.commit([round])
        for name in found:
            found[name] |= apart.changes(name)
    assert {name: together.changes(name) for name in found} == found


# ------------------------------------------------------------------------------------------------------- exact little ones

TRIANGLES = """.decl e(x: number, y: number)
.decl t(x: number, y: number, z: number)
.decl n(n: number)
t(x, y, z) :- e(x, y), e(y, z), e(x, z).
n(c) :- c = count : { t(_, _, _) }.
"""


def test_three_edges_at_once_make_one_triangle(engine: MakeEngine) -> None:
    driver = Driver(engine, TRIANGLES)
    driver.commit([[("e", edge, 1) for edge in [(1, 2), (1, 3), (2, 3)]]])
    assert driver.rows("t") == {(1, 2, 3)}
    assert driver.changes("n") == {1: {"(1,)": 1}}
    driver.commit([[("e", (1, 2), -1), ("e", (1, 3), -1)]])
    assert driver.changes("t") == {2: {"(1, 2, 3)": -1}}
    assert driver.rows("n") == {(0,)}


def test_the_value_of_an_expression_never_shows_half_of_a_change(engine: MakeEngine) -> None:
    """The two paths from `a` to the quotient have different lengths; no value but a whole one ever appears."""
    text = """.decl a(v: float)
.decl b(v: float) b(v + 1) :- a(v).
.decl c(v: float) c(v + 1) :- b(v).
.decl d(q: float) d(x / y) :- b(x), c(y).
"""
    driver = Driver(engine, text)
    seen: set[str] = set()
    for number in range(1, 9):
        driver.commit([[("a", (float(number - 2),), -1), ("a", (float(number - 1),), 1)]])
        assert driver.rows("d") == {(number / (number + 1),)}
        seen |= {row for row, diff in driver.changes("d")[number].items() if diff > 0}
    assert seen == {repr((k / (k + 1),)) for k in range(1, 9)}


def test_many_rounds_at_once_give_each_its_changes(engine: MakeEngine) -> None:
    text = ".decl a(v: float)\n.decl d(q: float)\nd((v + 1) / (v + 2)) :- a(v).\n"
    driver = Driver(engine, text)
    driver.commit([[("a", (0.0,), 1)], [("a", (0.0,), -1), ("a", (1.0,), 1)]])
    half, two_thirds = repr((0.5,)), repr((2 / 3,))
    assert driver.changes("d") == {1: {half: 1}, 2: {half: -1, two_thirds: 1}}


def test_rounds_may_be_far_apart(engine: MakeEngine) -> None:
    driver = Driver(engine, TRIANGLES)
    driver.commit([[], [], [("e", (1, 2), 1)], []])
    assert driver.engine.round == 3
    assert driver.changes("e") == {3: {"(1, 2)": 1}}
    assert driver.commit([]) == 4
    assert driver.changes("e") == {}


def test_rows_derived_along_with_one_far_away_are_there_once(engine: MakeEngine) -> None:
    driver = Driver(engine, ".decl e(x: number, y: number)\n.decl d(y: number)\nd(y) :- e(_, y).\n")
    driver.commit([[("e", (0, 0), 1)], []])
    driver.commit([[("e", (x, y), 1) for x, y in enumerate([1, 2**31 - 1, 1, 2**31 - 1, 0])], []])
    assert driver.rows("d") == {(0,), (1,), (2**31 - 1,)}


# ---------------------------------------------------------------------------------------------------- graphs that change


def graph_rounds(nodes: int, edges: int, rounds: int, seed: int) -> list[list[tuple[tuple[int, int], int]]]:
    """At first some edges, then in each round one that comes and one that goes."""
    random = Random(seed)

    def edge() -> tuple[int, int]:
        return random.randrange(nodes), random.randrange(nodes)

    held = [edge() for _ in range(edges)]
    found = [[(e, 1) for e in held]]
    for _ in range(rounds):
        new, place = edge(), random.randrange(edges)
        old, held[place] = held[place], new
        found.append([(e, d) for e, d in ((old, -1), (new, 1)) if d > 0 or old not in held])
    return found


def followed(graph: Any, changes: list[tuple[tuple[int, int], int]]) -> Any:
    for (x, y), diff in changes:
        if diff > 0:
            graph.add_edge(x, y)
        elif graph.has_edge(x, y):
            graph.remove_edge(x, y)
    return graph


SIZES = pytest.mark.parametrize(("nodes", "edges", "rounds", "group"), [(10, 20, 60, 1), (50, 100, 10, 4), (100, 400, 2, 1)])

BFS = """.decl e(x: number, y: number)
.decl root(x: number)
.decl node(x: number)
.decl dist(x: number, d: number)
root(0).
node(x) :- root(x). node(y) :- e(_, y).
dist(x, d) :- node(x), d = min c : { root(x), c = 0 ; dist(y, b), e(y, x), c = b + 1 }.
"""


@pytest.mark.slow
@SIZES
def test_distances_follow_a_changing_graph(engine: MakeEngine, nodes: int, edges: int, rounds: int, group: int) -> None:
    changes = graph_rounds(nodes, edges, rounds, seed=nodes)
    driver, graph = Driver(engine, BFS), nx.DiGraph([(0, 0)])
    graph.remove_edge(0, 0)
    for start in range(0, len(changes), group):
        batch = changes[start : start + group]
        driver.commit([[("e", edge, diff) for edge, diff in round] for round in batch])
        for round in batch:
            followed(graph, round)
        assert driver.rows("dist") == set(nx.single_source_shortest_path_length(graph, 0).items())


MUTUAL = """.decl e(x: number, y: number)
.decl reach(x: number, y: number)
.decl same(x: number, y: number)
.decl component(x: number, least: number)
.decl between(x: number, y: number)
reach(x, y) :- e(x, y).
reach(x, z) :- reach(x, y), e(y, z).
same(x, y) :- reach(x, y), reach(y, x).
component(x, c) :- same(x, _), c = min y : { same(x, y) }.
between(x, y) :- e(x, y), !same(x, y).
"""


@pytest.mark.slow
@SIZES
def test_strong_components_follow_a_changing_graph(
    engine: MakeEngine, nodes: int, edges: int, rounds: int, group: int
) -> None:
    changes = graph_rounds(nodes, edges, rounds, seed=edges)
    driver, graph = Driver(engine, MUTUAL), nx.DiGraph()
    for start in range(0, len(changes), group):
        batch = changes[start : start + group]
        driver.commit([[("e", edge, diff) for edge, diff in round] for round in batch])
        for round in batch:
            followed(graph, round)
        components = [c for c in nx.strongly_connected_components(graph) if len(c) > 1 or graph.has_edge(*([*c] * 2))]
        label = {x: min(c) for c in components for x in c}
        assert driver.rows("component") == set(label.items())
        cut = {(x, y) for x, y in graph.edges if x not in label or label.get(y) != label[x]}
        assert driver.rows("between") == cut
