"""The workloads as people write them with DataFrames: a loop of joins, checkpoints that cut the lineage, a count that says when
to stop; and with Spark's recursive CTE where that can say it.

Each function takes the inputs by name and returns the answer, which has yet to be computed as far as it is lazy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.bench.spark_workloads import ITERATIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Mapping[str, "DataFrame"]
CHECKPOINT_EVERY = 5
PARTITIONS = 8


def closure(given: Frames) -> DataFrame:
    """Semi-naive."""
    edge = given["edge"].toDF("y", "z").cache()
    fresh = known = given["edge"].toDF("x", "y").distinct()
    return _grown(known, fresh, lambda fresh: fresh.join(edge, "y").selectExpr("x", "z as y"))


def same_generation(given: Frames) -> DataFrame:
    up = given["parent"].toDF("x", "a").cache()
    other = up.toDF("y", "b")
    first = up.join(other, up.a == other.b).select("x", "y").distinct()

    def step(fresh: DataFrame) -> DataFrame:
        return fresh.toDF("a", "b").join(up, "a").join(other, "b").select("x", "y")

    return _grown(first, first, step)


def reachability(given: Frames) -> DataFrame:
    edge = given["edge"].toDF("x", "y").cache()
    first = given["source"].toDF("x")
    return _grown(first, first, lambda fresh: fresh.join(edge, "x").selectExpr("y as x"))


def _grown(known: DataFrame, fresh: DataFrame, step) -> DataFrame:
    """All that `step` finds from `known`, a set; `fresh` are the rows found last."""
    fresh = fresh.persist()
    for round in range(1, 100_000):
        found = step(fresh).distinct().join(known, known.columns, "left_anti").persist()
        if not found.count():
            break
        fresh = found
        known = known.unionAll(found)
        if not round % CHECKPOINT_EVERY:
            known = known.coalesce(PARTITIONS).localCheckpoint()
    return known


def bfs(given: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    edge = given["edge"].toDF("id", "y").cache()
    known = fresh = given["source"].select("id", F.lit(0).cast("bigint").alias("d"))
    for hops in range(1, 100_000):
        found = fresh.join(edge, "id").selectExpr("y as id").distinct().join(known, "id", "left_anti")
        fresh = found.withColumn("d", F.lit(hops).cast("bigint")).persist()
        if not fresh.count():
            break
        known = known.unionAll(fresh)
        if not hops % CHECKPOINT_EVERY:
            known = known.coalesce(PARTITIONS).localCheckpoint()
    return known


def shortest_paths(given: Frames) -> DataFrame:
    """Bellman and Ford, from the vertices whose distance got less."""
    from pyspark.sql import functions as F

    edge = given["edge"].toDF("id", "y", "w").cache()
    best = given["source"].select("id", F.lit(0).cast("bigint").alias("d"))
    fresh = best
    for _ in range(100_000):
        found = fresh.join(edge, "id").selectExpr("y as id", "d + w as c").groupBy("id").agg(F.min("c").alias("c"))
        merged = best.join(found, "id", "full")
        better = F.col("c").isNotNull() & (F.col("d").isNull() | (F.col("c") < F.col("d")))
        now = merged.select("id", F.least("d", "c").alias("d"), better.alias("better")).localCheckpoint()
        best, fresh = now.select("id", "d"), now.where("better").select("id", "d")
        if not fresh.count():
            break
    return best


def components(given: Frames) -> DataFrame:
    """The least label of all neighbours, until none changes."""
    from pyspark.sql import functions as F

    there = given["edge"].toDF("id", "other")
    edge = there.unionAll(there.toDF("other", "id").select("id", "other")).distinct().cache()
    now = given["vertex"].selectExpr("id", "id as label")
    for _ in range(100_000):
        heard = edge.join(now, "id").groupBy("other").agg(F.min("label").alias("heard")).withColumnRenamed("other", "id")
        least = F.least("label", "heard")
        after = now.join(heard, "id", "left").select("id", least.alias("label"), (least < F.col("label")).alias("changed"))
        after = after.localCheckpoint()
        now = after.select("id", "label")
        if not after.where("changed").count():
            break
    return now


def pagerank(given: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    edge, vertex = given["edge"], given["vertex"]
    links = edge.join(edge.groupBy("src").agg(F.count("*").alias("degree")), "src").cache()
    ranks = vertex.select("id", F.lit(1.0).alias("rank"))
    for step in range(1, ITERATIONS + 1):
        given_away = ranks.join(links, ranks.id == links.src).select("dst", (F.col("rank") / F.col("degree")).alias("share"))
        heard = given_away.groupBy("dst").agg(F.sum("share").alias("heard")).withColumnRenamed("dst", "id")
        ranks = vertex.join(heard, "id", "left").select("id", (0.15 + 0.85 * F.coalesce("heard", F.lit(0.0))).alias("rank"))
        if not step % CHECKPOINT_EVERY:
            ranks = ranks.localCheckpoint()
    total = ranks.agg(F.sum("rank").alias("total"), F.count("*").alias("n"))
    return ranks.crossJoin(total).select("id", (F.col("rank") * F.col("n") / F.col("total")).alias("pagerank"))


def triangles(given: Frames) -> DataFrame:
    """Two joins, and each triangle counts for its three corners."""
    from pyspark.sql import functions as F

    one, two, three = given["edge"].toDF("x", "y"), given["edge"].toDF("y", "z"), given["edge"].toDF("x", "z")
    found = one.join(two, "y").join(three, ["x", "z"])
    counted = found.select(F.explode(F.array("x", "y", "z")).alias("id")).groupBy("id").count()
    return given["vertex"].join(counted, "id", "left").select("id", F.coalesce("count", F.lit(0)).alias("count"))


# ---------------------------------------------------------------------------------------------------------- recursive CTE


def same_generation_cte(given: Frames) -> DataFrame:
    """UNION ALL is all it has: the tree's depth bounds how often a pair is found."""
    given["parent"].toDF("x", "p").createOrReplaceTempView("bench_parent")
    return given["parent"].sparkSession.sql(
        """WITH RECURSIVE sg(x, y) MAX RECURSION LEVEL 100 AS (
             SELECT l.x, r.x FROM bench_parent l JOIN bench_parent r ON l.p = r.p
             UNION ALL
             SELECT l.x, r.x FROM sg JOIN bench_parent l ON l.p = sg.x JOIN bench_parent r ON r.p = sg.y
           ) SELECT DISTINCT x, y FROM sg"""
    )


LOOPS = {f.__name__: f for f in (closure, same_generation, reachability, bfs, shortest_paths, components, pagerank, triangles)}
CTES = {"same_generation": same_generation_cte}
