"""The latency of single rounds over ten million of them: whether it stays what it was, and the memory, too.

As in the posts on differential dataflow: breadth-first search in random graphs of which in each round one edge comes or
goes, and how the times of the next 1,000 rounds are distributed after 1,000, 10,000, ... of them. The picture shows these
distributions, and the times of each 100,000 rounds one after the other. Distances are compared with a search anew at the end.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from tests.bench.inputs import cache_folder
from tests.bench.process import Options
from tests.bench.report import console, save, seconds, show
from tests.bench.rounds_engine import Loaded, Nanos, is_right, load, native_rounds
from tests.bench.rounds_streams import Stream, rooted_graph
from tests.bench.rounds_twins import distance_rows

MILLION = 1_000_000
GRAPHS = {"1k": (1000, 2000), "1m": (MILLION, 10 * MILLION), "10m": (10 * MILLION, 100 * MILLION)}
"""Nodes and edges."""
ROUNDS = 10 * MILLION
WINDOW = 100_000
SAMPLE = 1000
BOUND = 1.2
"""The most that a quantile of the last million rounds may be of that of the first; memory alike."""
SLACK = 1 << 20
"""Bytes that do not count: those of a small graph are few."""
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
BOUNDED = 3
"""So many of them, the first ones, are bounded: what few rounds take is also what else the machine does."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds and bytes of the first round, which loads the edges; of each window after it the quantiles in nanoseconds and the
    bytes at its end; `samples` by the rounds before them."""

    load: float
    loaded: int
    windows: list[list[float]]
    used: list[int]
    samples: dict[int, list[int]]
    right: bool

    @property
    def growth(self) -> list[float]:
        """Of the bounded quantiles, and of the memory, from the first tenth of the windows to the last one."""
        tenth = max(len(self.windows) // 10, 1)
        windows = np.array(self.windows)[:, :BOUNDED]
        latency = np.median(windows[-tenth:], axis=0) / np.median(windows[:tenth], axis=0)
        return [*latency.tolist(), (self.used[-1] + SLACK) / (self.used[tenth - 1] + SLACK)]


def run(options: Options) -> bool:
    rounds = options.rounds
    found = {name: measure(*GRAPHS[name], rounds) for name in options.workloads}
    header = ["nodes", "after", *(f"p{100 * q:g}, us" for q in QUANTILES), "MB"]
    table = [row for name, figures in found.items() for row in rows(name, figures)]
    show(f"latency of single rounds over {rounds:,} of them", header, table)
    for name, figures in found.items():
        (*latency, memory), edges = figures.growth, GRAPHS[name][1]
        told = ", ".join(f"p{100 * q:g} {growth:.2f}" for q, growth in zip(QUANTILES, latency, strict=False))
        load = f"{edges:,} edges loaded in {seconds(figures.load)}, {figures.loaded / edges:.0f} bytes each"
        console.print(f"{name}: {load}; last tenth over first: {told}, memory {memory:.2f}", markup=False)
    plot(found, cache_folder() / "results" / "latency.png")
    save("latency", {name: asdict(figures) for name, figures in found.items()}, options.json)
    return all(figures.right and max(figures.growth) <= BOUND for figures in found.values())


def measure(nodes: int, edges: int, rounds: int) -> Figures:
    pairs, root = rooted_graph(1, nodes, edges, rounds // 2)
    stream = pairs.one_by_one()
    loaded = load("bfs", {"edge": stream.first, "root": np.array([root])})
    figures = rounds_of(loaded, stream)
    right = is_right(loaded.engine, "dist", stream, lambda rows: distance_rows(nodes, rows, root))
    loaded.close()
    return replace(figures, right=right)


def rounds_of(loaded: Loaded, stream: Stream) -> Figures:
    """All rounds of a stream, window by window."""
    engine, figures = loaded.engine, Figures(loaded.seconds, loaded.used, [], [], {}, True)
    for first in range(0, stream.rounds, WINDOW):
        nanos = native_rounds(engine, replace(stream, changed=stream.changed[first : first + WINDOW]))
        figures.windows.append(np.quantile(nanos, QUANTILES).tolist())
        figures.used.append(engine.memory.used)
        figures.samples.update(samples(nanos, first, stream.rounds))
    return figures


def samples(nanos: Nanos, first: int, rounds: int) -> dict[int, list[int]]:
    """The samples that begin in a window, which begins at round `first`; the last one ends with it."""
    powers = (10**k for k in range(3, 8))
    found = {after: nanos[after - first :][:SAMPLE] for after in powers if first <= after < first + WINDOW}
    if first + WINDOW >= rounds:
        found[rounds] = nanos[-SAMPLE:]
    return {after: times.tolist() for after, times in found.items()}


def rows(name: str, figures: Figures) -> list[list[str]]:
    """One for each tenth of the windows."""
    tenth = max(len(figures.windows) // 10, 1)
    chosen = [0, *range(tenth - 1, len(figures.windows), tenth)]
    return [
        [name, f"{(at + 1) * WINDOW:,}", *(f"{t / 1000:.3g}" for t in figures.windows[at]), f"{figures.used[at] / 1e6:,.0f}"]
        for at in dict.fromkeys(chosen)
    ]


def plot(found: dict[str, Figures], path: Path) -> None:
    """A picture of the figures, where matplotlib is installed."""
    try:
        from matplotlib import pyplot
    except ImportError:
        console.print("no picture: install matplotlib", markup=False)
        return
    figure, axes = pyplot.subplots(2, len(found), figsize=(6 * len(found), 8), squeeze=False)
    for (name, figures), above, below in zip(found.items(), axes[0], axes[1], strict=True):
        for after, times in sorted(figures.samples.items()):
            above.loglog(np.sort(times) / 1000, 1 - np.arange(len(times)) / len(times), label=f"after {after:,}")
        above.set(title=f"{name} nodes: the next 1,000 rounds", xlabel="microseconds", ylabel="fraction that takes longer")
        above.legend()
        ends = np.arange(1, len(figures.windows) + 1) * WINDOW
        for quantile, times in zip(QUANTILES, np.array(figures.windows).T, strict=True):
            below.semilogy(ends, times / 1000, label=f"p{100 * quantile:g}")
        below.set(xlabel="rounds", ylabel="microseconds")
        below.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    console.print(f"plot: {path}", soft_wrap=True)
