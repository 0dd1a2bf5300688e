"""Hubs whose edges go: what remains of long groups, and that each row that leaves is not searched for in all of its group."""

from __future__ import annotations

from random import Random

import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.store import removals
from dlog.engine.kernels.incremental.store.indexes import LONG_GROUP_ROWS
from tests.engine.runtime.maintaining import EDGES, commit, engine_of, rows

DISTANCES = EDGES + (
    ".decl n(x: number)\nn(0).\nn(y) :- e(_, y).\n.decl r(x: number, y: number)\n.output r\n"
    "r(x, d) :- n(x), d = min c : { x = 0, c = 0 ; r(y, b), e(y, x), c = b + 1 }.\n"
)
TRIANGLES = EDGES + ".decl r(x: number, y: number)\n.output r\nr(x, z) :- e(x, y), e(y, z), e(x, z).\n"
HUB = 1
SPOKES = 3 * LONG_GROUP_ROWS


def distances(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    found, reached = {0: 0}, [0]
    for x in reached:
        for y in sorted(y for z, y in edges if z == x) if x in (0, HUB) else ():
            if y not in found:
                found[y] = found[x] + 1
                reached.append(y)
    return set(found.items())


def triangles(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(x, z) for x, y in edges if x == 0 for z in (b for a, b in edges if a == y) if (x, z) in edges}


def star(random: Random, far: int) -> set[tuple[int, int]]:
    """A hub behind the root, with spokes whose numbers are so far apart, of which the root has every tenth."""
    spokes = [2 + far * i for i in range(SPOKES)]
    return {(0, HUB), *((HUB, y) for y in spokes), *((0, y) for y in random.sample(spokes, SPOKES // 10))}


@pytest.mark.slow
@pytest.mark.parametrize("far", [1, 1_000_003])
@pytest.mark.parametrize(("program", "twin"), [(DISTANCES, distances), (TRIANGLES, triangles)])
@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_left_of_a_long_group_is_found(program: str, twin, far: int, at_once: bool) -> None:
    random = Random(far)
    edges = star(random, far)
    with engine_of(program) as engine:
        parts = [sorted(edges)] if at_once else [sorted(edges)[i::7] for i in range(7)]
        for part in parts:
            commit(engine, *((0, 1, *edge) for edge in part))
        for size in (1, removals.MAX_SEARCHED_ROWS, removals.MAX_SEARCHED_ROWS + 1, LONG_GROUP_ROWS, SPOKES):
            spokes = [edge for edge in sorted(edges) if edge[0] == HUB]
            gone = random.sample(spokes, min(size, len(spokes)))
            commit(engine, *((0, -1, *edge) for edge in gone))
            edges.difference_update(gone)
            assert rows(engine, "r") == twin(edges)
            # The group is gone through when the hub itself goes and comes.
            commit(engine, (0, -1, 0, HUB))
            assert rows(engine, "r") == twin(edges - {(0, HUB)})
            commit(engine, (0, 1, 0, HUB))
            assert rows(engine, "r") == twin(edges)
            come = random.sample(gone, (len(gone) + 1) // 2)
            commit(engine, *((0, 1, *edge) for edge in come))
            edges.update(come)
            assert rows(engine, "r") == twin(edges)


def test_two_hubs_lose_their_edges_in_turns() -> None:
    text = EDGES + ".decl h(x: number)\n.input h\n.decl r(x: number, y: number)\n.output r\nr(x, y) :- h(x), e(x, y).\n"
    random, edges = Random(2), {(x, y) for x in (0, HUB) for y in range(SPOKES)}
    with engine_of(text) as engine:
        commit(engine, *((0, 1, *edge) for edge in sorted(edges)))
        gone = random.sample(sorted(edges), SPOKES)
        commit(engine, *((i % 5, -1, *edge) for i, edge in sorted(enumerate(gone), key=lambda told: told[0] % 5)))
        assert rows(engine, "e") == edges - set(gone)


@pytest.mark.parametrize("program", [DISTANCES, TRIANGLES])
def test_all_edges_of_a_hub_go_without_a_search_for_each(program: str) -> None:
    random = Random(3)
    edges = star(random, 1)
    with engine_of(program) as engine:
        commit(engine, *((0, 1, *edge) for edge in sorted(edges)))
        gone = random.sample([edge for edge in sorted(edges) if edge[0] == HUB], SPOKES - 5)
        commit(engine, *((0, -1, *edge) for edge in gone))
        assert rows(engine, "r") == (distances if program == DISTANCES else triangles)(edges - set(gone))
        assert engine.worker.control[L.control.work] < 20 * SPOKES
