"""Queries 1 and 13 of TPC-H while their tables come in batches of 1,000, 10,000 and 100,000 rows, a round each: by rules, by
collections whose counts know that rounds are in total order, and by collections with the general operator.

Times are the process's own, of one thread, from the first row to the last round. The published figures (differential dataflow
in 2017, scale factor 1, one worker) are scaled by the scale factor alone. All answers are compared with DuckDB's.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from tests.bench.inputs import cache_folder
from tests.bench.process import Options
from tests.bench.report import console, save, seconds, show
from tests.tpch.batches import TABLE, WAYS, feed_all
from tests.tpch.data import MISSING, Refresh, Tables, generate, generator, read
from tests.tpch.engines import Recomputed, same
from tests.tpch.queries import Query

PUBLISHED = {
    "q1-1000": (1.48, 4.04), "q1-10000": (1.42, 4.24), "q1-100000": (1.61, 5.10),
    "q13-1000": (2.24, 6.18), "q13-10000": (1.66, 4.47), "q13-100000": (1.52, 3.83),
}  # fmt: skip
"""Seconds by `count_total_u` and by `count_u`."""
WORKLOADS = tuple(PUBLISHED)


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds by each way, and the published ones."""

    rules: float
    collections: float
    general: float
    published_total: float
    published_general: float
    right: bool


def run(options: Options) -> bool:
    """Measures, prints and saves; false where an answer is wrong, or without the generator."""
    if generator() is None:
        console.print(MISSING, markup=False)
        return False
    folder = generate(cache_folder() / f"tpch-{options.scale:g}", options.scale)
    tables = read(folder, options.scale)
    database = Recomputed(folder, Refresh.of(tables["orders"], 0))
    expected = {name: database.answer(Query(name, options.scale).sql) for name in TABLE}
    database.close()
    found = {workload: measure(workload, tables, expected, options) for workload in options.workloads}
    header = ["query, rows a batch", "rules", "collections", "general", "general / total", "published", "general", "answers"]
    title = f"TPC-H 1 and 13 in batches at scale {options.scale:g}; published figures times {options.scale:g}"
    show(title, header, [_line(name, figures) for name, figures in found.items()])
    save("tpch-batches", {"scale": options.scale, "figures": {n: asdict(f) for n, f in found.items()}}, options.json)
    return all(f.right for f in found.values())


def measure(workload: str, tables: Tables, expected: Tables, options: Options) -> Figures:
    """The best of some runs by each way."""
    name, batch = workload.split("-")
    total, general = (options.scale * published for published in PUBLISHED[workload])
    taken, right = {}, True
    for way, make in WAYS.items():
        runs = []
        for _ in range(options.repeats):
            start = time.process_time()
            fed = make(name, tables)
            feed_all(fed, tables[TABLE[name]], int(batch))
            rows = fed.rows()
            runs.append(time.process_time() - start)
            right &= same(rows, expected[name])
            fed.close()
        taken[way] = min(runs)
    return Figures(**taken, published_total=total, published_general=general, right=right)


def _line(name: str, f: Figures) -> list[str]:
    times = map(seconds, (f.rules, f.collections, f.general))
    published = map(seconds, (f.published_total, f.published_general))
    return [name, *times, f"{f.general / f.collections:.2f}", *published, "right" if f.right else "WRONG"]
