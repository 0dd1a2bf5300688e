"""Queries 1 and 13 of TPC-H while their tables come in batches of 1,000, 10,000 and 100,000 rows, a round each: by rules that
declare the columns that they read and the key, by the same with all columns of the table (`wide`), by collections whose counts
know that rounds are in total order, and by collections with the general operator. Beside them differential dataflow in Rust,
where there is cargo. Query 13 looks into the comments as they come, in all of them: in Rust these are bytes in memory already,
here columns of Arrow's. Query 1 has flags as texts here, in Rust as one number for both.

Times are a process's own, of one thread, from the first row to the last round. The published figures (differential dataflow
in 2017, scale factor 1, one worker) are scaled by the scale factor alone. All answers are compared with DuckDB's, whose time is
that of computing the answer anew after each batch: told from that for the whole table, of which half is there on average.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.bench.engine_rust import binary
from tests.bench.inputs import cache_folder
from tests.bench.process import Options, best_seconds
from tests.bench.process import measure as measured
from tests.bench.report import console, save, seconds, seconds_or_reason, show
from tests.tpch.batches import TABLE, WAYS, feed_all
from tests.tpch.data import MISSING, Refresh, Tables, generate, generator, numbers, read
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
    """Seconds by each way, and the published ones; of differential dataflow's two counts, or why there are none; of DuckDB,
    which computes each answer anew."""

    rules: float
    all_columns: float
    collections: float
    general: float
    differential: float | str
    differential_general: float | str
    published: float
    published_general: float
    anew: float
    right: bool


def run(options: Options) -> bool:
    """Measures, prints and saves; false where an answer is wrong, or without the generator."""
    if generator() is None:
        console.print(MISSING, markup=False)
        return False
    folder = generate(cache_folder() / f"tpch-{options.scale:g}", options.scale)
    tables = read(folder, options.scale)
    database = Recomputed(folder, Refresh.of(tables["orders"], 0), threads=1)
    queries = {name: Query(name, options.scale).sql for name in TABLE}
    expected = {name: database.answer(sql) for name, sql in queries.items()}
    anew = {name: _processor_seconds(partial(database.answer, sql), options.repeats) for name, sql in queries.items()}
    database.close()
    written = written_for_rust(folder, tables)
    found = {workload: measure(workload, tables, expected, anew, written, options) for workload in options.workloads}
    ours = ["rules", "wide", "collections", "general", "gen. / total"]
    theirs = ["DD in Rust", "general", "published", "general", "DuckDB anew"]
    header = ["query, rows a batch", *ours, *theirs, "answers"]
    title = f"TPC-H 1 and 13 in batches at scale {options.scale:g}; published figures times {options.scale:g}"
    show(title, header, [_line(name, figures) for name, figures in found.items()])
    save("tpch-batches", {"scale": options.scale, "figures": {n: asdict(f) for n, f in found.items()}}, options.json)
    return all(f.right for f in found.values())


def measure(
    workload: str, tables: Tables, expected: Tables, anew: Mapping[str, float], written: Path, options: Options
) -> Figures:
    """The best of some runs by each way; `anew` has the seconds that DuckDB takes for the whole table, by query."""
    name, batch = workload.split("-")
    total, general = (options.scale * published for published in PUBLISHED[workload])
    in_turn = (partial(in_rust, name, batch, way, written, expected[name]) for way in ("total", "general"))
    rust = [best_seconds(options.repeats, run) for run in in_turn]
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
    recomputed = anew[name] * tables[TABLE[name]].num_rows / int(batch) / 2
    return Figures(*(taken[way] for way in WAYS), rust[0], rust[1], total, general, recomputed, right)


def _processor_seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of some runs."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def written_for_rust(folder: Path, tables: Tables) -> Path:
    """The folder with what the program in Rust reads: files of 32-bit integers, and one of the bytes of comments."""
    written = folder / "rust"
    if not (written / "comments").is_file():
        written.mkdir(exist_ok=True)
        items, orders = tables["lineitem"], tables["orders"]
        flags = pc.binary_join_element_wise(items["l_returnflag"], items["l_linestatus"], "").combine_chunks()
        columns = ("l_quantity", "l_extendedprice", "l_discount", "l_tax")
        shipped = items["l_shipdate"].cast(pa.int32())
        _write(written / "q1.u32", flags.dictionary_encode().indices, *(items[name] for name in columns), shipped)
        _write(written / "q13.u32", orders["o_custkey"], pc.binary_length(orders["o_comment"]))
        _write(written / "customers.u32", tables["customer"]["c_custkey"])
        (written / "comments").write_bytes("".join(orders["o_comment"].to_pylist()).encode())
    return written


def _write(path: Path, *columns: pa.Array | pa.ChunkedArray) -> None:
    np.stack([column.to_numpy() for column in columns], 1).astype("<u4").tofile(path)


def in_rust(name: str, batch: str, way: str, written: Path, expected: pa.Table) -> float:
    """Seconds of differential dataflow. Raises NotMeasured where it cannot be built, ValueError where it answers otherwise."""
    told = json.loads(measured([binary("differential", "dd_tpch"), name, str(written), batch, way]).stdout)
    sums = ("count_order", "sum_qty", "sum_base_price", "sum_disc_price", "sum_charge")
    chosen = expected.select(sums if name == "q1" else ("c_count", "custdist"))
    found = [[int(number) for number in re.findall(r"-?\d+", row)] for row, _ in told["rows"]]
    listed = [row[1:6] if name == "q1" else row for row in found]
    if sorted(listed) != sorted(map(list, zip(*(numbers(c).to_pylist() for c in chosen.columns), strict=True))):
        raise ValueError(f"differential dataflow answers {name} otherwise")
    seconds: float = told["seconds"]
    return seconds


def _line(name: str, f: Figures) -> list[str]:
    times = map(seconds, (f.rules, f.all_columns, f.collections, f.general))
    theirs = map(seconds_or_reason, (f.differential, f.differential_general, f.published, f.published_general, f.anew))
    return [name, *times, f"{f.general / f.collections:.2f}", *theirs, "right" if f.right else "WRONG"]
