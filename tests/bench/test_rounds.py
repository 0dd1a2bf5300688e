"""The bench of rounds on tiny graphs: streams are what they say, twins agree with the engine, wrong answers are noticed."""

from __future__ import annotations

import dataclasses
import json
import sys
from functools import partial

import networkx as nx
import numpy as np
import pytest

from dlog.engine.values.updates import Updates
from tests.bench import (
    rounds,
    rounds_bfs,
    rounds_closure,
    rounds_degrees,
    rounds_engine,
    rounds_flowlog,
    rounds_rival,
    rounds_rivals,
    rounds_triangles,
    rounds_w10,
)
from tests.bench import rounds_twins as twins
from tests.bench.process import NotMeasured, Options
from tests.bench.rounds_engine import WARM, WrongAnswer, changes, load, rolled
from tests.bench.rounds_measure import cells, drift, from_json, row_of, to_json
from tests.bench.rounds_streams import changing_graph, netted, rooted_graph, star, w10


def pairs(rows: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.tolist()}


def graph_of(edges: np.ndarray) -> nx.DiGraph:
    return nx.DiGraph(edges.tolist())


def test_a_stream_removes_what_is_there_and_inserts_what_is_not() -> None:
    stream = changing_graph(5, 8, 20, 300)
    there = pairs(stream.first)
    for r in range(stream.rounds):
        old, new = tuple(stream.removed[r]), tuple(stream.inserted[r])
        assert old in there
        assert new not in there
        there = there - {old} | {new}
        assert len(there) == 20
        if r % 50 == 0:
            assert pairs(stream.at(r + 1)) == there
    assert pairs(stream.last) == there


def test_the_same_changes_can_be_rounds_of_their_own() -> None:
    stream = changing_graph(5, 8, 20, 100)
    single = stream.one_by_one()
    assert single.rounds == 200
    assert all(pairs(single.at(2 * r)) == pairs(stream.at(r)) for r in range(0, 100, 20))
    assert pairs(single.at(41)) == pairs(stream.at(20)) - {tuple(stream.removed[20])}
    found = changes(single, 3, 6, 10)
    assert (found.diffs.tolist(), found.rounds.tolist()) == ([1, -1, 1], [10, 11, 12])
    assert np.stack(found.columns, 1).tolist() == stream.changed[3:6].tolist()


def test_a_root_keeps_its_edges() -> None:
    stream, root = rooted_graph(5, 30, 60, 500)
    own = {edge for edge in pairs(stream.first) if edge[0] == root}
    assert own
    assert own == {edge for edge in pairs(stream.last) if edge[0] == root}
    assert root not in stream.removed[:, 0]


@pytest.mark.slow
def test_a_star_has_its_hub_in_every_triangle_at_first() -> None:
    found = twins.triangle_rows(11, star(1, 10, 5).first)
    assert len(found) == 27
    assert (found == 0).any(1).all()


def test_changes_that_undo_each_other_in_a_round_are_left_out() -> None:
    rows = np.array([(0, 1, 5, 6), (0, -1, 5, 6), (0, -1, 7, 8), (1, 1, 7, 8)])
    assert netted(rows).tolist() == [[0, -1, 7, 8], [1, 1, 7, 8]]


def test_twins_agree_with_another_library() -> None:
    edges = changing_graph(2, 12, 30, 1).first
    graph = graph_of(edges)
    assert pairs(twins.distance_rows(12, edges, 3)) == set(nx.single_source_shortest_path_length(graph, 3).items())
    successors = {(x, z) for x in graph for y in graph.successors(x) for z in nx.descendants(graph, y) | {y}}
    assert pairs(twins.closure_rows(12, edges)) == successors
    lists = {(x, y, z) for x, y in graph.edges for z in graph.successors(y) if graph.has_edge(x, z)}
    assert pairs(twins.triangle_rows(12, edges)) == lists
    parts = {(x, min(part)) for part in nx.weakly_connected_components(graph) for x in part}
    assert pairs(twins.component_rows(12, edges)) == parts | {(x, x) for x in range(12) if x not in graph}
    assert pairs(twins.least_rows(12, edges)) == {(x, min(graph.successors(x))) for x, n in graph.out_degree if n}


def test_rows_are_compared_as_sets() -> None:
    left, right = np.array([(1, 2), (3, 4)]), np.array([(3, 4), (1, 2)])
    assert twins.same_rows(left, right)
    assert not twins.same_rows(left, np.array([(3, 4), (2, 1)]))
    assert not twins.same_rows(left, left[:1])


def test_changes_that_are_no_sets_are_refused() -> None:
    one = np.array([1])
    with pytest.raises(WrongAnswer):
        rolled(np.array([[7]]), Updates((np.array([7]),), one, one), 1)
    assert rolled(np.array([[7]]), Updates((np.array([8]),), one, one), 1).tolist() == [[7], [8]]
    assert rolled(np.array([[7]]), Updates((np.array([8]),), one, one + 1), 1).tolist() == [[7]]


@pytest.mark.parametrize(("nodes", "edges"), [(40, 90), (900, 6000)], ids=["few edges", "many"])
def test_every_way_of_distances_is_right(nodes: int, edges: int) -> None:
    rows = list(rounds_bfs.run(nodes, edges, WARM + 20, calls={10: 3, 50: 2}))
    assert [row.way for row in rows] == ["native"] * 2 + ["engine", "session", "session, read"] + ["10 a call", "50 a call"] * 2
    assert all(row.right for row in rows)
    assert [row.rounds for row in rows] == [20] * 5 + [30, 100] * 2


@pytest.mark.parametrize(
    "rows",
    [
        lambda: rounds_degrees.run(30, 100, calls=2, per_call=50),
        lambda: rounds_degrees.run_general(30, 100, calls=2, per_call=50),
        lambda: rounds_triangles.run(15, 60, calls=2, per_call=50),
        lambda: rounds_triangles.run_star(12, calls=2, per_call=10),
        lambda: rounds_closure.run(20, 40, 15),
        lambda: rounds_w10.run(recipe=small_w10, rounds={"single": 30, "batch": 4}, rival_rounds={"single": 0, "batch": 0}),
    ],
    ids=["degrees", "general", "triangles", "star", "closure", "w10"],
)
def test_workloads_are_right_on_tiny_graphs(rows) -> None:
    found = list(rows())
    assert found
    assert all(row.right for row in found)
    assert all(len(cells(row)) == len(cells(found[0])) for row in found)


def small_w10() -> dict[str, np.ndarray]:
    return w10(commits=30, batches=4, changes=20, nodes=50, edges=120)


def test_a_wrong_twin_is_noticed() -> None:
    stream = changing_graph(3, 30, 100, 100)
    row = rounds_degrees.batches("x", "degrees", "distribution", lambda n, e: twins.distribution_rows(n, e[1:]), stream, 50)
    assert not row.right
    assert cells(row)[-1] == "WRONG"


def test_general_programs_are_recursive_and_the_others_are_not() -> None:
    for program in rounds_degrees.PAIRS:
        for way, recursive in ((program, False), (f"{program}_general", True)):
            engine = load(way, {"edge": np.array([(1, 2)])}).engine
            assert ("recursive" in engine.explain()) == recursive
            engine.close()


def test_drift_compares_the_first_window_with_the_same_again() -> None:
    assert drift(np.repeat([100, 900], 3000), np.full(1000, 150)) == 1.5


@pytest.mark.parametrize("each", [1, 2])
def test_a_stream_leads_back(each: int) -> None:
    stream = dataclasses.replace(changing_graph(5, 8, 20, 300), per_round=each)
    back = stream.undone()
    assert pairs(back.first) == pairs(stream.last)
    assert pairs(back.last) == pairs(stream.first)
    assert all(pairs(back.at(r)) == pairs(stream.at(stream.rounds - r)) for r in (0, 1, 7, back.rounds))


def test_the_first_window_comes_again_from_the_same_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_engine, "WINDOW", 20)
    monkeypatch.setattr(rounds_engine, "MANY", 50)
    stream, root = rooted_graph(5, 30, 60, WARM + 100)
    seen = []
    inputs = {"edge": stream.first, "root": np.array([root])}
    engine = load("bfs", inputs).engine

    def run(stream):
        seen.append(pairs(np.stack(engine.external("edge").columns, 1)))
        return rounds_engine.engine_rounds(engine, stream)

    run(stream)
    again = rounds_engine.after_all(run, partial(rounds_engine.engine_back, engine), stream)
    assert len(again) == 20
    assert seen == [pairs(stream.first)] * 2
    assert rounds_engine.after_all(run, None, stream.until(WARM)) is None
    engine.close()
    with rounds_engine.session_of("bfs", inputs) as session:
        rounds_engine.session_rounds(session, stream)
        rounds_engine.session_back(session, stream.undone())
        assert pairs(np.array(list(session["edge"]))) == pairs(stream.first)


def test_rows_survive_their_way_to_the_table() -> None:
    row = row_of("w", "native", np.array([1000, 3000]), 4, 5 << 20, True, "so")
    assert from_json(to_json([row])) == [row]
    assert dataclasses.replace(row, right=False) != row
    assert row.rate == pytest.approx(1e6)
    assert json.loads(to_json([row]))[0]["engine_mb"] == 5


def test_an_absent_rival_is_named(monkeypatch, tmp_path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexit {rounds_rival.ABSENT}\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATHWAY_PYTHON", str(python))
    data = small_w10()
    with pytest.raises(NotMeasured, match="not installed"):
        rounds_rival.measured("reach", data, data["single"])


@pytest.mark.parametrize("name", rounds_rivals.CASES)
def test_rounds_beside_rivals_end_as_their_twins_do(name: str, monkeypatch) -> None:
    phases = ((1, 10), (5, 4))
    monkeypatch.setattr(rounds_rivals, "PHASES", phases)
    monkeypatch.setattr(rounds_rivals, "ROUNDS", 30)
    monkeypatch.setitem(rounds_rivals.CASES, name, dataclasses.replace(rounds_rivals.CASES[name], nodes=20, edges=40))
    stream, root = rounds_rivals.stream_of(name)
    twin = {
        "reach": partial(twins.reached_rows, root=root),
        "bfs": partial(twins.distance_rows, root=root),
        "components": twins.component_rows,
        "degrees": twins.distribution_rows,
    }[name]
    session, engine = rounds_rivals.by_session(name), rounds_rivals.by_engine(name)
    first, second = rounds_rivals.Run.of(session), rounds_rivals.Run.of(engine)
    rows = twin(20, stream.last)
    assert first.answer == second.answer
    assert first.answer[:2] == (len(rows), twins.checksum(rows))
    assert [len(calls) for calls in session["calls"]] == [10, 4] and len(first.median) == 2


SHELL = """#!/bin/sh
printf '7.5ms:\\tDataflow assembled\\n'
echo '[tuple][dist]  t=0  data=(3, 0)  diff=+1' >&2
echo '[tuple][dist]  t=0  data=(4, 1)  diff=+1' >&2
while read -r word relation rest; do
    [ "$word" = put ] && echo "(queued put)"
    [ "$word" = commit ] && printf '20µs:\\tCommitted & executed\\n'
done
echo '[tuple][dist]  t=2  data=(4, 1)  diff=-1' >&2
echo '[tuple][dist]  t=2  data=(4, 2)  diff=+1' >&2
"""


def test_flowlog_is_told_commits_and_tells_what_they_change(tmp_path) -> None:
    program = tmp_path / "program"
    program.write_text(SHELL)
    program.chmod(0o755)
    np.array([(0, -1, 3, 4), (1, 1, 5, 4), (2, -1, 3, 5)], "<i4").tofile(tmp_path / "changes.i32")
    found = rounds_flowlog.run(str(program), tmp_path, [(1, 1), (2, 1)])
    rows = np.array([(3, 0), (4, 2)])
    assert found["calls"] == [[20_000], [40_000]]
    assert found["load"] == 0.0075
    assert (found["rows"], found["check"], found["changes"]) == (2, twins.checksum(rows), 2)
    assert rounds_flowlog.answer(b"[tuple][reach]  t=0  data=(7)  diff=+1")["check"] == twins.checksum(np.array([[7]]))


def test_an_absent_compiler_of_flowlog_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("DLOG_WORKLOADS", str(tmp_path))
    monkeypatch.setenv("FLOWLOG", str(tmp_path / "absent"))
    np.array([(3, 4)], "<u4").tofile(tmp_path / "first.u32")
    with pytest.raises(NotMeasured, match="absent"):
        rounds_flowlog.command("components", tmp_path, 6, "1x1")
    assert (tmp_path / "edge.facts").read_text() == "3\t4\n"
    assert (tmp_path / "node.facts").read_text() == "0\n1\n2\n3\n4\n5\n"


def test_a_way_that_is_slow_is_not_repeated(monkeypatch, tmp_path) -> None:
    told = {"load": 0.1, "calls": [[5, 6]], "rows": 1, "check": 2, "changes": 3}
    counted = tmp_path / "counted"
    once = [sys.executable, "-c", f"open({str(counted)!r}, 'a').write('.'); print({json.dumps(told)!r})"]
    monkeypatch.setattr(rounds_rivals, "WAYS", {"slow": lambda *given: once})
    monkeypatch.setattr(rounds_rivals, "SLOW", 0.0)
    monkeypatch.setattr(rounds_rivals, "written", lambda name: (tmp_path, 0))
    assert list(rounds_rivals.best_of("bfs", Options((), (), 3, 60, None))) == ["slow"]
    assert counted.read_text() == "."


def test_all_workloads_can_be_named() -> None:
    assert "bfs-1k" in rounds.WORKLOADS
