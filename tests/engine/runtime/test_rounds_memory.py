"""What rounds leave behind: a program whose inputs come back to what they were takes no more memory than before."""

from __future__ import annotations

import numpy as np
import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source

EDGES = ".decl e(x: number, y: number)\n.input e\n"
PROGRAMS = {
    "closure": ".decl p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).",
    "distances": ".decl p(x: number, d: number)\n"
    "p(x, d) :- e(_, x), d = min c : { e(0, x), c = 1 ; p(y, b), e(y, x), c = b + 1 }.",
    "counts": ".decl p(x: number, n: number)\np(x, n) :- e(x, _), n = count : { e(x, _) }.",
    "counts with none": ".decl p(x: number, n: number)\np(x, n) :- e(_, x), n = count : { e(x, _) }.",
    "sums": ".decl p(x: number, n: number)\np(x, n) :- e(x, _), n = sum y : { e(x, y) }.",
    "means": ".decl p(x: number, n: float)\np(x, n) :- e(x, _), n = mean to_float(y) : { e(x, y) }.",
    "least": ".decl p(x: number, n: number)\np(x, n) :- e(x, _), n = min y : { e(x, y) }.",
    "least of many": ".decl p(x: number, n: number)\np(x, n) :- e(x, _), n = min y : { e(x, y), e(y, _) }.",
    "without": ".decl p(x: number)\np(x) :- e(x, _), !e(_, x).",
    "triangles": ".decl p(x: number, y: number, z: number)\np(x, y, z) :- e(x, y), e(y, z), e(x, z).",
}
CHURNED = {
    "few": ("p(x, y) :- e(0, x), e(x, y).", 1.9),
    "two": ("p(x, z) :- e(x, y), e(y, z).", 1.25),
    "closed": ("p(x, y) :- e(x, y), e(y, z), e(z, x).", 2.2),
    "reached": ("p(0, 0).\np(y, 0) :- p(x, 0), e(x, y).", 1.7),
}
"""Rules that join edges, and how much memory they may take after long churn for each byte when all edges come at once: where
they are many. Of few (below 2**18) memory counts for less than time, and they take up to twice as much."""
EDGE_COUNT, NODES, COMMITS, FEWNESS = (300_000, 30_000, 300, 1) if JIT else (600, 100, 40, 2)
CYCLES = 12 if JIT else 2
ROUNDS = 40 if JIT else 4
"""Rounds of a cycle; the second half takes back what the first one did."""


def cycle(first: int) -> Updates:
    """A path is cut and mended, and an edge comes and goes besides, round by round."""
    rows, diffs, rounds = [], [], []
    half = ROUNDS // 2
    for number in range(ROUNDS):
        at = min(number, ROUNDS - 1 - number)
        sign = -1 if number < half else 1
        rows += [(at, at + 1), (at, 2 * at + 100)]
        diffs += [sign, -sign]
        rounds += [first + number] * 2
    columns = tuple(np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Updates(columns, np.array(diffs, np.int64), np.array(rounds, np.int64))


@pytest.mark.parametrize("at_once", [False, True], ids=["each", "batch"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rounds_that_take_each_other_back_leave_nothing_behind(name: str, at_once: bool) -> None:
    engine = Maintained(compile_source(Source(EDGES + PROGRAMS[name])))
    path = np.arange(ROUNDS, dtype=np.int64)
    engine.commit({"e": Updates((path, path + 1), np.ones(ROUNDS, np.int64), np.ones(ROUNDS, np.int64))})
    before, used = engine.table("p").rows, []
    for _ in range(CYCLES):
        changes = cycle(engine.round + 1)
        if at_once:
            engine.commit({"e": changes})
        else:
            for r in range(ROUNDS):
                part = slice(2 * r, 2 * r + 2)
                engine.commit(
                    {"e": Updates(tuple(c[part] for c in changes.columns), changes.diffs[part], changes.rounds[part])}
                )
        used.append(engine.memory.used)
    assert engine.table("p").rows == before
    assert used[-1] <= used[CYCLES // 2]
    engine.close()
    assert engine.memory.used == 0


def random_edges(count: int, seed: int) -> np.ndarray:
    """Different edges, in no order."""
    random = np.random.default_rng(seed)
    return random.choice(NODES * NODES, count, replace=False)


def edges_as_updates(gone: np.ndarray, come: np.ndarray, round: int) -> dict[str, Updates]:
    both = np.concatenate([gone, come]).astype(np.int64)
    diffs = np.concatenate([np.full(len(gone), -1), np.ones(len(come), np.int64)])
    return {"e": Updates((both // NODES, both % NODES), diffs, np.full(len(both), round, np.int64))}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHURNED)
def test_edges_that_come_and_go_for_long_take_little_more_memory_than_those_that_are_there(name: str) -> None:
    text, bound = CHURNED[name]
    program = compile_source(Source(f"{EDGES}.decl p(x: number, y: number)\n{text}"))
    share, nothing = EDGE_COUNT // 200, np.empty(0, np.int64)
    edges = random_edges(EDGE_COUNT + COMMITS * share, 1)
    there = edges[:EDGE_COUNT].copy()
    engine, other = Maintained(program), Maintained(program)
    engine.commit(edges_as_updates(nothing, there, 1))
    for number in range(COMMITS):
        at = np.arange(number * share, (number + 1) * share) * 7919 % EDGE_COUNT
        come = edges[EDGE_COUNT + number * share : EDGE_COUNT + (number + 1) * share]
        engine.commit(edges_as_updates(there[at], come, engine.round + 1))
        there[at] = come
    other.commit(edges_as_updates(nothing, there, 1))
    assert engine.table("p").rows == other.table("p").rows
    assert engine.memory.used <= FEWNESS * bound * other.memory.used
    for one in (engine, other):
        one.close()
