"""A round that touches one chain of rules among many, and one that a thousand filters stop: what a round costs is to be what it
derives, whatever else the program has.

A chain is an input of edges, their closure, and a count of that: two strata. Times are the committing thread's own processor
time, so that other work on the machine does not count. Rows are checked against those of the chain alone.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from dlog.engine.compiler import compile_source
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from dlog.sessions.core import Session
from tests.bench.process import Options
from tests.bench.report import save, seconds, show

CHAINS = ("1", "100", "500", "1000", "5000")
ROUNDS = 1200
WARM = 200
LENGTH = 20
"""Edges of the chain that changes."""
FILTERS = 1000
BOUND = 1.1
"""What a round of one chain may cost among a thousand, by what it costs alone."""

Nanos = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of a round."""

    p50: float
    p99: float


def chains(count: int) -> str:
    return "".join(
        f".decl e{i}(x: number, y: number)\n.input e{i}\n.decl p{i}(x: number, y: number)\n.decl n{i}(x: number, c: number)\n"
        f"p{i}(x, y) :- e{i}(x, y).\np{i}(x, z) :- p{i}(x, y), e{i}(y, z).\n"
        f"n{i}(x, c) :- p{i}(x, _), c = count : {{ p{i}(x, _) }}.\n"
        for i in range(count)
    )


def filters(count: int) -> str:
    """Rules that read one input, of which a row passes one; each has a relation behind it."""
    return ".decl e0(x: number, y: number)\n.input e0\n" + "".join(
        f".decl f{i}(x: number)\n.decl g{i}(x: number)\nf{i}(x) :- e0(x, y), y % {count} = {i}.\ng{i}(x) :- f{i}(x).\n"
        for i in range(count)
    )


def run(options: Options) -> bool:
    """Measures, prints and saves; false when rows are wrong or the bound is missed."""
    gc.collect()
    gc.freeze()
    found: dict[str, dict[str, Figures]] = {}
    for name in options.workloads:
        found[f"{name} chains"] = measured(chains(int(name)), "p0", LENGTH * (LENGTH + 1) // 2)
    found[f"{FILTERS} filters"] = measured(filters(FILTERS), "g7", 1)
    header = ["program", *(f"{way} {part}" for way in ("engine", "session") for part in ("p50", "p99"))]
    lines = [[name, *(seconds(x) for f in ways.values() for x in (f.p50, f.p99))] for name, ways in found.items()]
    show("single-row rounds of one chain, changes read in the session", header, lines)
    save("wide", {name: {way: asdict(f) for way, f in ways.items()} for name, ways in found.items()}, options.json)
    both = [found.get(f"{name} chains") for name in ("1", "1000")]
    return None in both or all(both[1][way].p50 <= BOUND * both[0][way].p50 for way in ("engine", "session"))  # type: ignore[index]


def measured(text: str, relation: str, rows: int) -> dict[str, Figures]:
    """Figures by way; raises ValueError where the relation does not have so many rows in the end."""
    return {"engine": _engine(text, relation, rows), "session": _session(text, relation, rows)}


def _engine(text: str, relation: str, rows: int) -> Figures:
    engine = Maintained(compile_source(Source(text)))
    x = np.arange(LENGTH)
    engine.commit({"e0": Updates((x, x + 1), np.ones(LENGTH, np.int64), np.ones(LENGTH, np.int64))})

    def round(number: int, diff: int) -> None:
        row = np.array([number]), np.array([number + 1])
        engine.commit({"e0": Updates(row, np.array([diff]), np.array([engine.round + 1]))})

    found = _timed(round)
    _check(engine.rows(relation), rows)
    engine.close()
    return found


def _session(text: str, relation: str, rows: int) -> Figures:
    with Session(text, {"e0": [(x, x + 1) for x in range(LENGTH)]}, threads=1) as session:

        def round(number: int, diff: int) -> None:
            (session.insert if diff > 0 else session.remove)("e0", (number, number + 1))
            len(session.commit().changes(relation).rows)

        found = _timed(round)
        _check(session.rows(relation), rows)
        return found


def _timed(round: Callable[[int, int], None]) -> Figures:
    """Edges come and go again, two at a time."""
    nanos, clock = np.empty(ROUNDS, np.int64), time.thread_time_ns
    for number in range(ROUNDS):
        start = clock()
        round(2 * LENGTH + number % 2, 1 if number // 2 % 2 == 0 else -1)
        nanos[number] = clock() - start
    p50, p99 = np.percentile(nanos[WARM:], [50, 99]) / 1e9
    return Figures(float(p50), float(p99))


def _check(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"{found} rows in place of {expected}")
