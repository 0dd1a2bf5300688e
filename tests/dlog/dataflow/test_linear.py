"""Linear operators one by one, on written-out rows; the seeds' own examples among them."""

from __future__ import annotations

import pytest

from dlog.dataflow import Dataflow, col, linear


def names() -> tuple[Dataflow, object]:
    """The collection of names of the seeds: frank comes twice, david once, then frank goes."""
    flow = Dataflow()
    people = flow.input(name=str)
    for name, round, diff in [("frank", 6, 1), ("frank", 8, 1), ("david", 8, 1), ("frank", 9, -2)]:
        people.update([name], diff, at=round)
    return flow, people


def test_a_map_changes_when_its_input_does() -> None:
    flow, people = names()
    lengths = people.flat_map(lambda name: [(name, len(name))], name=str, length=int).capture(history=True)
    flow.advance_to(10)
    assert sorted(lengths.updates()) == [
        (("david", 5), 8, 1),
        (("frank", 5), 6, 1),
        (("frank", 5), 8, 1),
        (("frank", 5), 9, -2),
    ]
    assert lengths.counts(8) == {("frank", 5): 2, ("david", 5): 1}
    assert lengths.counts(9) == {("david", 5): 1}


def test_1_2_explode_multiplies_diffs_also_by_negative_numbers() -> None:
    flow = Dataflow()
    counted = flow.input(key=str, count=int)
    copies = counted.explode("key", diff=col("count")).capture()
    counted.insert([("a", 1_000_000), ("b", -2), ("b", 2), ("c", 0)])
    flow.commit()
    assert copies.counts() == {("a",): 1_000_000}


def test_1_6_join_function_gives_rows_with_times_and_diffs() -> None:
    """The example of its documentation: x copies of 2x from time 3x until 4x."""
    flow = Dataflow()
    numbers = flow.input(x=int)
    made = numbers.join_function(lambda x: [((2 * x,), 3 * x, x), ((2 * x,), 4 * x, -x)], twice=int).capture(history=True)
    numbers.insert(range(10))
    flow.advance_to(41)
    for time in range(40):
        assert made.counts(time) == {(2 * x,): x for x in range(10) if 3 * x <= time < 4 * x}


def test_1_7_linear_functions_compose() -> None:
    both = linear.map(y=col("x") + 1).filter(col("y") > 2).followed_by(linear.generate_series(1, "y", "k"))
    flow = Dataflow()
    numbers = flow.input(x=int)
    together = numbers.join_function(both).capture()
    numbers.map(y=col("x") + 1).filter(col("y") > 2).generate_series(1, "y", "k").assert_eq(numbers.join_function(both))
    numbers.insert([0, 1, 2])
    flow.commit()
    assert together.counts() == {(3, 1): 1, (3, 2): 1, (3, 3): 1}


def test_a_temporal_filter_shows_rows_for_a_while() -> None:
    flow = Dataflow()
    rows = flow.input(name=str, start=int, end=int)
    shown = rows.temporal("start", "end").map("name").capture(history=True)
    rows.insert([("soon", 3, 5), ("late", 0, 4), ("empty", 4, 4), ("past", 0, 1)], at=1)
    rows.remove([("late", 0, 4)], at=2)
    flow.advance_to(7)
    seen = [{name for (name,) in shown.counts(round)} for round in range(7)]
    assert seen == [set(), {"late"}, set(), {"soon"}, {"soon"}, set(), set()]


@pytest.mark.parametrize("end", [2**62 - 1, 2**62, 2**63 - 1])
def test_temporal_filters_without_an_end_are_the_same_in_an_altneu_scope(end: int) -> None:
    flow = Dataflow()
    rows = flow.input(start=int, end=int)
    shown = rows.enter(flow.scope.altneu()).temporal("start", "end").leave().capture()
    rows.insert([(1, end), (-(2**63), end), (end, end), (0, 1)])
    flow.advance_to(3)
    assert shown.counts() == {(1, end): 1, (-(2**63), end): 1}


def test_1_9_series_and_repeated_rows() -> None:
    flow = Dataflow()
    rows = flow.input(name=str, n=int)
    series = rows.generate_series(1, "n").capture()
    repeated = rows.repeat_row("n").capture()
    rows.insert([("a", 3), ("b", 0), ("c", -2)])
    flow.commit()
    assert series.counts() == {("a", 3, 1): 1, ("a", 3, 2): 1, ("a", 3, 3): 1}
    assert repeated.counts() == {("a", 3): 3, ("c", -2): -2}


def test_1_10_streams_of_changes_are_unpacked() -> None:
    """As Debezium writes them: a row before and after, of which one may be missing."""
    flow = Dataflow()
    log = flow.input(op=str, old_id=int, old_name=str, new_id=int, new_name=str)
    unpacked = log.with_columns(old=col("op") != "c", new=col("op") != "d").unpack_changes(
        before={"id": "old_id", "name": "old_name"}, after={"id": "new_id", "name": "new_name"}, present=("old", "new")
    )
    table = unpacked.capture()
    log.insert([("c", 0, "", 1, "ada"), ("c", 0, "", 2, "bo")])
    log.insert([("u", 1, "ada", 1, "eve"), ("d", 2, "bo", 0, "")], at=1)
    flow.advance_to(2)
    assert table.counts() == {(1, "eve"): 1}


def test_1_12_updates_can_be_watched() -> None:
    flow, people = names()
    seen: list[object] = []
    people.inspect(lambda *update: seen.append(update))
    flow.advance_to(9)
    assert seen == [(("frank",), 6, 1), (("frank",), 8, 1), (("david",), 8, 1)]


@pytest.mark.parametrize(("first", "second"), [(5, 5), (5.5, 0.5)])
def test_updates_with_tuples_are_shown_once_with_their_sums(first: float, second: float) -> None:
    flow = Dataflow()
    rows = flow.input(k=int, v=type(first))
    seen: list[object] = []
    rows.explode("k", diff=(1, col("v"), 0)).inspect(lambda *update: seen.append(update))
    rows.insert([(1, first), (1, second), (2, first)])
    rows.remove([(1, first)], at=1)
    flow.advance_to(2)
    both, one = (2, first + second, 0), (1, first, 0)
    assert seen == [((1,), 0, both), ((1,), 1, tuple(-x for x in one)), ((2,), 0, one)]


def test_series_that_end_before_they_begin_are_empty() -> None:
    flow = Dataflow()
    rows = flow.input(x=int, y=int)
    series = rows.generate_series("x", "y", "n").capture()
    rows.insert([(2**63 - 1, -(2**63)), (2**63 - 2, 2**63 - 1), (1, 0)])
    flow.commit()
    assert [n for _, _, n in sorted(series)] == [2**63 - 2, 2**63 - 1]
