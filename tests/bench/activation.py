"""Static order against dynamic activation, as Streamulus tells it: one graph of operators, and changes that touch a growing
share of them. `static` goes through all operators in topological order, whatever has come; `queue` is what the scheduler does:
an operator that something reaches waits in a priority queue. `fused` is what a dataflow does with operators without state: a
chain is one function, and the queue has its ends alone.

The operators are the engine's, each adds one to a column. Times are processor time of a round, the least of some runs of which
each goes through all shares. All three must add up to the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.inputs import Source
from dlog.engine.operators.operator import Function, Operator, joined, same
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from tests.bench.process import Options
from tests.bench.report import save, show

CHAINS, LENGTH = 64, 16
SHARES = (1, 2, 4, 8, 16, 24, 32, 40, 48, 64)
"""Chains that a round changes."""
UPDATES = 60_000
"""Operators that are touched for each figure, at least."""
BEHIND = 1.2
"""What fused chains may cost by the better of the two others."""


class Ordered(Scheduler):
    """Activates every operator in topological order, once a round: nothing waits in a queue."""

    order: list[Operator]

    def wake(self, operator: Operator, moment: Moment) -> None:  # type: ignore[override]
        """What has arrived stays where it is until its operator's turn."""

    def begin(self, high: int) -> None:
        super().begin(high)
        if not hasattr(self, "order"):
            paths = self._paths
            self.order = [o for _, o in sorted(enumerate(self.operators), key=lambda each: paths[each[0]])]  # type: ignore[misc]

    def run(self) -> None:
        for operator in self.order:
            operator.activate(())


class Step(Operator):
    """Passes on what comes."""

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is not None:
            self.emit(delta)


class Total(Operator):
    """Adds up what comes."""

    total = 0

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        for delta in arrived[0]:
            self.total += int((delta.columns[0] * delta.diffs).sum())


def one_more(delta: Delta) -> Delta:
    return delta.with_columns((delta.columns[0] + 1,))


def fused(delta: Delta) -> Delta:
    """All steps of a chain."""
    for _ in range(LENGTH):
        delta = one_more(delta)
    return delta


@dataclass
class Graph:
    """Chains of steps from inputs to one total."""

    scheduler: Scheduler
    is_fused: bool = False
    sources: list[Source] = field(default_factory=list)

    def __post_init__(self) -> None:
        scope = Scope()
        self.total = Total(self.scheduler, scope)
        for _ in range(CHAINS):
            at: Operator = Source(self.scheduler, scope)
            self.sources.append(at)  # type: ignore[arg-type]
            functions: list[Function] = [fused] if self.is_fused else [one_more] * LENGTH
            for function in functions:
                step = Step(self.scheduler, scope)
                step.connect(at, function)
                at = step
            self.total.connect(at, same)

    def round(self, chains: int) -> None:
        """A round in which one row comes to each of so many chains, spread over all."""
        scheduler = self.scheduler
        now = scheduler.rounds.high
        for k in range(chains):
            rounds, one = np.array([[now]], np.int64), np.ones(1, np.int64)
            self.sources[k * CHAINS // chains].put(Delta((np.array([now + k]),), rounds, one), now, now)
        scheduler.begin(now + 1)
        scheduler.run()


KINDS: dict[str, Callable[[], Graph]] = {
    "static": lambda: Graph(Ordered()),
    "queue": lambda: Graph(Scheduler()),
    "fused": lambda: Graph(Scheduler(), True),
}


def run(options: Options) -> bool:
    """Prints and saves; false where totals differ, the lines do not cross, or fused chains are more than so far behind."""
    figures: dict[str, dict[int, float]] = {name: {} for name in KINDS}
    for _ in range(options.repeats):
        graphs = {name: build() for name, build in KINDS.items()}
        for chains in SHARES:
            for name, graph in graphs.items():
                taken = seconds_of(graph, chains)
                figures[name][chains] = min(taken, figures[name].get(chains, taken))
        totals = {graph.total.total for graph in graphs.values()}
        if len(totals) > 1:
            raise AssertionError(f"the totals differ: {totals}")
    header = ["operators touched", *KINDS, "queue / static", "fused / better"]
    show(f"a round of {CHAINS} chains of {LENGTH} operators, in us", header, map(_row(figures), SHARES))
    crossing = crossing_of(figures["queue"], figures["static"])
    print("static is never less" if crossing is None else f"static costs less from {crossing:.0%} of the operators on\n")
    save("activation", {"figures": figures, "crossing": crossing}, options.json)
    return crossing is not None and all(_behind(figures, chains) <= BEHIND for chains in SHARES)


def seconds_of(graph: Graph, chains: int) -> float:
    """The mean of some rounds."""
    rounds = max(10, UPDATES // (chains * LENGTH))
    begin = time.process_time()
    for _ in range(rounds):
        graph.round(chains)
    return (time.process_time() - begin) / rounds


def crossing_of(above: dict[int, float], below: dict[int, float]) -> float | None:
    """The share of the chains from which on one line is above the other: between the two shares where they cross, along
    straight lines.

    >>> crossing_of({16: 1.0, 48: 5.0}, {16: 3.0, 48: 3.0})
    0.5
    """
    shares = sorted(above)
    last = [share for share in shares if above[share] <= below[share]]
    if not last or last[-1] == shares[-1]:
        return None
    left = last[-1]
    right = shares[shares.index(left) + 1]
    before, after = below[left] - above[left], above[right] - below[right]
    return (left + (right - left) * before / (before + after)) / CHAINS


def _row(figures: dict[str, dict[int, float]]) -> Callable[[int], list[str]]:
    def row(chains: int) -> list[str]:
        times = {name: figures[name][chains] for name in KINDS}
        shown = [f"{1e6 * taken:,.0f}" for taken in times.values()]
        return [f"{chains / CHAINS:.1%}", *shown, f"{times['queue'] / times['static']:.2f}", f"{_behind(figures, chains):.2f}"]

    return row


def _behind(figures: dict[str, dict[int, float]], chains: int) -> float:
    return figures["fused"][chains] / min(figures["queue"][chains], figures["static"][chains])
