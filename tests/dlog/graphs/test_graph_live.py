"""Answers that follow a graph against the answers of a new graph, round by round."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

QUESTIONS: dict[str, Any] = {
    "reachable": lambda g: g.reachable([0, 1]),
    "bfs": lambda g: g.bfs(0),
    "paths": lambda g: g.shortest_paths(sources=[0, 2], weight="weight"),
    "components": lambda g: g.connected_components(),
    "strong": lambda g: g.strongly_connected_components(),
    "triangles": lambda g: g.triangle_count(),
    "clustering": lambda g: g.clustering(),
    "cores": lambda g: g.core_numbers(),
    "core": lambda g: g.k_core(2),
    "truss": lambda g: g.k_truss(3),
    "degrees": lambda g: g.degrees(),
    "distribution": lambda g: g.degree_distribution(),
    "labels": lambda g: g.label_propagation(2),
    "ranks": lambda g: g.pagerank(3),
    "settled": lambda g: g.pagerank(tolerance=0.05),
    "independent": lambda g: g.maximal_independent_set(1),
}
RECOMPUTED = {"settled", "independent"}
Edge = tuple[int, int, int]


def edges(most: int, vertices: int) -> st.SearchStrategy[list[Edge]]:
    end = st.integers(0, vertices - 1)
    return st.lists(st.tuples(end, end, st.integers(0, 4)), max_size=most)


def rows(table: Any) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in zip(*columns, strict=True)]


def without(now: list[Edge], gone: list[Edge], directed: bool) -> list[Edge]:
    pairs = {pair for a, b, _ in gone for pair in ((a, b), *(() if directed else ((b, a),)))}
    return [edge for edge in now if edge[:2] not in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("directed", [True, False])
@given(edges(12, 5), st.lists(st.tuples(edges(3, 7), edges(3, 5), st.booleans()), min_size=1, max_size=4))
@examples(5)
def test_answers_follow(name: str, directed: bool, first: list[Edge], rounds: list[Any]) -> None:
    ask = QUESTIONS[name]
    now, vertices = first, 5
    weights = np.array([w for *_, w in first], np.int64)
    weighted = {"src": [a for a, _, _ in first], "dst": [b for _, b, _ in first], "weight": weights}
    with dlog.graph(list(range(5)), weighted, directed=directed, threads=1).live() as live:
        answer = ask(live)
        before = Counter(rows(answer.table))
        for added, removed, add_first in rounds:
            if add_first and added:
                live.add_edges(added)
                now = now + added
            if removed:
                live.remove_edges([edge[:2] for edge in removed])
                now = without(now, removed, directed)
            if not add_first and added:
                live.add_edges(added)
                now = now + added
            vertices = max([vertices, *(1 + max(a, b) for a, b, _ in added)])
            new = [v for v in range(5, vertices) if v not in live.names.objects()]
            live.add_vertices(new)
            live.commit()
            ids = live.names.objects()
            assert sorted(ids) == list(range(vertices))
            expected = ask(afresh(ids, now, directed))
            after = Counter(rows(answer.table))
            assert after == Counter(renamed(rows(expected.table), expected.table.column_names, ids))
            changes = Counter()
            for *row, diff in rows(answer.changes):
                changes[tuple(row)] += diff
            assert {r: n for r, n in changes.items() if n} == {
                r: after[r] - before[r] for r in {*after, *before} if after[r] != before[r]
            }
            before = after
            assert len(answer) == after.total()


@pytest.mark.parametrize("k", [2, 3, 4])
@given(edges(40, 9), st.lists(st.tuples(edges(4, 9), st.integers(0, 5)), min_size=1, max_size=6), st.randoms())
@examples(15)
def test_cores_and_trusses_are_those_of_networkx_after_every_round(
    k: int, first: list[Edge], rounds: list[tuple[list[Edge], int]], random: Any
) -> None:
    graph = nx.Graph((a, b) for a, b, _ in first if a != b)
    with dlog.graph(list(range(9)), [edge[:2] for edge in first], directed=False, threads=1).live() as live:
        core, truss = live.k_core(k), live.k_truss(k)
        assert core.maintained and truss.maintained
        for added, some in rounds:
            gone = random.sample(sorted(graph.edges), min(some, graph.number_of_edges()))
            live.remove_edges(gone)
            live.add_edges([edge[:2] for edge in added])
            live.commit()
            graph.remove_edges_from(gone)
            graph.add_edges_from((a, b) for a, b, _ in added if a != b)
            assert {v for (v,) in core} == set(nx.k_core(graph, k))
            assert {frozenset(e) for e in truss} == {frozenset(e) for e in nx.k_truss(graph, k).edges}


def afresh(ids: list[int], now: list[Edge], directed: bool) -> dlog.Graph:
    """A new graph whose ids are in the order in which those of the live one came."""
    place = {v: i for i, v in enumerate(ids)}
    columns = {
        "src": np.array([place[a] for a, _, _ in now], np.int64),
        "dst": np.array([place[b] for _, b, _ in now], np.int64),
        "weight": np.array([w for *_, w in now], np.int64),
    }
    return dlog.graph(np.arange(len(ids)), columns, directed=directed, threads=1)


def renamed(found: list[tuple[Any, ...]], names: list[str], ids: list[int]) -> list[tuple[Any, ...]]:
    vertex = [name in ("id", "component", "label", "source", "src", "dst") for name in names]
    return [tuple(ids[v] if is_vertex else v for v, is_vertex in zip(row, vertex, strict=True)) for row in found]


@pytest.mark.slow
def test_what_is_maintained_and_what_is_computed_again() -> None:
    with dlog.graph([(0, 1, 1), (1, 2, 1)]).live() as live:
        assert {name for name, ask in QUESTIONS.items() if not ask(live).maintained} == RECOMPUTED


def test_changes_are_those_of_the_last_commit() -> None:
    with dlog.graph([("a", "b")]).live() as live:
        reached = live.reachable("a")
        live.add_edges([("b", "c"), ("c", "d")])
        assert list(reached) == [("a",), ("b",)]
        assert live.commit() == 1
        assert reached.changes.to_pylist() == [{"id": "c", "diff": 1}, {"id": "d", "diff": 1}]
        live.remove_edges({"src": ["b"], "dst": ["c"]})
        assert live.commit() == 2
        assert reached.changes.to_pylist() == [{"id": "c", "diff": -1}, {"id": "d", "diff": -1}]
        live.commit()
        assert reached.changes.num_rows == 0
        assert len(live) == 4


def test_rollback_forgets_edges() -> None:
    with dlog.graph([(1, 2)]).live() as live:
        reached = live.reachable(1)
        live.remove_edges([(1, 2)])
        live.add_edges([(1, 3)])
        live.rollback()
        live.commit()
        assert list(reached) == [(1,), (2,)]
        live.add_edges([(2, 3)])
        live.commit()
        assert list(reached) == [(1,), (2,), (3,)]


def test_answers_that_are_closed_do_not_follow() -> None:
    with dlog.graph([(1, 2)]).live() as live:
        one, other = live.degrees(), live.degrees()
        other.close()
        live.add_edges([(2, 1)])
        live.commit()
        assert [row[3] for row in one] == [2, 2]


@pytest.mark.parametrize("error", [MemoryError("no room"), KeyboardInterrupt()])
def test_an_answer_that_fails_is_at_its_end_and_others_go_on(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """But those whose turn did not come, as they were interrupted, are at their end, too: never behind."""

    def fails(*_: Any) -> None:
        raise error

    with dlog.graph([(1, 2), (2, 3)]).live() as live:
        reached, cores, components = live.reachable(1), live.core_numbers(), live.connected_components()
        live.add_edges([(3, 4)])
        with monkeypatch.context() as patch:
            patch.setattr("dlog.graphs.cores.LiveCores.advance", fails)
            with pytest.raises(type(error)):
                live.commit()
        live.add_edges([(4, 5)])
        assert live.commit() == 2
        assert len(reached) == 5
        with pytest.raises(dlog.DlogError, match=f"could not follow after round 0: {error or 'KeyboardInterrupt'}"):
            list(cores)
        if isinstance(error, Exception):
            assert {c for _, c in components} == {1}
        else:
            with pytest.raises(dlog.DlogError, match="could not follow"):
                len(components)
        assert len(live.core_numbers()) == 5
        for answer in (cores, reached, reached, components):
            answer.close()


def test_a_commit_that_is_refused_changes_nothing() -> None:
    with dlog.graph([(1, 2, 5), (2, 3, 5)]).live() as live:
        paths, degrees = live.shortest_paths(sources=1, weight="weight"), live.degrees()
        live.add_edges([(1, 3, -1)])
        with pytest.raises(dlog.DlogError, match="negative weight: -1"):
            live.commit()
        assert live.round == 0
        live.rollback()
        live.add_edges([(1, 3)])
        with pytest.raises(dlog.DlogError, match="`weight` has nulls"):
            live.commit()
        live.rollback()
        live.add_edges([(1, 3, 0.5)])
        with pytest.raises(dlog.DlogError, match="is of floats, after weights that are integers"):
            live.commit()
        live.rollback()
        live.add_edges([(1, 3, 2)])
        live.commit()
        assert list(paths) == [(1, 1, 0), (1, 2, 5), (1, 3, 2)]
        assert next(iter(degrees)) == (1, 0, 2, 2)


def test_vertices_of_another_type_and_unknown_ones() -> None:
    with dlog.graph([(1, 2)]).live() as live:
        with pytest.raises(dlog.DlogError, match="vertices have ids of type int64"):
            live.add_edges([("a", "b")])
        with pytest.raises(dlog.DlogError, match="src: there is no vertex 7"):
            live.remove_edges([(7, 1)])
        live.remove_edges([(2, 1)])
        live.commit()
        assert len(live.reachable(1)) == 2
    with dlog.graph([(1, "b")]).live() as live:
        live.add_edges([((1, 2), "b")])
        live.commit()
        assert len(live.degrees()) == 3


def test_attributes_may_come_after_edges_that_have_none() -> None:
    with dlog.graph([(1, 2)]).live() as live:
        live.add_edges([(2, 3)])
        live.commit()
        live.remove_edges([(1, 2), (2, 3)])
        live.add_edges([(3, 4, 7), (4, 5, 8)])
        live.commit()
        assert sorted(live.shortest_paths(sources=3, weight="weight")) == [(3, 3, 0), (3, 4, 7), (3, 5, 15)]


@pytest.mark.slow
def test_a_large_graph_follows_many_small_rounds() -> None:
    rng = np.random.default_rng(5)
    oracle = nx.gnm_random_graph(2000, 6000, seed=1, directed=True)
    with dlog.graph(oracle).live() as live:
        reached, parts = live.bfs(0), live.connected_components()
        for _ in range(20):
            new = rng.integers(0, 2000, (5, 2))
            live.add_edges(new)
            oracle.add_edges_from(new.tolist())
            old = [list(oracle.edges)[i] for i in rng.integers(0, oracle.number_of_edges(), 5)]
            live.remove_edges(old)
            oracle.remove_edges_from(old)
            live.commit()
        assert dict(reached) == nx.single_source_shortest_path_length(oracle, 0)
        assert len(set(dict(parts).values())) == nx.number_weakly_connected_components(oracle)


def sessions_of(monkeypatch: pytest.MonkeyPatch) -> list[dlog.Session]:
    """The sessions that are opened from now on."""
    opened: list[dlog.Session] = []
    begin = dlog.Session.__init__

    def noting(self: dlog.Session, *args: Any, **options: Any) -> None:
        opened.append(self)
        begin(self, *args, **options)

    monkeypatch.setattr(dlog.Session, "__init__", noting)
    return opened


def test_answers_that_read_edges_alike_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = sessions_of(monkeypatch)
    with dlog.graph([(0, 1, 1), (1, 2, 1)]).live() as live:
        reached, steps = live.reachable(0), live.bfs(0)
        live.triangle_count(), live.connected_components(), live.reachable(1)
        assert len(opened) == 1
        live.degrees(), live.pagerank(3)
        assert len(opened) == 2
        paths = live.shortest_paths(sources=0, weight="weight")
        assert len(opened) == 3
        live.add_edges([(2, 3, 1)])
        live.commit()
        assert [len(answer) for answer in (reached, steps, paths)] == [4, 4, 4]
        assert not any(session._closed for session in opened)
    assert all(session._closed for session in opened)


def test_answers_tell_the_last_commits_changes_while_others_come_and_go() -> None:
    with dlog.graph([(1, 2), (5, 6)]).live() as live:
        reached = live.reachable(1)
        assert reached.changes.to_pylist() == [{"id": 1, "diff": 1}, {"id": 2, "diff": 1}]
        live.bfs(1)
        assert reached.changes.to_pylist() == [{"id": 1, "diff": 1}, {"id": 2, "diff": 1}]
        live.add_edges([(2, 5)])
        live.commit()
        expected = [{"id": 5, "diff": 1}, {"id": 6, "diff": 1}]
        other = live.connected_components()
        assert reached.changes.to_pylist() == expected
        assert other.changes.num_rows == 4
        other.close()
        assert reached.changes.to_pylist() == expected
        live.commit()
        assert reached.changes.num_rows == 0


def test_a_closed_answer_leaves_nothing_in_a_shared_session(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = sessions_of(monkeypatch)
    with dlog.graph([(1, 2), (2, 1)]).live() as live:
        kept = live.reachable(1)
        (session,) = opened
        before = set(session)
        for _ in range(2):
            live.triangle_count().close()
            assert set(session) - before == {"vertex"}
        kept.close()
        assert session._closed
        assert len(live.reachable(1)) == 2
        assert len(opened) == 2


def test_answers_of_a_shared_session_that_fails_go_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = dlog.Session.commit

    def fails(self: dlog.Session, *args: Any) -> Any:
        if self is shared:
            raise MemoryError("no room")
        return commits(self, *args)

    opened = sessions_of(monkeypatch)
    with dlog.graph([(1, 2), (3, 4)]).live() as live:
        reached, parts = live.reachable(1), live.connected_components()
        (shared,) = opened
        monkeypatch.setattr(dlog.Session, "commit", fails)
        live.add_edges([(2, 3)])
        assert live.commit() == 1
        assert list(reached) == [(1,), (2,), (3,), (4,)]
        assert reached.changes.to_pylist() == [{"id": 3, "diff": 1}, {"id": 4, "diff": 1}]
        assert {c for _, c in parts} == {1}
        live.remove_edges([(1, 2)])
        live.commit()
        assert reached.changes.to_pylist() == [{"id": i, "diff": -1} for i in (2, 3, 4)]
        assert len(live.bfs(3)) == 2


@pytest.mark.parametrize(
    "act",
    [
        lambda g: g.add_edges([(3, 4, 1)]),
        lambda g: g.remove_edges([(1, 2)]),
        lambda g: g.add_vertices([9]),
        lambda g: g.rollback(),
        lambda g: g.commit(),
        lambda g: g.connected_components(),
        lambda g: g.core_numbers(),
    ],
)
def test_a_closed_graph_changes_and_answers_no_more(act: Any) -> None:
    live = dlog.graph([(1, 2, 1)]).live()
    answers = live.shortest_paths(sources=[1], weight="weight"), live.core_numbers()
    live.add_edges([(2, 3, -1)])
    with pytest.raises(DlogError, match="negative weight"):
        live.commit()
    live.close()
    live.close()
    with pytest.raises(DlogError, match="the graph is closed"):
        act(live)
    for answer in answers:
        for read in (lambda a: list(a), lambda a: a.table, lambda a: a.changes, len):
            with pytest.raises(DlogError, match="this answer is closed"):
                read(answer)
        assert repr(answer) == "<dlog.graph.LiveResult, at its end>"
    assert (live.round, repr(live)) == (0, "<dlog.graph.Live, closed>")


def test_edges_that_are_refused_stage_nothing() -> None:
    with dlog.graph([(1, 2, 1)]).live() as live:
        components = live.connected_components()
        for edges in ([(3, "x", 1)], [(3, 4, "heavy")]):
            with pytest.raises(DlogError):
                live.add_edges(edges)
        live.add_edges([(2, 3, 5)])
        live.commit()
        assert list(components) == [(1, 1), (2, 1), (3, 1)]
        assert list(live.degrees()) == [(1, 0, 1, 1), (2, 1, 1, 2), (3, 1, 0, 1)]
