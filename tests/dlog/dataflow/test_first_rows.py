"""`min`, `max` and `top_k` of groups of which not all rows are read."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow
from dlog.engine.operators import first_rows, some_rounds
from dlog.engine.operators.first_rows import FirstRows
from tests.examples import examples

VALUES: dict[type, list] = {
    int: [-(2**63), -(2**63) + 1, -1, 0, 1, 2, 5, 2**63 - 1],
    float: [float("-inf"), -0.5, 0.25, 2.5, 1e300, float("inf")],
    bool: [False, True],
    str: ["", "a", "ab", "b"],
}
Changes = list[tuple[str, Any, int, int, int]]
"""Key, value, another column, round and diff."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[type, Changes, list[int]]:
    kind = draw(st.sampled_from(list(VALUES)))
    diffs = st.sampled_from([-2, -1, 1, 1, 1, 2, 3])
    row = st.tuples(st.sampled_from("kl"), st.sampled_from(VALUES[kind]), st.integers(0, 2), st.integers(0, 9), diffs)
    return kind, draw(st.lists(row, max_size=60)), draw(st.lists(st.integers(1, 5), max_size=6))


def _groups(changes: Changes, round: int, keyed: bool, whole: bool) -> dict[tuple, list[tuple]]:
    """The rows, or their values alone, as often as they are there, by key."""
    there: Counter[tuple[tuple, tuple]] = Counter()
    for key, value, other, at, diff in changes:
        if at <= round:
            there[(key,) if keyed else (), (key, value, other) if whole else (value,)] += diff
    found: dict[tuple, list[tuple]] = {}
    for (group, row), count in there.items():
        if count > 0:
            found.setdefault(group, []).extend([row] * count)
    return found


@examples(150)
@given(
    cases(), st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 2), st.sampled_from([0, 3, 64]), st.integers(1, 9)
)
def test_3_1_first_rows_at_every_round_are_those_of_a_sorted_list(
    case: tuple[type, Changes, list[int]], count: int, keyed: bool, descending: bool, margin: int, few: int, at_once: int
) -> None:
    kind, changes, steps = case
    flow, by = Dataflow(), "key" if keyed else None
    rows = flow.input(key=str, value=kind, other=int)
    least, greatest = (each("value", by=by).capture(history=True) for each in (rows.min, rows.max))
    order = ["value", "other"] if keyed else ["value", "other", "key"]
    first = rows.top_k(count, order, by, descending).capture(history=True)
    for key, value, other, round, diff in changes:
        rows.update([(key, value, other)], diff, at=round)
    with (
        patch.object(first_rows, "MARGIN", margin),
        patch.object(first_rows, "FEW", few),
        patch.object(some_rounds, "ROUNDS_AT_ONCE", at_once),
    ):
        for step in [*steps, 10]:
            flow.advance_to(flow.round + step)
    for round in range(10):
        values = _groups(changes, round, keyed, False)
        for output, best in ((least, min), (greatest, max)):
            assert output.counts(round) == {(*key, *best(group)): 1 for key, group in values.items()}
        wanted: Counter[tuple] = Counter()
        for group in _groups(changes, round, keyed, True).values():
            wanted.update(sorted(group, key=lambda row: (row[1], row[2], row[0]), reverse=descending)[:count])
        assert first.counts(round) == wanted


@pytest.mark.parametrize("descending", [False, True])
def test_of_a_large_group_a_few_rows_are_read(descending: bool) -> None:
    flow = Dataflow()
    rows = flow.input(x=int, y=int)
    first = rows.top_k(3, "x", descending=descending).capture()
    (operator,) = (each for each in flow.operators if isinstance(each, FirstRows))
    rows.insert({"x": range(0, 100_000, 2), "y": [0] * 50_000})
    flow.commit()
    best = [99_998, 99_996, 99_994] if descending else [0, 2, 4]
    assert sorted(first.counts()) == sorted((x, 0) for x in best)
    before = operator.updates_read
    for k in range(10):
        rows.remove([(best[0], 0)])
        rows.insert([(50_001 + 2 * k, 0)])
        flow.commit()
        best = [*best[1:], best[2] + (-2 if descending else 2)]
        assert sorted(first.counts()) == sorted((x, 0) for x in best)
    assert operator.updates_read - before < 10 * 200


def test_rows_that_went_before_those_that_are_there_are_read_over() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    least = rows.min("x").capture()
    rows.insert({"x": range(10_000)})
    flow.commit()
    rows.remove({"x": range(9_000)})
    flow.commit()
    assert dict(least.counts()) == {(9_000,): 1}
    rows.remove({"x": range(9_000, 10_000)})
    flow.commit()
    assert dict(least.counts()) == {}
