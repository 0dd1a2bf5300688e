"""Recursion through negation and aggregates that is neither a lattice nor compared with bounds: results where no row depends on
itself, however deep, and refusals where some do, however long the circle is."""

from __future__ import annotations

from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.shards import run_sharded

COSTS = """.decl part(of: number, part: number, times: number)
.decl price(part: number, cents: number)
.decl cost(part: number, cents: number)
cost(p, c) :- price(p, c).
cost(p, c) :- part(p, _, _), c = sum n * k : { part(p, s, n), cost(s, k) }.
"""
WINS = """.decl move(from: number, to: number)
.decl wins(position: number)
wins(x) :- move(x, y), !wins(y).
"""
RANKS = """.decl link(from: number, to: number)
.decl degree(node: number, links: float)
degree(x, to_float(n)) :- link(x, _), n = count : { link(x, _) }.
.decl rank(node: number, rank: float)
rank(x, 0.15 + 0.85 * s) :- link(_, x), s = sum r / d : { link(y, x), rank(y, r), degree(y, d) }.
"""


def costs(parts: dict[int, list[tuple[int, int]]], prices: dict[int, int]) -> set[tuple[int, int]]:
    """By a walk down."""
    found = dict(prices)

    def cost(part: int) -> int:
        if part not in found:
            found[part] = sum(times * cost(sub) for sub, times in parts[part])
        return found[part]

    return {(part, cost(part)) for part in {*parts, *prices}}


@pytest.mark.parametrize("seed", range(3))
def test_costs_of_parts_of_parts(seed: int) -> None:
    random = Random(seed)
    parts = {p: [(s, random.randint(1, 3)) for s in random.sample(range(p + 1, 41), min(2, 40 - p))] for p in range(38)}
    prices = {p: random.randint(1, 99) for p in (38, 39, 40)}
    given = {"part": [(p, s, n) for p, subs in parts.items() for s, n in subs], "price": list(prices.items())}
    assert set(dlog.run(COSTS, given)["cost"]) == costs(parts, prices) == run_sharded(COSTS, given)["cost"]


def test_a_session_follows_the_costs_and_goes_on_where_a_part_became_one_of_its_own() -> None:
    with dlog.session(COSTS, {"part": [(1, 2, 2), (2, 3, 5)], "price": [(3, 10)]}) as session:
        seen: list[Any] = []
        session.subscribe("cost", lambda round, changes: seen.append(sorted(changes)))
        session.insert("price", [(3, 1)])
        session.commit()
        assert set(session["cost"]) == {(1, 110), (2, 55), (3, 10), (3, 1)}
        assert seen[-1] == [((1, 100), -1), ((1, 110), 1), ((2, 50), -1), ((2, 55), 1), ((3, 1), 1)]
        session.insert("part", [(3, 1, 1)])
        with pytest.raises(DlogError, match="`cost` has no result that stays the same") as raised:
            session.commit()
        assert raised.value.diagnostics[0].code == "not-settled"
        assert set(session["cost"]) == {(1, 110), (2, 55), (3, 10), (3, 1)}
        session.rollback()
        session.remove("price", [(3, 1)])
        session.commit()
        assert set(session["cost"]) == {(1, 100), (2, 50), (3, 10)}
        assert "cost: computed anew in each round that changes what is read" in session.explain()


@pytest.mark.parametrize("depth", [1, 2, 3, 100, 700])
def test_results_are_there_however_deep_they_are(depth: int) -> None:
    chain = [(n, n + 1) for n in range(depth)]
    assert set(dlog.run(WINS, {"move": chain})["wins"]) == {(n,) for n in range(depth) if (depth - n) % 2}
    given = {"part": [(a, b, 1) for a, b in chain], "price": [(depth, 7)]}
    assert set(dlog.run(COSTS, given)["cost"]) == {(n, 7) for n in range(depth + 1)}


@pytest.mark.parametrize("times", [1, 2, 3, 30])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 50, 64, 300])
def test_circles_are_found_however_long_they_are(length: int, times: int) -> None:
    """Before multiples of powers of two are the same in 64 bits."""
    circle = [(n, (n + 1) % length, times) for n in range(length)]
    tail = [(1000 + n, 1001 + n, 1) for n in range(20)] + [(1020, 0, 1), (0, 2000, 1)]
    with pytest.raises(DlogError, match="has no result that stays the same") as raised:
        dlog.run(COSTS, {"part": [*circle, *tail], "price": [(2000, 1)]})
    assert "look for a circle in the data" in raised.value.diagnostics[0].notes[1]


@pytest.mark.parametrize("seed", range(20))
def test_games_have_a_result_or_are_refused_as_the_well_founded_model_says(seed: int) -> None:
    graph = nx.gnp_random_graph(9, 0.16, seed=seed, directed=True)
    wins: set[int] = set()
    loses: set[int] = set()
    while True:
        lost = {x for x in graph if all(y in wins for y in graph[x])} - loses
        won = {x for x in graph if any(y in loses | lost for y in graph[x])} - wins
        if not lost and not won:
            break
        loses |= lost
        wins |= won
    if len(wins) + len(loses) == len(graph):
        assert set(dlog.run(WINS, {"move": list(graph.edges)})["wins"]) == {(x,) for x in wins}
    else:
        with pytest.raises(DlogError) as raised:
            dlog.run(WINS, {"move": list(graph.edges)})
        assert "comes and goes" in raised.value.diagnostics[0].notes[0]


def test_sums_are_right_up_to_where_circles_may_no_longer_be_found() -> None:
    chain = [(n, n + 1, 2) for n in range(60)]
    assert (0, 1 << 60) in set(dlog.run(COSTS, {"part": chain, "price": [(60, 1)]})["cost"])
    with pytest.raises(DlogError) as raised:
        dlog.run(COSTS, {"part": [*chain, (60, 61, 2)], "price": [(61, 1)]})
    assert raised.value.diagnostics[0].notes[0].startswith(f"`cost(0, {1 << 61})` is so large after 62 passes")


def test_floats_may_approach_their_result() -> None:
    graph = nx.gnp_random_graph(30, 0.2, seed=1, directed=True)
    found = dict(dlog.run(RANKS, {"link": list(graph.edges)})["rank"])
    ranks = np.zeros(30)
    for _ in range(400):
        ranks = np.array([0.15 + 0.85 * sum(ranks[y] / graph.out_degree(y) for y in graph.predecessors(x)) for x in graph])
    assert found == pytest.approx({x: ranks[x] for x in graph if graph.in_degree(x)})


def test_the_row_that_does_not_stay_is_shown_as_a_program_has_it() -> None:
    text = """.type Pair = [name: symbol, n: number]
    .decl e(p: Pair) .decl p(p: Pair, t: symbol, f: float)
    e(["a\\"b", 3]).
    p(x, "c", 1.5) :- e(x), !p(x, _, _)."""
    with pytest.raises(DlogError) as raised:
        dlog.run(text)
    assert raised.value.diagnostics[0].notes[0].startswith('`p(["a\\"b", 3], "c", 1.5)` comes and goes')


def test_proofs_go_through_aggregates_and_negations() -> None:
    with dlog.session(COSTS, {"part": [(1, 2, 2), (2, 3, 5)], "price": [(3, 10)]}) as session:
        lines = str(session.why("cost", (1, 100))).splitlines()
        assert [line.count("cost(") > 0 and "over 1 match" not in line for line in lines].count(True) == 3
    with dlog.session(WINS, {"move": [(1, 2), (2, 3), (3, 4)]}) as session:
        assert "!wins(2)  no such row" in str(session.why("wins", (1,)))
        assert "there is wins(3)" in str(session.why_not("wins", (2,)))
