"""Benches of reading and writing text: five million edges, as dlog, DuckDB and Souffle do it.

`python -m tests.bench.files load|write` is the DuckDB side, in a process of its own. Souffle's time of writing is that of a
program that loads and writes minus that of one that loads.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import engine_dlog, engine_souffle
from tests.bench.engine_duckdb import THREADS, duckdb
from tests.bench.process import NotMeasured, Options, best_seconds, measure
from tests.bench.report import as_ratio, quotient, save, seconds_or_reason, show
from tests.bench.workloads import PROGRAMS, WORKLOADS

EDGES = 5_000_000
LOAD, WRITE = PROGRAMS / "load.dl", PROGRAMS / "write.dl"
Engines = dict[str, Callable[[], float]]


def run_load(options: Options) -> bool:
    return compare("load", options, {"dlog": dlog_load, "duckdb": lambda: duckdb_seconds("load"), "souffle": souffle_load})


def run_write(options: Options) -> bool:
    return compare("write", options, {"dlog": dlog_write, "duckdb": lambda: duckdb_seconds("write"), "souffle": souffle_write})


def compare(bench: str, options: Options, engines: Engines) -> bool:
    chosen = {name: run for name, run in engines.items() if name in options.engines}
    times = {name: best_seconds(options.repeats, run) for name, run in chosen.items()}
    ratios = {name: quotient(times.get("dlog", "-"), value) for name, value in times.items()}
    rows = [[name, seconds_or_reason(value), as_ratio(ratios[name])] for name, value in times.items()]
    show(f"{bench} {EDGES:,} edges as tab-separated text", ["engine", bench, "dlog's time / engine's"], rows)
    save(bench, {"seconds": times, "ratios": ratios}, options.json)
    return not isinstance(times.get("dlog", 0.0), str)


def facts() -> Path:
    return WORKLOADS["W4"].facts()


def check_rows(rows: int) -> None:
    if rows != EDGES:
        raise NotMeasured(f"{rows:,} rows")


def check_written(path: Path) -> None:
    """The same rows in some order take the same number of bytes."""
    expected = (facts() / "edge.facts").stat().st_size
    if not path.exists() or path.stat().st_size != expected:
        raise NotMeasured("wrong output")


def dlog_load() -> float:
    done = engine_dlog.execute(LOAD, facts())
    check_rows(done.relations["edge"])
    return done.load_seconds


def dlog_write() -> float:
    with tempfile.TemporaryDirectory() as out:
        done = engine_dlog.execute(WRITE, facts(), out=Path(out))
        check_written(Path(out) / "edge.csv")
        return done.write_seconds


def souffle_load() -> float:
    cost, sizes = engine_souffle.execute(engine_souffle.interpreted(LOAD.read_text(encoding="ascii")), facts())
    check_rows(sizes["edge"])
    return cost.seconds


def souffle_write() -> float:
    command = engine_souffle.interpreted(WRITE.read_text(encoding="ascii"))
    with tempfile.TemporaryDirectory() as out:
        cost = measure([*command, "-F", str(facts()), "-D", out])
        check_written(Path(out) / "edge.csv")
    return cost.seconds - souffle_load()


def duckdb_seconds(bench: str) -> float:
    if duckdb is None:
        raise NotMeasured("absent")
    cost = measure([sys.executable, "-m", "tests.bench.files", bench])
    return json.loads(cost.stdout)


def main(bench: str) -> None:
    connection = duckdb.connect(config={"threads": THREADS})
    text, columns = facts() / "edge.facts", "{'x': 'bigint', 'y': 'bigint'}"
    read = f"from read_csv('{text}', delim = '\t', header = false, auto_detect = false, columns = {columns})"
    start = time.perf_counter()
    connection.execute(f"create table edge as {read}")
    taken = time.perf_counter() - start
    check_rows(connection.execute("select count(*) from edge").fetchone()[0])
    if bench == "write":
        with tempfile.TemporaryDirectory() as out:
            start = time.perf_counter()
            connection.execute(f"copy edge to '{out}/edge.csv' (delimiter '\t', header false)")
            taken = time.perf_counter() - start
            check_written(Path(out) / "edge.csv")
    print(json.dumps(taken))


if __name__ == "__main__":
    main(sys.argv[1])
