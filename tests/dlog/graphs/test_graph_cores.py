"""Core numbers of live graphs are NetworkX's after every commit, and the changes are what has changed."""

from __future__ import annotations

import signal
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.graphs import cores
from tests.examples import examples

VERTICES = 14
Edges = set[tuple[int, int]]
VERTEX = st.integers(0, VERTICES - 1)
PAIRS = st.tuples(VERTEX, VERTEX).filter(lambda e: e[0] != e[1])
DENSE = st.sets(PAIRS, max_size=60)
COMMITS = st.lists(st.tuples(st.sets(PAIRS, max_size=12), st.sets(PAIRS, max_size=12)), min_size=1, max_size=6)


def expected(edges: Edges, vertices: int = VERTICES) -> dict[int, int]:
    graph = nx.Graph()
    graph.add_nodes_from(range(vertices))
    graph.add_edges_from(e for e in edges if e[0] != e[1])
    return dict(nx.core_number(graph))


def follow(start: Edges, commits: list[tuple[Edges, Edges]], vertices: int = VERTICES, directed: bool = True) -> None:
    edges = set(start)
    given = [*sorted(edges), *((v, v) for v in range(vertices))]
    with dlog.graph(given, directed=directed).live() as graph:
        answer = graph.core_numbers()
        assert answer.maintained
        before = expected(edges, vertices)
        assert dict(answer) == before
        for removed, added in commits:
            graph.remove_edges(sorted(removed) or [(0, 0)])
            graph.add_edges(sorted(added) or [(0, 0)])
            graph.commit()
            gone = removed if directed else removed | {(b, a) for a, b in removed}
            edges = edges - gone | added
            now = expected(edges, vertices)
            assert dict(answer) == now
            changed = {(v, now[v], 1) for v in now if now[v] != before[v]}
            changed |= {(v, before[v], -1) for v in now if now[v] != before[v]}
            assert set(zip(*answer.changes.to_pydict().values(), strict=True)) == changed
            before = now


@examples(80)
@given(DENSE, COMMITS, st.booleans())
def test_every_commit(start: Edges, commits: list[tuple[Edges, Edges]], directed: bool) -> None:
    follow(start, commits, directed=directed)


@examples(60)
@given(DENSE, COMMITS, st.booleans())
def test_every_commit_arc_by_arc(start: Edges, commits: list[tuple[Edges, Edges]], directed: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cores, "GRAPH_PER_CHANGE", 0)
        patch.setattr(cores, "SPARE_ENTRIES", 8)
        patch.setattr(cores, "LEVELS", 2)
        follow(start, commits, directed=directed)


@examples(40)
@given(DENSE, COMMITS, st.sampled_from([0, 5, 20, 60]))
def test_what_takes_too_long_is_peeled_again(start: Edges, commits: list[tuple[Edges, Edges]], work: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cores, "GRAPH_PER_CHANGE", 0)
        patch.setattr(cores, "WORK_PER_ITEM", 0)
        patch.setattr(cores, "MIN_WORK", work)
        follow(start, commits)


def test_a_hub_whose_leaves_come_and_go_is_peeled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaf is looked for among all."""
    monkeypatch.setattr(cores, "WORK_PER_ITEM", 4)
    monkeypatch.setattr(cores, "MIN_WORK", 0)
    runs: list[int] = []
    genuine = cores._peel

    def counted(*graph: Any) -> Any:
        runs.append(1)
        return genuine(*graph)

    monkeypatch.setattr(cores, "_peel", counted)
    leaves = {(0, leaf) for leaf in range(1, 4000)}
    some = {(leaf, 0) for leaf in range(4000, 4450)}
    follow(leaves, [(set(), {(4450, 0)}), (set(), some), (some, set())], 4451)
    assert len(runs) == 3, "as a live graph begins, and twice"


def test_an_interruption_between_a_change_and_those_who_follow_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with dlog.graph([(i, i + 1) for i in range(20)]).live() as graph:
        answer = graph.core_numbers()
        settle = graph._edges.settle

        def interrupted() -> None:
            settle()
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(graph._edges, "settle", interrupted)
        graph.add_edges([(20, 0)])
        with pytest.raises(KeyboardInterrupt):
            graph.commit()
        monkeypatch.undo()
        with pytest.raises(dlog.DlogError, match="could not follow"):
            list(answer)
        assert graph.round == 1 and set(dict(graph.core_numbers()).values()) == {2}


def test_a_clique_comes_edge_by_edge_at_once_and_goes() -> None:
    clique = {(a, b) for a in range(VERTICES) for b in range(a)}
    star = {(0, v) for v in range(1, VERTICES)}
    ring = {(v, (v + 1) % VERTICES) for v in range(VERTICES)}
    commits: list[tuple[Edges, Edges]] = [(set(), star), (set(), clique), (star, set()), (clique, ring), (set(), clique)]
    follow(set(), [*commits, ({(3, 4)}, set()), (ring, star)])


@pytest.mark.parametrize("graph", ["power law", "random", "ring", "grid"])
def test_a_small_change_of_a_large_graph_is_not_peeled_again(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all vertices have the same number, or nearly so."""
    random, vertices = np.random.default_rng(1), 3000
    drawn = {
        "power law": random.zipf(1.6, (40_000, 2)) % vertices,
        "random": random.integers(0, vertices, (15_000, 2)),
        "grid": np.array([(v, w) for v in range(vertices) for w in (v + 1, v + 50) if w < vertices]),
        "ring": np.stack([np.arange(vertices), (np.arange(vertices) + 1) % vertices], 1),
    }[graph]
    edges = set(map(tuple, drawn.tolist()))
    runs: list[int] = []
    genuine = cores._peel

    def counted(*graph: Any) -> Any:
        runs.append(1)
        return genuine(*graph)

    monkeypatch.setattr(cores, "_peel", counted)
    some = sorted(e for e in edges if e[0] != e[1])[:: len(edges) // 25]
    chords: Edges = {(int(a), int(b)) for a, b in random.integers(0, vertices, (20, 2))}
    commits: list[tuple[Edges, Edges]] = [({edge}, set()) for edge in some] + [(set(), {edge}) for edge in (*some, *chords)]
    follow(edges, [*commits, (set(some), set()), (chords, set(some))], vertices)
    assert len(runs) == 1


def test_vertices_that_come_have_numbers() -> None:
    with dlog.graph([(1, 2), (2, 3)]).live() as graph:
        answer = graph.core_numbers()
        graph.add_vertices([7])
        graph.add_edges([(3, 9), (9, 1)])
        graph.commit()
        assert dict(answer) == {1: 2, 2: 2, 3: 2, 7: 0, 9: 2}
        found = sorted(zip(*answer.changes.to_pydict().values(), strict=True))
        assert found == [(1, 1, -1), (1, 2, 1), (2, 1, -1), (2, 2, 1), (3, 1, -1), (3, 2, 1), (7, 0, 1), (9, 2, 1)]


def test_what_was_read_stays_as_it_was() -> None:
    with dlog.graph([(1, 2), (2, 3)]).live() as graph:
        answer = graph.core_numbers()
        read = answer.table
        before = read.to_pydict()
        graph.add_edges([(3, 1)])
        graph.commit()
        assert read.to_pydict() == before != answer.table.to_pydict()
