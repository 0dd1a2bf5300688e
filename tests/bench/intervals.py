"""Intervals that begin and end by the clock: what a commit costs while millions of them wait, beside what is due in it.

All intervals are loaded in one commit; then the clock goes on, a round a commit. In the second half a hundred intervals come
with each, which have to find their places among those that wait. At last the clock jumps: all that is due on the way is done in
one commit. A collection counts the intervals that are valid, by a key, and has the right counts at the end.

Times are the committing thread's own processor time; Python's collector of cycles does not run.
"""

from __future__ import annotations

import gc
import time
from dataclasses import asdict, dataclass

import numpy as np

from dlog.dataflow import Dataflow, col, now
from dlog.dataflow.flow import Input
from dlog.dataflow.outputs import Captured
from tests.bench.process import Options
from tests.bench.report import save, seconds, show

SIZES = {"1m": 1_000_000, "10m": 10_000_000}
HORIZON = 1_000_000
"""Rounds in which the intervals begin."""
LONGEST = 100_000
KEYS = 100
COMMITS = 2_000
"""In which nothing comes, and as many in which some come,"""
COMING = 100
"""so many each."""
JUMP = 10_000
LEAST, DUE = 1e-3, 2e-6
"""A commit takes at most so many seconds, and so many for each update that is due or comes: the longest ten times as much, for
what a machine does meanwhile."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of commits: the load, the next one, the median, the thousandth and the longest of those in which nothing comes
    and of those in which some come, and the jump; updates that were due in each of the first, on average, and in the jump; and
    whether it was right."""

    load: float
    first: float
    quiet: tuple[float, float, float]
    coming: tuple[float, float, float]
    jump: float
    due: float
    jumped: int
    right: bool

    @property
    def held(self) -> bool:
        allowed = [LEAST + DUE * n for n in (self.due, self.due + COMING)]
        ways = zip((self.quiet, self.coming), allowed, strict=True)
        within = all(median <= most and longest <= 10 * most for (median, _, longest), most in ways)
        return within and self.first <= 10 * allowed[0] and self.jump <= 10 * LEAST + DUE * self.jumped


def run(options: Options) -> bool:
    """Measures, prints and saves; false where counts are wrong or a bound is missed."""
    measure(10_000)  # loads the kernels
    found = {size: measure(SIZES[size]) for size in options.workloads}
    header = ["intervals", "load", "next commit", "due", "median", "99.9%", "longest", "some come: median", "99.9%", "longest"]
    header += [f"{JUMP:,} rounds", "due", "right", "held"]
    show("commits while intervals wait", header, [_line(size, figures) for size, figures in found.items()])
    save("intervals", {size: asdict(figures) for size, figures in found.items()}, options.json)
    return all(figures.right and figures.held for figures in found.values())


def _line(size: str, f: Figures) -> list[str]:
    commits = [seconds(t) for t in (*f.quiet, *f.coming, f.jump)]
    said = [f"{f.jumped:,}", str(f.right), str(f.held)]
    return [size, seconds(f.load), seconds(f.first), f"{f.due:.0f}", *commits, *said]


def measure(count: int) -> Figures:
    random = np.random.default_rng(7)
    flow = Dataflow()
    intervals = flow.input(key=int, start=int, end=int)
    valid = intervals.filter((col("start") <= now()) & (now() < col("end"))).map("key").count("valid").capture()
    rows = [_intervals(random, count, 1)]
    gc.collect()
    gc.disable()
    try:
        intervals.insert(rows[0])
        load, first = _commit(flow), _commit(flow)
        quiet = [_commit(flow) for _ in range(COMMITS)]
        coming = [_coming(flow, intervals, random, rows) for _ in range(COMMITS)]
        began = flow.round
        jump = _commit(flow, JUMP)
    finally:
        gc.enable()
    starts, ends = (np.concatenate([each[name] for each in rows]) for name in ("start", "end"))
    due = [int(((bound >= low) & (bound < high)).sum()) for bound in (starts, ends) for low, high in _spans(began)]
    per_round, jumped = (due[0] + due[2]) / COMMITS, due[1] + due[3]
    return Figures(load, first, _told(quiet), _told(coming), jump, per_round, jumped, _right(flow, valid, rows))


def _spans(began: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of the commits in which nothing comes, and of the jump."""
    return (2, 2 + COMMITS), (began, began + JUMP)


def _intervals(random: np.random.Generator, count: int, first: int) -> dict[str, np.ndarray]:
    starts = first + random.integers(0, HORIZON, count)
    return {"key": random.integers(0, KEYS, count), "start": starts, "end": starts + 1 + random.integers(0, LONGEST, count)}


def _coming(
    flow: Dataflow, intervals: Input, random: np.random.Generator, rows: list[dict[str, np.ndarray]]
) -> float:
    rows.append(_intervals(random, COMING, flow.round))
    intervals.insert(rows[-1])
    return _commit(flow)


def _commit(flow: Dataflow, rounds: int = 1) -> float:
    started = time.thread_time()
    flow.advance_to(flow.round + rounds)
    return time.thread_time() - started


def _told(taken: list[float]) -> tuple[float, float, float]:
    return float(np.median(taken)), float(np.quantile(taken, 0.999)), max(taken)


def _right(flow: Dataflow, valid: Captured, rows: list[dict[str, np.ndarray]]) -> bool:
    """Whether the counts are those of the last round that is done."""
    last, counts = flow.round - 1, np.zeros(KEYS, np.int64)
    for each in rows:
        there = (each["start"] <= last) & (last < each["end"])
        counts += np.bincount(each["key"][there], minlength=KEYS)
    return sorted(valid) == [(key, n) for key, n in enumerate(counts.tolist()) if n]
