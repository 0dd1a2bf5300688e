"""Pathway (differential dataflow in Rust under Python) on the changing graph of W10.

`measured` runs this file by the interpreter that $PATHWAY_PYTHON names, by default this one; the data goes through a folder.
Changes come from a connector's thread, which sends each round, a mark, and waits until the mark has come through.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MARK = 10**9
"""Nodes from here on are marks."""
ABSENT = 77
"""Exit code of an interpreter without Pathway."""


@dataclass(frozen=True, slots=True)
class Told:
    load_seconds: float
    nanos: np.ndarray
    rss_mb: float
    rows: np.ndarray


def measured(query: str, data: dict[str, np.ndarray], changes: np.ndarray, timeout: float = 900) -> Told:
    """What the rival takes for a query over rounds of changes; raises `NotMeasured`."""
    from tests.bench.process import NotMeasured, last_line

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "in.npz", edge=data["edge"], source=data["source"], changes=changes)
        python = os.environ.get("PATHWAY_PYTHON", sys.executable)
        command = [python, str(Path(__file__).resolve()), query, name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"> {timeout:.0f} s") from None
        if done.returncode == ABSENT:
            raise NotMeasured("not installed")
        if done.returncode:
            raise NotMeasured(last_line(done.stderr) or "fails")
        figures = json.loads((folder / "told.json").read_text())
        with np.load(folder / "out.npz") as out:
            return Told(figures["load"], out["nanos"], figures["rss_mb"], out["rows"])


# ------------------------------------------------------------------------------------------- what the rival's process runs


class Driver:
    """Sends the rounds and takes their times."""

    def __init__(self, edges: list[Any], changes: list[Any]) -> None:
        self.edges = edges
        self.changes = changes
        self.sent = self.seen = self.pending = 0
        self.came_through = threading.Condition()
        self.load_seconds = 0.0
        self.nanos: list[int] = []
        self.rows: dict[Any, int] = {}

    def subject(self, pw: Any) -> Any:
        driver = self

        class Subject(pw.io.python.ConnectorSubject):
            @property
            def _deletions_enabled(self) -> bool:
                return True

            def run(self) -> None:
                driver.send_all(self)

        return Subject()

    def send_all(self, subject: Any) -> None:
        start = time.perf_counter()
        for x, y in self.edges:
            subject.next(a=x, b=y)
        self.finish_round(subject)
        self.load_seconds = time.perf_counter() - start
        at = 0
        while at < len(self.changes):
            number, before = self.changes[at][0], time.perf_counter_ns()
            while at < len(self.changes) and self.changes[at][0] == number:
                _, diff, x, y = self.changes[at]
                (subject.next if diff > 0 else subject.delete)(a=x, b=y)
                at += 1
            self.finish_round(subject)
            self.nanos.append(time.perf_counter_ns() - before)

    def finish_round(self, subject: Any) -> None:
        self.sent += 1
        subject.next(a=MARK + self.sent, b=0)
        subject.commit()
        with self.came_through:
            while self.seen < self.sent:
                self.came_through.wait(0.5)

    def on_change(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        if row["n"] >= MARK:
            self.pending = max(self.pending, row["n"] - MARK)
            return
        found = tuple(row.values())
        self.rows[found] = self.rows.get(found, 0) + (1 if is_addition else -1)

    def on_time_end(self, time: int) -> None:
        with self.came_through:
            self.seen = self.pending
            self.came_through.notify_all()


def reachability(pw: Any, edges: Any, source: int) -> Any:
    start = table(pw, n=[source])
    first = start.groupby(start.n).reduce(start.n)

    def step(reach: Any, first: Any, edges: Any) -> dict[str, Any]:
        new = reach.join(edges, pw.left.n == pw.right.a).select(n=pw.right.b)
        both = first.concat_reindex(new)
        return {"reach": both.groupby(both.n).reduce(both.n), "first": first, "edges": edges}

    return pw.iterate(step, reach=pw.iterate_universe(first), first=first, edges=edges).reach


def least_values(pw: Any, edges: Any, first: Any, step_cost: int) -> Any:
    """The least of a node's first value and those of its predecessors plus the cost of a step."""

    def step(least: Any, first: Any, edges: Any) -> dict[str, Any]:
        new = least.join(edges, pw.left.n == pw.right.a).select(n=pw.right.b, v=pw.left.v + step_cost)
        both = first.concat_reindex(new)
        return {"least": both.groupby(both.n).reduce(both.n, v=pw.reducers.min(both.v)), "first": first, "edges": edges}

    return pw.iterate(step, least=pw.iterate_universe(first), first=first, edges=edges).least


def table(pw: Any, **columns: list[int]) -> Any:
    import pandas as pd

    return pw.debug.table_from_pandas(pd.DataFrame(columns))


def answer(pw: Any, query: str, edges: Any, source: int, nodes: int) -> Any:
    if query == "reach":
        return reachability(pw, edges, source)
    if query == "bfs":
        start = table(pw, n=[source], v=[0])
        return least_values(pw, edges, start.groupby(start.n).reduce(start.n, v=pw.reducers.min(start.v)), 1)
    names = list(range(nodes))
    start = table(pw, n=names, v=names)
    both_ways = edges.concat_reindex(edges.select(a=edges.b, b=edges.a))
    return least_values(pw, both_ways, start.groupby(start.n).reduce(start.n, v=pw.reducers.min(start.v)), 0)


def main(query: str, folder: Path) -> None:
    try:
        import pathway as pw
    except ImportError:
        os._exit(ABSENT)
    import logging

    logging.disable(logging.CRITICAL)
    with np.load(folder / "in.npz") as given:
        edge, source, changes = given["edge"], int(given["source"][0]), given["changes"]
    driver = Driver(edge.tolist(), changes.tolist())

    class Edge(pw.Schema):
        a: int = pw.column_definition(primary_key=True)
        b: int = pw.column_definition(primary_key=True)

    edges = pw.io.python.read(driver.subject(pw), schema=Edge, autocommit_duration_ms=None)
    marks = edges.filter(edges.a >= MARK)
    found = answer(pw, query, edges.filter(edges.a < MARK), source, int(edge.max()) + 1)
    told = marks.select(n=marks.a) if query == "reach" else marks.select(n=marks.a, v=0)
    pw.io.subscribe(found.concat_reindex(told), on_change=driver.on_change, on_time_end=driver.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    write(driver, folder)


def write(driver: Driver, folder: Path) -> None:
    import resource

    rows = np.array(sorted(row for row, count in driver.rows.items() if count > 0), np.int64)
    np.savez(folder / "out.npz", nanos=np.array(driver.nanos), rows=rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (folder / "told.json").write_text(json.dumps({"load": driver.load_seconds, "rss_mb": peak}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
