"""Small rounds of warm sessions on Spark: 100 edges of a million change, with one worker and with two that exchange.

`closure`, from a few vertices, is local: workers exchange nothing. `hops` is not: derived distances go to their owners
in every iteration. The wall time of a commit is everything from the call to its return; the load of a million edges comes from
a DataFrame.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.process import Options
from tests.bench.report import save, seconds, show
from tests.bench.spark import application
from tests.bench.spark_workloads import rmat_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = ".decl edge(x: number, y: number)\n.decl start(x: number)\n.input edge, start\n"
PROGRAMS = {
    "closure": DECLARED
    + ".decl path(x: number, y: number)\npath(x, y) :- start(x), edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n",
    "hops": DECLARED
    + ".decl node(x: number)\nnode(x) :- start(x).\nnode(y) :- edge(_, y).\n.decl hops(x: number, n: number)\n"
    + "hops(x, n) :- node(x), n = min c : { start(x), c = 0 ; hops(y, b), edge(y, x), c = b + 1 }.\n",
}
SCALE, EDGES = 17, 1_047_185
SOURCES = 3
"""The vertices with the most edges."""
CHANGED = 100
ROUNDS = 20
BOUND = 0.05


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds: the load, the median and the worst of the rounds; rows that a round changed in the answer, on average."""

    load: float
    median: float
    worst: float
    changed: float


def run(options: Options) -> bool:
    """Measures, prints and saves."""
    with application("local[3]") as spark:
        figures = {name: {w: measured(spark, PROGRAMS[name], w) for w in (1, 2)} for name in PROGRAMS}
    rows = [
        [name, f"{w}", seconds(f.load), seconds(f.median), seconds(f.worst), f"{f.changed:,.0f}"]
        for name, row in figures.items()
        for w, f in row.items()
    ]
    title = f"rounds of {CHANGED} edges of {EDGES:,} (bound: {seconds(BOUND)})"
    show(title, ["program", "workers", "load", "median round", "worst round", "rows changed"], rows)
    named = {name: {w: asdict(f) for w, f in row.items()} for name, row in figures.items()}
    save("spark-rounds", named, options.json)
    return all(f.median <= BOUND for row in figures.values() for f in row.values())


def measured(spark: SparkSession, program: str, workers: int) -> Figure:
    import dlog

    rng = np.random.default_rng(5)
    edges = rmat_graph(SCALE, EDGES)["edge"]
    sources = np.argsort(np.bincount(edges[:, 0]))[-SOURCES:, None]
    frame = spark.createDataFrame(_arrow(edges)).repartition(2).cache()
    frame.count()
    with dlog.session(program, {"start": sources}, engine="spark", spark=spark, workers=workers) as session:
        started = time.perf_counter()
        session.insert("edge", frame)
        session.commit()
        load = time.perf_counter() - started
        answer = list(session)[-1]
        taken, changed = [], []
        for _ in range(ROUNDS):
            gone = edges[rng.choice(len(edges), CHANGED // 2, replace=False)]
            come = rng.integers(0, 1 << SCALE, (CHANGED // 2, 2))
            session.remove("edge", gone)
            session.insert("edge", come)
            started = time.perf_counter()
            round = session.commit()
            taken.append(time.perf_counter() - started)
            changed.append(len(round.changes(answer)))
    frame.unpersist()
    return Figure(load, float(np.median(taken)), max(taken), float(np.mean(changed)))


def _arrow(edges: np.ndarray) -> object:
    import pandas as pd

    return pd.DataFrame(edges, columns=["x", "y"])
