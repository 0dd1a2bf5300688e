"""Strongly connected components of live graphs are NetworkX's after every commit, and the changes are what has changed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.graphs import strong
from dlog.graphs.adjacency import MAX_UNSORTED_PAIRS, Adjacency
from tests.examples import examples

VERTICES = 12
Edges = set[tuple[int, int]]
VERTEX = st.integers(0, VERTICES - 1)
EDGES = st.sets(st.tuples(VERTEX, VERTEX).filter(lambda e: e[0] != e[1]), max_size=30)


def expected(edges: Edges, vertices: int = VERTICES) -> dict[int, int]:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(vertices))
    graph.add_edges_from(edges)
    return {v: min(c) for c in nx.strongly_connected_components(graph) for v in c}


def follow(start: Edges, commits: list[tuple[Edges, Edges]]) -> None:
    edges = set(start)
    with dlog.graph([*sorted(edges), *((v, v) for v in range(VERTICES))]).live() as graph:
        answer = graph.strongly_connected_components()
        assert answer.maintained
        before = expected(edges)
        assert dict(answer) == before
        for removed, added in commits:
            graph.remove_edges(sorted(removed) or [(0, 0)])
            graph.add_edges(sorted(added) or [(0, 0)])
            graph.commit()
            edges = edges - removed | added
            now = expected(edges)
            assert dict(answer) == now
            changed = {(v, now[v], 1) for v in now if now[v] != before[v]}
            changed |= {(v, before[v], -1) for v in now if now[v] != before[v]}
            assert set(zip(*answer.changes.to_pydict().values(), strict=True)) == changed
            before = now


COMMITS = st.lists(st.tuples(EDGES, st.sets(st.tuples(VERTEX, VERTEX), max_size=4)), min_size=1, max_size=6)


@examples(60)
@given(EDGES, COMMITS)
def test_every_commit(start: Edges, commits: list[tuple[Edges, Edges]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strong, "MIN_WORK", 10**9)
        follow(start, commits)


@examples(30)
@given(EDGES, COMMITS, st.sampled_from([0, 1, 10**9]), st.sampled_from([0, 20_000]), st.sampled_from([0, 5, 30]))
def test_whatever_is_divided_anew(
    start: Edges, commits: list[tuple[Edges, Edges]], debts: int, few: int, work: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strong, "MAX_DEBTS", debts)
        patch.setattr(strong, "MAX_PYTHON_EDGES", few)
        patch.setattr(strong, "GRAPH_PER_WORK", 10**9)
        patch.setattr(strong, "MIN_WORK", work or 10**9)
        follow(start, commits)


def test_a_long_cycle_is_cut_and_closed() -> None:
    cycle = {(v, (v + 1) % VERTICES) for v in range(VERTICES)}
    follow(cycle, [({(3, 4)}, set()), (set(), {(3, 4)}), ({(0, 1), (6, 7)}, set()), (set(), {(0, 1), (6, 7)}), (cycle, cycle)])


@pytest.mark.slow
def test_a_small_change_of_a_large_graph_is_no_new_run(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(1).integers(0, 5000, (20_000, 2))
    runs: list[int] = []
    genuine = strong.LiveComponents._again
    monkeypatch.setattr(strong.LiveComponents, "_again", lambda self, graph: (runs.append(1), genuine(self, graph)))
    edges = set(map(tuple, drawn.tolist()))
    with dlog.graph([*sorted(edges), *((v, v) for v in range(5000))]).live() as graph:
        answer = graph.strongly_connected_components()
        for edge in sorted(e for e in edges if e[0] != e[1])[::2000]:
            graph.remove_edges([edge])
            graph.commit()
            edges.discard(edge)
            assert dict(answer) == expected(edges, 5000)
    assert not runs


def test_vertices_that_come_are_components() -> None:
    with dlog.graph([(1, 2), (2, 1)]).live() as graph:
        answer = graph.strongly_connected_components()
        graph.add_vertices([7])
        graph.add_edges([(2, 9)])
        graph.commit()
        assert dict(answer) == {1: 1, 2: 1, 7: 7, 9: 9}
        assert answer.changes.to_pydict() == {"id": [7, 9], "component": [7, 9], "diff": [1, 1]}
        graph.add_edges([(9, 1)])
        graph.commit()
        assert dict(answer) == {1: 1, 2: 1, 7: 7, 9: 1}


@given(st.lists(st.tuples(st.booleans(), st.sets(st.tuples(VERTEX, VERTEX), max_size=8)), max_size=12))
def test_adjacency(steps: list[tuple[bool, Edges]]) -> None:
    none = np.empty(0, np.int64)
    found, edges = Adjacency(none, none), set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dlog.graphs.adjacency.MAX_UNSORTED_PAIRS", 3)
        for come, some in steps:
            listed = np.array(sorted(some), np.int64).reshape(-1, 2)
            (found.add if come else found.remove)(listed[:, 0], listed[:, 1])
            edges = edges | some if come else edges - some
            for vertices in (np.array([0, 3, 7]), np.arange(VERTICES)):
                left = {e for e in edges if e[0] in vertices}
                reached = {e for e in edges if e[1] in vertices}
                assert sorted(zip(*map(np.ndarray.tolist, found.leaving(vertices)), strict=True)) == sorted(left)
                assert sorted(zip(*map(np.ndarray.tolist, found.reaching(vertices)), strict=True)) == sorted(reached)
    assert MAX_UNSORTED_PAIRS > 3
