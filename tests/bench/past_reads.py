"""Past rounds of relations of several shapes, read beside the present one: how long both take.

A relation has a fixed size: each round replaces its oldest rows, one of them, a part, half or all. Past rounds are read another
one each time: all rows, one key, a question about a past round, the changes of some rounds; and after every commit the round
before, some before, as many as half the window, and any. Such a read takes at most twice as long as the same of now. So does
the first one, before which nobody has read the past: of one key where no more has changed since than there are rows, of all
rows, for which all of that is added up, where that is a small part of them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

import dlog

COLUMNS = "xyzw"
WINDOW = 1_000
"""Rounds of history of most relations."""
READS = 15
DIFF = 10
"""Rounds of a difference at most, and between a round that is read and the last one."""
REACH = 2.0
"""An as-of read takes at most so many times as long as a read of now,"""
LEAST = 5e-6
"""and so many seconds, which the clock may be wrong by."""
TAKEN = 0.4e-3
"""Seconds in which the first read takes what the engine keeps of some hundred commits."""
CHANGED_SHARE = 32
"""The first read of all rows is bounded where one of so many at most has changed since."""
FIRST_READS, CHANGES = 3, 1_000_000
"""How often the past is begun anew and read for the first time, and changes that are made before all of that; once at least."""
MAX_COMMITS, MIN_COMMITS, MAX_ROWS = 300, 2 * DIFF, 3_000_000
"""Commits after each of which a past round is read; fewer in short windows, and where there are many rows to be read."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows of a relation, how many of them each round replaces, whether its second column is of strings, how many there are,
    and for how many rounds they are kept."""

    name: str
    rows: int
    replaced: int
    text: bool = False
    columns: int = 2
    window: int = WINDOW


SHAPES = (
    Shape("1M rows, 1 replaced a round", 1_000_000, 1),
    Shape("1M rows, 100 replaced", 1_000_000, 100),
    Shape("1,000 rows, 1 replaced", 1_000, 1),
    Shape("1,000 rows, 100 replaced", 1_000, 100),
    Shape("100 rows, 10 replaced", 100, 10),
    Shape("100 rows, 50 replaced, 1 column", 100, 50, columns=1),
    Shape("100 rows, all replaced", 100, 100),
    Shape("1,000 rows, 100 replaced, 4 columns", 1_000, 100, columns=4),
    Shape("1,000 rows with strings, 10 replaced", 1_000, 10, text=True),
    Shape("10,000 rows, 100 replaced", 10_000, 100),
    Shape("100,000 rows with strings, 1 replaced", 100_000, 1, text=True),
    # much of the relation each round
    Shape("1,000 rows, 500 replaced, 1 column", 1_000, 500, columns=1),
    Shape("1,000 rows, 500 replaced", 1_000, 500),
    Shape("1,000 rows, all replaced", 1_000, 1_000),
    Shape("1,000 rows with strings, 500 replaced", 1_000, 500, text=True),
    Shape("10,000 rows, 1,000 replaced", 10_000, 1_000, window=100),
    Shape("10,000 rows, 5,000 replaced", 10_000, 5_000, window=100),
    Shape("10,000 rows, 5,000 replaced, 4 columns", 10_000, 5_000, columns=4, window=100),
    Shape("10,000 rows, all replaced", 10_000, 10_000, window=100),
    Shape("100,000 rows, 1,000 replaced", 100_000, 1_000, window=100),
    Shape("100,000 rows, 10,000 replaced", 100_000, 10_000, window=40),
    Shape("100,000 rows, 50,000 replaced", 100_000, 50_000, window=20),
    Shape("100,000 rows, all replaced", 100_000, 100_000, window=20),
    Shape("100,000 rows with strings, 50,000 replaced", 100_000, 50_000, text=True, window=20),
    Shape("1M rows, 10,000 replaced", 1_000_000, 10_000, window=40),
    Shape("1M rows, 100,000 replaced", 1_000_000, 100_000, window=20),
    Shape("1M rows, 500,000 replaced", 1_000_000, 500_000, window=12),
    Shape("1M rows, all replaced", 1_000_000, 1_000_000, window=12),
)


@dataclass(frozen=True, slots=True)
class Reads:
    """Seconds of reading now and then; and of the first read of a past round, with that of now just before it, where they were
    measured. Whether all are within bounds."""

    now: float
    then: float
    held: bool
    first: float | None = None
    first_now: float | None = None


def measured(shape: Shape) -> tuple[dict[str, Reads], bool]:
    """Reads of a relation, by what was read, and whether the oldest round is what it was."""
    s = session(shape, shape.window)
    replace(s, shape, shape.window)
    found = _reads(s, shape)
    oldest, begin = np.sort(s.at(s.round - shape.window)["edge"].to_numpy()["x"]), (s.round - shape.window - 1) * shape.replaced
    some = min(DIFF, shape.window // 4)
    for back in (1, some, shape.window // 2):
        found[f"{back} back after a commit"] = _after_commits(s, shape, back)
    found["any round after a commit"] = _after_commits(s, shape, None)
    s.close()
    return found, np.array_equal(oldest, np.arange(begin, begin + shape.rows))


def session(shape: Shape, window: int) -> dlog.Session:
    names = COLUMNS[: shape.columns]
    types = {name: "symbol" if shape.text and name == "y" else "number" for name in names}
    declared, shown = (", ".join(f"{name}: {types[name]}" for name in order) for order in (names, names[::-1]))
    rule = f"back({', '.join(names[::-1])}) :- edge({', '.join(names)})."
    text = f".decl edge({declared})\n.decl back({shown})\n{rule}\n"
    return dlog.session(text, {"edge": rows_of(shape, np.arange(shape.rows))}, history=window, threads=1)


def rows_of(shape: Shape, x: np.ndarray) -> dict[str, np.ndarray]:
    """The rows with these values of their first column."""
    found = {"x": x, "y": target(shape, x), "z": x % 7, "w": x % 101}
    return {name: found[name] for name in COLUMNS[: shape.columns]}


def target(shape: Shape, x: np.ndarray) -> np.ndarray:
    values = x * 7919 % 1_000_003
    return np.array([f"name {value}" for value in values.tolist()], object) if shape.text else values


def replace(s: dlog.Session, shape: Shape, rounds: int) -> None:
    """Does rounds that replace so many rows each."""
    first = int(s.round) - 1
    for k in range(first, first + rounds):
        gone = np.arange(k * shape.replaced, (k + 1) * shape.replaced)
        s.remove("edge", rows_of(shape, gone))
        s.insert("edge", rows_of(shape, gone + shape.rows))
        s.commit()


def _ways(s: dlog.Session, shape: Shape) -> dict[str, tuple[Callable[[], object], Callable[[int], object]]]:
    """By what is read: how to read it now, and as of so many rounds before."""
    key, diff = shape.rows // 2 + 3 * shape.window * shape.replaced, min(DIFF, shape.window // 2)
    question = f"({', '.join([str(key), 'X', '_', '_'][: shape.columns])})"
    asked = shape.window // 2
    return {
        "all rows": (lambda: s.at()["back"].to_numpy(), lambda back: s.at(s.round - back)["back"].to_numpy()),
        "one key": (lambda: s.query(f"edge{question}"), lambda back: s.at(s.round - back).query(f"edge{question}")),
        "a question": (lambda: s.query(f"edge{question}"), lambda _: s.query(f"edge@-{asked}{question}")),
        f"{diff} rounds": (
            lambda: s.diff(s.round - diff)["edge"],
            lambda back: s.diff(s.round - max(back, diff), s.round - max(back, diff) + diff)["edge"],
        ),
    }


def _reads(s: dlog.Session, shape: Shape) -> dict[str, Reads]:
    """What reads of now and of past rounds take, in turn; each time of another round."""
    backs = np.random.default_rng(7).permutation(np.arange(1, shape.window))[:READS].tolist()
    found = {}
    for name, (now, then) in _ways(s, shape).items():
        then(1)
        firsts = [_first(s, shape, now, then) for _ in range(max(1, min(FIRST_READS, CHANGES // _changes(shape))))]
        taken = [(_taken(now), _taken(partial(then, back))) for back in backs]
        compared = _compared([each for each, _ in taken], [each for _, each in taken])
        first_now, first = median([each for each, _ in firsts]), median([each for _, each in firsts])
        held = compared.held and (first <= REACH * first_now + TAKEN or not _is_bounded(name, shape))
        found[name] = dataclasses.replace(compared, held=held, first=first, first_now=first_now)
    return found


def _first(s: dlog.Session, shape: Shape, now: Callable[[], object], then: Callable[[int], object]) -> tuple[float, float]:
    """Seconds of a read of now after as many commits as the window has rounds, in a history that began with them, and of the
    first one of a round before almost all of them."""
    s.history(0)
    s.history(shape.window)
    replace(s, shape, shape.window)
    return _taken(now), _taken(partial(then, shape.window - 1))


def _changes(shape: Shape) -> int:
    """Changes within the window."""
    return 2 * shape.window * shape.replaced


def _is_bounded(name: str, shape: Shape) -> bool:
    """Whether the first read is to take at most twice as long as one of now."""
    share = {"all rows": CHANGED_SHARE, "one key": 1, "a question": 1}.get(name, 0)
    return 0 < share * _changes(shape) <= shape.rows


def _after_commits(s: dlog.Session, shape: Shape, back: int | None) -> Reads:
    """What reads of now and of so many rounds before (None: of any) take after every commit, in turn."""
    commits = max(min(MAX_COMMITS, shape.window // 2, MAX_ROWS // shape.rows), MIN_COMMITS)
    backs = np.random.default_rng(7).integers(1, shape.window, commits).tolist() if back is None else [back] * commits

    def now() -> object:
        return s.at()["back"].to_numpy()

    def then(back: int) -> object:
        return s.at(s.round - back)["back"].to_numpy()

    present: list[float] = []
    past: list[float] = []
    for k, rounds in enumerate(backs):
        replace(s, shape, 1)
        for is_past in (True, False) if k % 2 else (False, True):
            (past if is_past else present).append(_taken(partial(then, rounds) if is_past else now))
    return _compared(present, past)


def _compared(present: list[float], past: list[float]) -> Reads:
    now, then = median(present), median(past)
    return Reads(now, then, then <= REACH * now + LEAST)


def _taken(read: Callable[[], object]) -> float:
    started = time.process_time()
    read()
    return time.process_time() - started
