"""Inputs on their way from Spark's rows to the workers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import dlog
from dlog.engine.spark import inputs, job
from dlog.engine.spark.cutting import GATHERED_BYTES, NOTHING, lanes_of
from dlog.engine.spark.inputs import in_blocks
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

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


@pytest.mark.parametrize(("small", "tasks"), [(inputs.SMALL_INPUT_BYTES_PER_WORKER, 2), (1 << 20, 3)])
def test_blocks_are_few_and_in_the_partition_of_their_owner(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, small: int, tasks: int
) -> None:
    from pyspark.sql import functions as F

    monkeypatch.setattr(inputs, "SMALL_INPUT_BYTES_PER_WORKER", small)
    rows = 300_000
    edges = spark.range(rows).selectExpr("id x", "id y").repartition(3)
    names = spark.range(0).selectExpr("id x", "'' s")
    made = in_blocks(spark, compile_program(PROGRAM), {"edge": edges, "name": names}, 2)
    size = F.length("block").alias("size")
    found = made.blocks.select("relation", "owner", F.spark_partition_id().alias("rank"), size).collect()
    blocks = [row for row in found if row.relation != NOTHING]
    assert all(row.owner == row.rank and row.relation == 0 for row in blocks)
    assert Counter(row.owner for row in blocks) == {0: tasks, 1: tasks}  # of some MB: cut at once, whatever Spark's batches
    assert rows * 8 < sum(row.size for row in blocks) < rows * 9 < GATHERED_BYTES


def test_inputs_are_light_that_are_small_plain_and_no_python_of_the_users(spark: SparkSession) -> None:
    text = ".decl e(x: number, y: float)\n.input e\n.decl s(x: symbol)\n.input s\n"
    program = compile_program(text)
    few = spark.range(1000).selectExpr("id x", "double(id) y")
    cases: list[tuple[dict[str, DataFrame], bool, bool]] = [
        ({"e": few}, True, True),
        ({}, True, True),
        ({"e": few}, False, False),
        ({"e": few, "s": spark.range(3).selectExpr("string(id) x")}, True, False),
        ({"e": few.mapInArrow(lambda batches: batches, few.schema)}, True, False),
        ({"e": spark.range(10**9).selectExpr("id x", "double(id) y")}, True, False),
    ]
    assert [in_blocks(spark, program, given, 2, trusting).light for given, trusting, _ in cases] == [w for *_, w in cases]


def test_rows_that_take_more_than_spark_thinks_are_weighed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    weighing = job.unweighed

    def noted(spark: SparkSession, light: bool) -> Any:
        seen.append(light)
        return weighing(spark, light)

    monkeypatch.setattr(job, "unweighed", noted)
    monkeypatch.setattr(inputs, "LIGHT_BYTES", 20_000)
    edges = spark.range(5000).selectExpr("id x", "id + 1 y")
    text = ".decl e(x: number, y: number)\n.input e\n.decl r(x: number)\nr(x) :- e(x, _).\n.output r\n"
    result: Any = dlog.run(text, {"e": edges}, engine="spark", workers=2)
    assert (result["r"].rows, seen) == (5000, [True, False])
    assert sorted(x for (x,) in result["r"]) == list(range(5000))
    assert spark.sparkContext.getLocalProperty(inputs.BATCH_BYTES) is None


def test_batches_are_as_long_as_the_session_says_where_they_are_not_weighed(spark: SparkSession) -> None:
    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows])], ["n"])

    frame = spark.range(4_000_000).coalesce(1).selectExpr(*(f"id x{i}" for i in range(8))).mapInArrow(counted, "n bigint")
    rows = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    try:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2000000")
        weighed = [row.n for row in frame.collect()]
        with inputs.unweighed(spark):
            free = [row.n for row in frame.collect()]
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows)
    assert free == [2_000_000, 2_000_000]
    assert max(weighed) < 2_000_000


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
