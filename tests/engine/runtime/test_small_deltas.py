"""Paths of one look-up: whether few changes go through them row by row or as a block is not to be told from their results."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Few, Operation
from dlog.engine.kernels.incremental.steps import small_deltas
from dlog.engine.kernels.incremental.store import direct
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source

EDGES = ".decl e(x: number, y: number)\n.input e\n"
NODES = EDGES + ".decl n(x: number)\nn(x) :- e(x, _).\nn(y) :- e(_, y).\n.decl r(x: number, y: number)\n.output r\n"
PROGRAMS = {
    "distances": NODES + "r(x, d) :- n(x), d = min c : { x = 0, c = 0 ; r(y, b), e(y, x), c = b + 1 }.\n",
    "labels": NODES + "r(x, d) :- n(x), d = min c : { n(x), c = x ; r(y, c), e(y, x) }.\n",
    "greatest": NODES + "r(x, d) :- n(x), d = max c : { n(x), c = x ; r(y, c), e(y, x) }.\n",
    "filtered": NODES + "r(x, d) :- n(x), d = min c : { x = 0, c = 0 ; r(y, b), e(y, x), x != y + 1, c = b + 1 }.\n",
    "weighted": NODES + "r(x, d) :- n(x), d = min c : { x = 0, c = 0 ; r(y, b), e(y, x), c = b + x }.\n",
    "pairs": NODES.replace("r(x: number, y: number)", "r(x: number, y: number, d: number)")
    + "r(x, y, d) :- n(x), n(y), d = min c : { e(x, y), c = 1 ; r(x, z, a), r(z, y, b), c = a + b }.\n",
    "closure": EDGES + ".decl r(x: number, y: number)\n.output r\nr(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z).\n",
}

WAYS = {
    "distances": Few.VALUE,
    "labels": Few.VALUE,
    "greatest": Few.VALUE,
    "filtered": Few.SHARED,
    "weighted": Few.APART,
    "pairs": Few.APART,
    "closure": Few.SHARED,
}
"""How a path of each goes through few changes."""


class Twins:
    """Two engines of a program, of which the second has no use for paths by row, nor for results that are looked up between
    rounds only."""

    def __init__(self, text: str) -> None:
        self.engines = [Maintained(compile_source(Source(text))) for _ in range(2)]

    def commit(self, rounds: list[list[tuple[int, int, int]]]) -> None:
        """Rounds of (diff, x, y) that both have the same results of."""
        told = [(number, *change) for number, round in enumerate(rounds) for change in round]
        numbers, diffs, x, y = (np.array(column, np.int64) for column in zip(*told, strict=True))
        for engine in self.engines:
            engine.commit({"e": Updates((x, y), diffs, numbers + engine.round + 1)})
        one, other = ((sorted(rows(engine)), changes(engine)) for engine in self.engines)
        assert one == other
        self.without_rows()

    def without_rows(self) -> None:
        flow = self.engines[1]._flow
        assert flow is not None
        for path, _ in flow.paths:
            path.struct[L.path.few] = Few.NOT
        flow.collections["r"].struct[L.collection.read_between_rounds] = 0

    @property
    def between(self) -> bool:
        flow = self.engines[0]._flow
        assert flow is not None
        return bool(flow.collections["r"].struct[L.collection.read_between_rounds])

    def ways(self) -> set[int]:
        flow = self.engines[0]._flow
        assert flow is not None
        return {path.struct[L.path.few] for path, _ in flow.paths}

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def rows(engine: Maintained) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in engine.table("r").columns), strict=True))


def changes(engine: Maintained) -> list[tuple[int, ...]]:
    told = engine.changes("r")
    return sorted(zip(told.rounds.tolist(), told.diffs.tolist(), *(c.tolist() for c in told.columns), strict=True))


def changing(random: Random, edges: set[tuple[int, int]], nodes: int, count: int) -> list[tuple[int, int, int]]:
    """A round that takes away some edges and brings others."""
    gone = random.sample(sorted(edges), min(count, len(edges)))
    come = {(random.randrange(nodes), random.randrange(nodes)) for _ in range(count)} - edges
    edges.difference_update(gone)
    edges.update(come)
    return [(-1, *edge) for edge in gone] + [(1, *edge) for edge in sorted(come)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_the_same_row_by_row_and_in_blocks(program: str) -> None:
    twins, random, nodes = Twins(PROGRAMS[program]), Random(program), 24
    edges = {(random.randrange(nodes), random.randrange(nodes)) for _ in range(40)}
    twins.commit([[(1, *edge) for edge in sorted(edges)]])
    assert {WAYS[program], Few.ALONE} <= twins.ways()
    assert twins.between == (program != "pairs")
    for size in (1, 2, 7, 30):
        for count in (1, 2, 20):
            twins.commit([changing(random, edges, nodes, count) for _ in range(size)])
    twins.close()


@pytest.mark.slow
@pytest.mark.parametrize("program", ["distances", "labels", "weighted"])
def test_results_are_the_same_where_what_is_touched_is_asked_for_before(program: str) -> None:
    twins, random, nodes = Twins(PROGRAMS[program]), Random(program), direct.MIN_UNCACHED_PLACES + 1000
    edges = {(random.randrange(x), x) for x in range(1, nodes)} | {(random.randrange(nodes), 1) for _ in range(200)}
    twins.commit([[(1, *edge) for edge in sorted(edges)]])
    twins.commit([changing(random, edges, nodes, 1) for _ in range(100)])
    twins.close()


@pytest.mark.parametrize("program", ["distances", "labels", "weighted", "closure"])
def test_groups_too_long_to_go_through_row_by_row(program: str) -> None:
    """A hub among the few nodes whose results change, and many behind it."""
    twins, hub = Twins(PROGRAMS[program]), 5
    spokes = [(1, hub, node) for node in range(100, 101 + small_deltas.MAX_GROUP_ROWS)]
    twins.commit([[(1, 0, 1), (1, 1, 2), (1, 2, 3), (1, 1, 4), *spokes]])
    twins.commit([[(1, 2, hub), (1, 2, 6), (1, 6, 7)], [(1, 1, hub)], [(-1, 0, 1)], [(1, 0, 1), (-1, 1, hub)], [(-1, 2, hub)]])
    assert len(rows(twins.engines[0])) > 4
    twins.close()


def test_a_path_that_is_left_to_python_in_part_goes_in_blocks() -> None:
    text = PROGRAMS["distances"].replace("c = b + 1", "c = b + strlen(to_string(x))")
    engine = Maintained(compile_source(Source(text)))
    engine.commit({"e": Updates((np.array([0, 10]), np.array([10, 3])), np.ones(2, np.int64), np.ones(2, np.int64))})
    assert sorted(rows(engine)) == [(0, 0), (3, 3), (10, 2)]
    assert engine._flow is not None
    words = [(path, {word for level in path.code for word in level.words}) for path, _ in engine._flow.paths]
    asking = [path for path, present in words if Operation.EXTERNAL in present]
    assert asking and all(path.struct[L.path.few] == Few.NOT for path in asking)
    engine.close()
