"""Minima over a recursion whose values enter in their order: labels of components, distances from several sources."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.steps import lookups
from tests.engine.kernels.workbench import EXAMPLES
from tests.examples import examples

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
WEIGHTS = DISTANCES.replace("v = w + 3", "v = w + y * 100 % 7")
FROM_ONE = WEIGHTS.replace("{ start(x, v)", "{ start(x, _), x < 2, v = 1")
SAME: dict[str, tuple[str, bool, Callable[[int], int]]] = {
    "labels": (LABELS, True, lambda x: 0),
    "distances": (DISTANCES, False, lambda x: 3),
    "weights": (WEIGHTS, False, lambda x: x * 100 % 7),
    "from one": (FROM_ONE, False, lambda x: x * 100 % 7),
}


def expected(program: str, facts: Facts) -> set[tuple[int, int]]:
    """By Dijkstra's algorithm; only who has a start takes part."""
    _, both, step = SAME[program]
    nodes = {x for x, _ in facts["start"]}
    after: dict[int, list[int]] = {}
    for x, y in facts["edge"]:
        after.setdefault(x, []).append(y)
        if both:
            after.setdefault(y, []).append(x)
    queue: list[tuple[int, int]] = []
    for x, v in facts["start"]:
        if program != "from one":
            heappush(queue, (v, x))
        elif x < 2:
            heappush(queue, (1, x))
    found: dict[int, int] = {}
    while queue:
        v, x = heappop(queue)
        if x in nodes and x not in found:
            found[x] = v
            for y in after.get(x, ()):
                heappush(queue, (v + step(x), y))
    return set(found.items())


NODES = st.integers(0, 11)
VALUES = st.one_of(st.integers(-3, 20), st.sampled_from([-(2**62), -1000, 127, 128, 1000, 2**31, 2**40, 2**61]))
CHANGES = st.one_of(
    st.tuples(st.just("edge"), st.tuples(NODES, NODES), st.sampled_from([1, 1, -1])),
    st.tuples(st.just("start"), st.tuples(NODES, VALUES), st.sampled_from([1, 1, -1])),
)


@examples(3 * EXAMPLES)
@given(program=st.sampled_from(sorted(SAME)), rounds=st.lists(st.lists(CHANGES, max_size=8), max_size=8), data=st.data())
def test_what_enters_late_is_there_in_the_end(program: str, rounds: list[list[Change]], data: st.DataObject) -> None:
    facts: Facts = {"edge": set(), "start": set()}
    with dlog.session(SAME[program][0]) as session:
        known: set[tuple[int, ...]] = set()
        for round in rounds:
            for relation, row, diff in [*round, *removals(facts, data)]:
                (session.insert if diff > 0 else session.remove)(relation, row)
                (facts[relation].add if diff > 0 else facts[relation].discard)(row)
            for row, diff in session.commit().changes("label"):
                assert (row in known) == (diff < 0)
                (known.add if diff > 0 else known.discard)(row)
            assert known == set(session["label"]) == expected(program, facts)


def removals(facts: Facts, data: st.DataObject) -> list[Change]:
    """Some of what is there goes, so that values must be found anew."""
    listed = [(relation, row, -1) for relation in ("edge", "start") for row in sorted(facts[relation])]
    return data.draw(st.lists(st.sampled_from(listed), max_size=3)) if listed else []


@examples(3 * EXAMPLES)
@given(values=st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-2, 3000)), min_size=2))
def test_the_smaller_a_value_the_earlier_it_enters(values: list[int]) -> None:
    for entry in (lookups.iteration_apart, lookups.iteration_in_order):
        entries = [int(entry(value)) for value in sorted(values)]
        assert entries == sorted(entries)
        assert entries[0] >= 0 and entries[-1] <= 64 * lookups.SPACING


def test_values_in_order_are_apart_as_long_as_they_are_small() -> None:
    entries = [int(lookups.iteration_in_order(value)) for value in range(5000)]
    assert entries[: 2 * lookups.SPACING] == list(range(2 * lookups.SPACING))
    assert max(b - a for a, b in pairwise(entries)) == 1
    assert [int(lookups.iteration_apart(value)) for value in (0, 1, 2, 3, 4)] == [0, 256, 512, 512, 768]


CONSTANT = DISTANCES.replace("{ start(x, v)", "{ start(x, _), x < 2, v = 1")


@pytest.mark.parametrize(("program", "places"), [
    (LABELS, 2),  # the changes of `start`, whichever atom reads them
    (LABELS.replace("min v", "max v"), 0),
    (DISTANCES, 5),
    (CONSTANT, 0),  # by one step from one value: iterations are in order already
    (FROM_ONE, 4),
])  # fmt: skip
def test_plans_show_what_enters_in_order(program: str, places: int) -> None:
    with dlog.session(program) as session:
        assert session.explain().count("small values first") == places


def test_labels_leave_little_behind() -> None:
    """Each node has its own label and that of its component, not those that passed through before it."""
    nodes = 3000
    edges = [(x, x * 7919 % nodes) for x in range(nodes)] + [(x, (x + 1) % nodes) for x in range(nodes)]
    with dlog.session(LABELS, {"edge": edges, "start": [(x, x) for x in range(nodes)]}) as session:
        assert set(session["label"]) == {(x, 0) for x in range(nodes)}
        flow = session._engine._flow  # type: ignore[attr-defined]
        assert flow.reductions["label"].candidates.struct[L.collection.live] <= 2 * nodes


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
