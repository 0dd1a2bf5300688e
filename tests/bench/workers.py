"""Bulk rounds on one thread and on several: the first commit of a graph, a round of 100,000 changes, and rules that are added
beside what is there. What is small enough for one thread is not here: it is the same for any number.

Times are what a step takes on cores that nothing else needs, from the clocks of processor time of its threads: all that is not
done by workers, and where workers run side by side the busiest one's. Where they wait for each other counts for nothing.
Differential dataflow, with as many workers, tells time on the wall, which needs a quiet machine.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.sharing import running
from dlog.engine.runtime.incremental.batches.sharing import Share
from dlog.engine.runtime.incremental.batches.strata_runner import StrataRun, StrataRunner
from dlog.engine.runtime.incremental.batches.worker import BatchWorker
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.bench.engine_rust import binary
from tests.bench.inputs import Rows, cache_folder
from tests.bench.process import NotMeasured, Options, measure
from tests.bench.report import as_ratio, console, save, seconds, show
from tests.bench.rounds_engine import insertions, text_of, warm_up

THREADS = (1, 2)
STEPS = ("load", "batch", "rules")
COMPARED = ("reach", "degrees")
"""Workloads that differential dataflow has a program for."""
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
    rules: float | None
    rows: dict[str, int]


def run(options: Options) -> bool:
    """Measures, prints and saves; false where numbers of threads differ in their answers."""
    found = {name: [_best(name, threads, options.repeats) for threads in THREADS] for name in options.workloads}
    rivals = {f"{name}, differential": each for name in found if (each := _rival(name, options)) is not None}
    header = ["program", *(f"{step}, {t}" for step in STEPS for t in (*THREADS, "ratio"))]
    title = f"bulk rounds by threads: the longest way (load of the machine {os.getloadavg()[0]:.1f})"
    together = {"all": list(map(_sum, zip(*found.values(), strict=True)))} if len(found) > 1 else {}
    show(title, header, (_cells(name, each) for name, each in (found | together | rivals).items()))
    save("workers", {name: [asdict(times) for times in each] for name, each in (found | rivals).items()}, options.json)
    return all(one.rows == each[0].rows for each in found.values() for one in each)


def _sum(found: Sequence[Times]) -> Times:
    """The times of several programs together."""
    return Times(sum(t.load for t in found), sum(t.batch for t in found), sum(t.rules or 0.0 for t in found), {})


def _cells(name: str, found: list[Times]) -> list[str]:
    cells = [name]
    for step in STEPS:
        taken = [getattr(times, step) for times in found]
        none = None in taken
        cells += ["-"] * (len(taken) + 1) if none else [*map(seconds, taken), as_ratio(taken[0] / taken[-1])]
    return cells


def _best(name: str, threads: int, repeats: int) -> Times:
    """The least time of each step."""
    each = list(_measured(name, threads, repeats))
    rules = [t.rules for t in each if t.rules is not None]
    return Times(min(t.load for t in each), min(t.batch for t in each), min(rules), each[0].rows)


def _measured(name: str, threads: int, repeats: int) -> Iterator[Times]:
    text, nodes, count = WORKLOADS[name]
    program, more = (compile_source(Source(t, name)) for t in (text, text + ADDED))
    edges = _edges(nodes, count)
    given = {"edge": edges} | {other: np.zeros((1, 1), np.int64) for other in program.inputs - {"edge"}}
    for known in (program, more):
        warm_up(known, given)
    for _ in range(repeats):
        yield _once(program, more, given, nodes, threads)


def _once(program: Program, more: Program, given: dict[str, Rows], nodes: int, threads: int) -> Times:
    engine = Maintained(program, threads=threads)
    updates = {name: insertions(rows, 1) for name, rows in given.items()}
    load = _taken(lambda: engine.commit(updates))
    change = {"edge": _changes(given["edge"], nodes)}
    batch = _taken(lambda: engine.commit(change))
    followed = Maintained(more, threads=threads, old=engine)
    rules = _taken(lambda: followed.commit({}))
    rows = {name: followed.rows(name) for name in more.relations}
    followed.close()
    return Times(load, batch, rules, rows)


def _taken(step: Callable[[], object]) -> float:
    """The processor time of the longest way through a step: of this thread, and of the busiest worker of each section."""
    start = time.thread_time()
    with _sections() as (sections, steps):
        step()
    # The first part of what workers do together is done by this thread.
    alone = time.thread_time() - start - sum([step.get(0, 0.0) for step in steps])
    return alone + sum([max(section.values(), default=0.0) for section in (*sections, *steps)])


@contextmanager
def _sections() -> Iterator[tuple[list[dict[int, float]], list[dict[int, float]]]]:
    """By section of batches, what each worker (its number) needs; by step that workers do together, what each part does."""
    found: list[dict[int, float]] = []
    steps: list[dict[int, float]] = []
    run_all, each, run = StrataRun.all, StrataRunner.each, StrataRun._run

    def noted(number: int, work: Callable[[], Any]) -> Any:
        start = time.thread_time()
        result = work()
        found[-1][number] = found[-1].get(number, 0.0) + time.thread_time() - start
        return result

    def all_noted(self: StrataRun) -> None:
        found.append({})
        run_all(self)

    def run_noted(self: StrataRun, worker: BatchWorker) -> int:
        return int(noted(worker.control[L.control.number], lambda: run(self, worker)))

    def each_noted(self: StrataRunner, tasks: Sequence[Callable[[Struct], bool]]) -> None:
        found.append({})
        each(self, [lambda c, t=t: noted(c[L.control.number], lambda: t(c)) for t in tasks])  # type: ignore[misc]

    def parts_noted(self: Share, pool: Executor, shares: Sequence[Share]) -> list[bool]:
        """Each part as a task of its own: otherwise a thread goes from one to the next and takes its time alone."""
        steps.append({})
        parts = [partial(part_noted, self, share, number, len(shares)) for number, share in enumerate(shares)]
        others = [pool.submit(part) for part in parts[1:]]
        return [parts[0](), *(other.result() for other in others)]

    def part_noted(step: Share, own: Share, part: int, parts: int) -> bool:
        start = time.thread_time()
        done = bool(running.run_part(step.struct.address, own.control.address, part, parts))
        steps[-1][part] = time.thread_time() - start
        return done

    with (
        patch.object(StrataRun, "all", all_noted),
        patch.object(StrataRun, "_run", run_noted),
        patch.object(StrataRunner, "each", each_noted),
        patch.object(Share, "do_parts", parts_noted),
    ):
        yield found, steps


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
    return Times(min(t["load"] for t in told), min(t["calls"][0][0] for t in told) / 1e9, None, {"result": told[0]["rows"]})


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
