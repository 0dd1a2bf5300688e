"""`dlog.graph` on Spark: the same answers as in one process, and as GraphFrames' namesakes where they are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import dlog

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
