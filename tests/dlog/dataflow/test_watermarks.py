"""Watermarks: events out of order are released in time, late ones are told, none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataflow import Collection, Dataflow, Input, Watermarked, col
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

ROUNDS = 7
events = st.tuples(st.integers(0, 12), st.sampled_from("xy"))
changes = st.lists(st.tuples(events, st.integers(0, ROUNDS - 1), st.sampled_from([1, 1, 1, 2, -1])), max_size=25)
marks = st.lists(st.tuples(st.integers(0, 14), st.integers(0, ROUNDS - 1)), max_size=3)
ends = st.lists(st.integers(1, ROUNDS - 1), max_size=4, unique=True).map(lambda found: [*sorted(found), ROUNDS])
NAMES = ("released", "late", "waiting")


class Naive:
    """Events round by round."""

    def __init__(self) -> None:
        self.watermark: int | None = None
        self.late: Counter = Counter()
        self.others: Counter = Counter()

    def round(self, changed: Counter, given: list[int], lateness: int) -> dict[str, dict]:
        before = self.watermark
        for row, diff in changed.items():
            late = 0
            if before is not None and row[0] < before:
                late = max(diff, -self.late[row])
            self.late[row] += late
            self.others[row] += diff - late
        here = [row[0] - lateness for row, diff in changed.items() if diff > 0] + given
        self.watermark = max([*here, *([] if before is None else [before])], default=None)
        passed = {row for row in self.others if self.watermark is not None and row[0] < self.watermark}
        return {
            "released": {row: count for row, count in self.others.items() if count and row in passed},
            "waiting": {row: count for row, count in self.others.items() if count and row not in passed},
            "late": {row: count for row, count in self.late.items() if count},
        }


def parts(found: Watermarked) -> dict[str, Any]:
    return {name: getattr(found, name).capture(history=True) for name in NAMES}


@examples(150)
@given(changes, marks, ends, st.integers(0, 4))
def test_events_are_released_late_or_waiting(changed: list, given: list, batches: list, lateness: int) -> None:
    flow = Dataflow()
    rows, extra = flow.input(at=int, name=str), flow.input(mark=int)
    found = rows.watermark("at", lateness, marks=extra)
    captured, watermark = parts(found), found.marks.capture(history=True)
    found.released.concat(found.late, found.waiting).assert_eq(rows)
    for row, round, diff in changed:
        rows.update([row], diff, at=round)
    for mark, round in given:
        extra.insert([mark], at=round)
    for end in batches:
        flow.advance_to(end)
    naive = Naive()
    for round in range(ROUNDS):
        here: Counter = Counter()
        for row, at, diff in changed:
            here[row] += diff if at == round else 0
        expected = naive.round(here, [mark for mark, at in given if at == round], lateness)
        assert {name: captured[name].counts(round) for name in NAMES} == expected, round
        assert watermark.counts(round) == ({} if naive.watermark is None else {(naive.watermark,): 1})
    assert found.watermark == naive.watermark


def test_what_has_been_released_does_not_come_again() -> None:
    flow = Dataflow()
    rows = flow.input(at=float)
    found = rows.watermark("at", 1.5)
    late, waiting = found.late.capture(), found.waiting.capture()
    seen: list[tuple] = []
    found.released.inspect(lambda row, time, diff: seen.append((row[0], time, diff)))
    for at in (3.0, 1.0, 4.0, 2.0, float("nan"), 9.0, 2.25):
        rows.insert([at])
        flow.commit()
    assert seen == [(3.0, 5, 1), (4.0, 5, 1)]
    assert found.watermark == 7.5
    assert {row[0] for row in late.counts()} == {1.0, 2.0, 2.25}
    assert {str(row[0]) for row in waiting.counts()} == {"9.0", "nan"}


def test_windows_are_released_when_they_can_change_no_more() -> None:
    flow = Dataflow()
    rows, end = flow.input(at=int), flow.input(mark=int)
    in_time = rows.watermark("at", 4, marks=end)
    known = in_time.released.concat(in_time.waiting)
    totals = known.tumbling_window("at", 10).count(by=("window_start", "window_end"))
    final = in_time.release(totals, col("window_end") - 1)
    shown: list[tuple] = []
    final.released.inspect(lambda row, time, diff: shown.append((row, time, diff)))
    final.late.assert_empty()
    for at in (1, 12, 8, 11, 13, 5, 22, 40):
        rows.insert([at])
        flow.commit()
    assert shown == [((0, 10, 2), 6, 1), ((10, 20, 3), 7, 1), ((20, 30, 1), 7, 1)]
    probe = final.released.probe()
    assert (final.watermark, probe.less_than(8), probe.less_than(9)) == (36, False, True)
    end.insert([1000])
    flow.commit()
    assert shown[3:] == [((40, 50, 1), 8, 1)]


def test_sessions_are_released_when_they_have_ended() -> None:
    flow = Dataflow()
    rows = flow.input(user=str, at=int)
    in_time = rows.watermark("at", 3)
    known = in_time.released.concat(in_time.waiting)
    sessions = known.session_window("at", 5, by="user").count(by=("user", "window_start", "window_end"))
    final = in_time.release(sessions, col("window_end") - 1)
    shown: list[tuple] = []
    final.released.inspect(lambda row, time, diff: shown.append((row, diff)))
    final.late.assert_empty()
    for at in (1, 7, 4, 6, 12, 20, 18, 17, 40):
        rows.insert([("ann", at)])
        flow.commit()
    assert shown == [(("ann", 1, 12, 4), 1), (("ann", 12, 17, 1), 1), (("ann", 17, 25, 3), 1)]


def test_waiting_costs_nothing_until_the_watermark_passes() -> None:
    """Of a hundred thousand events that wait, rounds touch those that are due."""
    flow = Dataflow()
    rows, mark = flow.input(at=int), flow.input(mark=int)
    found = rows.watermark("at", marks=mark)
    shown: list[int] = []
    found.released.inspect(lambda row, time, diff: shown.append(row[0]))
    rows.insert({"at": list(range(100_000))[::-1]})
    flow.commit()
    before = sum(each.received for each in flow.statistics())
    for k in range(1, 20):
        mark.insert([k])
        flow.commit()
    assert shown == list(range(19))
    assert sum(each.received for each in flow.statistics()) - before < 200


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda rows: rows.watermark("at"), "`watermark` needs a lateness, or marks"),
        (lambda rows: rows.watermark("at", -1), "`lateness` must be a whole number, 0 or more, not -1"),
        (lambda rows: rows.watermark("name", 1), "`time` must be of kind int or float, not 'name'"),
        (lambda rows: rows.watermark("at", marks=rows), "watermark: (watermark: int) and (at: int, name: str)"),
        (lambda rows: rows.watermark("at", 1).release(rows, col("at") / 2), "`time` must be of kind int, not"),
        (lambda rows: rows.enter(rows.scope.loop()).watermark("at", 1), "there is no watermark within a loop"),
    ],
)
def test_what_makes_no_watermark_is_refused(build: Callable[[Input], Collection], message: str) -> None:
    flow = Dataflow()
    with pytest.raises(DlogError) as refused:
        build(flow.input(at=int, name=str))
    assert refused.value.diagnostics[0].message.startswith(message)
