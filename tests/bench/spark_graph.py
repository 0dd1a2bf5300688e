"""Bench of graphs in Spark: `dlog.graph` of DataFrames beside GraphFrames' algorithms, from DataFrame to DataFrame, in one
application on two cores; vertices are integers, or strings that must be numbered.

The R-MAT graph of `spark`. DataFrames are cached before; answers are written to Spark's `noop` sink. Making dlog's graph, which
checks its ids, and numbering it are part of each question, but for the very first one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.bench import spark_graphframes
from tests.bench.process import NotMeasured, Options
from tests.bench.report import as_ratio, console, quotient, save, seconds_or_reason, show
from tests.bench.spark import LONG, application, compute, forget, given_up, loaded, same
from tests.bench.spark_workloads import WORKLOADS, Fingerprint, of_groups, of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.bench.spark import Frames

SOURCE = 11_922
"""The vertex with the most edges out."""
ITERATIONS = 20
Ask = Callable[[Any, Any], "DataFrame"]
"""Of a graph and its source."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: to dlog, to others, and what tells one answer from another."""

    fingerprint: Fingerprint
    dlog: Ask
    others: dict[str, Ask]


def _distances(graph: Any, source: Any) -> DataFrame:
    from pyspark.sql import functions as F

    found = graph.shortestPaths(landmarks=[source]).select("id", F.col("distances")[source].cast("bigint").alias("distance"))
    return found.where("distance is not null")


def _components(graph: Any, source: Any) -> DataFrame:
    return graph.connectedComponents(broadcastThreshold=-1, use_local_checkpoints=True).select("id", "component")


def _components_graphx(graph: Any, source: Any) -> DataFrame:
    return graph.connectedComponents(algorithm="graphx").select("id", "component")


def _ranks(graph: Any, source: Any) -> DataFrame:
    return graph.pageRank(resetProbability=0.15, maxIter=ITERATIONS).vertices.select("id", "pagerank")


def _triangles(graph: Any, source: Any) -> DataFrame:
    from pyspark import StorageLevel

    return graph.triangleCount(StorageLevel.MEMORY_AND_DISK_DESER).select("id", "count")


def of_whatever(answer: DataFrame) -> dict[str, float]:
    """GraphFrames' ranks sum up to something else, and have not settled alike."""
    return {"rows": answer.count()}


QUESTIONS: dict[str, Asked] = {
    "components": Asked(
        of_groups, lambda g, s: g.connected_components().df, {"GraphFrames": _components, "GraphX": _components_graphx}
    ),
    "paths to a landmark": Asked(
        of_rows, lambda g, s: g.shortest_paths(s).df.select("id", "distance"), {"GraphFrames": _distances}
    ),
    "PageRank, 20 iterations": Asked(of_whatever, lambda g, s: g.pagerank(ITERATIONS).df, {"GraphFrames": _ranks}),
    "degrees": Asked(
        of_rows, lambda g, s: g.degrees().df.where("degree > 0").select("id", "degree"), {"GraphFrames": lambda g, s: g.degrees}
    ),
    "triangles": Asked(of_rows, lambda g, s: g.triangle_count().df, {"GraphFrames": _triangles}),
    "strong components": Asked(of_groups, lambda g, s: g.strongly_connected_components().df, {}),
}
RIVALS = ("GraphFrames", "GraphX")


def run(options: Options) -> bool:
    """Measures, prints and saves; false when answers differ."""
    wrong: list[str] = []
    saved: dict[str, dict[str, dict[str, float | str]]] = {}
    if lacking := spark_graphframes.lacking():
        console.print(f"[dim]without GraphFrames: {lacking}")
    with application() as spark:
        integers = loaded(spark, WORKLOADS["components"])
        compute(QUESTIONS["components"].dlog(made("dlog", integers), SOURCE))  # Spark's Python workers load the kernels
        for kind, given in (("integers", integers), ("strings", as_strings(integers))):
            saved[kind] = {name: measured(spark, name, given, options, wrong) for name in QUESTIONS}
    for kind, figures in saved.items():
        rows = [
            [name, *(seconds_or_reason(found.get(who, "-")) for who in ("dlog", *RIVALS)), *_ratios(found)]
            for name, found in figures.items()
        ]
        title = f"graphs in Spark, vertices are {kind}; load {os.getloadavg()[0]:.1f}"
        show(title, ["", "dlog", *RIVALS, *(f"dlog / {rival}" for rival in RIVALS)], rows)
    for line in wrong:
        console.print(f"[bold red]{line}")
    save("spark-graph", saved, options.json)
    return not wrong


def _ratios(found: dict[str, float | str]) -> list[str]:
    return [as_ratio(quotient(found["dlog"], found.get(rival, "-"))) for rival in RIVALS]


def as_strings(given: Frames) -> dict[str, DataFrame]:
    """The same graph whose vertices are words, in memory."""
    found = {}
    for name, frame in given.items():
        found[name] = frame.selectExpr(*(f"concat('v', {column}) as {column}" for column in frame.columns)).cache()
        found[name].count()
    return found


def measured(spark: SparkSession, name: str, given: Frames, options: Options, wrong: list[str]) -> dict[str, float | str]:
    """Best times of a question, whose answers are compared."""
    asked, figures = QUESTIONS[name], {}
    right: dict[str, float] = {}
    source = SOURCE if given["vertex"].dtypes[0][1] == "bigint" else f"v{SOURCE}"
    for who, ask in (("dlog", asked.dlog), *asked.others.items()):
        times: list[float] = []
        console.print(f"[dim]{name} {who}", end=" ")
        try:
            while len(times) < options.repeats and sum(times) < LONG:
                with given_up(spark, options.timeout):
                    started = time.perf_counter()
                    graph = made(who, given)
                    answer = ask(graph, source)
                    compute(answer)
                    times.append(time.perf_counter() - started)
                    found = asked.fingerprint(as_integers(answer))
                if not same(right := right or found, found):
                    wrong.append(f"{name}: {who} {found}, dlog {right}")
                forget(spark, given)
        except NotMeasured as reason:
            figures[who] = str(reason)
        if times:
            figures[who] = min(times)
        console.print(f"[dim]{seconds_or_reason(figures[who])}")
    return figures


def made(who: str, given: Frames) -> Any:
    """A graph of that library; NotMeasured where it is not there."""
    if who == "dlog":
        import dlog

        return dlog.graph(given["vertex"], given["edge"])
    if spark_graphframes.lacking():
        raise NotMeasured("absent")
    from graphframes import GraphFrame

    return GraphFrame(given["vertex"], given["edge"])


def as_integers(answer: DataFrame) -> DataFrame:
    """An answer with numbers for words."""
    words = {name for name, type in answer.dtypes if type == "string"}
    return answer.selectExpr(*(f"cast(substring({c}, 2) as bigint) as {c}" if c in words else c for c in answer.columns))
