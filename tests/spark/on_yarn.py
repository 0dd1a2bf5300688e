"""A program of its own for YARN: its executors have dlog from a zip file, and some of them are killed. It prints what came of
it as JSON; its arguments are the folder of the tests, and what is to be done."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERTICES, LENGTH = 100_000, 5_000
"""Of a tree, and of a chain that is long enough for a container to be killed in the middle."""
REACH = """.decl e(x: number, y: number)
.input e
.decl r(y: number)
.output r
r(0).
r(y) :- r(x), e(x, y).
"""
PAIRS = """.decl e(x: number, y: number)
.input e
.decl p(x: number, y: number)
.decl n(c: number)
.output n
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
n(c) :- c = count : { p(_, _) }.
"""


def places(spark: SparkSession) -> dict[str, Any]:
    """From where executors have dlog."""

    def folder(_: Any) -> list[str]:
        import dlog

        return [dlog.__path__[0]]

    return {"folders": spark.sparkContext.parallelize(range(4), 4).mapPartitions(folder).distinct().collect()}


def runs(spark: SparkSession) -> dict[str, Any]:
    """Reachability in a tree, by workers that exchange rows and job by job."""
    import dlog

    edges = spark.range(1, VERTICES).selectExpr("id div 2 as x", "id as y")
    together = dlog.run(REACH, {"e": edges}, engine="spark", spark=spark)
    by_jobs = dlog.run(REACH, {"e": edges.where("y < 10")}, engine="spark", spark=spark, strategy="jobs")
    return {"rows": [together["r"].rows, together["r"].df.count(), by_jobs["r"].df.count()], "sent": together.rows_sent > 0}


def killed_while_it_runs(spark: SparkSession) -> dict[str, Any]:
    from tests.spark import cluster

    cluster.LENGTH = LENGTH
    return cluster.killed_while_it_runs(spark)


def rounds(spark: SparkSession) -> dict[str, Any]:
    """A session whose workers exchange rows; one of them dies between two rounds."""
    from tests.spark.cluster import kill_one
    from tests.spark.workers_killed import MORE, RING, expected, opened, rows, settled

    settled(spark)
    session = opened(spark, tempfile.mkdtemp(), {"edge": RING})
    session.insert("edge", MORE)
    session.commit()
    first = rows(session) == expected(RING + MORE)
    kill_one(spark)
    session.remove("edge", MORE)
    session.commit()
    second = rows(session) == expected(RING)
    session.close()
    return {"round": session.round, "right": [first, second]}


def over_memory(spark: SparkSession) -> dict[str, Any]:
    """A run whose rows do not fit into the containers."""
    import dlog
    from dlog.grammar.diagnostics import DlogError

    edges = spark.range(20_000).selectExpr("id * 100000007 as x", "(id + 1) * 100000007 as y")
    try:
        dlog.run(PAIRS, {"e": edges}, engine="spark", spark=spark)
    except DlogError as error:
        [mistake] = error.diagnostics
        return {"code": mistake.code, "message": mistake.message, "notes": mistake.notes}
    return {}


def main(tests: str, *names: str) -> None:
    sys.path.append(tests)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    for name in names:
        print(json.dumps({name: globals()[name](spark)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
