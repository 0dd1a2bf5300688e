"""Bench of memory where keys are sparse: closures of a large forest, whose pairs have no bitmap; then sessions (memory_rounds).

The bound is that of the whole process: a base, and bytes for each derived tuple with everything that is kept for it (columns,
the set, arrangements).
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench import engine_dlog, engine_souffle, inputs, memory_rounds
from tests.bench.process import NotMeasured, Options, Result, best_of
from tests.bench.report import save, seconds, show
from tests.bench.workloads import Workload

BASE_MB = 250
NODES = 640_000
ROWS = {"path": 6_039_467}


@dataclass(frozen=True, slots=True)
class Case:
    workload: Workload
    bytes_per_tuple: int
    """At most, above the base."""

    @property
    def bound_mb(self) -> float:
        return BASE_MB + self.bytes_per_tuple * self.workload.derived / 2**20


CASES = (
    Case(Workload("forest", "closure, linear rule", inputs.forest, ROWS, program_of="W1"), 16),
    Case(Workload("forest", "closure, nonlinear rule", inputs.forest, ROWS, program_of="nonlinear"), 16),
    Case(Workload("forest", "closure that reads itself twice", inputs.forest, ROWS, program_of="twice"), 16),
)
ENGINES = {
    "dlog": engine_dlog.run,
    "souffle": engine_souffle.run_interpreted,
    "souffle -c": engine_souffle.run_compiled,
}


def run(options: Options) -> bool:
    """Measures, prints and saves; false where dlog's answer is wrong or its bound is missed."""
    rows, figures, kept = [], {}, True
    for case in CASES:
        for engine in (name for name in ENGINES if name in options.engines):
            found = measured(case, engine, options)
            figures[f"{case.workload.title} {engine}"] = found if isinstance(found, str) else found.peak_mb
            rows.append([case.workload.title, engine, *cells(case, found)])
            if engine == "dlog" and (isinstance(found, str) or found.peak_mb > case.bound_mb):
                kept = False
    title = f"a forest of {NODES:,} nodes, {ROWS['path']:,} pairs: peak memory of the process"
    show(title, ["workload", "engine", "evaluation", "peak, MB", "bytes per tuple", "dlog's bound, MB"], rows)
    save("memory", {"peak_mb": figures}, options.json)
    return memory_rounds.run(options) and kept


def measured(case: Case, engine: str, options: Options) -> Result | str:
    try:
        result = best_of(options.repeats, lambda: ENGINES[engine](case.workload, options.timeout))
    except NotMeasured as reason:
        return str(reason)
    return result if result.answer == case.workload.answer else "wrong answer"


def cells(case: Case, found: Result | str) -> list[str]:
    """The bytes are those of the whole process."""
    bound = f"{case.bound_mb:.0f}"
    if isinstance(found, str):
        return [found, "-", "-", bound]
    per_tuple = found.peak_mb * 2**20 / case.workload.derived
    return [seconds(found.eval_seconds), f"{found.peak_mb:.0f}", f"{per_tuple:.0f}", bound]
