"""The changes of recent rounds as a trace, against a list of them; and what undoes them on a set of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.times.frontier import Antichain
from dlog.engine.trace import changes
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.changes import ChangeTrace, net_of, undone
from dlog.engine.trace.layer import Layer
from dlog.engine.values.updates import RowUpdates, Updates
from tests.examples import examples

Row = tuple[int, ...]
VALUES = st.sampled_from([0, 1, 2, -1, 2**31, -(2**63), 2**63 - 1])
ROUNDS = st.lists(st.lists(st.tuples(VALUES, VALUES), max_size=4), min_size=1, max_size=12)
"""The rows that each round turns: out of the set if they are there, else in."""


def stories(rounds: list[list[Row]], held: set[Row]) -> list[dict[Row, int]]:
    """The diffs of each round, and the rows after all of them in `held`."""
    found = []
    for rows in rounds:
        diffs = {row: -1 if row in held else 1 for row in rows}
        held.symmetric_difference_update(diffs)
        found.append(diffs)
    return found


def columns_of(rows: list[Row], dtype: Any = np.int64) -> tuple[np.ndarray, ...]:
    table = np.array(rows, np.int64).reshape(len(rows), 2)
    return tuple(np.ascontiguousarray(table[:, c].astype(dtype)) for c in range(2))


def updates_of(diffs: dict[Row, int], round: int) -> Updates:
    values = np.array(list(diffs.values()), np.int64)
    return Updates(columns_of(list(diffs)), values, np.full(len(diffs), round))


def summed(parts: list[dict[Row, int]]) -> dict[Row, int]:
    total: dict[Row, int] = {}
    for part in parts:
        for row, diff in part.items():
            total[row] = total.get(row, 0) + diff
    return {row: diff for row, diff in total.items() if diff}


def told(updates: Updates) -> list[tuple[int, Row, int]]:
    rows = zip(*(c.tolist() for c in updates.columns), strict=True)
    return list(zip(updates.rounds.tolist(), rows, updates.diffs.tolist(), strict=True))


def rows_of(layer: Layer) -> dict[Row, int]:
    """The rows of a layer with their diffs."""
    return dict(zip(zip(*(c.tolist() for c in layer.columns()), strict=True), layer.diffs().tolist(), strict=True))


@examples(150)
@given(rounds=ROUNDS, window=st.integers(0, 6), waiting=st.sampled_from([1, 2, 128]), data=st.data())
def test_changes_between_rounds_are_what_was_noted(rounds: list[list[Row]], window: int, waiting: int, data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "MAX_WAITING", waiting)
        held: set[Row] = set()
        story = [{}, *stories(rounds, held)]
        trace = ChangeTrace(2, 0)
        for now, diffs in enumerate(story):
            if diffs:
                asrows = data.draw(st.booleans())
                trace.note(RowUpdates(diffs, 2, now) if asrows else updates_of(diffs, now), max(0, now - 1 - window))
            if data.draw(st.booleans()):
                trace.forget(max(0, now - window))
            after = data.draw(st.integers(max(0, now - window), now))
            upto = data.draw(st.integers(after, now))
            expected = [(n, row, diff) for n in range(after + 1, upto + 1) for row, diff in story[n].items()]
            found = told(trace.between(after, upto))
            assert sorted(found) == sorted(expected) and [n for n, *_ in found] == sorted(n for n, *_ in found)
            net = trace.net(after, upto)
            assert ({} if net is None else rows_of(net)) == summed(story[after + 1 : upto + 1])
        again = ChangeTrace.of(2, trace.batches) if trace.batches else trace
        last = len(story) - 1
        start = max(0, last - window)
        assert sorted(told(again.between(start, last))) == sorted(told(trace.between(start, last)))


@examples(150)
@given(rounds=ROUNDS, first=st.sets(st.tuples(VALUES, VALUES)), wide=st.booleans())
def test_undoing_changes_gives_the_rows_of_before(rounds: list[list[Row]], first: set[Row], wide: bool) -> None:
    held = set(first)
    story = stories(rounds, held)
    narrow = not wide and all(-(2**31) <= v < 2**31 for row in held for v in row)
    columns = columns_of(sorted(held), np.int32 if narrow else np.int64)
    net = net_of(Updates(*_joined([updates_of(d, n) for n, d in enumerate(story, 1)])))
    if net is None:
        assert held == first
        return
    before, rows = undone(columns, len(held), net)
    assert rows == len(first) == len(before[0])
    assert set(zip(*(c.tolist() for c in before), strict=True)) == first


def _joined(parts: list[Updates]) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    columns = tuple(np.concatenate([p.columns[c] for p in parts]) for c in range(2))
    return columns, np.concatenate([p.diffs for p in parts]), np.concatenate([p.rounds for p in parts])


def test_many_rows_of_one_value_are_undone() -> None:
    """A column of one value says nothing: the other one is filtered by."""
    xs = np.arange(50_000)
    ones = np.ones(50_000, np.int64)
    net = net_of(Updates((ones[:300], xs[100:400]), np.repeat([1, -1], [200, 100]), ones[:300]))
    assert net is not None
    columns, rows = undone((ones[:49_900], xs[:49_900]), 49_900, net)
    assert rows == 49_800 and (columns[0] == 1).all()
    expected = np.concatenate([xs[:100], xs[300:49_900], xs[300:400]])
    assert np.array_equal(columns[1], expected)


def test_a_relation_without_columns_is_undone() -> None:
    one = np.ones(1, np.int64)
    came = net_of(Updates((), one, one))
    assert came is not None and undone((), 1, came) == ((), 0)


def test_batches_that_are_no_trace_are_refused() -> None:
    def batch(low: int, high: int, depth: int = 1) -> Batch:
        rest = (0,) * (depth - 1)
        ends = Antichain.at(low, *rest), Antichain.at(high, *rest)
        return Batch.of(*ends, columns_of([(low, 1)]), (low, *rest), np.ones(1, np.int64))

    assert ChangeTrace.of(2, [batch(1, 4), batch(4, 6)]).last == 5
    for wrong in ([batch(1, 4), batch(5, 6)], [batch(1, 4, 2)]):
        with pytest.raises(ValueError, match=r"touch|round"):
            ChangeTrace.of(2, wrong)
    with pytest.raises(ValueError, match="columns"):
        ChangeTrace.of(3, [batch(1, 4)])
