"""Collections beside rules: breadth-first search and degrees, maintained by both, and by the rules that the collections
compile to, over the same changes of a random graph. Degrees also by counts in a scope of loops: the operator for times in
partial order (`general`), which that for rounds alone is to be 2.5 times as fast as where many edges change. Rounds of
520,000 changes are to take no longer than three million a second.

A case loads its edges, then changes one a round, round by round, then many rounds in one batch, then many edges a round. Times
are processor time of the committing thread. At the end all must have the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

import dlog
from dlog.dataflow import Dataflow
from tests.bench.process import Options
from tests.bench.report import save, seconds, show
from tests.dlog.dataflow.algorithms import distances

SINGLE, TOGETHER, BULK = 300, 5_000, 9
"""Rounds one by one, in a batch, and of many changes."""
CHANGES = 100_000
"""Changes of a round of many, half of them removals, in a graph of enough edges."""
SPECIALIZED = 2.5
MANY, FAST = 520_000, 3e6
"""Changes of a round, and how many a second there are to be then."""
BFS = """.decl edge(src: number, dst: number)
.decl root(node: number)
.decl found(node: number, distance: number)
found(x, 0) :- root(x).
found(y, d + 1) :- found(x, d), edge(x, y).
found(x, d) <= found(x, e) :- e < d.
"""
DEGREES = """.decl edge(src: number, dst: number)
.decl root(node: number)
.decl degree(src: number, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
.decl found(n: number, nodes: number)
found(n, m) :- degree(_, n), m = count : { degree(_, n) }.
"""


class Maintained(Protocol):
    """What follows changes of edges."""

    def change(self, edges: np.ndarray, diffs: np.ndarray, rounds: np.ndarray) -> None:
        """Does all rounds up to the last of these."""

    def rows(self) -> set[Any]: ...


class Rules:
    def __init__(self, text: str) -> None:
        self.session = dlog.session(text, {"root": [(0,)]}, threads=1)

    def change(self, edges: np.ndarray, diffs: np.ndarray, rounds: np.ndarray) -> None:
        self.session.commit_rounds({"edge": {"src": edges[:, 0], "dst": edges[:, 1], "diff": diffs, "round": rounds + 2}})

    def rows(self) -> set[Any]:
        return set(self.session["found"])


class Built:
    """The collections of a case."""

    def __init__(self, bfs: bool, general: bool = False) -> None:
        self.flow = Dataflow()
        self.edges = self.flow.input("edge", src=int, dst=int)
        self.roots = self.flow.input("root", node=int)
        counted = self.edges.enter(self.flow.scope.loop()) if general else self.edges
        degrees = counted.map("src").count("n").map("n").count("nodes")
        self.found = distances(self.roots, self.edges) if bfs else degrees.leave() if general else degrees


class Collections:
    general = False

    def __init__(self, bfs: bool) -> None:
        built = Built(bfs, self.general)
        self.flow, self.edges, self.found = built.flow, built.edges, built.found.capture()
        built.roots.insert([0])

    def change(self, edges: np.ndarray, diffs: np.ndarray, rounds: np.ndarray) -> None:
        self.edges.update(edges, diffs, at=rounds)
        self.flow.advance_to(int(rounds.max()) + 1)

    def rows(self) -> set[Any]:
        return set(self.found)


class General(Collections):
    """Counts by the operator for times in partial order."""

    general = True


class Compiled(Rules):
    """The rules that the collections compile to, with edges that are a set, as those of the others."""

    def __init__(self, bfs: bool) -> None:
        rules = dlog.rules(found=Built(bfs).found, sets=["edge", "root"] if bfs else ["edge"])
        self.session = rules.session({"root": [0]} if bfs else {"edge": []}, threads=1)


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds for loading, of a round done alone (median), of one in a batch, and of one of many changes (the mean but for
    the first: some of them merge what others have left); how many these are."""

    load: float
    alone: float
    together: float
    bulk: float
    changes: int


CASES: dict[str, tuple[str, bool, int, int, int]] = {
    "bfs 1k/3k": (BFS, True, 1_000, 3_000, CHANGES),
    "bfs 100k/500k": (BFS, True, 100_000, 500_000, CHANGES),
    "degrees 10k/50k": (DEGREES, False, 10_000, 50_000, CHANGES),
    "degrees 1m/5m": (DEGREES, False, 1_000_000, 5_000_000, CHANGES),
    "degrees 1m/5m, more": (DEGREES, False, 1_000_000, 5_000_000, MANY),
}
"""Programs, whether of distances, how many nodes and edges, and changes of a round of many."""


def run(options: Options) -> bool:
    """Measures, prints and saves; false where any two differ, the general count is too fast, or many changes are too slow."""
    lines, figures, well = [], {}, True
    for name, (text, bfs, nodes, size, most) in CASES.items():
        rules, expected = measure(Rules(text), nodes, size, most)
        figures[name] = {"rules": asdict(rules)}
        for maker in _makers(bfs, most):
            ours, found = measure(maker(bfs), nodes, size, most)
            well, kind = well and found == expected, maker.__name__.lower()
            figures[name][kind] = asdict(ours)
            lines.append([name, kind, *_cells(rules, ours), "same" if found == expected else "DIFFERENT"])
        ours = figures[name]["collections"]["bulk"]
        well = well and figures[name].get("general", {"bulk": SPECIALIZED * ours})["bulk"] >= SPECIALIZED * ours
        well = well and (most != MANY or most >= FAST * ours)
    columns = ["case", "as", "load", "round alone", "round in a batch", "round of many", "millions a second", "rows"]
    show("collections, and how many times as long as rules", columns, lines)
    save("collections", figures, options.json)
    return well


def _makers(bfs: bool, most: int) -> tuple[Callable[[bool], Maintained], ...]:
    """What is measured beside rules."""
    if most == MANY:
        return (Collections,)
    return (Collections, Compiled) if bfs else (Collections, General, Compiled)


def _cells(rules: Figures, ours: Figures) -> Iterable[str]:
    names = ("load", "alone", "together", "bulk")
    pairs = [(getattr(ours, name), getattr(rules, name)) for name in names]
    return [*(f"{seconds(mine)} ({mine / theirs:.1f}x)" for mine, theirs in pairs), f"{ours.changes / ours.bulk / 1e6:.1f}"]


def measure(maintained: Maintained, nodes: int, size: int, most: int) -> tuple[Figures, set[Any]]:
    rng = np.random.default_rng(3)
    there = np.unique(rng.integers(0, nodes, (size, 2)), axis=0)
    rng.shuffle(there)
    load = timed(lambda: maintained.change(there, np.ones(len(there), np.int64), np.zeros(len(there), np.int64)))
    taken = [timed(partial(_change, maintained, there, k, 1)) for k in range(SINGLE)]
    together = timed(partial(_change, maintained, there, SINGLE, TOGETHER))
    half = min(most // 2, len(there) // (2 * BULK))
    bulk = float(np.mean([timed(partial(maintained.change, *_many(there, k, half))) for k in range(BULK)][1:]))
    return Figures(load, float(np.median(taken)), together / TOGETHER, bulk, 2 * half), maintained.rows()


def _many(there: np.ndarray, k: int, half: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In each of the last rounds so many edges go, and those that went in the round before come back."""
    first = SINGLE + TOGETHER + 1 + k * half
    gone, back = (there[np.arange(first - s, first - s + half) % len(there)] for s in (0, half))
    edges = np.concatenate([gone, back]) if k else gone
    diffs = np.repeat([-1, 1], half)[: len(edges)]
    return edges, diffs, np.full(len(edges), SINGLE + TOGETHER + 1 + k)


def _change(maintained: Maintained, there: np.ndarray, first: int, rounds: int) -> None:
    maintained.change(*_changed(there, first, rounds))


def _changed(there: np.ndarray, first: int, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In each round another edge goes, and the one that went in the round before comes back."""
    gone = np.arange(first, first + rounds)
    edges = np.concatenate([there[gone % len(there)], there[(gone - 1) % len(there)]])
    diffs = np.repeat([-1, 1], rounds)
    kept = np.ones(2 * rounds, bool)
    kept[rounds] = first > 0  # before the first round no edge had gone
    return edges[kept], diffs[kept], np.concatenate([gone, gone])[kept] + 1


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
