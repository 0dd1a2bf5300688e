"""Long-lived sessions: opening a state and committing to it again, after a close and after a kill, and rules that come and go
beside a large closure. Each is measured beside deriving everything, which is what it saves.

Times are the process's own, so that other work on the machine does not count. The kill is a child process that ends at once.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dlog
from tests.bench.process import Options
from tests.bench.report import save, seconds, show

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
RULE = ".decl back(x: number, y: number)\nback(y, x) :- edge(x, y)."
READER = ".decl first(x: number)\nfirst(x) :- path(1, x)."
SAVED = 5
"""Going on must be at least so many times faster than deriving everything."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds, and bytes of the image for each derived row."""

    rows: int
    derived: float
    closed: float
    killed: float
    commit: float
    close: float
    rule: float
    reader: float
    dropped: float
    opened: float
    other: float
    bytes_per_row: float


def run(options: Options) -> bool:
    """Measures, prints and saves; false when an answer is wrong or going on saves too little."""
    inputs = {"giant component, 1,000 nodes": _random(), "125,000 chains of 8 nodes": _chains()}
    measured = {name: measure(edges, options.repeats) for name, edges in inputs.items()}
    times = ["derived", "after close", "after kill", "commit", "close", "rule", "reader", "drop", "open", "other"]
    header = ["closure", "rows", *times, "bytes"]
    rows = [_row(name, figures) for name, figures in measured.items()]
    show("sessions that live on: the first commit, and rules that come and go", header, rows)
    save("live", {name: asdict(figures) for name, figures in measured.items()}, options.json)
    return all(SAVED * max(f.closed, f.killed, f.rule, f.dropped, f.other) <= f.derived for f in measured.values())


def _row(name: str, f: Figures) -> list[str]:
    times = (f.derived, f.closed, f.killed, f.commit, f.close, f.rule, f.reader, f.dropped, f.opened, f.other)
    return [name, f"{f.rows:,}", *map(seconds, times), f"{f.bytes_per_row:.0f}"]


def _random() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 1000, (5000, 2))


def _chains() -> np.ndarray:
    starts = (np.arange(125_000)[:, None] * 8 + np.arange(7)).ravel()
    return np.column_stack([starts, starts + 1])


def measure(edges: np.ndarray, repeats: int) -> Figures:
    """One closure; each time is the least of several, but for those of single commits, which are medians."""
    with tempfile.TemporaryDirectory() as folder:
        return _measure(edges, repeats, Path(folder))


def _measure(edges: np.ndarray, repeats: int, folder: Path) -> Figures:
    last = edges[-1].tolist()
    with _open(folder) as s:
        s.insert("edge", {"x": edges[:, 0], "y": edges[:, 1]})
        derived, _ = timed(s.commit)
        rows = s.rows("path")
    bytes = sum(path.stat().st_size for path in folder.glob("*.image"))
    closed = min(_first_commit(_open(folder), last) for _ in range(repeats))
    killed = min(_after_kill(folder, last) for _ in range(repeats))
    s = _open(folder)
    commits = []
    for number in range(2 * repeats + 1):
        (s.insert if number % 2 else s.remove)("edge", tuple(last))
        commits.append(timed(s.commit)[0])
    changed = [(timed(lambda: s.add_rules(RULE))[0], timed(lambda: s.add_rules(READER))[0]) for _ in _undoing(s, repeats)]
    dropped = _dropping(s, repeats)
    close, _ = timed(s.close)
    opened = min(_opening(folder, PROGRAM) for _ in range(repeats))
    other = min(_opening(folder, f"{PROGRAM}{text}\n") for text in [RULE, READER] * repeats)
    rule, reader = (min(times) for times in zip(*changed, strict=True))
    commit = statistics.median(commits)
    return Figures(rows, derived, closed, killed, commit, close, rule, reader, dropped, opened, other, bytes / rows)


def _open(folder: Path) -> dlog.Session:
    return dlog.session(PROGRAM, state=folder, threads=1, sync="never")


def _opening(folder: Path, program: str) -> float:
    """Opening a state that was closed, with its own program or with another one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        took, s = timed(lambda: dlog.session(program, state=folder, threads=1, sync="never"))
    s.close()
    return took


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def _first_commit(s: dlog.Session, edge: list[int]) -> float:
    with s:
        s.remove("edge", tuple(edge))
        took, _ = timed(s.commit)
        s.insert("edge", tuple(edge))
        s.commit()
    return took


def _after_kill(folder: Path, edge: list[int]) -> float:
    """The first commit after a child has committed and ended without a close."""
    child = os.fork()
    if child == 0:
        s = _open(folder)
        s.remove("edge", tuple(edge))
        s.commit()
        os._exit(0)
    os.waitpid(child, 0)
    s = _open(folder)
    s.insert("edge", tuple(edge))
    took, _ = timed(s.commit)
    s.close()
    return took


def _undoing(s: dlog.Session, repeats: int) -> Any:
    for _ in range(repeats):
        yield
        s.drop_relation("back")
        s.drop_relation("first")


def _dropping(s: dlog.Session, repeats: int) -> float:
    found = []
    for _ in range(repeats):
        s.add_rules(RULE)
        found.append(timed(lambda: s.drop_relation("back"))[0])
    return min(found)
