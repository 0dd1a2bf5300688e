"""Inputs on their way from Spark's rows to the workers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import dlog
from dlog.engine.spark import inputs
from dlog.engine.spark.cutting import GATHERED_BYTES, NOTHING, lanes_of
from dlog.engine.spark.inputs import in_blocks
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PROGRAM = """.decl edge(x: number, y: number)
.input edge
.decl name(x: number, s: symbol)
.input name
.decl far(x: number, s: symbol)
far(x, s) :- edge(x, y), name(y, s).
.output far
"""


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_a_lane_leads_to_the_partition_of_its_rank(spark: SparkSession, workers: int) -> None:
    from pyspark.sql import functions as F

    lanes = lanes_of(workers)
    numbers = spark.createDataFrame([(lane,) for lane in lanes], "lane int").repartition(workers, "lane")
    found = {row.lane: row.rank for row in numbers.withColumn("rank", F.spark_partition_id()).collect()}
    assert [found[lane] for lane in lanes] == list(range(workers))


@pytest.mark.parametrize(("small", "tasks"), [(inputs.SMALL_BYTES, 2), (1 << 20, 3)])
def test_blocks_are_few_and_in_the_partition_of_their_owner(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, small: int, tasks: int
) -> None:
    from pyspark.sql import functions as F

    monkeypatch.setattr(inputs, "SMALL_BYTES", small)
    rows = 300_000
    edges = spark.range(rows).selectExpr("id x", "id y").repartition(3)
    names = spark.range(0).selectExpr("id x", "'' s")
    made = in_blocks(spark, compile_program(PROGRAM), {"edge": edges, "name": names}, 2)
    found = made.select("relation", "owner", F.spark_partition_id().alias("rank"), F.length("block").alias("size")).collect()
    blocks = [row for row in found if row.relation != NOTHING]
    assert all(row.owner == row.rank and row.relation == 0 for row in blocks)
    assert Counter(row.owner for row in blocks) == {0: tasks, 1: tasks}  # of some MB: cut at once, whatever Spark's batches
    assert rows * 8 < sum(row.size for row in blocks) < rows * 9 < GATHERED_BYTES


def test_rows_of_an_input_reach_their_owners_without_an_exchange(spark: SparkSession) -> None:
    text = ".decl e(x: number, y: number)\n.input e\n.decl r(x: number, y: number)\nr(x, y + 1) :- e(x, y).\n.output r\n"
    result: Any = dlog.run(text, {"e": spark.range(1000).selectExpr("id x", "id y")}, engine="spark", workers=2)
    assert (result["r"].rows, result.rows_sent) == (1000, 0)
    assert sorted(result["r"])[:2] == [(0, 1), (1, 2)]


def test_a_mistake_in_one_partition_of_many_is_the_users(spark: SparkSession) -> None:
    edges = spark.range(1000).repartition(4).selectExpr("id x", "case when id = 777 then null else id end y")
    with pytest.raises(DlogError) as caught:
        dlog.run(PROGRAM, {"edge": edges, "name": spark.range(1).selectExpr("id x", "'a' s")}, engine="spark", workers=2)
    (mistake,) = caught.value.diagnostics
    assert (mistake.code, mistake.message) == ("bad-fact", "input of edge, y: the column has nulls")
