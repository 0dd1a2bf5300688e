"""The changes of recent rounds as a trace, against a list of them; and what undoes them on a set of rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.trace.adding_up import AHEAD
from dlog.engine.kernels.trace.undoing import STEP
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace import changes, past_rows, undoing
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.changes import ChangeTrace, net_of
from dlog.engine.trace.layer import Layer
from dlog.engine.trace.undoing import done, undone
from dlog.engine.values.table import Table
from dlog.engine.values.updates import RowUpdates, Updates
from tests.engine.trace.changing_rows import (
    ROUNDS,
    VALUES,
    Row,
    columns_of,
    set_of,
    states_of,
    stories,
    table_of,
    updates_of,
)
from tests.examples import examples


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
@given(
    rounds=ROUNDS,
    window=st.integers(0, 6),
    waiting=st.sampled_from([1, 2, 128]),
    batch=st.sampled_from([1, 4, 4096]),
    step=st.sampled_from([1, 3, 2048]),
    at_once=st.sampled_from([1, 40, undoing.WORDS_AT_ONCE]),
    per_read=st.sampled_from([0, 2, changes.CHANGES_PER_READ]),
    data=st.data(),
)
def test_changes_between_rounds_are_what_was_noted(
    rounds: list[list[Row]], window: int, waiting: int, batch: int, step: int, at_once: int, per_read: int, data: Any
) -> None:
    """Tables on the way to others are kept after a few changes, where objects weigh nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(undoing, "WORDS_AT_ONCE", at_once)
        patch.setattr(changes, "CHANGES_PER_READ", per_read)
        patch.setattr(changes, "MAX_WAITING", waiting)
        patch.setattr(changes, "MIN_STEP", step)
        for module in (changes, past_rows):
            patch.setattr(module, "ROWS_OF_A_TABLE", data.draw(st.sampled_from([0, 64])))
        patch.setattr(changes, "MAX_BATCH_ROWS", batch)
        held: set[Row] = set()
        story = [{}, *stories(rounds, held)]
        states = states_of(story)
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
            for round in (after, upto, after):
                dtype = np.int32 if _are_narrow(states[now]) and data.draw(st.booleans()) else np.int64
                present = table_of(sorted(states[now]), dtype, data.draw(st.booleans()))
                assert set_of(trace.table(round, partial(_itself, present), now)) == states[round]
                assert present.fresh or set_of(present) == states[now]
                assert present.fresh or all(column.flags.writeable for column in present.columns)
        _check_batches(trace, window, batch, story)


def _itself(table: Table) -> Table:
    return table


def _are_narrow(rows: set[Row]) -> bool:
    return all(-(2**31) <= v < 2**31 for row in rows for v in row)


def _check_batches(trace: ChangeTrace, window: int, most: int, story: list[dict[Row, int]]) -> None:
    """Batches touch, are small but for those of one round, and hold what was noted for who reads them again."""
    batches, last = trace.batches, len(story) - 1
    again = ChangeTrace.of(2, batches) if batches else trace
    start = max(0, last - window)
    assert sorted(told(again.between(start, last))) == sorted(told(trace.between(start, last)))
    assert trace.rows == sum(batch.rows for batch in batches)
    for each in batches:
        assert each.rows <= most or each.rows in map(len, story)


@examples(150)
@given(rounds=ROUNDS, first=st.sets(st.tuples(VALUES, VALUES)), wide=st.booleans(), fresh=st.booleans())
def test_undoing_changes_gives_the_rows_of_before(
    rounds: list[list[Row]], first: set[Row], wide: bool, fresh: bool
) -> None:
    held = set(first)
    story = stories(rounds, held)
    net = net_of(Updates(*_joined([updates_of(d, n) for n, d in enumerate(story, 1)])))
    if net is None:
        assert held == first
        return
    for start, end, change in ((held, first, undone), (first, held, done)):
        narrow = not wide and _are_narrow(start)
        table = table_of(sorted(start), np.int32 if narrow else np.int64, fresh)
        assert set_of(change(table, net)) == end
        assert fresh or set_of(table) == start


def _joined(parts: list[Updates]) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    columns = tuple(np.concatenate([p.columns[c] for p in parts]) for c in range(2))
    return columns, np.concatenate([p.diffs for p in parts]), np.concatenate([p.rounds for p in parts])


def test_changes_of_a_row_in_one_round_are_added_up() -> None:
    trace = ChangeTrace(1, 0)
    told_twice = Updates((np.array([1, 1, 2, 3, 3]),), np.array([1, -1, 1, 1, -1]), np.array([1, 1, 1, 1, 2]))
    trace.note(told_twice, 0)
    trace.note(told_twice, 0)
    now = Table((Kind.NUMBER,), (np.array([2]),))
    assert [set_of(trace.table(round, lambda: now, 2)) for round in range(3)] == [set(), {(2,), (3,)}, {(2,)}]
    assert told(trace.between(0, 2)) == [(1, (2,), 1), (1, (3,), 1), (2, (3,), -1)] and trace.rows == 3


def test_a_row_that_comes_and_goes_in_the_last_round_was_not_there_before() -> None:
    trace, ones = ChangeTrace(1, 0), np.ones(3, np.int64)
    trace.note(Updates((np.array([1, 2, 2]),), np.array([1, 1, -1]), ones), 0)
    now = Table((Kind.NUMBER,), (np.array([1]),))
    assert trace.table(0, lambda: now, 1).rows == 0
    assert len(trace.batches) == 1  # where equal changes of a round are one
    trace._known.forget(1)
    assert trace.table(0, lambda: now, 1).rows == 0


def test_columns_of_others_stay_writable_where_nothing_has_changed() -> None:
    trace, many = ChangeTrace(1, 0), np.arange(100)
    trace.note(Updates((many,), np.ones(100, np.int64), np.ones(100, np.int64)), 0)
    now = Table((Kind.NUMBER,), (many.copy(),))
    before = trace.table(2, lambda: now, 3)
    assert trace.table(2, lambda: now, 3) is before and set_of(before) == set_of(now)
    assert now.columns[0].flags.writeable and not before.columns[0].flags.writeable


def test_many_rows_of_one_value_are_undone() -> None:
    """A column of one value says nothing: the other one is filtered by."""
    xs = np.arange(50_000)
    ones = np.ones(50_000, np.int64)
    net = net_of(Updates((ones[:300], xs[100:400]), np.repeat([1, -1], [200, 100]), ones[:300]))
    assert net is not None
    before = undone(Table((Kind.NUMBER,) * 2, (ones[:49_900], xs[:49_900])), net)
    assert before.rows == 49_800 and (before.columns[0] == 1).all()
    expected = np.concatenate([xs[:100], xs[300:49_900], xs[300:400]])
    assert np.array_equal(np.sort(before.columns[1]), np.sort(expected))


@pytest.mark.parametrize("rows", [1, AHEAD, 3 * AHEAD + 1, STEP - 1, STEP, STEP + 1, 3 * STEP + 7])
@pytest.mark.parametrize("gone", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("came", [0.0, 0.3, 1.5])
def test_rows_that_go_are_found_wherever_they_lie(rows: int, gone: float, came: float) -> None:
    """Rows are looked at STEP at a time, and asked for AHEAD before."""
    rng = np.random.default_rng([rows, int(100 * gone), int(100 * came)])
    values = rng.permutation(4 * rows)
    present, new = values[:rows], values[rows : rows + int(came * rows)]
    leaving = present[rng.random(rows) < gone]
    xs = np.concatenate([leaving, new])
    net = net_of(Updates((xs, xs % 7), np.repeat([1, -1], [len(leaving), len(new)]), np.ones_like(xs)))
    table = Table((Kind.NUMBER,) * 2, (present.astype(np.int32), (present % 7).astype(np.int32)))
    found = table if net is None else undone(table, net)
    expected = np.concatenate([np.setdiff1d(present, leaving), new])
    assert np.array_equal(np.sort(found.columns[0]), np.sort(expected))
    assert np.array_equal(found.columns[0] % 7, found.columns[1])


def test_reading_a_round_looks_at_what_changed_around_it_alone() -> None:
    trace, one = ChangeTrace(1, 0), np.ones(1, np.int64)
    for round in range(1, 20_001):
        trace.note(Updates((one * round,), one, one * round), 0)
    assert len(trace.batches) < 20_000 // 1_000
    looked = [layer.rows for layer, _ in trace._parts(9_000, 9_001)]
    assert len(looked) == 1 and looked[0] <= changes.MAX_BATCH_ROWS
    assert told(trace.between(9_000, 9_001)) == [(9_001, (9_001,), 1)]


def test_many_changes_are_not_in_very_many_batches() -> None:
    trace, one, size = ChangeTrace(1, 0), np.ones(5_000, np.int64), 5_000
    for part in range(200):
        rounds = np.arange(size) + 1 + size * part
        trace.note(Updates((rounds,), one, rounds), 0)
    sizes = [batch.rows for batch in trace.batches]
    assert sum(sizes) == 1_000_000 and len(sizes) <= 6 * changes.PARTS and max(sizes) <= 1_000_000 // changes.PARTS
    assert told(trace.between(499_999, 500_001)) == [(n, (n,), 1) for n in (500_000, 500_001)]


def test_few_changes_are_undone_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, held = ChangeTrace(2, 0), set[Row]()
    story = [{}, *stories([[(n, 2**40), (n - 5, 2**40)] for n in range(6, 100)], held)]
    states = states_of(story)
    for round, diffs in enumerate(story[1:], 1):
        trace.note(updates_of(diffs, round), 0)
    monkeypatch.setattr(changes, "PickedChanges", None)
    now = partial(table_of, sorted(states[-1]))
    for round in (90, 50, 70):
        table = trace.table(round, now, 94)
        assert set_of(table) == states[round] and trace.table(round, now, 94) is table


def test_a_relation_without_columns_is_undone() -> None:
    one = np.ones(1, np.int64)
    came = net_of(Updates((), one, one))
    assert came is not None and undone(Table((), (), 1), came).rows == 0 and done(Table((), (), 0), came).rows == 1


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
