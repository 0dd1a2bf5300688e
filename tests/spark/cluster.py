"""A program of its own that runs dlog on executors in JVMs of their own, kills some, and prints what came of it as JSON.

One process can have one Spark application; that of the tests is another one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LENGTH = 20_000
CHAIN = ".decl e(x: number, y: number)\n.decl r(x: number)\nr(0).\nr(y) :- r(x), e(x, y).\n.input e\n.output r\n"
TYPED = """.type List = [head: symbol, tail: List]
.decl step(from: symbol, to: symbol, cost: float)
.input step
.decl way(from: symbol, to: symbol, by: List, cost: float, id: unsigned)
way(x, y, [y, nil], c, 18446744073709551615) :- step(x, y, c).
way(x, z, [cat(z, "!"), l], c + d, 1) :- way(x, y, l, c, _), step(y, z, d), c < 3.
.decl any()
any() :- way(_, _, _, _, _).
.output way, any
"""
STEPS = [("a", "b", 0.5), ("b", "c", 1.0), ("c", "a", 0.25), ("c", "grün", 2.0)]


def session() -> SparkSession:
    from dlog.engine.spark.application import start

    work = tempfile.mkdtemp(prefix="dlog-cluster-")
    os.environ["SPARK_WORKER_DIR"] = work
    return start("local-cluster[2,1,1024]", {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"})


def executors(spark: SparkSession) -> list[int]:
    """The processes of this application's executors."""
    wanted = (b"CoarseGrainedExecutorBackend", spark.sparkContext.applicationId.encode())
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"java") and all(any(part in word for word in words) for part in wanted):
            found.append(int(entry.parent.name))
    return sorted(found)


def kill_one(spark: SparkSession) -> int:
    pid = executors(spark)[0]
    os.kill(pid, signal.SIGKILL)
    return pid


def typed(spark: SparkSession) -> dict[str, Any]:
    """Every type, over workers that share no table of strings; the DataFrame can be used as any other."""
    import dlog

    data = spark.createDataFrame(STEPS, "`from` string, `to` string, cost double")
    result = dlog.run(TYPED, {"step": data}, engine="spark", spark=spark)
    way = result["way"]
    expected = sorted(map(repr, dlog.run(TYPED, {"step": STEPS})["way"]))
    figures = {
        "as embedded": sorted(map(repr, way)) == expected,
        "rows": way.rows == way.df.count() == len(expected),
        "first": way.df.first() is not None,
        "limit": len(way.df.limit(3).collect()),
        "union": way.df.union(way.df).distinct().count() == len(expected),
        "any": list(result["any"]),
        "crossed": result.rows_sent > 0,
    }
    result.release()
    return figures


def chain(spark: SparkSession, on_progress: Callable[..., None] | None = None) -> Any:
    from dlog.engine.spark import job
    from dlog.pipeline import compile_program, optimized

    program = optimized(compile_program(CHAIN))
    edges = spark.range(LENGTH).selectExpr("id as x", "id + 1 as y")
    return job.run(spark, program, {"e": edges}, ["r"], on_progress=on_progress)


def killed_while_it_runs(spark: SparkSession) -> dict[str, Any]:
    """An executor dies in the middle of the loop: the stage starts again with all its tasks."""
    from dlog.engine.spark.application import rendezvous_of

    killed: list[int] = []
    tasks: list[dict[int, int]] = []

    def latest() -> dict[int, int]:
        runs = rendezvous_of(spark)._runs
        return dict(runs[max(runs)].latest)

    def strike(rank: int, progress: Any) -> None:
        if not killed:
            tasks.append(latest())
            killed.append(kill_one(spark))

    outcome = chain(spark, strike)
    frame = outcome.frame("r")
    return {
        "killed": len(killed),
        "other tasks": all(latest()[rank] > task for rank, task in tasks[0].items()) if tasks else False,
        "reported": outcome.rows["r"],
        "rows": frame.count(),
        "sum": frame.selectExpr("sum(x)").first()[0],
    }


def killed_afterwards(spark: SparkSession) -> dict[str, Any]:
    """An executor that has rows of a result dies: they are computed again when they are asked for."""
    from dlog.engine.spark.application import slots

    outcome = chain(spark)
    before = executors(spark)
    kill_one(spark)
    while slots(spark) == len(before):
        time.sleep(0.05)
    while slots(spark) < len(before):  # Spark refuses a barrier stage that has too few
        time.sleep(0.1)
    frame = outcome.frame("r")
    return {"executors": len(before), "rows": frame.count(), "sum": frame.selectExpr("sum(x)").first()[0]}


def main(names: list[str]) -> None:
    spark = session()
    figures = {}
    for name in names:
        started = time.perf_counter()
        figures[name] = globals()[name](spark)
        figures[name]["seconds"] = time.perf_counter() - started
        print(json.dumps({name: figures[name]}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
