"""W1-W9 on every engine in one run: evaluation times, ratios, memory, and whether each answer is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.bench import engine_dlog, engine_duckdb, engine_limit, engine_souffle
from tests.bench.process import NotMeasured, Options, Result, best_of, measure
from tests.bench.report import as_ratio, console, geometric_mean, save, seconds, show
from tests.bench.workloads import PROGRAMS, WORKLOADS, Workload

ENGINES: dict[str, Callable[[Workload, float], Result]] = {
    "dlog": engine_dlog.run,
    "limit": engine_limit.run,
    "duckdb": engine_duckdb.run,
    "souffle": engine_souffle.run_interpreted,
    "souffle -c": engine_souffle.run_compiled,
}
Figures = dict[str, dict[str, Result | str]]


def run(options: Options) -> bool:
    """Measures, prints and saves; false when an answer is wrong."""
    chosen, engines = [WORKLOADS[name] for name in options.workloads], options.engines
    figures = {workload.name: measure_all(workload, options) for workload in chosen}
    bases = base_memory(engines)
    show_times(chosen, engines, figures)
    show_ratios(chosen, engines, figures)
    show_memory(chosen, engines, figures, bases)
    wrong = wrong_answers(chosen, figures)
    for line in wrong:
        console.print(f"[bold red]{line}")
    if not wrong:
        console.print("every measured answer is right")
    save("suite", as_json(figures, bases, engines), options.json)
    return not wrong


def measure_all(workload: Workload, options: Options) -> dict[str, Result | str]:
    """A result for each engine, or the reason why there is none."""
    found: dict[str, Result | str] = {}
    for engine in options.engines:
        console.print(f"[dim]{workload.name} {engine}", end=" ")
        try:
            found[engine] = result = best_of(options.repeats, lambda engine=engine: ENGINES[engine](workload, options.timeout))
            console.print(f"[dim]{seconds(result.eval_seconds)}")
        except NotMeasured as reason:
            found[engine] = str(reason)
            console.print(str(reason), style="dim", markup=False)
    return found


def base_memory(engines: tuple[str, ...]) -> dict[str, float]:
    """Peak memory in MB of each command-line engine on a program of ten lines."""
    start = str(PROGRAMS / "start.dl")
    commands: dict[str, Callable[[], list[str]]] = {
        "dlog": lambda: [*engine_dlog.COMMAND, "run", start],
        "souffle": lambda: [engine_souffle.executable(), start],
        "souffle -c": lambda: engine_souffle.compiled(Path(start).read_text(encoding="ascii")),
    }
    bases = {}
    for engine in set(engines) & set(commands):
        try:
            bases[engine] = measure(commands[engine]()).peak_mb
        except NotMeasured:
            continue
    return bases


def ratio(dlog: Result | str | None, rival: Result | str) -> float | None:
    """How many times the rival's evaluation time dlog needs: below 1 is faster."""
    if isinstance(dlog, Result) and isinstance(rival, Result):
        return dlog.eval_seconds / rival.eval_seconds
    return None


def show_times(chosen: list[Workload], engines: tuple[str, ...], figures: Figures) -> None:
    def cell(result: Result | str) -> str:
        if isinstance(result, Result):
            return f"{seconds(result.eval_seconds)} ({result.peak_mb:.0f} MB)"
        return result if len(result) < 12 else "fails"

    rows = [[f"{w.name} {w.title}", *(cell(figures[w.name][engine]) for engine in engines)] for w in chosen]
    show("evaluation without load (peak memory of the process)", ["workload", *engines], rows)


def show_ratios(chosen: list[Workload], engines: tuple[str, ...], figures: Figures) -> None:
    rivals = [engine for engine in engines if engine != "dlog"]
    if "dlog" not in engines or not rivals:
        return
    table = {w.name: [ratio(figures[w.name]["dlog"], figures[w.name][rival]) for rival in rivals] for w in chosen}
    means = [mean([row[i] for row in table.values()]) for i in range(len(rivals))]
    rows = [[name, *map(as_ratio, row)] for name, row in [*table.items(), ("geometric mean", means)]]
    show("dlog's time as a multiple of the rival's (below 1: dlog is faster)", ["workload", *rivals], rows)


def mean(ratios: list[float | None]) -> float | None:
    known = [value for value in ratios if value is not None]
    return geometric_mean(known) if known else None


def show_memory(chosen: list[Workload], engines: tuple[str, ...], figures: Figures, bases: dict[str, float]) -> None:
    shown = [engine for engine in engines if engine in bases]
    if not shown:
        return

    def cell(workload: Workload, engine: str) -> str:
        result = figures[workload.name][engine]
        return "-" if isinstance(result, str) else f"{bytes_per_tuple(workload, result, bases[engine]):.0f}"

    rows = [[w.name, f"{w.derived:,}", *(cell(w, engine) for engine in shown)] for w in chosen]
    rows.append(["base, MB", "", *(f"{bases[engine]:.0f}" for engine in shown)])
    show("bytes above the base per derived tuple, inputs and indexes included", ["workload", "derived", *shown], rows)


def bytes_per_tuple(workload: Workload, result: Result, base_mb: float) -> float:
    return (result.peak_mb - base_mb) * 2**20 / workload.derived


def wrong_answers(chosen: list[Workload], figures: Figures) -> list[str]:
    return [
        f"{workload.name} {engine}: {result.answer} instead of {workload.answer}"
        for workload in chosen
        for engine, result in figures[workload.name].items()
        if isinstance(result, Result) and result.answer != workload.answer
    ]


def as_json(figures: Figures, bases: dict[str, float], engines: tuple[str, ...]) -> dict[str, object]:
    rivals = [engine for engine in engines if engine != "dlog"]
    ratios = {rival: {name: ratio(row.get("dlog"), row[rival]) for name, row in figures.items()} for rival in rivals}
    return {
        "results": {
            name: {engine: result if isinstance(result, str) else asdict(result) for engine, result in row.items()}
            for name, row in figures.items()
        },
        "ratios": ratios,
        "geometric_means": {rival: mean(list(row.values())) for rival, row in ratios.items()},
        "bytes_per_tuple": {
            name: {
                engine: bytes_per_tuple(WORKLOADS[name], result, bases[engine])
                for engine, result in row.items()
                if isinstance(result, Result) and engine in bases
            }
            for name, row in figures.items()
        },
        "base_mb": bases,
    }
