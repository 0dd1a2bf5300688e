"""The 22 queries of TPC-H, maintained while orders come and go, beside DuckDB, which computes them anew after each round.

In a round a tenth of a percent of the orders is inserted with its items, and as many are deleted (RF1 and RF2). A round of
dlog's is the commit and the reading of the answer, in the order and as far as the query asks for; DuckDB's is the query alone,
for all queries share its tables: what the changes of these take is told once. Each answer is compared after each round, without
its `LIMIT`, and as far as its order is asked for. Both have as many threads as the machine has cores, and run in turn.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from typing import Any, TypeVar

from tests.bench.inputs import cache_folder
from tests.bench.process import Options
from tests.bench.report import console, geometric_mean, save, seconds, show
from tests.tpch.data import KEYS, MISSING, Refresh, generate, generator, read
from tests.tpch.engines import Maintained, Recomputed, same, same_order
from tests.tpch.queries import NAMES, Query

WORKLOADS = NAMES
SCALE, ROUNDS = 0.1, 10
T = TypeVar("T")


@dataclass(slots=True)
class Figures:
    """Seconds of a query: of opening its session with all rows, and round by round; bytes that dlog holds at the end."""

    load: float
    maintained: list[float] = field(default_factory=list)
    reading: list[float] = field(default_factory=list)
    """The part of `maintained` in which the answer is read."""
    recomputed: list[float] = field(default_factory=list)
    changing: list[float] = field(default_factory=list)
    """What the same changes took DuckDB."""
    rows: int = 0
    changes: bool = False
    """Whether the query reads a table that changes."""
    right: bool = True

    @property
    def ratio(self) -> float:
        return median(self.recomputed) / median(self.maintained)


def run(options: Options) -> bool:
    """Measures, prints and saves; false where an answer is wrong, or without the generator."""
    if generator() is None:
        console.print(MISSING, markup=False)
        return False
    rounds = options.rounds
    folder = generate(cache_folder() / f"tpch-{options.scale:g}", options.scale)
    tables = read(folder, options.scale)
    refresh = Refresh.of(tables["orders"], rounds)
    first, changes = refresh.first(tables), list(refresh.rounds(tables))
    del tables
    found = {}
    for name in options.workloads:
        recomputed = Recomputed(folder, refresh)
        found[name] = measure(Query(name, options.scale), first, changes, recomputed)
        recomputed.close()
    _show(found, options, sum(t.num_rows for t in changes[0][0].values()))
    save("tpch", {"scale": options.scale, "queries": {name: asdict(f) for name, f in found.items()}}, options.json)
    return all(f.right for f in found.values())


def measure(query: Query, first: Any, changes: Any, recomputed: Recomputed) -> Figures:
    """A query over all rounds, by both."""
    load, maintained = timed(partial(Maintained, query, first))
    with maintained:
        figures = Figures(load, changes=bool(maintained.inputs & set(KEYS)))
        gc.collect()
        for inserted, deleted in changes:
            commit, _ = timed(partial(maintained.change, inserted, deleted))
            reading, ours = timed(maintained.presented)
            figures.changing.append(timed(recomputed.change)[0])
            anew, theirs = timed(partial(recomputed.answer, query.sql))
            figures.maintained.append(commit + reading)
            figures.reading.append(reading)
            figures.recomputed.append(anew)
            rows = maintained.rows()
            figures.rows = rows.num_rows
            figures.right &= same(rows, recomputed.answer(query.whole_sql)) and same_order(query, ours, theirs)
    return figures


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _show(found: dict[str, Figures], options: Options, changed: int) -> None:
    header = ["query", "load", "round", "longest", "of it reading", "DuckDB anew", "DuckDB / dlog", "rows", "answers"]
    come = f"{changed:,} rows come and about as many go in each"
    title = f"TPC-H at scale {options.scale:g}, {options.rounds} rounds: {come} (load of the machine {os.getloadavg()[0]:.1f})"
    show(title, header, [_line(name, figures) for name, figures in found.items()])
    ratios = [f.ratio for f in found.values() if f.changes]
    if ratios:
        mean, least = geometric_mean(ratios), min(ratios)
        console.print(f"queries that read what changes: {mean:.1f} times in the mean (geometric), at least {least:.1f} times")
    changing = median(t for f in found.values() for t in f.changing)
    console.print(f"the same changes take DuckDB {seconds(changing)} a round, which is in none of its figures")


def _line(name: str, f: Figures) -> list[str]:
    times = map(seconds, (f.load, median(f.maintained), max(f.maintained), median(f.reading), median(f.recomputed)))
    ratio = f"{f.ratio:.1f}" + ("" if f.changes else " (nothing it reads changes)")
    return [name, *times, ratio, f"{f.rows:,}", "right" if f.right else "WRONG"]
