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
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LENGTH = 20_000
WIDTH, ITERATIONS = 60_000, 150
"""Rows of each iteration of a run, so many that workers hand them over in files, and its iterations."""
WAIT, TRIES = 1.0, 30
"""Seconds in which others leave rows for a worker that does nothing, if they ever do."""
WIDE = """.decl e(x: number, y: number)
.decl s(k: number)
.decl r(x: number, k: number)
.decl n(rows: number)
.input e, s
.output n
r(0, k) :- s(k).
r(y, k + 1) :- r(x, k), e(x, y).
n(c) :- c = count : { r(_, _) }.
"""
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


def letterboxes(spark: SparkSession) -> dict[int, Path]:
    """The folders of this application's workers, by process."""
    from dlog.engine.spark.shared_memory import KIND
    from dlog.temporary import LOCK, PREFIX

    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found, ours = {}, set(executors(spark))
    for process in parents:
        above = process
        while above in parents and above not in ours:
            above = parents[above]
        for link in Path(f"/proc/{process}/fd").glob("*") if above in ours else ():
            with suppress(OSError):
                file = link.readlink()
                if file.name == LOCK and file.parent.name.startswith(f"{PREFIX}{KIND}-"):
                    found[process] = file.parent
    return found


def killed_with_blocks(spark: SparkSession) -> dict[str, Any]:
    """A worker dies when others have just left rows for it in files: it is stopped before, so that it takes none."""
    from dlog.engine.spark import job
    from dlog.engine.spark.shared_memory import LOCK
    from dlog.pipeline import compile_program, optimized

    folders: list[Path] = []

    def has_blocks(folder: Path) -> bool:
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            if any(entry.name != LOCK for entry in folder.iterdir()):
                return True
            time.sleep(0.01)
        return False

    def strike(rank: int, progress: Any) -> None:
        for _ in range(TRIES if not folders else 0):
            boxes = letterboxes(spark)
            if len(boxes) < 2:
                return
            process, folder = min(boxes.items())
            os.kill(process, signal.SIGSTOP)
            if has_blocks(folder):
                folders.append(folder)
                os.kill(process, signal.SIGKILL)
                return
            os.kill(process, signal.SIGCONT)
            time.sleep(WAIT / 10)

    program = optimized(compile_program(WIDE))
    given = {"s": spark.range(WIDTH).selectExpr("id as k"), "e": spark.range(ITERATIONS).selectExpr("id as x", "id + 1 as y")}
    outcome = job.run(spark, program, given, ["n"], on_progress=strike)
    left = [str(folder) for folder in folders if folder.exists()]
    return {"killed": len(folders), "left": left, "rows": outcome.frame("n").first()[0]}  # type: ignore[index]


def killed_afterwards(spark: SparkSession) -> dict[str, Any]:
    """An executor that has rows of a result dies: all workers derive them again when they are asked for."""
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
