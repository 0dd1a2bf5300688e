"""What an exchange costs: one tuple walks along a path whose vertices live on other workers, and grows with data and workers.

`chain` derives one tuple in each iteration; whenever the next vertex is another worker's, all workers exchange. `growth` is
reachability on R-MAT graphs of growing size, where exchanges are few and full.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.bench import inputs
from tests.bench.process import Options
from tests.bench.report import save, seconds, show
from tests.bench.spark import application
from tests.bench.spark_workloads import WORKLOADS, rmat_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHAINS = (500, 2000, 8000)
SCALES = {13: 65_449, 15: 261_796, 17: 1_047_185}
"""Edges by the logarithm of the number of vertices: eight for each vertex."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The best of the runs: seconds of evaluation, exchanges among the workers, rows that went from one to another."""

    seconds: float
    steps: int
    sent: int


def run(options: Options) -> bool:
    """Measures, prints and saves."""
    cores = (1, 2, 4)
    with application(f"local[{max(cores)}]") as spark:
        chains = {n: {w: figure(spark, inputs.chain(n), w, options.repeats) for w in cores} for n in CHAINS}
        graphs = {s: {w: figure(spark, rmat_graph(s, e), w, options.repeats) for w in cores} for s, e in SCALES.items()}
    rows = [
        [f"path of {n:,}", f"{w}", f"{f.steps:,}", seconds(f.seconds), seconds(f.seconds / f.steps), f"{f.sent:,}"]
        for n, row in chains.items()
        for w, f in row.items()
    ]
    header = ["data", "workers", "exchanges", "evaluation", "each", "rows sent"]
    show("reachability along a path, one tuple in each iteration", header, rows)
    rows = [
        [f"R-MAT, {SCALES[s]:,} edges", f"{w}", f"{f.steps:,}", seconds(f.seconds), seconds(f.seconds / f.steps), f"{f.sent:,}"]
        for s, row in graphs.items()
        for w, f in row.items()
    ]
    show("reachability in graphs of growing size", header, rows)
    named = {"chain": chains, "growth": graphs}
    save(
        "spark-steps",
        {k: {n: {w: asdict(f) for w, f in r.items()} for n, r in v.items()} for k, v in named.items()},
        options.json,
    )
    return True


def figure(spark: SparkSession, data: dict[str, np.ndarray], workers: int, repeats: int) -> Figure:
    import dlog

    program = WORKLOADS["reachability"].program()
    edge, source = (data[name] if data[name].ndim == 2 else data[name][:, None] for name in ("edge", "source"))
    found = []
    for _ in range(repeats + 1):
        result: Any = dlog.run(program, {"edge": edge, "source": source}, engine="spark", spark=spark, workers=workers)
        found.append(Figure(result.seconds, result.steps, result.rows_sent))
        result.release()
    return min(found, key=lambda f: f.seconds)
