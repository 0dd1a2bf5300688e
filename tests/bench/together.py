"""A commit of 100,000 rounds, one change each, beside one round of the same changes: high-resolution times (row 2.3 of
docs/dataflow.md). Each round's changes are exact, so what a round of all leaves out, as it cancels, is done here.

Where nodes are so many that hardly two changes are of one, degrees are the same work: many rounds are to take at most twice as
long there. Times are on the wall, the least of several, on one thread. Both must come to the same rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.bench.inputs import Rows, random_graph
from tests.bench.process import Options
from tests.bench.report import as_ratio, save, seconds, show
from tests.bench.rounds_engine import insertions, text_of, warm_up
from tests.bench.workers import taken

CHANGES = 100_000
"""Half of them remove edges; no more than four fifths of all edges."""
BOUND, BOUNDED = 2.0, ("degrees 1m/4m",)
WORKLOADS = {
    "degrees 10k/50k": ("degrees", 10_000, 50_000),
    "degrees 1m/4m": ("degrees", 1_000_000, 4_000_000),
    "reach 1m/4m": ("reach", 1_000_000, 4_000_000),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of one round with all changes, and of as many rounds as there are changes; whether both have the same rows."""

    one: float
    many: float
    changes: int
    same: bool


def run(options: Options) -> bool:
    """Measures, prints and saves; false where rows differ, or many rounds take too long."""
    found = {name: _measured(*workload, options.repeats) for name, workload in WORKLOADS.items()}
    rows = [[name, f"{f.changes:,}", seconds(f.one), seconds(f.many), as_ratio(f.many / f.one)] for name, f in found.items()]
    show("as many rounds as changes, beside one", ["program", "changes", "one round", "many", "ratio"], rows)
    save("together", {name: asdict(figures) for name, figures in found.items()}, options.json)
    return all(f.same and (name not in BOUNDED or f.many <= BOUND * f.one) for name, f in found.items())


def _measured(name: str, nodes: int, count: int, repeats: int) -> Figures:
    program, edges = compile_source(Source(text_of(name), name)), random_graph(np.random.default_rng(3), nodes, count)
    given = {"edge": edges} | {other: np.zeros((1, 1), np.int64) for other in program.inputs - {"edge"}}
    warm_up(program, given)
    half = min(CHANGES, count * 4 // 5) // 2
    rows = np.empty((2 * half, 2), np.int64)
    rows[0::2], rows[1::2] = edges[:half], np.random.default_rng(6).integers(0, nodes, (half, 2))
    rounds = np.full(2 * half, 2), 2 + np.arange(2 * half)
    found = [[_once(program, given, rows, each) for each in rounds] for _ in range(repeats)]
    one, many = (min(seconds for seconds, _ in each) for each in zip(*found, strict=True))
    return Figures(one, many, 2 * half, len({left for each in found for _, left in each}) == 1)


def _once(program: Program, given: dict[str, Rows], rows: Rows, rounds: np.ndarray) -> tuple[float, int]:
    """The seconds of a commit of changes, and the rows that there are then in what is derived."""
    engine = Maintained(program)
    engine.commit({name: insertions(each, 1) for name, each in given.items()})
    first, second = np.ascontiguousarray(rows.T)
    change = {"edge": Updates((first, second), np.tile([-1, 1], len(rows) // 2), rounds)}
    time = taken(lambda: engine.commit(change))
    left = hash(b"".join(_sorted(engine, name) for name in sorted(program.derived)))
    engine.close()
    return time, left


def _sorted(engine: Maintained, name: str) -> bytes:
    """The rows of a relation, in order."""
    rows = np.array(engine.table(name).columns)
    return rows[:, np.lexsort(rows)].tobytes()
