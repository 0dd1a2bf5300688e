"""Sessions that keep history: what commits, past rounds and a million rounds cost, beside the same without.

The relation has a fixed size: each round replaces its oldest row. Times are processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

import dlog
from tests.bench.process import Options
from tests.bench.report import save, seconds, show

PROGRAM = ".decl edge(x: number, y: number)\n.decl back(x: number, y: number)\nback(y, x) :- edge(x, y).\n"
ROWS = 1_000_000
SINGLE_ROUNDS = 20_000
MILLION = 1_000_000
WINDOW = 1_000
SMALL = 1_000
TOGETHER = 10_000
"""Rounds of a commit of many."""
REACH = 2.0
"""An as-of read takes at most so many times as long as a read of now."""
BYTES = 120
"""Bytes of history for each change within the window at most, while batches are merged."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of a round without and with history; of reading now and then; of a difference of a hundred rounds; the most bytes
    of history in a million rounds, and per change within the window."""

    plain: float
    noted: float
    now: float
    then: float
    diff: float
    most: int
    per_change: float


def run(options: Options) -> bool:
    """Measures, prints and saves; false where past rounds are wrong or a reach is missed."""
    plain, noted = (_rounds(_session(SMALL, window), SINGLE_ROUNDS) for window in (0, WINDOW))
    s = _session(ROWS, WINDOW)
    _rounds(s, WINDOW)
    right = set(s.at(s.round - WINDOW)["edge"].to_numpy()["x"].tolist()) == set(range(ROWS))
    now, then = _best(lambda: s.at()["back"].to_numpy()), _best(lambda: s.at(s.round - WINDOW)["back"].to_numpy())
    diff = _best(lambda: s.diff(s.round - 100)["back"].to_numpy())
    most, held = _million()
    figures = Figures(plain, noted, now, then, diff, most, most / (4 * WINDOW))
    header = ["round", "with history", "read now", "as of then", "times", "diff", "most bytes", "per change"]
    times = [seconds(t) for t in (plain, noted, now, then)]
    row = [*times, f"{then / now:.2f}", seconds(diff), f"{most:,}", f"{figures.per_change:.0f}"]
    show(f"history of {WINDOW:,} rounds, over {ROWS:,} rows; a million rounds over {SMALL:,}", header, [row])
    save("history", asdict(figures), options.json)
    return right and held and then <= REACH * now and figures.per_change <= BYTES


def _session(rows: int, window: int) -> dlog.Session:
    xs = np.arange(rows)
    return dlog.session(PROGRAM, {"edge": {"x": xs, "y": _target(xs)}}, history=window, threads=1)


def _target(x: np.ndarray) -> np.ndarray:
    return x * 7919 % 1_000_003


def _rounds(s: dlog.Session, count: int) -> float:
    """Does rounds one by one; the seconds of each."""
    size, first = s.rows("edge"), int(s.round) - 1
    edges = _target(np.arange(first, first + count + size)).tolist()
    started = time.process_time()
    for k in range(count):
        s.remove("edge", (first + k, edges[k]))
        s.insert("edge", (first + k + size, edges[k + size]))
        s.commit()
    return (time.process_time() - started) / count


def _million() -> tuple[int, bool]:
    """The most bytes of history, and whether the last window is what it should be, after a million rounds: half of them one by
    one, half in commits of many. A change waits in some hundred bytes until it is in a batch."""
    s, most = _session(SMALL, WINDOW), 0
    history = s._followers.history
    while s.round < MILLION:
        if s.round < MILLION // 2:
            first, ks = s.round - 1, np.arange(TOGETHER)
            gone, came = first + ks, first + ks + SMALL
            xs, rounds = np.concatenate([gone, came]), np.tile(s.round + 1 + ks, 2)
            diffs = np.repeat([-1, 1], TOGETHER)
            s.commit_rounds({"edge": {"x": xs, "y": _target(xs), "round": rounds, "diff": diffs}})
        else:
            _rounds(s, TOGETHER // 4)
            most = max(most, history.nbytes)
    first = s.round - 1 - WINDOW
    return most, set(s.at(s.round - WINDOW)["edge"].to_numpy()["x"].tolist()) == set(range(first, first + SMALL))


def _best(read: Callable[[], object], times: int = 9) -> float:
    found = []
    for _ in range(times):
        started = time.process_time()
        read()
        found.append(time.process_time() - started)
    return min(found)
