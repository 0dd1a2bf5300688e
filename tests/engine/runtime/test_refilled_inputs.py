"""Inputs that are put in order by steps while rules read them: each commit tells what has changed, as sets have it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from tests.engine.runtime.maintaining import EDGES, engine_of, rows

ROWS = (1 << 18) + 8000
KEYS = ROWS // 10
NEAR = 1500
"""Keys of the input's base whose edges come and go."""
FAR = ROWS // 8 - 100
"""Edges of other keys that are replaced first: not many more places have to be dead before any is given to another row."""
RULES = (
    EDGES
    + """.decl few(x: number)
few(x) :- x = range(0, 300).
.decl p(x: number, z: number)
.decl n(y: number, c: number)
.output p, n
p(x, z) :- few(x), e(x, y), e(y, z).
n(y, c) :- few(y), c = count : { e(_, y) }.
"""
)
Pairs = set[tuple[int, ...]]


def answers(edges: Pairs) -> dict[str, Pairs]:
    after: dict[int, list[int]] = {}
    into = dict.fromkeys(range(300), 0)
    for x, y in edges:
        after.setdefault(x, []).append(y)
        if y in into:
            into[y] += 1
    return {"p": {(x, z) for x in range(300) for y in after.get(x, ()) for z in after.get(y, ())}, "n": set(into.items())}


def commit(engine: Maintained, come: Pairs, go: Pairs) -> None:
    listed = np.array([*come, *go], np.int64).reshape(-1, 2)
    diffs = np.repeat([1, -1], [len(come), len(go)])
    engine.commit({"e": Updates((listed[:, 0], listed[:, 1]), diffs, np.full(len(listed), engine.round + 1))})


def told(engine: Maintained, relation: str) -> set[tuple[int, ...]]:
    found = engine.changes(relation)
    return set(zip(*(c.tolist() for c in (*found.columns, found.diffs)), strict=True))


def dead(engine: Maintained) -> tuple[int, int]:
    """Places of the base without a row, and rows that have gone."""
    struct = engine._flow.collections["e"].struct
    return int(struct[L.collection.base_dead]), int(struct[L.collection.base_removed])


@pytest.mark.slow
def test_rules_that_read_an_input_whose_rows_move_tell_what_has_changed() -> None:
    random = Random(1)
    edges: Pairs = set()
    while len(edges) < ROWS:
        edges.add((random.randrange(KEYS), random.randrange(KEYS)))
    with engine_of(RULES) as engine:
        commit(engine, edges, set())
        key = int(engine._flow.collections["e"].struct[L.collection.base_key])
        gone_far = set(random.sample(sorted(edge for edge in edges if edge[key] >= NEAR), FAR))
        come_far = {edge[::-1] for edge in gone_far if edge[1 - key] >= NEAR} - edges
        commit(engine, come_far, gone_far)
        assert dead(engine) == (FAR, FAR)
        edges = edges - gone_far | come_far
        before = answers(edges)
        for _ in range(12):
            go = set(random.sample(sorted(edge for edge in edges if edge[key] < NEAR), 300))
            ends = [(random.randrange(NEAR), random.randrange(KEYS)) for _ in range(300)]
            come = {end if key == 0 else end[::-1] for end in ends} - edges
            commit(engine, come, go)
            edges = edges - go | come
            after = answers(edges)
            for name, there in after.items():
                gone = {(*row, -1) for row in before[name] - there}
                assert told(engine, name) == gone | {(*row, 1) for row in there - before[name]}
            before = after
        places, gone_rows = dead(engine)
        assert gone_rows == FAR + 12 * 300
        assert places - FAR < 0.7 * 12 * 300  # steps went through these keys once; without any, nine in ten are dead
        for name, there in before.items():
            assert set(rows(engine, name)) == there
