"""Programs on Spark against what a Spark user has: GraphFrames, loops of DataFrames, the recursive CTE; from DataFrame to
DataFrame, in one application on two cores.

Inputs are cached before, answers are written to Spark's `noop` sink, which computes all of them. The first run of dlog is the
cold one: it starts Spark's Python workers, which load the kernels.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from dlog.engine.spark.error_translation import reason_of
from tests.bench import spark_graphframes, spark_loops
from tests.bench.process import NotMeasured, Options
from tests.bench.report import as_ratio, console, save, seconds, seconds_or_reason, show
from tests.bench.spark_workloads import COLUMNS, WORKLOADS, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]
Solver = Callable[[Frames], "DataFrame"]
RIVALS: dict[str, Mapping[str, Solver]] = {
    "GraphFrames": spark_graphframes.ALGORITHMS,
    "GraphX": spark_graphframes.GRAPHX,
    "loop": spark_loops.LOOPS,
    "CTE": spark_loops.CTES,
}
LONG = 20.0
"""Seconds after which a rival is not measured again."""


@dataclass(frozen=True, slots=True)
class Timing:
    """`wall` is the best of the runs; `load` the machine's when it was measured."""

    wall: float
    load: float
    fingerprint: dict[str, float]


@dataclass
class Row:
    """The figures of a workload: dlog's with two workers and with one, and what rivals took or why there is no figure."""

    dlog: Timing
    cold: float
    evaluation: dict[int, float] = field(default_factory=dict)
    """Seconds, by the number of workers."""
    processor: dict[int, float] = field(default_factory=dict)
    """The same of the busiest worker's processor: where others use the machine, they say more."""
    steps: int = 0
    sent: int = 0
    rivals: dict[str, Timing | str] = field(default_factory=dict)


def run(options: Options) -> bool:
    """Measures, prints and saves; false when answers differ."""
    with application() as spark:
        rows = {name: measured(spark, WORKLOADS[name], options) for name in options.workloads}
    show_walls(rows)
    show_workers(rows)
    wrong = disagreements(rows)
    for line in wrong:
        console.print(f"[bold red]{line}")
    if not wrong:
        console.print("all answers agree")
    save("spark", {name: asdict(row) for name, row in rows.items()}, options.json)
    return not wrong


ROOM = {"spark.sql.cteRecursionRowLimit": str(10**9)}
"""What rivals need that is not there by default."""


@contextmanager
def application(master: str = "local[2]") -> Iterator[SparkSession]:
    from dlog.engine.spark.application import start
    from tests.bench.inputs import cache_folder

    wanted = {"spark.ui.enabled": "false", "spark.driver.memory": "10g", **ROOM, **spark_graphframes.settings()}
    spark = start(master, wanted)
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.setCheckpointDir(str(cache_folder() / "spark-checkpoints"))
    try:
        yield spark
    finally:
        spark.stop()


# ------------------------------------------------------------------------------------------------------------ measuring


def measured(spark: SparkSession, workload: Workload, options: Options) -> Row:
    given = loaded(spark, workload)
    row = of_dlog(spark, workload, given, options.repeats)
    for rival, solvers in RIVALS.items():
        solver = solvers.get(workload.name)
        if solver is None:
            continue
        console.print(f"[dim]{workload.name} {rival}", end=" ")
        row.rivals[rival] = result = of_rival(spark, workload, rival, solver, given, options)
        console.print(f"[dim]{seconds_or_reason(result if isinstance(result, str) else result.wall)}")
    spark.catalog.clearCache()
    return row


def loaded(spark: SparkSession, workload: Workload) -> dict[str, DataFrame]:
    """The inputs, in memory."""
    found = {}
    for path in sorted(workload.facts().glob("*.parquet")):
        frame = spark.read.parquet(str(path))
        named = COLUMNS.get(path.stem, tuple(frame.columns))[: len(frame.columns)]
        found[path.stem] = frame.toDF(*named).repartition(2).cache()
        found[path.stem].count()
    return found


def of_dlog(spark: SparkSession, workload: Workload, given: Frames, repeats: int) -> Row:
    import dlog

    def once(workers: int) -> tuple[Timing, Any]:
        started = time.perf_counter()
        result: Any = dlog.run(workload.program(), workload.inputs(given), engine="spark", spark=spark, workers=workers)
        answer = result[workload.output].df
        compute(answer)
        taken = time.perf_counter() - started
        timing = Timing(taken, os.getloadavg()[0], workload.fingerprint(answer))
        result.release()
        return timing, result

    console.print(f"[dim]{workload.name} dlog", end=" ")
    cold, _ = once(2)
    runs = [once(2) for _ in range(repeats)]
    best, result = min(runs, key=lambda pair: pair[0].wall)
    row = Row(best, cold.wall, steps=result.steps, sent=result.rows_sent)
    for workers, results in ((2, [r for _, r in runs]), (1, [once(1)[1] for _ in range(repeats)])):
        row.evaluation[workers] = min(r.seconds for r in results)
        row.processor[workers] = min(r.processor for r in results)
    console.print(f"[dim]{seconds(best.wall)}")
    return row


def of_rival(
    spark: SparkSession, workload: Workload, rival: str, solver: Solver, given: Frames, options: Options
) -> Timing | str:
    if rival in ("GraphFrames", "GraphX") and spark_graphframes.lacking():
        return "absent"
    found: list[Timing] = []
    try:
        while len(found) < options.repeats and (not found or found[-1].wall < LONG):
            started = time.perf_counter()
            try:
                with given_up(spark, options.timeout):
                    answer = solver(given)
                    compute(answer)
                    taken = time.perf_counter() - started
                    found.append(Timing(taken, os.getloadavg()[0], workload.fingerprint(answer)))
            finally:
                forget(spark, given)
    except NotMeasured as reason:
        if not found:
            return str(reason)
    return min(found, key=lambda timing: timing.wall)


def compute(answer: DataFrame) -> None:
    answer.write.format("noop").mode("overwrite").save()


def forget(spark: SparkSession, given: Frames) -> None:
    """Frees what a rival left in memory, given up or not; the inputs stay."""
    spark.catalog.clearCache()
    for held in list(spark.sparkContext._jsc.getPersistentRDDs().values()):  # local checkpoints, GraphX
        held.unpersist()
    for frame in given.values():
        frame.cache().count()


@contextmanager
def given_up(spark: SparkSession, timeout: float) -> Iterator[None]:
    """Raises NotMeasured where what is inside takes longer, or Spark cannot do it."""
    late = threading.Event()

    def cancel() -> None:
        late.set()
        while not over.wait(1.0):  # the next job of a loop is cancelled too
            spark.sparkContext.cancelAllJobs()

    over = threading.Event()
    timer = threading.Timer(timeout, cancel)
    timer.start()
    try:
        yield
    except Exception as error:
        raise NotMeasured(f"> {timeout:.0f} s" if late.is_set() else reason_of(error)[:80]) from None
    finally:
        over.set()
        timer.cancel()


# ------------------------------------------------------------------------------------------------------------ reporting


def disagreements(rows: Mapping[str, Row]) -> list[str]:
    """Answers that are not dlog's."""
    return [
        f"{name} {rival}: {timing.fingerprint} instead of {row.dlog.fingerprint}"
        for name, row in rows.items()
        for rival, timing in row.rivals.items()
        if isinstance(timing, Timing) and not same(timing.fingerprint, row.dlog.fingerprint)
    ]


def same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether two fingerprints are alike but for rounding."""
    return one.keys() == other.keys() and all(abs(v - other[k]) <= 1e-9 * max(abs(v), abs(other[k])) for k, v in one.items())


def show_walls(rows: Mapping[str, Row]) -> None:
    def cell(row: Row, rival: str) -> str:
        found = row.rivals.get(rival)
        if not isinstance(found, Timing):
            return found or "-"
        return f"{seconds(found.wall)} ({found.wall / row.dlog.wall:.1f}x)"

    table = [
        [WORKLOADS[name].title, seconds(row.dlog.wall), seconds(row.cold), *(cell(row, rival) for rival in RIVALS)]
        for name, row in rows.items()
    ]
    title = "whole wall time, DataFrame to DataFrame (in brackets: as a multiple of dlog's)"
    show(title, ["workload", "dlog", "first run", *RIVALS], table)


def show_workers(rows: Mapping[str, Row]) -> None:
    table = []
    for name, row in rows.items():
        cells = [WORKLOADS[name].title]
        for one, two in ((found[1], found[2]) for found in (row.evaluation, row.processor)):
            cells += [seconds(one), seconds(two), as_ratio(one / two)]
        table.append([*cells, f"{row.steps:,}", f"{row.sent:,}"])
    header = ["1 worker", "2 workers", "1 to 2", "processor 1", "processor 2", "1 to 2", "exchanges", "rows sent"]
    show("evaluation", ["workload", *header], table)
