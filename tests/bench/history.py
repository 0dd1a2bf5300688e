"""Sessions that keep history: what commits, past rounds (`past_reads`) and a million rounds cost, beside the same without.

Times are processor time.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

import dlog
from tests.bench.past_reads import SHAPES, WINDOW, Reads, Shape, measured, replace, session, target
from tests.bench.process import Options
from tests.bench.report import as_ratio, save, seconds, show

SINGLE_ROUNDS, REPEATS = 20_000, 5
MILLION = 1_000_000
SMALL = 1_000
TOGETHER = 10_000
"""Rounds of a commit of many."""
NOTING, RELATIONS = 5e-6, 2
"""A commit takes at most so many seconds more with history for each relation that it changes, of which there are so many."""
COMMITTED = (
    Shape("1 of 1,000 rows", SMALL, 1),
    Shape("500 of 1,000 rows", SMALL, 500),
    Shape("1,000 of 10,000 rows", 10_000, 1_000),
    Shape("5,000 of 10,000 rows", 10_000, 5_000),
    Shape("10,000 of 100,000 rows", 100_000, 10_000),
)
"""What commits replace whose times are compared."""
COMMITS, KEPT = 60, 20
"""How many of them, and rounds of their history."""
BYTES = 120
"""Bytes of history for each change within the window at most, while batches are merged."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of a round without and with history; of larger ones without, with, and while the round before is read after each;
    the most bytes of history in a million rounds, and per change within the window; and reads, by shape and what was read."""

    plain: float
    noted: float
    commits: dict[str, tuple[float, float, float]]
    most: int
    per_change: float
    reads: dict[str, dict[str, Reads]]


def run(options: Options) -> bool:
    """Measures, prints and saves; false where past rounds are wrong or a reach is missed."""
    plain, noted = _rounds_without_and_with()
    commits = {shape.name: (_commit(shape, 0), _commit(shape, KEPT), _commit(shape, KEPT, reads=True)) for shape in COMMITTED}
    reads, right = {}, True
    for shape in SHAPES:
        reads[shape.name], found = measured(shape)
        right &= found
    most, held = _million()
    figures = Figures(plain, noted, commits, most, most / (4 * WINDOW), reads)
    header = ["round", "with history", "most bytes of a million rounds", "per change"]
    show(f"history of {WINDOW:,} rounds", header, [[seconds(plain), seconds(noted), f"{most:,}", f"{figures.per_change:.0f}"]])
    header = ["a commit replaces", "without history", "with history", "while the round before is read"]
    show("commits", header, [[name, *map(seconds, taken)] for name, taken in commits.items()])
    lines = [_line(shape, read, found) for shape, all in reads.items() for read, found in all.items()]
    show("past rounds", ["relation, read", "now", "then", "times", "now, after commits", "first then", "times", "held"], lines)
    save("history", asdict(figures), options.json)
    held &= all(found.held for all in reads.values() for found in all.values())
    return right and held and figures.per_change <= BYTES and noted - plain <= NOTING * RELATIONS


def _line(shape: str, read: str, found: Reads) -> list[str]:
    times, first = as_ratio(found.then / found.now), ["", "", ""]
    if found.first is not None and found.first_now is not None:
        first = [seconds(found.first_now), seconds(found.first), as_ratio(found.first / found.first_now)]
    return [f"{shape}: {read}", seconds(found.now), seconds(found.then), times, *first, str(found.held)]


def _rounds_without_and_with() -> tuple[float, float]:
    """Seconds of a round without and with history, the medians of several measurements in turn."""
    taken = [[_rounds(session(Shape("", SMALL, 1), window), SINGLE_ROUNDS) for window in (0, WINDOW)] for _ in range(REPEATS)]
    plain, noted = zip(*taken, strict=True)
    return median(plain), median(noted)


def _rounds(s: dlog.Session, count: int) -> float:
    """Does rounds one by one; the seconds of each."""
    size, first = s.rows("edge"), int(s.round) - 1
    edges = target(SHAPES[0], np.arange(first, first + count + size)).tolist()
    started = time.process_time()
    for k in range(count):
        s.remove("edge", (first + k, edges[k]))
        s.insert("edge", (first + k + size, edges[k + size]))
        s.commit()
    return (time.process_time() - started) / count


def _commit(shape: Shape, window: int, reads: bool = False) -> float:
    """Seconds of a commit, after each of which the round before may be read."""
    s, taken = session(shape, window), []
    replace(s, shape, KEPT)
    for _ in range(COMMITS):
        started = time.process_time()
        replace(s, shape, 1)
        taken.append(time.process_time() - started)
        if reads:
            s.at(s.round - 1)["back"].to_numpy()
    s.close()
    return median(taken)


def _million() -> tuple[int, bool]:
    """The most bytes of history, and whether the last window is what it should be, after a million rounds: half of them one by
    one, half in commits of many. A change waits in some hundred bytes until it is in a batch."""
    shape = Shape("", SMALL, 1)
    s, most = session(shape, WINDOW), 0
    history = s._followers.history
    while s.round < MILLION:
        if s.round < MILLION // 2:
            first, ks = s.round - 1, np.arange(TOGETHER)
            gone, came = first + ks, first + ks + SMALL
            xs, rounds = np.concatenate([gone, came]), np.tile(s.round + 1 + ks, 2)
            diffs = np.repeat([-1, 1], TOGETHER)
            s.commit_rounds({"edge": {"x": xs, "y": target(shape, xs), "round": rounds, "diff": diffs}})
        else:
            _rounds(s, TOGETHER // 4)
            most = max(most, history.nbytes)
    first = s.round - 1 - WINDOW
    return most, set(s.at(s.round - WINDOW)["edge"].to_numpy()["x"].tolist()) == set(range(first, first + SMALL))
