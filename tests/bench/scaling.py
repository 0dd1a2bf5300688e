"""Benches of growth: many iterations (`chain`), and time per derived tuple over three decades (`growth`)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import engine_dlog, engine_souffle, inputs
from tests.bench.process import NotMeasured, Options, Result, best_of, best_seconds
from tests.bench.report import console, save, seconds, seconds_or_reason, show
from tests.bench.workloads import WORKLOADS, Workload

CHAIN_NODES = 200_000
CHAIN_BOUND = 0.5
CHAIN = Workload("chain", "path, node by node", inputs.chain, {"reach": CHAIN_NODES}, program_of="W4")

# Below this, time is the engine's fixed cost and not growth.
NOTICEABLE = 0.02


def run_chain(options: Options) -> bool:
    """A path of 200,000 nodes reached one by one: 200,000 iterations of one tuple each."""
    engines: dict[str, Callable[[Workload, float], Result]] = {
        "dlog": engine_dlog.run,
        "souffle": engine_souffle.run_interpreted,
        "souffle -c": engine_souffle.run_compiled,
    }

    def one(run: Callable[[Workload, float], Result]) -> float:
        result = run(CHAIN, options.timeout)
        if result.answer != CHAIN.answer:
            raise NotMeasured("wrong answer")
        return result.eval_seconds

    chosen = {name: run for name, run in engines.items() if name in options.engines}
    figures = {name: best_seconds(options.repeats, lambda run=run: one(run)) for name, run in chosen.items()}
    show(
        f"a path of {CHAIN_NODES:,} nodes reached one by one (bound: {seconds(CHAIN_BOUND)})",
        ["engine", "evaluation", "per iteration"],
        [
            [name, seconds_or_reason(v), "" if isinstance(v, str) else f"{v / CHAIN_NODES * 1e9:.0f} ns"]
            for name, v in figures.items()
        ],
    )
    save("chain", {"seconds": figures, "bound": CHAIN_BOUND}, options.json)
    return isinstance(figures.get("dlog"), float) and figures["dlog"] <= CHAIN_BOUND


@dataclass(frozen=True, slots=True)
class Point:
    nodes: int
    derived: int
    seconds: float

    @property
    def per_tuple(self) -> float:
        return self.seconds / self.derived


# Recipe, nodes and edges per node of the largest member of a family, and how often it is halved: three decades of the input,
# for the closure (whose output grows with the square) of the output.
FAMILIES: dict[str, tuple[Callable[[int, int], dict[str, inputs.Rows]], int, int, int]] = {
    "W1": (inputs.closure, 2000, 3, 5),
    "W4": (inputs.reachability, 1_000_000, 5, 10),
    "W5": (inputs.components, 500_000, 2, 10),
    "W7": (inputs.triangles, 100_000, 10, 10),
}


def run_growth(options: Options) -> bool:
    """Each family twice as large from point to point; false when the time per derived tuple more than doubles somewhere."""
    families = [name for name in FAMILIES if name in options.workloads]
    curves = {name: curve(name, options) for name in families}
    rows = [row for name, points in curves.items() for row in table_of(name, points)]
    show("dlog: growth", ["workload", "nodes", "derived", "evaluation", "ns per tuple", "against half the size"], rows)
    steepest = {name: max(steps(points), default=0.0) for name, points in curves.items()}
    for name, factor in steepest.items():
        verdict = f"at most {factor:.2f} times the time per tuple when the input doubles, above {seconds(NOTICEABLE)}"
        console.print(f"{name}: {verdict} ({'kept' if factor <= 2 else 'missed'})")
    figures = {name: [(p.nodes, p.derived, p.seconds) for p in points] for name, points in curves.items()}
    saved = save("growth", {"points": figures, "steepest": steepest}, options.json)
    plot(curves, saved.with_suffix(".png"))
    return all(len(points) > 1 for points in curves.values()) and all(factor <= 2 for factor in steepest.values())


def curve(name: str, options: Options) -> list[Point]:
    recipe, nodes, degree, halvings = FAMILIES[name]
    points = []
    for size in (nodes >> k for k in range(halvings, -1, -1)):
        make = functools.partial(recipe, size, size * degree)
        member = Workload(f"growth/{name}-{size}", "", make, dict.fromkeys(WORKLOADS[name].rows, 0), program_of=name)
        try:
            result = best_of(options.repeats, lambda member=member: engine_dlog.run(member, options.timeout))
        except NotMeasured as reason:
            console.print(f"{name} with {size:,} nodes: {reason}", markup=False)
            return []
        points.append(Point(size, max(sum(result.answer.values()), 1), result.eval_seconds))
    if result.answer != WORKLOADS[name].answer:
        console.print(f"{name}: {result.answer} instead of {WORKLOADS[name].answer}", markup=False)
        return []
    return points


def steps(points: list[Point]) -> list[float]:
    """How the time per tuple changes from point to point, where it is noticeable."""
    pairs = itertools.pairwise(points)
    return [after.per_tuple / before.per_tuple for before, after in pairs if after.seconds >= NOTICEABLE]


def table_of(name: str, points: list[Point]) -> list[list[str]]:
    before = [None, *points[:-1]]
    return [
        [
            name,
            f"{point.nodes:,}",
            f"{point.derived:,}",
            seconds(point.seconds),
            f"{point.per_tuple * 1e9:.1f}",
            f"{point.per_tuple / last.per_tuple:.2f}" if last else "",
        ]
        for last, point in zip(before, points, strict=True)
    ]


def plot(curves: dict[str, list[Point]], path: Path) -> None:
    """A picture of the table, where matplotlib is installed."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return
    figure, axes = pyplot.subplots()
    for name, points in curves.items():
        axes.loglog([p.nodes for p in points], [p.per_tuple * 1e9 for p in points], marker="o", label=name)
    axes.set_xlabel("nodes")
    axes.set_ylabel("nanoseconds per derived tuple")
    axes.legend()
    figure.savefig(path)
    console.print(f"plot: {path}", soft_wrap=True)
