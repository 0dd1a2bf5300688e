"""Each operator on updates at arbitrary times of two loops, one within the other: right at every time, whatever the batches."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow
from tests.dlog.dataflow.built import Built
from tests.dlog.dataflow.naive import Naive, Rows, nonzero
from tests.dlog.dataflow.terms import BINARY, Term, ends, row
from tests.examples import examples

ITERATIONS, ROUNDS = 3, 5
REDUCTIONS = ("distinct", "threshold", "count", "min", "max", "top_k", "sum", "reduce", "consolidate")
iteration = st.integers(0, ITERATIONS - 1)
change = st.tuples(st.integers(0, 1), row, iteration, iteration, st.integers(0, ROUNDS - 1), st.sampled_from([1, 1, 1, -1]))
changes = st.lists(change, max_size=16)


@pytest.mark.parametrize("name", [*REDUCTIONS, *BINARY])
@examples(100)
@given(changes, ends)
def test_operators_are_right_at_partially_ordered_times(name: str, changed: list, batches: list[int]) -> None:
    flow = Dataflow()
    loop = flow.scope.loop()
    inner = loop.loop()
    inputs = [flow.input(a=int, b=int, i=int, j=int) for _ in range(2)]
    entered = [given.enter_at(loop, "i").enter_at(inner, "j").map("a", "b") for given in inputs]
    term = Term(name, 2, (), 1)
    parts = entered if name in BINARY else entered[:1]
    made = getattr(Built(flow, []), f"_{name}")(term, *parts).map("a", "b").capture(history=True)
    for side, each, i, j, round, diff in changed:
        inputs[side].update([(*each, i, j)], diff, at=round)
    for end in batches:
        flow.advance_to(end)
    evaluate = getattr(Naive([]), f"_{name}")
    for time in itertools.product(range(ROUNDS), range(ITERATIONS), range(ITERATIONS)):
        there = [at(changed, side, time) for side in range(len(parts))]
        assert made.counts(time) == nonzero(dict(evaluate(term, time, *there))), time


def at(changed: list, wanted: int, time: tuple[int, int, int]) -> Rows:
    """The rows of an input at a time."""
    found: Counter = Counter()
    for side, each, i, j, round, diff in changed:
        if side == wanted and round <= time[0] and i <= time[1] and j <= time[2]:
            found[each] += diff
    return nonzero(found)
