"""Sessions whose input is large enough that its key column is implied by how its rows are sorted: nothing else differs."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import dlog
from dlog.engine.kernels import layout as L

TEXT = """.decl edge(x: number, y: number)
.input edge
.decl root(x: number)
root(0).
.decl dist(x: number, d: number)
.decl node(x: number)
node(x) :- root(x).
node(y) :- edge(_, y).
dist(x, d) :- node(x), d = min c : { root(x), c = 0 ; dist(y, b), edge(y, x), c = b + 1 }.
"""
SHARED = ".decl shared(x: number, z: number)\nshared(x, z) :- edge(x, y), edge(z, y), x < z, y < 20.\n"
Edge = tuple[int, int]


def random_edges(random: Random, count: int) -> set[Edge]:
    found: set[Edge] = set()
    while len(found) < count:
        found.add((random.randrange(900), random.randrange(900)))
    return found


def distances(edges: set[Edge]) -> dict[int, int]:
    successors: dict[int, list[int]] = {}
    for x, y in edges:
        successors.setdefault(x, []).append(y)
    found, front = {0: 0}, [0]
    while front:
        front = sorted({y for x in front for y in successors.get(x, ()) if y not in found})
        found |= dict.fromkeys(front, max(found.values()) + 1)
    return found


def is_implied(session: Any) -> bool:
    engine = session._engine
    flow = (engine.working or engine)._flow
    columns, widths = flow.input("edge").widths
    return any(columns[at] == L.IMPLIED for at in widths)


def check(session: Any, edges: set[Edge]) -> None:
    assert set(session["edge"]) == edges
    assert dict(session["dist"]) == distances(edges)


def change(random: Random, session: Any, edges: set[Edge]) -> None:
    """A round; what it says to have changed is what did."""
    gone = set(random.sample(sorted(edges), 60))
    come = (random_edges(random, 50) | {(random.randrange(-5, 1500), 1) for _ in range(5)}) - gone
    before = set(edges), distances(edges)
    session.remove("edge", sorted(gone))
    session.insert("edge", sorted(come))
    edges -= gone
    edges |= come
    done = session.commit()
    assert set(done.changes("edge")) == {(e, 1) for e in edges - before[0]} | {(e, -1) for e in before[0] - edges}
    came = {(row, 1) for row in distances(edges).items() - before[1].items()}
    assert set(done.changes("dist")) == came | {(row, -1) for row in before[1].items() - distances(edges).items()}


@pytest.mark.parametrize("state", [False, True], ids=["in memory", "with a state"])
def test_a_large_input_follows_its_changes(state: bool, tmp_path: Path) -> None:
    random = Random(11)
    edges = random_edges(random, 6000)
    given = {"edge": sorted(edges, key=lambda _: random.random())}
    kept = {"state": tmp_path / "state"} if state else {}
    with dlog.session(TEXT, given, **kept) as s:
        assert is_implied(s)
        check(s, edges)
        for _ in range(5):
            change(random, s, edges)
            check(s, edges)
    if not state:
        return
    with dlog.session(TEXT, **kept) as s:
        check(s, edges)
        change(random, s, edges)
        assert is_implied(s), "it goes on from an image, which has no column either"
        check(s, edges)
        s._engine.close = s._engine.abandon
    with dlog.session(TEXT, **kept) as s:
        change(random, s, edges)
        check(s, edges)


def test_rules_that_ask_for_more_are_answered() -> None:
    random = Random(12)
    edges = random_edges(random, 6000)
    with dlog.session(TEXT, {"edge": sorted(edges)}) as s:
        change(random, s, edges)
        assert is_implied(s)
        s.add_rules(SHARED)
        assert not is_implied(s)
        for _ in range(3):
            change(random, s, edges)
            check(s, edges)
            few = [edge for edge in edges if edge[1] < 20]
            assert set(s["shared"]) == {(x, z) for x, y in few for z, to in few if to == y and x < z}
        s.drop_relation("shared")
        change(random, s, edges)
        check(s, edges)


def test_proofs_and_questions_read_its_rows() -> None:
    random = Random(13)
    edges = random_edges(random, 6000)
    with dlog.session(TEXT, {"edge": sorted(edges)}, history=3) as s:
        change(random, s, edges)
        first = set(edges)
        change(random, s, edges)
        assert is_implied(s)
        x, y = min(edges)
        assert set(s.query(f"?- edge({x}, Y).")) == {(b,) for a, b in edges if a == x}
        assert set(s.query(f"?- edge(X, {y}).")) == {(a,) for a, b in edges if b == y}
        assert set(s.at(2)["edge"]) == first
        far = max(distances(edges).items(), key=lambda pair: pair[1])
        assert s.why("dist", far).height >= far[1]
