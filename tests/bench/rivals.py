"""W1-W9 on every engine that is there, side by side in one run, and the nearest rival of each.

One run of each engine after the other, then all of them again, so that none has a quieter machine than the others; the best
counts. Rust programs are built by cargo (engine_rust.py); Souffle, datatoad and FlowLog are measured where $SOUFFLE, $DATATOAD
and $FLOWLOG (its compiler), or PATH, have them. Every answer is checked.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.bench import engine_rust, suite
from tests.bench.engine_datatoad import datatoad
from tests.bench.engine_flowlog import flowlog
from tests.bench.process import NotMeasured, Options, Result
from tests.bench.report import console, save, seconds, show
from tests.bench.workloads import WORKLOADS, Workload

ENGINES: dict[str, Callable[[Workload, float], Result]] = {
    "dlog": suite.ENGINES["dlog"],
    "dd -w1": engine_rust.differential(1),
    "dd -w2": engine_rust.differential(2),
    "ascent": engine_rust.ascent(1),
    "ascent par": engine_rust.ascent(2),
    "datafrog": engine_rust.datafrog,
    "datatoad -w1": datatoad(1),
    "datatoad -w2": datatoad(2),
    "flowlog -w1": flowlog(1),
    "flowlog -w2": flowlog(2),
    "duckdb": suite.ENGINES["duckdb"],
    "souffle": suite.ENGINES["souffle"],
    "souffle -c": suite.ENGINES["souffle -c"],
}
SLOW = 10.0
"""Seconds of a run that is not repeated."""


def run(options: Options) -> bool:
    """Measures, prints and saves; false when an answer is wrong."""
    chosen, engines = [WORKLOADS[name] for name in options.workloads], options.engines
    figures = {workload.name: measure_in_turn(workload, options) for workload in chosen}
    suite.show_times(chosen, engines, figures)
    show_nearest(chosen, figures)
    wrong = suite.wrong_answers(chosen, figures)
    for line in wrong:
        console.print(f"[bold red]{line}")
    if not wrong:
        console.print("every measured answer is right")
    save("rivals", suite.as_json(figures, {}, engines), options.json)
    return not wrong


def measure_in_turn(workload: Workload, options: Options) -> dict[str, Result | str]:
    """The best of the runs of each engine, or the reason why there is none."""
    found: dict[str, Result | str] = {}
    for _ in range(options.repeats):
        for engine in options.engines:
            best = found.get(engine)
            if isinstance(best, str) or (best is not None and best.wall > SLOW):
                continue
            try:
                result = ENGINES[engine](workload, options.timeout)
                found[engine] = result if best is None or result.eval_seconds < best.eval_seconds else best
            except NotMeasured as reason:
                found[engine] = str(reason)
    told = ", ".join(f"{e} {seconds(r.eval_seconds)}" for e, r in found.items() if isinstance(r, Result))
    console.print(f"[dim]{workload.name} {told}")
    return found


def nearest(row: dict[str, Result | str]) -> tuple[str, float] | None:
    """The fastest rival, and how many times dlog's time it takes."""
    dlog = row.get("dlog")
    rivals = [(r.eval_seconds, engine) for engine, r in row.items() if isinstance(r, Result) and engine != "dlog"]
    if not rivals or not isinstance(dlog, Result):
        return None
    return min(rivals)[1], min(rivals)[0] / dlog.eval_seconds


def show_nearest(chosen: list[Workload], figures: suite.Figures) -> None:
    rows = []
    for workload in chosen:
        row = figures[workload.name]
        if (found := nearest(row)) is not None:
            mine, other = row["dlog"], row[found[0]]
            assert isinstance(mine, Result) and isinstance(other, Result)
            times = seconds(mine.eval_seconds), found[0], seconds(other.eval_seconds), f"{found[1]:.1f}"
            rows.append([f"{workload.name} {workload.title}", *times])
    show("the nearest rival", ["workload", "dlog", "rival", "its time", "ratio"], rows)
