"""dlog, GraphFrames' own algorithms, loops of DataFrames and Spark's recursive CTE give the same answers on a small graph.

GraphFrames needs its JVM part, from $DLOG_GRAPHFRAMES or Maven (tests/bench/spark_graphframes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pytest

import dlog
from tests.bench import inputs, spark_graphframes
from tests.bench.process import NotMeasured
from tests.bench.spark import RIVALS, forget, given_up, same
from tests.bench.spark_workloads import COLUMNS, WORKLOADS, rmat_graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

CASES = [(name, rival) for rival, solvers in RIVALS.items() for name in solvers]


def small(name: str) -> dict[str, np.ndarray]:
    """Data for a workload: an R-MAT graph with parallel paths, cycles and vertices without edges, or a tree."""
    if name == "same_generation":
        return {"parent": inputs.random_tree(np.random.default_rng(3), 4)}
    graph = rmat_graph(6, 150)
    if name == "triangles":
        return {**graph, "edge": np.unique(np.sort(graph["edge"], axis=1), axis=0)}
    if name == "shortest_paths":
        return {**graph, "edge": np.column_stack([graph["edge"], np.arange(150) % 17 + 1])}
    return graph


def frames(spark: SparkSession, data: Mapping[str, np.ndarray]) -> dict[str, DataFrame]:
    found = {}
    for name, rows in data.items():
        rows = rows if rows.ndim == 2 else rows[:, None]
        schema = ", ".join(f"{c} bigint" for c in COLUMNS[name][: rows.shape[1]])
        found[name] = spark.createDataFrame(rows.tolist(), schema).cache()
    return found


@pytest.mark.parametrize(("name", "rival"), CASES, ids=lambda value: value)
def test_rivals_agree_with_dlog(spark: SparkSession, name: str, rival: str) -> None:
    if rival.startswith("Graph") and (lacking := spark_graphframes.lacking()):
        pytest.skip(lacking)
    workload = WORKLOADS[name]
    given = frames(spark, small(name))
    solver: Callable[[Mapping[str, DataFrame]], DataFrame] = RIVALS[rival][name]
    result = dlog.run(workload.program(), workload.inputs(given), engine="spark", spark=spark)
    ours, theirs = workload.fingerprint(result[workload.output].df), workload.fingerprint(solver(given))
    assert same(ours, theirs), (ours, theirs)
    assert all(figure > 0 for figure in ours.values() if figure != ours.get("hashes"))


def test_answers_that_differ_are_told_apart(spark: SparkSession) -> None:
    right = spark.createDataFrame([(1, 1), (2, 1), (3, 3)], "id bigint, label bigint")
    other = spark.createDataFrame([(1, 1), (2, 3), (3, 3)], "id bigint, label bigint")
    renamed = spark.createDataFrame([(1, 7), (2, 7), (3, 9)], "id bigint, label bigint")
    rows, groups, ranks = (WORKLOADS[n].fingerprint for n in ("bfs", "components", "pagerank"))
    assert not same(rows(right), rows(other))
    assert not same(groups(right), groups(other))
    assert same(groups(right), groups(renamed))
    assert not same(ranks(right), ranks(renamed))


def test_a_rival_that_takes_too_long_is_given_up_and_leaves_nothing_in_memory(spark: SparkSession) -> None:
    given = {"vertex": spark.range(10).cache()}
    forget(spark, given)
    held = spark.sparkContext._jsc.getPersistentRDDs().size()
    spark.range(1000).localCheckpoint()
    with pytest.raises(NotMeasured, match="> 1 s"), given_up(spark, 1):
        spark.range(10**13).selectExpr("sum(sqrt(id))").collect()
    forget(spark, given)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == held == 1
