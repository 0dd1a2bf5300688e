"""Sessions that keep history: what commits, past rounds and a million rounds cost, beside the same without.

A relation has a fixed size: each round replaces its oldest rows. Times are processor time. Past rounds are read of relations of
several shapes, another one each time: all rows, one key, a question about a past round, the changes of ten rounds; and of small
ones after every commit, the round before, ten before and as many as half the window. Such a read takes at most twice as long as
the same of now, but for the first one, which adds up what has changed since.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median

import numpy as np

import dlog
from tests.bench.process import Options
from tests.bench.report import as_ratio, save, seconds, show

COLUMNS = "xyzw"
SINGLE_ROUNDS = 20_000
MILLION = 1_000_000
WINDOW = 1_000
SMALL = 1_000
MOST_SMALL = 10_000
"""Rows of relations that are read after every commit, too."""
TOGETHER = 10_000
"""Rounds of a commit of many."""
READS = 15
DIFF = 10
"""Rounds of a difference."""
REACH = 2.0
"""An as-of read takes at most so many times as long as a read of now,"""
LEAST = 5e-6
"""and so many seconds, which the clock may be wrong by."""
NOTING, RELATIONS = 5e-6, 2
"""A commit takes at most so many seconds more with history for each relation that it changes, of which there are so many."""
AFTER_COMMITS = 300
"""Commits after each of which a past round is read."""
BYTES = 120
"""Bytes of history for each change within the window at most, while batches are merged."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows of a relation, how many of them each round replaces, whether its second column is of strings, and how many there
    are."""

    name: str
    rows: int
    replaced: int
    text: bool = False
    columns: int = 2


SHAPES = (
    Shape("1M rows, 1 replaced a round", 1_000_000, 1),
    Shape("1M rows, 100 replaced", 1_000_000, 100),
    Shape("1,000 rows, 1 replaced", SMALL, 1),
    Shape("1,000 rows, 100 replaced", SMALL, 100),
    Shape("100 rows, 10 replaced", 100, 10),
    Shape("100 rows, 50 replaced, 1 column", 100, 50, columns=1),
    Shape("1,000 rows, 100 replaced, 4 columns", SMALL, 100, columns=4),
    Shape("1,000 rows with strings, 10 replaced", SMALL, 10, text=True),
    Shape("10,000 rows, 100 replaced", MOST_SMALL, 100),
    Shape("100,000 rows with strings, 1 replaced", 100_000, 1, text=True),
)


@dataclass(frozen=True, slots=True)
class Reads:
    """Seconds of reading now and then, and of the first read of a past round."""

    now: float
    then: float
    first: float
    held: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of a round without and with history; the most bytes of history in a million rounds, and per change within the
    window; and reads, by shape and what was read."""

    plain: float
    noted: float
    most: int
    per_change: float
    reads: dict[str, dict[str, Reads]]


def run(options: Options) -> bool:
    """Measures, prints and saves; false where past rounds are wrong or a reach is missed."""
    plain, noted = (_rounds(_session(Shape("", SMALL, 1), window), SINGLE_ROUNDS) for window in (0, WINDOW))
    reads, right = {}, True
    for shape in SHAPES:
        s = _session(shape, WINDOW)
        _replace(s, shape, WINDOW)
        reads[shape.name] = _reads(s, shape)
        right &= set(s.at(s.round - WINDOW)["edge"].to_numpy()["x"].tolist()) == set(range(shape.rows))
        for back in (1, DIFF, WINDOW // 2) if shape.rows <= MOST_SMALL else ():
            reads[shape.name][f"{back} back after a commit"] = _after_commits(s, shape, back)
        s.close()
    most, held = _million()
    figures = Figures(plain, noted, most, most / (4 * WINDOW), reads)
    header = ["round", "with history", "most bytes of a million rounds", "per change"]
    show(f"history of {WINDOW:,} rounds", header, [[seconds(plain), seconds(noted), f"{most:,}", f"{figures.per_change:.0f}"]])
    lines = [_line(shape, read, found) for shape, all in reads.items() for read, found in all.items()]
    show("past rounds", ["relation, read", "now", "then", "times", "first", "held"], lines)
    save("history", asdict(figures), options.json)
    held &= all(found.held for all in reads.values() for found in all.values())
    return right and held and figures.per_change <= BYTES and noted - plain <= NOTING * RELATIONS


def _line(shape: str, read: str, found: Reads) -> list[str]:
    times = as_ratio(found.then / found.now)
    return [f"{shape}: {read}", seconds(found.now), seconds(found.then), times, seconds(found.first), str(found.held)]


def _session(shape: Shape, window: int) -> dlog.Session:
    names = COLUMNS[: shape.columns]
    types = {name: "symbol" if shape.text and name == "y" else "number" for name in names}
    declared, shown = (", ".join(f"{name}: {types[name]}" for name in order) for order in (names, names[::-1]))
    rule = f"back({', '.join(names[::-1])}) :- edge({', '.join(names)})."
    text = f".decl edge({declared})\n.decl back({shown})\n{rule}\n"
    return dlog.session(text, {"edge": _rows(shape, np.arange(shape.rows))}, history=window, threads=1)


def _rows(shape: Shape, x: np.ndarray) -> dict[str, np.ndarray]:
    """The rows with these values of their first column."""
    found = {"x": x, "y": _target(shape, x), "z": x % 7, "w": x % 101}
    return {name: found[name] for name in COLUMNS[: shape.columns]}


def _target(shape: Shape, x: np.ndarray) -> np.ndarray:
    values = x * 7919 % 1_000_003
    return np.array([f"name {value}" for value in values.tolist()], object) if shape.text else values


def _replace(s: dlog.Session, shape: Shape, rounds: int) -> None:
    """Does rounds that replace so many rows each."""
    first = int(s.round) - 1
    for k in range(first, first + rounds):
        gone = np.arange(k * shape.replaced, (k + 1) * shape.replaced)
        s.remove("edge", _rows(shape, gone))
        s.insert("edge", _rows(shape, gone + shape.rows))
        s.commit()


def _reads(s: dlog.Session, shape: Shape) -> dict[str, Reads]:
    """What reads of now and of past rounds take, in turn; each time of another round."""
    last = int(s.round)
    rounds = (last - WINDOW + 1 + np.random.default_rng(7).permutation(WINDOW - DIFF)[:READS]).tolist()
    key = shape.rows // 2 + WINDOW * shape.replaced
    question = f"({', '.join([str(key), 'X', '_', '_'][: shape.columns])})"
    asked = rounds[0]
    ways: dict[str, tuple[Callable[[], object], Callable[[int], object]]] = {
        "all rows": (lambda: s.at()["back"].to_numpy(), lambda round: s.at(round)["back"].to_numpy()),
        "one key": (lambda: s.query(f"edge{question}"), lambda round: s.at(round).query(f"edge{question}")),
        "a question": (lambda: s.query(f"edge{question}"), lambda _: s.query(f"edge@{asked}{question}")),
        f"{DIFF} rounds": (lambda: s.diff(last - DIFF)["edge"], lambda round: s.diff(round, round + DIFF)["edge"]),
    }
    found = {}
    for name, (now, then) in ways.items():
        first = _taken(partial(then, rounds[0]))
        taken = [(_taken(now), _taken(partial(then, round))) for round in rounds]
        read, past = (median(each) for each in zip(*taken, strict=True))
        found[name] = Reads(read, past, first, past <= REACH * read + LEAST)
    return found


def _after_commits(s: dlog.Session, shape: Shape, back: int) -> Reads:
    """What reads of now and of so many rounds before take after every commit, in turn."""

    def now() -> object:
        return s.at()["back"].to_numpy()

    def then() -> object:
        return s.at(s.round - back)["back"].to_numpy()

    taken: dict[Callable[[], object], list[float]] = {now: [], then: []}
    for k in range(AFTER_COMMITS):
        _replace(s, shape, 1)
        for read in (now, then) if k % 2 else (then, now):
            taken[read].append(_taken(read))
    present, past = median(taken[now]), median(taken[then])
    return Reads(present, past, taken[then][0], past <= REACH * present + LEAST)


def _rounds(s: dlog.Session, count: int) -> float:
    """Does rounds one by one; the seconds of each."""
    size, first = s.rows("edge"), int(s.round) - 1
    edges = _target(SHAPES[0], np.arange(first, first + count + size)).tolist()
    started = time.process_time()
    for k in range(count):
        s.remove("edge", (first + k, edges[k]))
        s.insert("edge", (first + k + size, edges[k + size]))
        s.commit()
    return (time.process_time() - started) / count


def _million() -> tuple[int, bool]:
    """The most bytes of history, and whether the last window is what it should be, after a million rounds: half of them one by
    one, half in commits of many. A change waits in some hundred bytes until it is in a batch."""
    shape = Shape("", SMALL, 1)
    s, most = _session(shape, WINDOW), 0
    history = s._followers.history
    while s.round < MILLION:
        if s.round < MILLION // 2:
            first, ks = s.round - 1, np.arange(TOGETHER)
            gone, came = first + ks, first + ks + SMALL
            xs, rounds = np.concatenate([gone, came]), np.tile(s.round + 1 + ks, 2)
            diffs = np.repeat([-1, 1], TOGETHER)
            s.commit_rounds({"edge": {"x": xs, "y": _target(shape, xs), "round": rounds, "diff": diffs}})
        else:
            _rounds(s, TOGETHER // 4)
            most = max(most, history.nbytes)
    first = s.round - 1 - WINDOW
    return most, set(s.at(s.round - WINDOW)["edge"].to_numpy()["x"].tolist()) == set(range(first, first + SMALL))


def _taken(read: Callable[[], object]) -> float:
    started = time.process_time()
    read()
    return time.process_time() - started
