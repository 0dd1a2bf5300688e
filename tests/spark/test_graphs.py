"""Graphs in Spark: the same answers as of arrays in one process, and as GraphFrames' namesakes where they are there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.bench import spark_graphframes
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EDGES = [(i * 7 % 30, i * 11 % 30) for i in range(40)] + [(40, 41), (41, 42), (42, 40), (42, 40), (5, 5)]
WEIGHTS = [i * 13 % 7 for i in range(len(EDGES))]
QUESTIONS: dict[str, Any] = {
    "reachable": lambda g, v: g.reachable([v(7), v(40)]),
    "bfs": lambda g, v: g.bfs(v(7)),
    "to landmarks": lambda g, v: g.shortest_paths([v(7), v(40)]),
    "weighted paths": lambda g, v: g.shortest_paths(sources=v(7), weight="weight"),
    "components": lambda g, v: g.connected_components(),
    "strong components": lambda g, v: g.strongly_connected_components(),
    "triangles": lambda g, v: g.triangle_count(),
    "clustering": lambda g, v: g.clustering(),
    "degrees": lambda g, v: g.degrees(),
    "degree distribution": lambda g, v: g.degree_distribution(),
    "core numbers": lambda g, v: g.core_numbers(),
    "2-core": lambda g, v: g.k_core(2),
    "2-truss": lambda g, v: g.k_truss(2),
    "3-truss": lambda g, v: g.k_truss(3),
    "labels": lambda g, v: g.label_propagation(3),
    "pagerank": lambda g, v: g.pagerank(3, weight="weight"),
    "pagerank to a tolerance": lambda g, v: g.pagerank(tolerance=1e-4),
    "independent set": lambda g, v: g.maximal_independent_set(seed=5),
}
NAMED = ["components", "weighted paths", "strong components", "pagerank", "core numbers", "3-truss", "independent set"]
MOTIFS = [
    "(a)-[e]->(b); !(b)-[]->(a)",
    "(a)-[e]->(b); (b)-[]->(c); (c)-[]->(a)",
    "(a)-[e*1..2]->(b); (b)-[]->(c)",
    "(a)-[*]->(b)",
]


def integer(i: int) -> int:
    return i


def negative(i: int) -> int:
    return 3 * i - 20


def word(i: int) -> str:
    return f"v{i:02}"


def rows(answer: Any) -> list[Any]:
    return sorted((tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in answer), key=repr)


def table(named: Any) -> dict[str, list[Any]]:
    return {"src": [named(a) for a, _ in EDGES], "dst": [named(b) for _, b in EDGES], "weight": WEIGHTS}


def frame(spark: SparkSession, named: Any) -> DataFrame:
    type = "string" if named is word else "int"
    given = table(named)
    listed = list(zip(*given.values(), strict=True))
    return spark.createDataFrame(listed, f"src {type}, dst {type}, weight int").repartition(3).cache()


@pytest.fixture(scope="module")
def graph(spark: SparkSession) -> Any:
    """Graphs that many tests ask: made, and their vertices numbered, once."""
    return cache(lambda named, directed=True: dlog.graph(frame(spark, named), directed=directed))


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_about_integers_are_those_of_the_embedded_engine(graph: Any, question: str) -> None:
    ask = QUESTIONS[question]
    for directed in (True, False) if question in ("bfs", "pagerank") else (True,):
        on_spark = ask(graph(negative, directed), negative)
        here = ask(dlog.graph(table(negative), directed=directed), negative)
        assert on_spark.df.columns == here.table.column_names
        assert rows(on_spark) == rows(here)
        assert len(on_spark) == len(here)


@pytest.mark.parametrize("question", NAMED)
def test_answers_about_strings_are_those_of_the_embedded_engine(graph: Any, question: str) -> None:
    ask = QUESTIONS[question]
    on_spark, here = ask(graph(word), word), ask(dlog.graph(table(word)), word)
    assert rows(on_spark) == rows(here)
    assert [str(c) for c in on_spark.table.schema.names] == here.table.schema.names


def test_an_answer_is_the_same_by_spark_and_brought_here(graph: Any) -> None:
    answer = graph(word).connected_components()
    assert rows(answer.df.collect()) == rows(answer) == rows(dlog.graph(table(word)).connected_components())


@pytest.mark.parametrize("named", [negative, word])
def test_motifs_are_those_of_the_embedded_engine(graph: Any, named: Any) -> None:
    on_spark, here = graph(named), dlog.graph(table(named))
    for motif in MOTIFS:
        found, wanted = on_spark.find(motif), here.find(motif)
        assert found.df.columns == wanted.table.column_names
        assert rows(found) == rows(wanted)
        assert len(found) == len(wanted)
    if named is word:
        found, wanted = graph(named, False).find(MOTIFS[1]), dlog.graph(table(named), directed=False).find(MOTIFS[1])
        assert rows(found) == rows(wanted)


def test_a_table_of_vertices_brings_those_without_edges_and_their_attributes(spark: SparkSession) -> None:
    vertices = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3), ("d", 4)], "id string, age long")
    edges = spark.createDataFrame([("a", "b", "x"), ("b", "c", "y")], "src string, dst string, kind string")
    graph = dlog.graph(vertices, edges)
    assert len(graph) == 4 and "4 vertices" in repr(graph)
    assert rows(graph.connected_components()) == [("a", "a"), ("b", "a"), ("c", "a"), ("d", "d")]
    assert rows(graph.bfs("b").vertices().collect()) == [("a", 1, None), ("b", 2, 0), ("c", 3, 1), ("d", 4, None)]
    assert rows(graph.reachable("b").vertices().collect()) == [("a", 1, False), ("b", 2, True), ("c", 3, True), ("d", 4, False)]
    assert graph.bfs("b").to_networkx().nodes["c"] == {"age": 3, "distance": 1}
    assert isinstance(graph.to_networkx(), nx.DiGraph)
    assert rows(graph.find("(a)-[]->(b)")) == [
        ({"id": "a", "age": 1}, {"id": "b", "age": 2}),
        ({"id": "b", "age": 2}, {"id": "c", "age": 3}),
    ]
    graph.release()


def test_columns_may_have_any_names(spark: SparkSession) -> None:
    vertices = spark.createDataFrame([(1, 7), (2, 8), (3, 9)], "id long, `an``age.` long")
    edges = spark.createDataFrame([(1, 2, 5), (2, 3, 6)], "src long, dst long, `a``b.c` long")
    graph = dlog.graph(vertices, edges)
    assert rows(graph.bfs(1).vertices().collect()) == [(1, 7, 0), (2, 8, 1), (3, 9, 2)]
    assert [row[1]["a`b.c"] for row in rows(graph.find("(a)-[e]->(b)"))] == [5, 6]
    assert rows(graph.shortest_paths(sources=1, weight="a`b.c")) == [(1, 1, 0), (1, 2, 5), (1, 3, 11)]
    graph.release()


def test_a_graph_in_spark_can_be_made_to_change(spark: SparkSession) -> None:
    edges = spark.createDataFrame([("a", "b"), ("c", "d")], "here string, there string")
    with dlog.graph(edges, src="here", dst="there").live() as live:
        components = live.connected_components()
        live.add_edges(spark.createDataFrame([("b", "c")], "here string, there string"))
        live.commit()
        assert rows(components) == [("a", "a"), ("b", "a"), ("c", "a"), ("d", "a")]


MISTAKES: dict[str, tuple[str, str, list[Any], list[Any]]] = {
    "the edge table has no column `dst`": ("id long", "src long, to long", [(1,)], [(1, 1)]),
    "the column `src` of the edge table has nulls": ("id long", "src long, dst long", [(1,)], [(None, 1)]),
    "the column `id` of the vertex table has nulls": ("id long", "src long, dst long", [(1,), (None,)], [(1, 1)]),
    "the vertex table has 1 twice": ("id long", "src long, dst long", [(1,), (1,)], [(1, 1)]),
    "`src` of the edges: there is no vertex 2": ("id long", "src long, dst long", [(1,)], [(1, 1), (2, 1)]),
    "`dst` of the edges: there is no vertex 'b'": ("id string", "src string, dst string", [("a",)], [("a", "b")]),
    "ids of different types: `src` is string, `dst` is bigint": ("id long", "src string, dst long", [(1,)], [("a", 1)]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_what_is_no_graph_is_refused(spark: SparkSession, message: str) -> None:
    vertex, edge, vertices, edges = MISTAKES[message]
    asked = ("__len__", "connected_components", "core_numbers", "live")
    for ask in map(methodcaller, asked):
        with pytest.raises(DlogError) as caught:
            ask(dlog.graph(spark.createDataFrame(vertices, vertex), spark.createDataFrame(edges, edge)))
        assert caught.value.diagnostics[0].message.startswith(message)


def test_rows_that_differ_each_time_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = dlog.graph(spark.createDataFrame([(1,)], "id long"), spark.createDataFrame([(1, 2)], "src long, dst long"))
    monkeypatch.setattr("dlog.graphs.frames.source_frames._check", lambda *given: None)  # as if nothing was found
    with pytest.raises(DlogError, match="when Spark read both again they had none"):
        graph.connected_components()


WEIGHTS_REFUSED: dict[str, tuple[str, Any]] = {
    "the weight column `weight` has a negative weight: -1": ("long", -1),
    "the weight column `weight` has nulls": ("long", None),
    "the weight column `weight` is of type string": ("string", "x"),
    "the weight column `weight` has values that are not numbers": ("double", float("nan")),
}


@pytest.mark.parametrize("message", WEIGHTS_REFUSED)
def test_what_is_no_weight_is_refused(spark: SparkSession, message: str) -> None:
    type, value = WEIGHTS_REFUSED[message]
    graph = dlog.graph(spark.createDataFrame([(1, 2, value)], f"src long, dst long, weight {type}"))
    with pytest.raises(DlogError) as caught:
        graph.shortest_paths(1, weight="weight")
    assert caught.value.diagnostics[0].message == message


def test_vertices_that_are_not_there_are_refused(spark: SparkSession) -> None:
    graph = dlog.graph(spark.createDataFrame([(1, 2)], "src long, dst long"))
    for stray in (3, "a", 2**70):
        with pytest.raises(DlogError, match=f"sources: there is no vertex {stray!r}"):
            graph.bfs([1, stray])
    assert rows(graph.bfs([1, 2])) == [(1, 0), (2, 0)]


def test_an_empty_graph_has_empty_answers(spark: SparkSession) -> None:
    graph = dlog.graph(spark.createDataFrame([], "src long, dst long"))
    for question in (
        "components",
        "strong components",
        "pagerank to a tolerance",
        "core numbers",
        "3-truss",
        "independent set",
    ):
        assert rows(QUESTIONS[question](graph, integer)) == []


LARGE = """
import json
import dlog
from dlog.engine.spark.application import start
from pyspark.sql import functions as F

VERTICES = 400_000
limit = {"spark.driver.maxResultSize": "1m", "spark.sql.autoBroadcastJoinThreshold": "256k", "spark.ui.enabled": "false"}
spark = start("local[2]", limit)
ids = spark.range(VERTICES)
found = {}
for name, of in (("integers", F.col), ("strings", lambda c: F.concat(F.lit("vertex-"), F.col(c).cast("string")))):
    edges = ids.selectExpr("id", "(id * 7 + 3) % 1000 + id - id % 1000 as other")
    edges = edges.select(of("id").alias("src"), of("other").alias("dst"))
    answer = dlog.graph(edges).connected_components()
    found[name] = [len(answer), answer.df.select("component").distinct().count()]
try:
    answer.df.collect()
except Exception as error:
    found["collected"] = "maxResultSize" in str(error)
print(json.dumps(found))
"""


def test_a_graph_larger_than_the_driver_may_collect_is_numbered_and_answered(tmp_path: Path) -> None:
    """400,000 vertices where Spark lets the driver collect a mebibyte: blocks of 1,000 that are closed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", LARGE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    figures = json.loads(done.stdout)
    assert figures["collected"]
    assert figures["integers"] == figures["strings"]
    assert figures["integers"][0] == 400_000


def test_an_answer_is_a_graphframe_with_its_columns(spark: SparkSession) -> None:
    if lacking := spark_graphframes.lacking():
        pytest.skip(lacking)
    vertices = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3), ("d", 4)], "id string, age long")
    edges = spark.createDataFrame([("a", "b", "x"), ("b", "c", "y")], "src string, dst string, kind string")
    made = dlog.graph(vertices, edges, engine="spark").bfs("a").graphframe
    assert sorted(tuple(row) for row in made.vertices.select("id", "age", "distance").collect()) == [
        ("a", 1, 0),
        ("b", 2, 1),
        ("c", 3, 2),
        ("d", 4, None),
    ]
    assert sorted(tuple(row) for row in made.edges.collect()) == [("a", "b", "x"), ("b", "c", "y")]
    assert {row.id: row.inDegree for row in made.inDegrees.collect()} == {"b": 1, "c": 1}


def test_a_machine_without_graphframes_says_so(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = dlog.graph(spark.createDataFrame(EDGES, "src long, dst long")).degrees()
    monkeypatch.setitem(sys.modules, "graphframes", None)
    with pytest.raises(DlogError, match="there is no GraphFrames"):
        _ = answer.graphframe


def groups(members: Any) -> set[frozenset[Any]]:
    """The vertices that have the same label."""
    found: dict[Any, set[Any]] = {}
    for vertex, label in members:
        found.setdefault(label, set()).add(vertex)
    return {frozenset(group) for group in found.values()}


def test_answers_are_those_of_graphframes_and_of_networkx(spark: SparkSession) -> None:
    if lacking := spark_graphframes.lacking():
        pytest.skip(lacking)
    from graphframes import GraphFrame

    edges = frame(spark, integer)
    ends = edges.selectExpr("explode(array(src, dst)) as id").distinct()
    theirs, ours = GraphFrame(ends, edges), dlog.graph(GraphFrame(ends, edges))
    here = nx.DiGraph(EDGES)
    assert isinstance(ours, dlog.graphs.SparkGraph)

    components = groups(theirs.connectedComponents(algorithm="graphx").select("id", "component").collect())
    assert groups(ours.connected_components()) == components == {frozenset(c) for c in nx.weakly_connected_components(here)}
    assert groups(ours.strongly_connected_components()) == {frozenset(c) for c in nx.strongly_connected_components(here)}
    distances = theirs.shortestPaths(landmarks=[7, 40]).select("id", "distances").collect()
    pairs = {(landmark, row.id, far) for row in distances for landmark, far in row.distances.items()}
    assert set(ours.shortest_paths([7, 40])) == pairs
    labels = {row.id: row.label for row in theirs.labelPropagation(3, algorithm="graphx").collect()}
    assert dict(ours.label_propagation(3)) == labels
    ins = {row.id: row.inDegree for row in theirs.inDegrees.collect()}
    assert {id: n for id, n, _, _ in ours.degrees() if n} == ins
    cores = nx.core_number(nx.Graph([e for e in EDGES if e[0] != e[1]]))
    assert {vertex: k for vertex, k in ours.core_numbers() if k} == {vertex: k for vertex, k in cores.items() if k}
    ranks = dict(ours.pagerank(tolerance=1e-9))
    settled = {row.id: row.pagerank for row in theirs.pageRank(resetProbability=0.15, tol=1e-9).vertices.collect()}
    assert max(abs(ranks[v] * len(ranks) - settled[v]) for v in ranks) < 1e-5
    motif = "(a)-[e]->(b); !(b)-[]->(a)"
    assert rows(ours.find(motif).df.select("a.id", "b.id").distinct().collect()) == rows(
        theirs.find(motif).select("a.id", "b.id").distinct().collect()
    )
