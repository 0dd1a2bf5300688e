"""`dlog.graph` on Spark: the same answers as in one process, and as GraphFrames' namesakes where they are there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.bench import spark_graphframes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EDGES = [(i * 7 % 30, i * 11 % 30) for i in range(40)] + [(40, 41), (41, 42), (42, 40)]


def rows(answer: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in answer)


NAMES = ["connected_components", "strongly_connected_components", "triangle_count", "degrees", "pagerank"]


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_the_embedded_engine(spark: SparkSession, name: str) -> None:
    edges = spark.createDataFrame(EDGES, "src long, dst long")
    options = {"max_iterations": 3} if name == "pagerank" else {}
    on_spark = getattr(dlog.graph(edges, engine="spark"), name)(**options)
    assert rows(on_spark) == rows(getattr(dlog.graph(EDGES), name)(**options))


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
