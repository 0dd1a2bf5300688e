"""Tables of sums against dictionaries, and dataflows that go over from a table to a trace against those that had none."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Dataflow, col
from dlog.engine.operators import sum_table
from dlog.engine.operators.arrange import Arrange
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.sum_table import MIN_ENTRIES, SumTable
from tests.engine.operators.test_operators import Shown
from tests.examples import examples

Update = tuple[int, int, int, int]
"""A key, a component, a round within the batch, a diff."""
UPDATES = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2), st.integers(-2, 2))

FORMS = ["block", "fields", "layer"]


def delta(updates: list[Update], form: str) -> Delta:
    keys, components, rounds, diffs = np.array(updates, np.int64).reshape(-1, 4).T.copy()
    block = np.array([keys, components, np.zeros_like(keys), rounds, diffs])
    if form == "fields":
        return Delta(tuple(block[:3]), block[3:4], block[4])
    return Delta.of_block(block, 3).consolidated() if form == "layer" else Delta.of_block(block, 3)


@examples(200)
@given(st.lists(st.lists(UPDATES, min_size=1), max_size=4), st.sampled_from([0, 3]), st.sampled_from(FORMS))
def test_a_table_changes_by_what_sums_are_after_each_round(batches: list[list[Update]], shown: int, form: str) -> None:
    table, sums = SumTable(1, 3), {key: [0, 0, 0] for key in range(5)}
    for batch in batches:
        expected: Counter = Counter()
        for round in range(3):
            before = {key: tuple(sums[key]) for key in sums}
            for key, component, at, diff in batch:
                sums[key][component] += diff if at == round else 0
            for key in sums:
                for row, sign in ((before[key], -1), (tuple(sums[key]), 1)):
                    diff = int(any(row)) if shown else row[0]
                    expected[key, *row[:shown], round] += sign * diff
        given_updates = delta(batch, form)
        if not given_updates.rows:
            continue
        changed = table.changed(given_updates.in_order_of_rounds(), Shown(shown))
        found: Counter = Counter()
        for *row, diff in np.array([*changed.columns, *changed.times, changed.diffs]).T.tolist():
            found[tuple(row)] += diff
        assert {row: diff for row, diff in found.items() if diff} == {row: diff for row, diff in expected.items() if diff}
        assert table.rows == sum(any(each) for each in sums.values())
        (keys, components, _), diffs = table.updates()
        told = {(k, c): d for k, c, d in zip(keys.tolist(), components.tolist(), diffs.tolist(), strict=True)}
        assert told == {(key, c): total for key in sums for c, total in enumerate(sums[key]) if total}


def test_keys_without_sums_give_their_room_to_others() -> None:
    table, logic = SumTable(2, 1), Shown(0)
    logic.components = 1  # type: ignore[misc]
    for round in range(50):
        keys, ones = np.arange(100) + 100 * round, np.ones(100, np.int64)
        for diff in (ones, -ones):
            changed = table.changed(Delta((keys, -keys), np.full((1, 100), round), diff), logic)
            assert (changed.rows, int(changed.diffs.sum())) == (100, int(diff.sum()))
            assert table.rows == (100 if diff is ones else 0)
    assert len(table._words) <= 400
    many = np.arange(10 * MIN_ENTRIES)
    assert table.changed(Delta((many, many), np.zeros((1, len(many)), np.int64), many % 2), logic).rows == len(many) // 2
    assert table.rows == len(many) // 2
    assert sorted(table.updates()[0][0].tolist()) == many[1::2].tolist()


CHANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8), st.sampled_from([1, 2, -1])), max_size=20)


@examples(40)
@given(CHANGES, st.integers(1, 3), st.integers(0, 4), st.integers(0, 9))
def test_what_is_left_of_a_table_goes_to_a_trace(changes: list, step: int, limit: int, asked: int) -> None:
    flow = Dataflow()
    numbers = flow.input(x=int)
    counted = numbers.count()
    counts, sums = counted.capture(history=True), numbers.sum(by=["x"], y=col("x") * 3).capture(history=True)
    held = numbers.map("x", y=col("x") * 3)
    held.arrange_by_key("x", "y")
    expected = held.count().map("x", "count").capture(history=True)
    for each, round, diff in changes:
        numbers.update([each], diff, at=round)
    tables = [operator for operator in flow.operators if isinstance(operator, Arrange) and operator.summed]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sum_table, "MAX_ENTRIES", limit)
        while flow.round < 9:
            flow.advance_to(min(flow.round + step, 9))
            assert all(not table.trace.spine.rows for table in tables if table.table is not None)
            if flow.round >= asked:
                index = numbers.arrange_by_key("x")
    for round in range(9):
        assert counts.counts(round) == expected.counts(round)
        assert {(x, y) for x, y in sums.counts(round)} == {(x, 3 * x * n) for x, n in expected.counts(round)}
    assert index.updates <= flow.updates
    other = Dataflow(beside=flow)
    again = other.import_(index).collection.count().capture()
    other.advance_to(9)
    assert again.counts() == expected.counts(8)
