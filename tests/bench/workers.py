"""Bulk rounds on one thread and on several: the first commit of a graph, a round of 100,000 changes, and rules that are added
beside what is there; changes of one row, which are to take as long on several threads as on one. Loads, batches and rules of
all programs together are to be AT_LEAST times as fast on two.

Times are on the wall, the least of several, numbers of threads in turn: they need cores that nothing else does. So do those of
differential dataflow, with as many workers.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import RowUpdates, Updates
from dlog.grammar.source import Source
from tests.bench.engine_rust import binary
from tests.bench.inputs import Rows, cache_folder
from tests.bench.process import NotMeasured, Options, measure
from tests.bench.report import as_ratio, console, save, seconds, show
from tests.bench.rounds_engine import insertions, text_of, warm_up

THREADS = (1, 2)
STEPS = ("load", "batch", "rules")
AT_LEAST = 1.6
MOST_OF_SINGLE = 1.1
"""Times as long that a change of one row may take on two threads."""
SINGLES = 1_000
COMPARED = ("reach", "degrees")
"""Workloads that differential dataflow has a program for."""
CHANGES = 100_000
REPEATS = 8
"""Fewest runs by each number of threads: what else the machine does takes time of two threads sooner than of one."""
TOUCHED_BYTES = 1 << 29
"""More than a step needs."""
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
    "closure": (text_of("closure"), 1000, 3000),
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
    single: float | None
    rules: float | None
    rows: dict[str, int]


def run(options: Options) -> bool:
    """Measures, prints and saves; false where numbers of threads differ in their answers."""
    found = {name: _measured(name, max(options.repeats, REPEATS)) for name in options.workloads}
    rivals = {f"{name}, differential": each for name in found if (each := _rival(name, options)) is not None}
    header = ["program", *(f"{step}, {t}" for step in STEPS for t in (*THREADS, "ratio")), "one row, us"]
    title = f"bulk rounds by threads (load of the machine {os.getloadavg()[0]:.1f})"
    together = {"all": list(map(_sum, zip(*found.values(), strict=True)))} if len(found) > 1 else {}
    show(title, header, (_cells(name, each) for name, each in (found | together | rivals).items()))
    save("workers", {name: [asdict(times) for times in each] for name, each in (found | rivals).items()}, options.json)
    same = all(one.rows == each[0].rows for each in found.values() for one in each)
    return same and all(map(_is_as_fast, found.values())) and (not together or _is_faster(*together["all"]))


def _is_as_fast(times: Sequence[Times]) -> bool:
    """Whether changes of one row take about as long on two threads as on one."""
    one, two = (t.single or 0.0 for t in times)
    return two <= MOST_OF_SINGLE * one


def _is_faster(one: Times, two: Times) -> bool:
    """Whether the times of all programs together are what is asked of two threads."""
    parts = [(one.load, two.load), (one.batch, two.batch), (one.rules or 0.0, two.rules or 0.0)]
    return all(left >= AT_LEAST * right for left, right in parts)


def _sum(found: Sequence[Times]) -> Times:
    """The times of several programs together."""
    return Times(sum(t.load for t in found), sum(t.batch for t in found), None, sum(t.rules or 0.0 for t in found), {})


def _cells(name: str, found: list[Times]) -> list[str]:
    cells = [name]
    for step in STEPS:
        each = [getattr(times, step) for times in found]
        cells += ["-"] * (len(each) + 1) if None in each else [*map(seconds, each), as_ratio(each[0] / each[-1])]
    singles = [times.single for times in found]
    return [*cells, "-" if None in singles else ", ".join(f"{1e6 * (single or 0.0):.3g}" for single in singles)]


def _measured(name: str, repeats: int) -> list[Times]:
    """The least time of each step by each number of threads, which take turns."""
    text, nodes, count = WORKLOADS[name]
    program, more = (compile_source(Source(t, name)) for t in (text, text + ADDED))
    edges = _edges(nodes, count)
    given = {"edge": edges} | {other: np.zeros((1, 1), np.int64) for other in program.inputs - {"edge"}}
    for known in (program, more):
        warm_up(known, given)
    found = [[_once(program, more, given, nodes, threads) for threads in THREADS] for _ in range(repeats)]
    return [_least(each) for each in zip(*found, strict=True)]


def _least(each: Sequence[Times]) -> Times:
    rules = [t.rules for t in each if t.rules is not None]
    load, batch, single = (min(getattr(t, step) for t in each) for step in ("load", "batch", "single"))
    return Times(load, batch, single, min(rules), each[0].rows)


def _once(program: Program, more: Program, given: dict[str, Rows], nodes: int, threads: int) -> Times:
    engine = Maintained(program, threads=threads)
    updates = {name: insertions(rows, 1) for name, rows in given.items()}
    touch_memory()
    load = taken(lambda: engine.commit(updates))
    change = {"edge": _changes(given["edge"], nodes)}
    touch_memory()
    batch = taken(lambda: engine.commit(change))
    single = _single(engine, given["edge"])
    followed = Maintained(more, threads=threads, old=engine)
    touch_memory()
    rules = taken(lambda: followed.commit({}))
    rows = {name: followed.rows(name) for name in more.relations}
    followed.close()
    return Times(load, batch, single, rules, rows)


def touch_memory() -> None:
    """Has the host of a virtual machine find memory for what comes: it takes back what is free, and a page that is touched then
    takes it longer than the steps take for what they have there, now on one number of threads and now on the other."""
    with mmap.mmap(-1, TOUCHED_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, TOUCHED_BYTES, mmap.PAGESIZE):
            pages[at] = 1


def _single(engine: Maintained, edges: Rows) -> float:
    """The seconds of a commit in which one edge goes or comes back, in the median."""
    found = []
    for edge in edges[-SINGLES // 2 :].tolist():
        for diff in (-1, 1):
            change = {"edge": RowUpdates({tuple(edge): diff}, len(edge), engine.round + 1)}
            found.append(taken(partial(engine.commit, change)))
    return float(np.median(found))


def taken(step: Callable[[], object]) -> float:
    """The seconds that a step takes on the wall."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _rival(name: str, options: Options) -> list[Times] | None:
    """Differential dataflow's loads and batches by workers; None where there are none."""
    if name not in COMPARED:
        return None
    try:
        program, folder = binary("differential", "dd_rounds"), _written(name)
        return [_best_of_rival([program, name, str(folder), "0", "1x1", "-w", str(t)], options) for t in THREADS]
    except NotMeasured as reason:
        console.print(f"{name}, differential: {reason}", markup=False)
        return None


def _best_of_rival(command: list[str], options: Options) -> Times:
    told = [json.loads(measure(command, options.timeout).stdout.splitlines()[-1]) for _ in range(options.repeats)]
    load, batch = min(t["load"] for t in told), min(t["calls"][0][0] for t in told) / 1e9
    return Times(load, batch, None, None, {"result": told[0]["rows"]})


def _written(name: str) -> Path:
    """The graph and its changes, all of one round, for the program in Rust."""
    _, nodes, count = WORKLOADS[name]
    folder, edges = cache_folder() / f"workers-{name}", _edges(nodes, count)
    folder.mkdir(parents=True, exist_ok=True)
    edges.astype("<u4").tofile(folder / "first.u32")
    change = _changes(edges, nodes)
    rows = np.column_stack([np.zeros(change.rows, np.int64), change.diffs, *change.columns])
    rows.astype("<i4").tofile(folder / "changes.i32")
    return folder


def _edges(nodes: int, count: int) -> Rows:
    """Edges of which none comes twice."""
    edges = np.random.default_rng(5).integers(0, nodes, (count, 2))
    _, first = np.unique(edges[:, 0] * nodes + edges[:, 1], return_index=True)
    kept: Rows = edges[np.sort(first)]
    return kept


def _changes(edges: Rows, nodes: int) -> Updates:
    """Half of the changes remove edges (each at most once), half insert some: no more than a tenth of all."""
    half = min(CHANGES, len(edges) // 10) // 2
    gone = edges[:half]
    come = np.random.default_rng(6).integers(0, nodes, (half, 2))
    columns = np.ascontiguousarray(np.concatenate([gone, come]).T)
    diffs = np.repeat(np.array([-1, 1]), half)
    return Updates((columns[0], columns[1]), diffs, np.full(2 * half, 2))
