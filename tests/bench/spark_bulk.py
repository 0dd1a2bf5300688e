"""One worker and two on work of seconds: evaluation without the fixed costs of a job, which `spark` is about.

Answers are sizes, so that nothing is measured but deriving. One worker is the embedded engine; runs alternate, and each says
the machine's load. `busiest` is the processor's time of the worker that used most; `longest way` adds up, exchange by exchange,
the worker that was busiest there: what the clock would show if each worker had a core for itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.bench import inputs
from tests.bench.process import Options
from tests.bench.report import as_ratio, console, save, seconds, show
from tests.bench.spark import application, loaded
from tests.bench.spark_workloads import WORKLOADS as OTHERS
from tests.bench.spark_workloads import Workload, of_rows, rmat_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = (1, 2)
BOUND = 1.6
"""How many times as fast two workers should be."""


def closure() -> dict[str, inputs.Rows]:
    return inputs.closure(12_000, 36_000)


def forest() -> dict[str, inputs.Rows]:
    return inputs.forest(2_500_000)


def tree() -> dict[str, inputs.Rows]:
    return {"parent": inputs.random_tree(np.random.default_rng(3), 11)}


def graph() -> dict[str, inputs.Rows]:
    return rmat_graph(20, 8_000_000)


def triangles() -> dict[str, inputs.Rows]:
    return {**inputs.triangles(200_000, 3_000_000), "vertex": np.arange(200_000)}


def points_to() -> dict[str, inputs.Rows]:
    return inputs.points_to(14_000)


@dataclass(frozen=True)
class Bulk(Workload):
    """A workload whose answer is the size of another's, or of the program of `suite` at `path`."""

    text: str = ""

    def program(self) -> str:
        arity = len(re.findall(":", next(line for line in self.text.splitlines() if f".decl {self.output}(" in line)))
        size = f"size(n) :- n = count : {{ {self.output}({', '.join('_' * arity)}) }}.\n"
        kept = re.sub(r"\.(output|printsize) \w+\n", "", self.text)
        return f"{kept}\n.decl size(n: number)\n.output size\n{size}"


def _of(name: str, title: str, recipe: inputs.Recipe, program: str, output: str = "") -> Bulk:
    """The program of another workload of Spark's, or the file of that name."""
    known = OTHERS.get(program)
    text = known.program() if known else (Path(__file__).parent / "programs" / f"{program}.dl").read_text(encoding="ascii")
    return Bulk(name, title, f"bulk-{recipe.__name__}", recipe, output or (known.output if known else ""), of_rows, text)


WORKLOADS = {
    w.name: w
    for w in (
        _of("closure", "closure, 12,000 vertices, 36,000 edges", closure, "closure"),
        _of("forest", "closure, forest of 2,500,000 vertices", forest, "closure"),
        _of("same_generation", "same generation, tree of depth 11", tree, "same_generation"),
        _of("points_to", "points-to, 14,000 variables", points_to, "W8", "points_to"),
        _of("triangles", "triangles per vertex, 3,000,000 edges", triangles, "triangles"),
        _of("reachability", "reachability, R-MAT, 8,000,000 edges", graph, "reachability"),
        _of("components", "components, R-MAT, 8,000,000 edges", graph, "components"),
    )
}


@dataclass(frozen=True, slots=True)
class Figure:
    """Of evaluation, in seconds: on the clock, of the busiest worker's processor, along the longest way; rows from one worker
    to another; the machine's load; the answer."""

    clock: float
    busiest: float
    longest_way: float
    sent: int
    load: float
    answer: int


def run(options: Options) -> bool:
    """Measures, prints and saves; false when answers differ."""
    with application() as spark:
        found = {name: measured(spark, WORKLOADS[name], options.repeats) for name in options.workloads}
    show_all(found)
    save("spark-bulk", {n: {w: [asdict(f) for f in runs] for w, runs in row.items()} for n, row in found.items()}, options.json)
    wrong = [name for name, row in found.items() if len({f.answer for runs in row.values() for f in runs}) != 1]
    if wrong:
        console.print(f"[bold red]answers differ: {', '.join(wrong)}")
    return not wrong


def measured(spark: SparkSession, workload: Workload, repeats: int) -> dict[int, list[Figure]]:
    """The runs with one worker and with two, one after the other; the first of each starts processes and does not count."""
    import dlog

    given = workload.inputs(loaded(spark, workload))
    found: dict[int, list[Figure]] = {workers: [] for workers in WORKERS}
    for number in range(repeats + 1):
        for workers in WORKERS:
            result: Any = dlog.run(workload.program(), given, engine="spark", spark=spark, workers=workers)
            answer = next(iter(result["size"]))[0]
            took = result.seconds, result.processor, result.longest_way, result.rows_sent
            figure = Figure(*took, os.getloadavg()[0], answer)
            result.release()
            console.print(f"[dim]{workload.name}, {workers}: {seconds(figure.clock)}, load {figure.load:.1f}")
            found[workers] += [figure] if number else []
    spark.catalog.clearCache()
    return found


def best(runs: list[Figure]) -> Figure:
    """The least of each figure."""
    first = min(runs, key=lambda f: f.clock)
    return replace(first, busiest=min(f.busiest for f in runs), longest_way=min(f.longest_way for f in runs))


def show_all(found: Mapping[str, Mapping[int, list[Figure]]]) -> None:
    table = []
    for name, row in found.items():
        one, two = (best(row[workers]) for workers in WORKERS)
        cells = [WORKLOADS[name].title]
        for what in ("clock", "busiest", "longest_way"):
            a, b = getattr(one, what), getattr(two, what)
            cells += [*([seconds(a)] if what != "longest_way" else []), seconds(b), as_ratio(a / b)]
        table.append([*cells, f"{two.sent:,}", f"{one.load:.1f}, {two.load:.1f}"])
    header = ["", "clock 1", "2", "1 to 2", "busiest 1", "2", "1 to 2", "longest way 2", "1 to 2", "rows sent", "load"]
    show(f"evaluation with one worker and with two (wanted: {BOUND} times as fast)", header, table)
