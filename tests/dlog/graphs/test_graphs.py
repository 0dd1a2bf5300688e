"""Every analysis of a graph against NetworkX on random graphs."""

from __future__ import annotations

import doctest
import importlib
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

import dlog
from tests.dlog.graphs.graph_strategies import Sample, samples
from tests.examples import examples

FEW = examples(25)
DIRECTED = pytest.mark.parametrize("directed", [True, False])


def kind(directed: bool, multi: bool = False) -> Any:
    return {(1, 0): nx.DiGraph, (0, 0): nx.Graph, (1, 1): nx.MultiDiGraph, (0, 1): nx.MultiGraph}[directed, multi]


def least(groups: Any) -> dict[Any, Any]:
    return {vertex: min(group) for group in groups for vertex in group}


# --------------------------------------------------------------------------------------------------------------------- paths


@DIRECTED
@given(samples(), st.data())
@FEW
def test_reachable_and_bfs(directed: bool, sample: Sample, data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.sampled_from(sample.vertices), min_size=1, max_size=3))
    oracle, graph = sample.networkx(kind(directed)), sample.directed(directed)
    distances = [nx.single_source_shortest_path_length(oracle, source) for source in sources]
    expected = {v: min(d[v] for d in distances if v in d) for v in sample.vertices if any(v in d for d in distances)}
    assert dict(graph.bfs(sources)) == expected
    assert list(graph.reachable(sources)) == [(v,) for v in sorted(expected)]


@DIRECTED
@pytest.mark.parametrize("floats", [True, False])
@given(st.data())
@FEW
def test_shortest_paths_with_weights(directed: bool, floats: bool, data: st.DataObject) -> None:
    sample = data.draw(samples(floats=floats))
    ends = data.draw(st.lists(st.sampled_from(sample.vertices), min_size=1, max_size=3))
    oracle, graph = sample.networkx(kind(directed)), sample.directed(directed)
    expected = {(e, v, d) for e in ends for v, d in nx.single_source_dijkstra_path_length(oracle, e).items()}
    assert set(graph.shortest_paths(sources=ends, weight="weight")) == expected
    back = oracle.reverse() if directed else oracle
    expected = {(e, v, d) for e in ends for v, d in nx.single_source_dijkstra_path_length(back, e).items()}
    assert set(graph.shortest_paths(ends, weight="weight")) == expected


@given(samples())
@FEW
def test_shortest_paths_without_weights_count_edges(sample: Sample) -> None:
    back = sample.networkx().reverse()
    expected = {(end, v, d) for end in sample.vertices for v, d in nx.single_source_shortest_path_length(back, end).items()}
    assert set(sample.graph.shortest_paths(sample.vertices)) == expected


# ---------------------------------------------------------------------------------------------------------------- components


@given(samples(edges=10))
@FEW
def test_connected_components(sample: Sample) -> None:
    expected = least(nx.weakly_connected_components(sample.networkx()))
    assert dict(sample.graph.connected_components()) == expected
    assert dict(sample.directed(False).strongly_connected_components()) == expected


@given(samples())
@FEW
def test_strongly_connected_components(sample: Sample) -> None:
    assert dict(sample.graph.strongly_connected_components()) == least(nx.strongly_connected_components(sample.networkx()))


@pytest.mark.slow
def test_strongly_connected_components_of_a_long_path_and_a_long_cycle() -> None:
    """Each pass takes one component of each part: random pivots keep passes few."""
    n = 3000
    path = dlog.graph([(i, i + 1) for i in range(n)])
    assert dict(path.strongly_connected_components()) == {i: i for i in range(n + 1)}
    cycle = dlog.graph([(i, (i + 1) % n) for i in range(n)])
    assert set(dict(cycle.strongly_connected_components()).values()) == {0}


# ------------------------------------------------------------------------------------------------------------------- density


@given(samples())
@FEW
def test_triangles_and_clustering(sample: Sample) -> None:
    simple = sample.simple()
    assert dict(sample.graph.triangle_count()) == nx.triangles(simple)
    assert dict(sample.graph.clustering()) == pytest.approx(nx.clustering(simple))


@given(samples(edges=30))
@FEW
def test_cores(sample: Sample) -> None:
    simple = sample.simple()
    assert dict(sample.graph.core_numbers()) == nx.core_number(simple)
    for k in (1, 2, 3):
        assert {v for (v,) in sample.graph.k_core(k)} == set(nx.k_core(simple, k))


@given(samples(edges=40))
@FEW
def test_trusses(sample: Sample) -> None:
    simple = sample.simple()
    for k in (2, 3, 4):
        assert {frozenset(edge) for edge in sample.graph.k_truss(k)} == {frozenset(e) for e in nx.k_truss(simple, k).edges}


def test_peeling_takes_several_rounds() -> None:
    """A path loses its ends, then its new ends; a strip of triangles likewise."""
    path = [(i, i + 1) for i in range(20)]
    assert len(dlog.graph(path).k_core(2)) == 0
    assert len(dlog.graph([*path, (20, 17)]).k_core(2)) == 4
    strip = [*path, *((i, i + 2) for i in range(19))]
    assert len(dlog.graph(strip).k_truss(4)) == 0
    clique = [(i, j) for i in range(100, 105) for j in range(i) if j >= 100]
    assert len(dlog.graph([*strip, *clique, (20, 100)]).k_truss(5)) == 10


@given(samples())
@FEW
def test_degrees(sample: Sample) -> None:
    graph = sample.networkx(nx.MultiDiGraph)
    expected = [(v, graph.in_degree(v), graph.out_degree(v), graph.degree(v)) for v in sorted(graph)]
    assert list(sample.graph.degrees()) == expected
    assert dict(sample.graph.degree_distribution()) == Counter(degree for _, degree in graph.degree())
    undirected = sample.networkx(nx.MultiGraph)
    assert {row[0]: row[3] for row in sample.directed(False).degrees()} == dict(undirected.degree())


# -------------------------------------------------------------------------------------------------------------- by iteration


def propagated(sample: Sample, steps: int) -> dict[Any, Any]:
    """GraphX's label propagation, as its source says it."""
    labels = {v: v for v in sample.vertices}
    for _ in range(steps):
        messages: dict[Any, list[Any]] = {v: [] for v in sample.vertices}
        for a, b in sample.edges:
            messages[a].append(labels[b])
            messages[b].append(labels[a])
        counts = {v: Counter(got) for v, got in messages.items() if got}
        labels |= {v: min(count, key=lambda label: (-count[label], label)) for v, count in counts.items()}
    return labels


@given(samples(), st.integers(1, 4))
@FEW
def test_label_propagation(sample: Sample, steps: int) -> None:
    assert dict(sample.graph.label_propagation(steps)) == propagated(sample, steps)


@DIRECTED
@pytest.mark.parametrize("weight", ["weight", None])
@given(samples(floats=True), st.sampled_from([0.0, 0.5, 0.85]))
@examples(4)
def test_pagerank(directed: bool, weight: str | None, sample: Sample, damping: float) -> None:
    oracle = _pagerank_python(as_weighted(sample, directed, weight), alpha=damping, tol=1e-9, max_iter=500)
    graph = sample.directed(directed)
    assert dict(graph.pagerank(tolerance=1e-7, damping=damping, weight=weight)) == pytest.approx(oracle, abs=1e-5)


def as_weighted(sample: Sample, directed: bool, weight: str | None) -> Any:
    """A graph whose weights are those of parallel edges added up; edges of weight 0 are as good as none."""
    made = kind(directed)()
    made.add_nodes_from(sample.vertices)
    for (a, b), w in zip(sample.edges, sample.weights, strict=True):
        more = w if weight else 1
        if more:
            made.add_edge(a, b, weight=more + (made[a][b]["weight"] if made.has_edge(a, b) else 0))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [1, 7, 25])
def test_pagerank_does_as_many_iterations_as_it_is_told(iterations: int) -> None:
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 0), (4, 0)]
    ranks, n = np.full(5, 0.2), 5
    for _ in range(iterations):
        given = ranks / [1, 1, 2, 1, 1]
        ranks = 0.15 / n + 0.85 * np.array([sum(given[a] for a, b in edges if b == v) for v in range(n)])
    graph = dlog.graph(edges)
    assert [rank for _, rank in graph.pagerank(iterations)] == pytest.approx(list(ranks), abs=1e-12)
    assert [rank for _, rank in graph.pagerank(iterations, tolerance=1e-300)] == pytest.approx(list(ranks), abs=1e-12)


@pytest.mark.slow
def test_ranks_are_those_of_graphframes_by_the_number_of_vertices() -> None:
    """GraphX adds what is not passed on to each vertex, loses what vertices without edges out have, and scales in the end."""
    edges, n = [(0, 1), (0, 2), (2, 0), (2, 2), (4, 2), (2, 3)], 6
    out = np.array([max(1, sum(a == v for a, _ in edges)) for v in range(n)])
    ranks = np.ones(n)
    for _ in range(200):
        ranks = 0.15 + 0.85 * np.array([sum((ranks / out)[a] for a, b in edges if b == v) for v in range(n)])
    found = [rank for _, rank in dlog.graph(list(range(n)), edges).pagerank(tolerance=1e-12)]
    assert found == pytest.approx(list(ranks / ranks.sum()), abs=1e-9)


@pytest.mark.slow
@given(samples(), st.integers(-5, 5))
@examples(8)
def test_maximal_independent_set(sample: Sample, seed: int) -> None:
    members = {v for (v,) in sample.graph.maximal_independent_set(seed)}
    simple = sample.simple()
    assert not [edge for edge in simple.edges if set(edge) <= members]
    assert all(v in members or members & set(simple[v]) for v in simple)
    assert {v for (v,) in sample.graph.maximal_independent_set(seed)} == members


def test_independent_sets_of_long_paths_take_more_than_a_block_of_steps() -> None:
    n = 200_000
    ends = np.arange(n)
    found = dlog.graph((ends, ends + 1)).maximal_independent_set(3).table["id"].to_numpy()
    member = np.zeros(n + 3, np.bool_)
    member[found + 1] = True
    assert not (member[1:] & member[:-1]).any()
    assert (member[:-2] | member[1:-1] | member[2:]).all()


def test_seeds_give_other_sets() -> None:
    graph = dlog.graph(nx.path_graph(30))
    assert len({tuple(graph.maximal_independent_set(seed)) for seed in range(5)}) > 1


# --------------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.slow
def test_a_graph_without_edges_and_one_without_vertices() -> None:
    for vertices in ([], [1, 2]):
        graph = dlog.graph(vertices, [])
        n = len(vertices)
        assert len(graph.connected_components()) == len(graph.strongly_connected_components()) == n
        assert len(graph.triangle_count()) == len(graph.clustering()) == len(graph.core_numbers()) == n
        assert len(graph.label_propagation(2)) == len(graph.degrees()) == len(graph.maximal_independent_set()) == n
        assert [round(rank, 9) for _, rank in graph.pagerank()] == [0.5] * n
        assert [round(rank, 9) for _, rank in graph.pagerank(3)] == [0.5] * n
        assert len(graph.k_core(1)) == len(graph.k_truss(3)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("module", ["analyses", "core", "live", "motifs", "names", ""])
def test_examples_of_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"dlog.graphs.{module}".rstrip("."))).failed == 0
