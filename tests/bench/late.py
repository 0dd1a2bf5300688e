"""Streams that begin with one row, beside the same streams all at once: plans follow the data.

Each stream goes into a session in one commit, and into another one with its first row as a commit of its own. Then both get
changes one by one. What counts is CPU time, the best of several runs; a stream that began small may take 1.2 times as long,
and beside that as long as planning and lowering its program once more takes, whatever its size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

import dlog
from tests.bench.process import Options
from tests.bench.report import as_ratio, seconds, show

ALLOWED: Final = 1.2
PLANNED_ONCE_MORE: Final = 1.5e-3
"""Seconds for a program of one rule or a few."""
SINGLE: Final = 300
"""Changes that come one by one."""

EDGES = ".decl edge(x: number, y: number)\n"
TRIANGLES = EDGES + """.decl triangle(x: number, y: number, z: number)
triangle(x, y, z) :- edge(x, y), edge(y, z), edge(z, x).
"""
COUNTED = EDGES + ".decl triangles(n: number)\ntriangles(n) :- n = count : { edge(x, y), edge(y, z), edge(z, x) }.\n"
CLOSURE = EDGES + ".decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z).\n"
VOLATILITY = """.decl tick(i: number, price: number)
.decl step(i: number, d: number)
step(j, (q - p) * (q - p)) :- tick(i, p), tick(j, q), j = i + 1.
.decl volatility(i: number, v: number)
volatility(i, v) :- tick(i, _), v = sum d : { tick(i, _), step(j, d), j <= i, j > i - 50 }.
"""
POINTS_TO = """.decl new(x: number, o: number)
.decl copy(x: number, y: number)
.decl store(x: number, y: number)
.decl load(x: number, y: number)
.decl to(x: number, o: number)
.decl heap(o: number, p: number)
to(x, o) :- new(x, o).
to(x, o) :- copy(x, y), to(y, o).
heap(o, p) :- store(x, y), to(x, o), to(y, p).
to(x, p) :- load(x, y), to(y, o), heap(o, p).
"""
Rows = dict[str, np.ndarray]
"""By relation, an array of rows."""


@dataclass(frozen=True)
class Stream:
    name: str
    program: str
    rows: Callable[[], Rows]


def star() -> Rows:
    spokes = np.arange(1, 20_001)
    into, out = np.stack([spokes, 0 * spokes], 1), np.stack([0 * spokes, spokes + len(spokes)], 1)
    return {"edge": np.concatenate([into, out])}


def power_law() -> Rows:
    random, nodes = np.random.default_rng(7), 60_000
    weights = 1 / np.arange(1, nodes + 1) ** 0.8
    edges = np.unique(random.choice(nodes, (185_000, 2), p=weights / weights.sum()), axis=0)
    return {"edge": edges[random.permutation(len(edges))]}


def chains() -> Rows:
    nodes = np.arange(2_996)
    edges = np.stack([nodes, nodes + 1], 1)[nodes % 583 != 582]
    return {"edge": edges[np.random.default_rng(7).permutation(len(edges))]}


def ticks() -> Rows:
    return {"tick": np.stack([np.arange(5_000), np.random.default_rng(7).integers(0, 100, 5_000)], 1)}


def pointers() -> Rows:
    random = np.random.default_rng(7)
    sizes = {"new": 2_000, "copy": 4_000, "store": 500, "load": 500}
    return {name: np.unique(random.integers(0, 5_000, (size, 2)), axis=0) for name, size in sizes.items()}


STREAMS = (
    Stream("star of 40,000", TRIANGLES, star),
    Stream("star, counted", COUNTED, star),
    Stream("triangles, power law", TRIANGLES, power_law),
    Stream("volatility window", VOLATILITY, ticks),
    Stream("nonlinear closure", CLOSURE, chains),
    Stream("points-to", POINTS_TO, pointers),
)


def run(options: Options) -> bool:
    """Measures all streams; false where one that began with a row takes longer than allowed."""
    found, fine = [], True
    for stream in STREAMS:
        rows = stream.rows()
        runs = [[_measured(stream, rows, first) for first in (None, 1)] for _ in range(options.repeats)]
        (whole, each), (late, each_late) = (tuple(map(min, zip(*kind, strict=True))) for kind in zip(*runs, strict=True))
        fine &= late <= ALLOWED * whole + PLANNED_ONCE_MORE and each_late <= ALLOWED * each
        both = ((whole, late), (each, each_late))
        found.append([stream.name, *(text for a, b in both for text in (seconds(a), seconds(b), as_ratio(b / a)))])
    heads = ["stream", "at once", "a row first", "ratio", "then one by one", "a row first", "ratio"]
    show("Streams that begin with one row", heads, found)
    return fine


def _measured(stream: Stream, rows: Rows, first: int | None) -> tuple[float, float]:
    """CPU seconds for all rows but the last, and for one of the last that goes and comes."""
    with dlog.session(stream.program, threads=1) as session:
        started = time.process_time()
        if first is not None:
            _commit(session, {name: listed[:first] for name, listed in rows.items()})
        _commit(session, rows)
        loaded = time.process_time()
        name, listed = next(iter(rows.items()))
        last: Sequence[tuple[int, ...]] = [tuple(row) for row in listed[-SINGLE:].tolist()]
        begun = time.process_time()
        for change in (session.remove, session.insert):
            for row in last:
                change(name, row)
                session.commit()
        return loaded - started, (time.process_time() - begun) / (2 * len(last))


def _commit(session: dlog.Session, rows: Rows) -> None:
    for name, listed in rows.items():
        session.insert(name, listed)
    session.commit()
