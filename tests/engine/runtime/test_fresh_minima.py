"""Minima and maxima whose rows all come in one round, some of them taken back in it: by negation of what comes in it, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from tests.engine.kernels.workbench import EXAMPLES
from tests.examples import examples
from tests.rounds import Driver

PROGRAM = """
.decl edge(x: number, y: number)
.decl gone(y: number)
.decl kept(x: number, y: number)
.decl least(x: number, y: number)
.decl most(y: number)
kept(x, y) :- edge(x, y), !gone(y).
kept(x, y) :- edge(y, x), gone(y).
least(x, y) :- edge(x, _), y = min z : { kept(x, z), !edge(z, x) }.
most(y) :- y = max z : { kept(_, z), !gone(z) }.
"""
NODES = st.integers(0, 9)
FACTS = st.tuples(st.sets(st.tuples(NODES, NODES), max_size=30), st.sets(NODES, max_size=4))
Edges = set[tuple[int, int]]


def expected(edges: Edges, gone: set[int]) -> tuple[set[tuple[int, int]], set[tuple[int]]]:
    kept = {(x, y) for x, y in edges if y not in gone} | {(y, x) for x, y in edges if x in gone}
    least = {(x, min(z for a, z in kept if a == x and (z, x) not in edges)) for x, _ in edges
             if any(a == x and (z, x) not in edges for a, z in kept)}  # fmt: skip
    found = [z for _, z in kept if z not in gone]
    return least, {(max(found),)} if found else set()


@examples(2 * EXAMPLES)
@given(rounds=st.lists(FACTS, min_size=1, max_size=5))
def test_what_comes_at_once_is_as_what_comes_bit_by_bit(rounds: list[tuple[Edges, set[int]]]) -> None:
    edges: Edges = set()
    gone: set[int] = set()
    with dlog.session(PROGRAM) as session:
        for wanted, without in rounds:
            _replace(session, "edge", edges, wanted)
            _replace(session, "gone", {(y,) for y in gone}, {(y,) for y in without})
            session.commit()
            edges, gone = wanted, without
            assert (set(session["least"]), set(session["most"])) == expected(edges, gone)
            # Everything goes now and then: what comes after that is all there is.
            _replace(session, "edge", edges, set())
            session.commit()
            edges = set()
            assert not session["least"] and not session["most"]


def test_what_comes_to_an_empty_result_costs_nothing_of_what_there_was_before() -> None:
    """Groups are gone through where the result is fresh: those that have gone have no numbers any more."""
    driver = Driver(Maintained, PROGRAM)
    driver.commit([[("edge", (x, x + 1), 1) for x in range(0, 1000, 2)]])
    driver.commit([[("edge", (x, x + 1), -1) for x in range(0, 1000, 2)]])
    for x in range(3):
        driver.commit([[("edge", (x, 7), 1)]])
        flow = driver.engine._flow
        assert driver.rows("least") == {(x, 7)} and driver.rows("most") == {(7,)}
        for reduction in (flow.reductions[name] for name in flow.reductions):
            assert reduction.groups.struct[L.relation.rows] == 1
            assert reduction.candidates.struct[L.relation.rows] == 1
        driver.commit([[("edge", (x, 7), -1)]])
    driver.engine.close()


def _replace(session: dlog.Session, relation: str, before: Iterable[tuple[int, ...]], after: Iterable[tuple[int, ...]]) -> None:
    old, new = set(before), set(after)
    change: Callable[[str, set[tuple[int, ...]]], object]
    for change, rows in ((session.remove, old - new), (session.insert, new - old)):
        if rows:
            change(relation, rows)
