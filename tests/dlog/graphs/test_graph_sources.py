"""What graphs are made of, what results become, and what is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError, render_all

EDGES = [("a", "b"), ("b", "c"), ("d", "d")]
REACHED = [("a",), ("b",), ("c",)]


class Frame:
    """As much of a DataFrame of Spark as a graph needs."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.sparkSession = self

    def toArrow(self) -> pa.Table:
        return self._table

    def createDataFrame(self, table: pa.Table) -> Frame:
        return Frame(table)


class Framed:
    """As much of a GraphFrame as a graph needs."""

    def __init__(self, vertices: pa.Table, edges: pa.Table) -> None:
        self.vertices, self.edges = Frame(vertices), Frame(edges)


def columns(edges: list[tuple[Any, Any]]) -> dict[str, list[Any]]:
    return {"src": [a for a, _ in edges], "dst": [b for _, b in edges]}


TABLE = pa.table(columns(EDGES))
SOURCES: dict[str, Any] = {
    "tuples": EDGES,
    "a dict of columns": columns(EDGES),
    "Arrow": TABLE,
    "Arrow in pieces": pa.concat_tables([TABLE[:1], TABLE[1:]]),
    "a dictionary": pa.table({name: TABLE[name].dictionary_encode() for name in TABLE.column_names}),
    "NetworkX": nx.DiGraph(EDGES),
    "a pair of arrays": tuple(np.array(column) for column in columns(EDGES).values()),
    "an array": np.array(EDGES),
    "an array of objects": np.array(EDGES, dtype=object),
    "GraphFrames": Framed(pa.table({"id": ["a", "b", "c", "d"]}), TABLE),
    "vertices and edges": (pa.table({"id": ["d", "c", "b", "a"]}), TABLE),
    "a DataFrame of Spark": Frame(TABLE),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_graphs_are_made_of(source: Any) -> None:
    graph = dlog.graph(source)
    assert (len(graph), len(graph.numbered.src), graph.directed) == (4, 3, True)
    assert list(graph.reachable("a")) == REACHED
    assert graph.vertices.to_pydict() == {"id": ["a", "b", "c", "d"]}
    assert graph.edges.to_pydict() == columns(EDGES)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_graphs_are_made_of_data_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    edges = frames.DataFrame({**columns(EDGES), "w": [1, 2, 3]})
    graph = dlog.graph(frames.DataFrame({"id": ["a", "b", "c", "d"], "x": [1, 2, 3, 4]}), edges)
    assert list(graph.reachable("a")) == REACHED
    assert graph.edges.column_names == ["src", "dst", "w"]
    frame = getattr(graph.bfs("a"), f"to_{library}")()
    assert type(frame).__module__.startswith(library)
    assert list(frame["distance"]) == [0, 1, 2]


INTEGERS: list[list[Any]] = [[10, 5, 7], [2**62, -(2**62), 0], [2**70, 1, 2]]
OTHERS: list[list[Any]] = [["z", "ä", ""], [(0, 1), (0, 0), (1, 0)], [1, "one", 1j], [0.5, -1.5, 2.5], [True, 2, "x"]]


@pytest.mark.parametrize("ids", [*INTEGERS, *OTHERS])
def test_any_value_can_be_a_vertex(ids: list[Any]) -> None:
    a, b, c = ids
    graph = dlog.graph([(a, b), (b, c)])
    found = graph.bfs([a]).to_networkx()
    assert dict(found.nodes(data="distance")) == {a: 0, b: 1, c: 2}
    assert len(graph.bfs(a).table) == 3


MIXED: list[list[Any]] = [
    [1, "1", (1,)],
    [(1, "a"), ("a", 1), (2, ("b",))],
    [frozenset({1}), frozenset({2}), None.__class__],
    ["a", b"a", "b'a'"],
    [2.5, 1, 3],
]


@pytest.mark.parametrize("ids", [*INTEGERS, *OTHERS, *MIXED])
def test_ids_come_back_as_they_went_in(ids: list[Any]) -> None:
    a, b, c = ids
    graph = dlog.graph([(a, b), (b, c)])

    def typed(rows: Any) -> set[Any]:
        return {tuple((type(value), value) for value in row) for row in rows}

    assert typed(graph.bfs(a)) == typed([(a, 0), (b, 1), (c, 2)])
    assert typed(graph.shortest_paths([c])) == typed([(c, a, 2), (c, b, 1), (c, c, 0)])
    found = [tuple(row) for row in graph.find("(x)-[e]->(y)")]
    assert typed((e["src"], e["dst"]) for _, e, _ in found) == typed([(a, b), (b, c)])
    assert typed((x["id"], y["id"]) for x, _, y in found) == typed([(a, b), (b, c)])
    with graph.live() as live:
        assert typed(live.bfs(a)) == typed([(a, 0), (b, 1), (c, 2)])
    for table in (graph.bfs(a).table, graph.reachable([c]).table):
        assert table["id"].type == graph.vertices["id"].type
    assert len(set(map(str, graph.vertices["id"].to_pylist()))) == 3


def test_bytes_are_no_string() -> None:
    with pytest.raises(DlogError, match="there is no vertex b'a'"):
        dlog.graph([("a", "b")]).bfs(b"a")


def test_columns_can_have_other_names() -> None:
    graph = dlog.graph({"from": [1], "to": [2], "src": ["x"]}, src="from", dst="to")
    assert graph.edges.num_rows == 1
    assert list(graph.reachable(1)) == [(1,), (2,)]
    graph = dlog.graph({"name": [2, 1]}, {"src": [1], "dst": [2]}, id="name")
    assert list(graph.reachable(1)) == [(1,), (2,)]


def test_undirected_graphs() -> None:
    assert not dlog.graph(nx.path_graph(3)).directed
    assert len(dlog.graph(nx.path_graph(3)).reachable(2)) == 3
    assert len(dlog.graph(nx.path_graph(3), directed=True).reachable(2)) == 1
    assert len(dlog.graph([(0, 1), (1, 2)], directed=False).reachable(2)) == 3


def test_least_ids_are_least_in_the_order_of_ids() -> None:
    edges = [(9, 10), (10, 2)]
    assert {c for _, c in dlog.graph(edges).connected_components()} == {2}
    vertices = dlog.graph([10, 9, 2], edges)
    assert list(vertices.connected_components()) == [(2, 2), (9, 2), (10, 2)]


# ------------------------------------------------------------------------------------------------------------------- results


def test_results_with_the_vertices_and_their_attributes() -> None:
    graph = dlog.graph({"id": ["b", "c", "a"], "age": [2, 3, 1]}, [("a", "b")])
    assert graph.bfs("a").vertices().to_pydict() == {"id": ["a", "b", "c"], "age": [1, 2, 3], "distance": [0, 1, None]}
    assert graph.reachable("b").vertices().to_pydict() == {
        "id": ["a", "b", "c"],
        "age": [1, 2, 3],
        "found": [False, True, False],
    }


def test_results_as_attributes_of_networkx() -> None:
    given = nx.Graph([("a", "b"), ("c", "d")])
    given.add_node("a", age=7)
    found = dlog.graph(given).connected_components().to_networkx()
    assert dict(found.nodes(data=True)) == {
        "a": {"age": 7, "component": "a"},
        "b": {"component": "a"},
        "c": {"component": "c"},
        "d": {"component": "c"},
    }
    assert "component" not in given.nodes["a"]
    assert dlog.graph(given).bfs("a").to_networkx().nodes["c"] == {}
    distances = dlog.graph(given).shortest_paths(["a", "b"]).to_networkx()
    assert distances.nodes["b"] == {"distances": {"a": 1, "b": 0}}
    found = dlog.graph(given).reachable("c").to_networkx()
    assert dict(found.nodes(data="found")) == {"a": None, "b": None, "c": True, "d": True}


def test_trusses_as_graphs_of_networkx() -> None:
    edges = [(1, 2), (2, 3), (1, 3), (3, 4)]
    truss = dlog.graph(edges).k_truss(3).to_networkx()
    assert set(truss.edges) == {(1, 2), (2, 3), (1, 3)}
    multi = dlog.graph([*edges, (2, 1), (2, 1)]).k_truss(3).to_networkx()
    assert sorted(multi.edges()) == [(1, 2), (1, 3), (2, 1), (2, 1), (2, 3)]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_graphs_become_graphs_of_networkx(kind: Any) -> None:
    given = kind()
    given.add_node(5, color="red")
    given.add_edges_from([(1, 2, {"w": 3}), (2, 2, {"w": 4}), (2, 3, {})])
    if given.is_multigraph():
        given.add_edge(1, 2, w=9)
    graph = dlog.graph(given)
    copy = dlog.graph(graph.vertices, graph.edges, directed=graph.directed).to_networkx()
    assert type(copy) is type(given)
    assert nx.utils.graphs_equal(copy, given) or sorted(copy.edges(data="w"), key=str) == sorted(given.edges(data="w"), key=str)
    assert copy.nodes[5] == {"color": "red"}


def test_attributes_called_like_ids_keep_apart() -> None:
    given = nx.DiGraph()
    given.add_node(1, id="one")
    given.add_edge(1, 2, src="x")
    assert dlog.graph(given).vertices.column_names == ["id", "id_"]
    assert dlog.graph(given).edges.column_names == ["src", "dst", "src_"]


def test_results_become_data_frames_of_the_session_the_graph_came_from() -> None:
    graph = dlog.graph(Framed(pa.table({"id": [1, 2]}), pa.table({"src": [1], "dst": [2]})))
    assert graph.bfs(1).df.toArrow().to_pydict() == {"id": [1, 2], "distance": [0, 1]}
    assert graph.find("(a)-[]->(b)").df.toArrow().num_rows == 1


def test_the_programs_are_part_of_the_library() -> None:
    from dlog.graphs.library import names

    assert names() == [
        "bfs",
        "clustering",
        "connected_components",
        "core",
        "degrees",
        "k_core",
        "k_truss",
        "label_propagation",
        "maximal_independent_set",
        "pagerank",
        "reachability",
        "shortest_paths",
        "strongly_connected_components",
        "triangle_count",
        "triangle_support",
        "truss",
    ]


# ------------------------------------------------------------------------------------------------------------------- refused


def weighted(*weights: Any) -> dlog.Graph:
    return dlog.graph({"src": [1] * len(weights), "dst": [2] * len(weights), "w": list(weights)})


REFUSED: dict[str, tuple[Any, str]] = {
    "no graph": (
        lambda: dlog.graph(3),
        """\
error: a graph cannot be made of an int
  = give a table of edges, vertices and edges, a pair of arrays, a list of tuples, a NetworkX graph or a GraphFrame""",
    ),
    "no column": (
        lambda: dlog.graph({"srcs": [1], "dst": [2]}),
        """\
error: the edge table has no column `src`
  = it has `srcs`, `dst`
  = did you mean `srcs`?""",
    ),
    "no id": (
        lambda: dlog.graph({"x": [1]}, [(1, 1)]),
        """\
error: the vertex table has no column `id`
  = it has `x`""",
    ),
    "null": (
        lambda: dlog.graph({"src": [1, None], "dst": [2, 3]}),
        """\
error: the column `src` of the edge table has nulls
  = every vertex needs an id""",
    ),
    "bad tuple": (
        lambda: dlog.graph([(1, 2), (1,)]),
        """\
error: edge 2 is not a tuple like the others: (1,)
  = edges are (src, dst) or (src, dst, weight), all of them alike""",
    ),
    "arrays": (
        lambda: dlog.graph((np.arange(2), np.arange(3))),
        """\
error: arrays of 2 and 3 ends are no edges""",
    ),
    "not hashable": (
        lambda: dlog.graph([([1], [2])]),
        """\
error: a vertex cannot be named so: unhashable type: 'list'
  = ids of vertices are hashable""",
    ),
    "None": (
        lambda: dlog.graph([(1, None)]),
        """\
error: a vertex cannot be named None
  = every vertex needs an id""",
    ),
    "twice": (
        lambda: dlog.graph([1, 2, 1], [(1, 2)]),
        """\
error: the vertex table has 1 twice
  = ids of vertices are unique""",
    ),
    "no such end": (
        lambda: dlog.graph([1, 2], [(1, 3)]),
        """\
error: `dst` of the edges: there is no vertex 3
  = the graph has the vertices of its vertex table, or, without one, the ends of its edges""",
    ),
    "no such source": (
        lambda: dlog.graph(EDGES).bfs(["a", "x"]),
        """\
error: sources: there is no vertex 'x'
  = the graph has the vertices of its vertex table, or, without one, the ends of its edges""",
    ),
    "source of another type": (
        lambda: dlog.graph(EDGES).reachable(7),
        """\
error: sources: there is no vertex 7
  = the graph has the vertices of its vertex table, or, without one, the ends of its edges""",
    ),
    "no such landmark": (
        lambda: dlog.graph([(1, (2, 3))]).shortest_paths([1, 4]),
        """\
error: landmarks: there is no vertex 4
  = the graph has the vertices of its vertex table, or, without one, the ends of its edges""",
    ),
    "landmarks or sources": (
        lambda: dlog.graph(EDGES).shortest_paths(),
        """\
error: give exactly one of `landmarks` and `sources`""",
    ),
    "no weight": (
        lambda: weighted(1).shortest_paths(1, weight="weight"),
        """\
error: the edge table has no column `weight`
  = it has `w`""",
    ),
    "negative weight": (
        lambda: weighted(1, -2, 3).shortest_paths(1, weight="w"),
        """\
error: the weight column `w` has a negative weight: -2
  = weights only add up""",
    ),
    "negative weight of a rank": (
        lambda: weighted(1.5, -0.5).pagerank(weight="w"),
        """\
error: the weight column `w` has a negative weight: -0.5
  = weights only add up""",
    ),
    "weight of text": (
        lambda: weighted("x").shortest_paths(1, weight="w"),
        """\
error: the weight column `w` is of type string
  = weights are numbers""",
    ),
    "null weight": (
        lambda: weighted(1, None).shortest_paths(1, weight="w"),
        """\
error: the weight column `w` has nulls
  = weights are numbers""",
    ),
    "weight that is not a number": (
        lambda: weighted(1.0, float("nan")).shortest_paths(1, weight="w"),
        """\
error: the weight column `w` has values that are not numbers
  = weights are numbers""",
    ),
    "k": (
        lambda: dlog.graph(EDGES).k_core(0),
        """\
error: `k` must be a whole number of at least 1, not 0""",
    ),
    "k of a truss": (
        lambda: dlog.graph(EDGES).k_truss(1),
        """\
error: `k` must be a whole number of at least 2, not 1""",
    ),
    "no steps": (
        lambda: dlog.graph(EDGES).label_propagation(0),
        """\
error: `max_iterations` must be a whole number of at least 1, not 0""",
    ),
    "half a step": (
        lambda: dlog.graph(EDGES).pagerank(1.5),
        """\
error: `max_iterations` must be a whole number of at least 1, not 1.5""",
    ),
    "tolerance": (
        lambda: dlog.graph(EDGES).pagerank(tolerance=0),
        """\
error: `tolerance` must be a number above 0, not 0""",
    ),
    "damping": (
        lambda: dlog.graph(EDGES).pagerank(damping=1.5),
        """\
error: `damping` must be a number from 0 to 1, not 1.5""",
    ),
    "seed": (
        lambda: dlog.graph(EDGES).maximal_independent_set("x"),
        """\
error: `seed` must be a whole number, not 'x'""",
    ),
    "several rows": (
        lambda: dlog.graph(EDGES).shortest_paths("a").vertices(),
        """\
error: the result (landmark, id, distance) does not have one row for a vertex
  = `table` has its rows""",
    ),
    "engine": (
        lambda: dlog.graph(EDGES, engine="quantum"),
        """\
error: graphs cannot be analysed by the engine 'quantum'
  = there are `embedded` and `spark`""",
    ),
}


@pytest.mark.parametrize(("call", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_mistakes(call: Any, expected: str) -> None:
    with pytest.raises(dlog.DlogError) as error:
        call()
    assert render_all(error.value.diagnostics) == expected


def test_ranks_that_do_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.graphs.iterated.LIMIT", 3)
    graph = dlog.graph([(0, 1), (1, 2), (2, 0), (3, 0)])
    with pytest.raises(dlog.DlogError, match="ranks still change by more than 1e-09 after 3 iterations"):
        graph.pagerank(tolerance=1e-9)
    assert len(graph.pagerank(tolerance=1e-9, max_iterations=3)) == 4


def test_no_spark() -> None:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        pass
    else:
        if SparkSession.getActiveSession() is not None:
            pytest.skip("there is a session")
    with pytest.raises(dlog.DlogError, match="there is no Spark session to make a DataFrame in"):
        _ = dlog.graph(EDGES).bfs("a").df
