"""Minima over a recursion whose values enter in their order: labels of components, distances from several sources."""

from __future__ import annotations

from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dlog
from dlog.engine.kernels import layout as L
from dlog.engine.kernels import lookups
from tests.engine.kernels.desk import EXAMPLES

Change = tuple[str, tuple[int, ...], int]
Facts = dict[str, set[tuple[int, ...]]]

LABELS = """
.decl edge(x: number, y: number)
.input edge
.decl start(x: number, v: number)
.input start
.decl label(x: number, v: number)
.output label
label(x, l) :- start(x, _), l = min v : { start(x, v) ; label(y, v), edge(x, y) ; label(y, v), edge(y, x) }.
"""
DISTANCES = """
.decl edge(x: number, y: number)
.input edge
.decl start(x: number, v: number)
.input start
.decl label(x: number, v: number)
.output label
label(x, l) :- start(x, _), l = min v : { start(x, v) ; label(y, w), edge(y, x), v = w + 3 }.
"""
SAME = {"labels": (LABELS, True, 0), "distances": (DISTANCES, False, 3)}


def expected(facts: Facts, both: bool, step: int) -> set[tuple[int, int]]:
    """By Dijkstra's algorithm; only who has a start takes part."""
    nodes = {x for x, _ in facts["start"]}
    after: dict[int, list[int]] = {}
    for x, y in facts["edge"]:
        after.setdefault(x, []).append(y)
        if both:
            after.setdefault(y, []).append(x)
    queue: list[tuple[int, int]] = []
    for x, v in facts["start"]:
        heappush(queue, (v, x))
    found: dict[int, int] = {}
    while queue:
        v, x = heappop(queue)
        if x in nodes and x not in found:
            found[x] = v
            for y in after.get(x, ()):
                heappush(queue, (v + step, y))
    return set(found.items())


NODES = st.integers(0, 11)
VALUES = st.one_of(st.integers(-3, 20), st.sampled_from([-(2**62), -1000, 127, 128, 1000, 2**31, 2**40, 2**61]))
CHANGES = st.one_of(
    st.tuples(st.just("edge"), st.tuples(NODES, NODES), st.sampled_from([1, 1, -1])),
    st.tuples(st.just("start"), st.tuples(NODES, VALUES), st.sampled_from([1, 1, -1])),
)


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(program=st.sampled_from(sorted(SAME)), rounds=st.lists(st.lists(CHANGES, max_size=8), max_size=8), data=st.data())
def test_what_enters_late_is_there_in_the_end(program: str, rounds: list[list[Change]], data: st.DataObject) -> None:
    text, both, step = SAME[program]
    facts: Facts = {"edge": set(), "start": set()}
    with dlog.session(text) as session:
        known: set[tuple[int, ...]] = set()
        for round in rounds:
            for relation, row, diff in [*round, *removals(facts, data)]:
                (session.insert if diff > 0 else session.remove)(relation, row)
                (facts[relation].add if diff > 0 else facts[relation].discard)(row)
            for row, diff in session.commit().changes("label"):
                assert (row in known) == (diff < 0)
                (known.add if diff > 0 else known.discard)(row)
            assert known == set(session["label"]) == expected(facts, both, step)


def removals(facts: Facts, data: st.DataObject) -> list[Change]:
    """Some of what is there goes, so that values must be found anew."""
    listed = [(relation, row, -1) for relation in ("edge", "start") for row in sorted(facts[relation])]
    return data.draw(st.lists(st.sampled_from(listed), max_size=3)) if listed else []


def test_the_smaller_a_value_the_earlier_it_enters() -> None:
    values = [-(2**63), -1, 0, 1, 2, 3, 4, 127, 128, 2**40, 2**62, 2**63 - 1]
    entries = [int(lookups.entry_iteration(value)) for value in values]
    assert entries == sorted(entries)
    assert entries[:4] == [0, 0, 0, lookups.SPACING]


def test_plans_show_what_enters_in_order() -> None:
    with dlog.session(LABELS) as session:
        assert "small values first" in session.explain()
    with dlog.session(LABELS.replace("min v", "max v")) as session:
        assert "small values first" not in session.explain()


def test_labels_leave_little_behind() -> None:
    """Each node has its own label and that of its component, not those that passed through before it."""
    nodes = 3000
    edges = [(x, x * 7919 % nodes) for x in range(nodes)] + [(x, (x + 1) % nodes) for x in range(nodes)]
    with dlog.session(LABELS, {"edge": edges, "start": [(x, x) for x in range(nodes)]}) as session:
        assert set(session["label"]) == {(x, 0) for x in range(nodes)}
        flow = session._engine._flow  # type: ignore[attr-defined]
        assert flow.reductions["label"].candidates.struct[L.CO_LIVE] <= 2 * nodes


@pytest.mark.parametrize("limit", [2, 40])
def test_a_limit_counts_iterations_that_do_something(limit: int) -> None:
    chain = [(x, x + 1) for x in range(20)]
    facts = {"edge": chain, "start": [(x, x + 1000) for x in range(21)]}
    if limit < 20:
        with pytest.raises(dlog.DlogError, match="more than 2 iterations"):
            dlog.session(LABELS, facts, max_iterations=limit)
    else:
        with dlog.session(LABELS, facts, max_iterations=limit) as session:
            assert set(session["label"]) == {(x, 1000) for x in range(21)}
