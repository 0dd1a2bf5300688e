"""Bulk rounds on one thread and on several: the first commit of a graph, a round of 100,000 changes, and rules that are added
beside what is there. What is small enough for one thread is not here: it is the same for any number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.runtime.incremental.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.bench.inputs import Rows
from tests.bench.process import Options
from tests.bench.report import as_ratio, save, seconds, show
from tests.bench.rounds_engine import insertions, text_of, warm_up

THREADS = (1, 2)
CHANGES = 100_000
ADDED = """
.decl back(x: number, y: number)
.decl indegree(x: number, edges: number)
back(y, x) :- edge(x, y), x < y.
indegree(y, n) :- edge(_, y), n = count : { edge(_, y) }.
"""
EDGES = ".decl edge(x: number, y: number)\n.input edge\n"
AGGREGATES = """
.decl out(x: number, s: number)
.decl into(x: number, s: number)
.decl least(x: number, y: number)
.decl greatest(x: number, y: number)
out(x, s) :- edge(x, _), s = sum y : { edge(x, y) }.
into(y, s) :- edge(_, y), s = sum x : { edge(x, y) }.
least(y, x) :- edge(_, y), x = min z : { edge(z, y) }.
greatest(y, x) :- edge(_, y), x = max z : { edge(z, y) }.
"""
JOINS = """
.decl two(x: number, z: number)
.decl sibling(x: number, y: number)
.decl mutual(x: number, y: number)
two(x, z) :- edge(x, y), edge(y, z).
sibling(x, y) :- edge(p, x), edge(p, y), x < y.
mutual(x, y) :- edge(x, y), edge(y, x).
"""
WORKLOADS = {
    "closure": (text_of("closure"), 2000, 6000),
    "reach": (text_of("reach"), 1_000_000, 4_000_000),
    "degrees": (text_of("degrees"), 1_000_000, 4_000_000),
    "triangles": (text_of("triangles"), 1_000_000, 4_000_000),
    "aggregates": (EDGES + AGGREGATES, 1_000_000, 4_000_000),
    "joins": (EDGES + JOINS, 1_000_000, 2_000_000),
}
"""Programs over `edge`, with how many nodes and edges; `aggregates` and `joins` are of several strata that do not read each
other."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, and how many rows each relation has at the end."""

    load: float
    batch: float
    rules: float
    rows: dict[str, int]


def run(options: Options) -> bool:
    """Measures, prints and saves; false where numbers of threads differ in their answers."""
    found = {name: [_best(name, threads, options.repeats) for threads in THREADS] for name in options.workloads}
    steps = ("load", "batch", "rules")
    header = ["program", *(f"{step}, {t}" for step in steps for t in (*THREADS, "ratio"))]
    load = os.getloadavg()[0]
    show(f"bulk rounds by threads (load of the machine {load:.1f})", header, (_cells(n, f, steps) for n, f in found.items()))
    save("workers", {name: [asdict(times) for times in each] for name, each in found.items()}, options.json)
    return all(one.rows == each[0].rows for each in found.values() for one in each)


def _cells(name: str, found: list[Times], steps: tuple[str, ...]) -> list[str]:
    cells = [name]
    for step in steps:
        taken = [getattr(times, step) for times in found]
        cells += [*map(seconds, taken), as_ratio(taken[0] / taken[-1])]
    return cells


def _best(name: str, threads: int, repeats: int) -> Times:
    """The least time of each step."""
    each = list(_measured(name, threads, repeats))
    return Times(min(t.load for t in each), min(t.batch for t in each), min(t.rules for t in each), each[0].rows)


def _measured(name: str, threads: int, repeats: int) -> Iterator[Times]:
    text, nodes, count = WORKLOADS[name]
    program, more = (compile_source(Source(t, name)) for t in (text, text + ADDED))
    edges = np.random.default_rng(5).integers(0, nodes, (count, 2))
    given = {"edge": edges} | {other: np.zeros((1, 1), np.int64) for other in program.inputs - {"edge"}}
    for known in (program, more):
        warm_up(known, given)
    for _ in range(repeats):
        yield _once(program, more, given, nodes, threads)


def _once(program: Program, more: Program, given: dict[str, Rows], nodes: int, threads: int) -> Times:
    engine, clock = Maintained(program, threads=threads), time.perf_counter
    updates = {name: insertions(rows, 1) for name, rows in given.items()}
    start = clock()
    engine.commit(updates)
    load = clock() - start
    change = {"edge": _changes(given["edge"], nodes)}
    start = clock()
    engine.commit(change)
    batch = clock() - start
    followed = Maintained(more, threads=threads, old=engine)
    start = clock()
    followed.commit({})
    rules = clock() - start
    rows = {name: followed.rows(name) for name in more.relations}
    followed.close()
    return Times(load, batch, rules, rows)


def _changes(edges: Rows, nodes: int) -> Updates:
    """Half of the changes remove edges (each at most once), half insert some: no more than a tenth of all."""
    half = min(CHANGES, len(edges) // 10) // 2
    gone = edges[:half]
    come = np.random.default_rng(6).integers(0, nodes, (half, 2))
    columns = np.ascontiguousarray(np.concatenate([gone, come]).T)
    diffs = np.repeat(np.array([-1, 1]), half)
    return Updates((columns[0], columns[1]), diffs, np.full(2 * half, 2))
