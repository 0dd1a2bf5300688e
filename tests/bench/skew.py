"""One vertex with a tenth of the edges among 16 workers (threads of this process): the largest worker against the mean, in rows
and in seconds of the processor, with heavy values spread and without."""

from __future__ import annotations

import time

import numpy as np

from dlog.engine.cluster.executor import SPLIT_ROWS, ShardExecutor
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.values.table import Table
from dlog.pipeline import compile_program
from tests.bench.process import Options
from tests.bench.report import console, save, seconds, show
from tests.engine.cluster.test_skew import skewed
from tests.shards import in_worker_group

WORKERS = 16
NEVER = 1 << 62
PROGRAMS = {
    "two edges": ("r(x, z) :- e(x, y), e(y, z).", 120_000),
    "two edges, not through the hub": ("r(x, z) :- e(x, y), e(y, z), y != 0.", 500_000),
    "edges turned round": ("r(y, x) :- e(x, y).", 1_000_000),
}
"""Each with a number of edges."""


def run(options: Options) -> bool:
    """Measures, prints and saves; false when answers differ."""
    rows, saved = [], {}
    right = True
    for name, (program, edges) in PROGRAMS.items():
        given = np.array(skewed(edges, edges // 5))
        sizes = set()
        for everywhere in (SPLIT_ROWS * 40, 0):
            for split_rows in (NEVER, SPLIT_ROWS):
                found = measured(program, given, everywhere, split_rows)
                sizes.add(found.pop("found"))
                saved[f"{name}, {everywhere}, {split_rows}"] = found
                how = "copied to all" if everywhere else "moved"
                spread = "spread" if split_rows == SPLIT_ROWS else "together"
                ratios = [f"{found[what]:.2f}" for what in ("edges", "rows", "processor")]
                rows.append([name, how, spread, *ratios, seconds(found["most"])])
        right = right and len(sizes) == 1
    show(f"largest of {WORKERS} workers / mean", ["", "edges", "heavy values", "edges", "result", "processor", "largest"], rows)
    if not right:
        console.print("[bold red]spreading changes the number of rows")
    save("skew", saved, options.json)
    return right


def measured(text: str, edges: np.ndarray, everywhere: int, split_rows: int) -> dict[str, float]:
    program = compile_program(f".decl e(x: number, y: number)\n.decl r(x: number, y: number)\n{text}\n")

    def work(worker_group: WorkerGroup) -> tuple[int, int, float]:
        executor = ShardExecutor(program, worker_group, everywhere=everywhere, split_rows=split_rows)
        share = edges[worker_group.rank :: WORKERS]
        executor.load("e", Table(program.relations["e"].kinds, (share[:, 0].copy(), share[:, 1].copy())))
        begun = time.thread_time()
        executor.run()
        return executor.rows("e"), executor.rows("r"), time.thread_time() - begun

    held, found, taken = (np.array(column, float) for column in zip(*in_worker_group(WORKERS, work), strict=True))
    figures = {name: float(c.max() / c.mean()) for name, c in (("edges", held), ("rows", found), ("processor", taken))}
    return {**figures, "most": float(taken.max()), "found": int(found.sum())}
