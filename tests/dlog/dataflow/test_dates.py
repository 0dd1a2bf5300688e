"""Dates and times in columns of integers: the numbers that sessions have."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Dataflow, col, lit
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

DAY = date(1970, 1, 3)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=-7)), timezone(timedelta(hours=5, minutes=30))])


def counts(rows: Any, kind: type = int) -> dict[Any, int]:
    flow = Dataflow()
    given = flow.input(x=kind)
    seen = given.capture()
    given.insert(rows)
    flow.commit()
    return seen.counts()


def in_session(type: str, rows: Any) -> dict[Any, int]:
    session = dlog.session(f".decl r(x: {type})")
    seen = session.collection("r").capture()
    session.insert("r", rows)
    session.commit()
    return dict.fromkeys(seen.counts(), 1)


@examples(20)
@given(st.sets(st.dates(), min_size=1))
def test_dates_are_the_days_that_sessions_have(days: set[date]) -> None:
    there, array = in_session("date", [(day,) for day in days]), pa.array([*days], pa.date32())
    assert counts([*days]) == counts([(day,) for day in days]) == counts({"x": [*days]}) == there
    assert counts(np.array([*days], "M8[D]")) == counts({"x": np.array([*days], object)}) == there
    assert counts(pa.table({"x": array})) == counts({"x": array}) == counts(pa.table({"x": array.cast(pa.date64())})) == there


@examples(20)
@given(st.sets(st.datetimes(), min_size=1), ZONES)
def test_times_are_the_microseconds_that_sessions_have(times: set[datetime], zone: timezone | None) -> None:
    there = in_session("timestamp", [(time,) for time in times])
    assert counts([*times]) == counts(np.array([*times], "M8[us]")) == there
    array = pa.array([*times], pa.timestamp("us"))
    assert counts(pa.table({"x": array})) == counts({"x": array.cast(pa.timestamp("us", "Asia/Tokyo"))}) == there
    hour = {time.replace(hour=12, year=2000, tzinfo=zone) for time in times}
    assert counts([*hour]) == in_session("timestamp", [(time,) for time in hour])


def test_times_of_other_units_are_microseconds() -> None:
    assert counts(np.array(["1970-01-01T00:00:02"], "M8[s]")) == counts(pa.table({"x": pa.array([2], pa.timestamp("s"))}))
    assert counts([np.datetime64(2, "s"), np.datetime64(2 * 10**9, "ns")]) == {(2_000_000,): 2}
    assert counts(pa.table({"x": pa.array([5000], pa.timestamp("ns"))})) == {(5,): 1}


def test_times_of_pandas_are_exact() -> None:
    pandas = pytest.importorskip("pandas")
    assert counts([pandas.Timestamp(5000, tz="Asia/Tokyo")]) == {(5,): 1}
    for time in (pandas.Timestamp(5001), pandas.NaT):
        with pytest.raises(DlogError, match="is no whole number of microseconds of 64 bits"):
            counts([time])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([DAY, datetime(1970, 1, 3)], "datetime.datetime.* is among dates"),
        ([datetime(1970, 1, 3), DAY], "datetime.date.* is among times"),
        ([DAY, 5], "5 is among dates"),
        ([5, DAY], "datetime.date.* is no int"),
        (np.array(["NaT"], "M8[D]"), "NaT is no whole number of microseconds"),
        (np.array([1], "M8[ns]"), "1970-01-01T00:00:00.000000001 is no whole number of microseconds of 64 bits"),
        (np.array([2**62], "M8[s]"), "is no whole number of microseconds of 64 bits"),
        (pa.table({"x": pa.array([1], pa.timestamp("ns"))}), "would lose data"),
        (pa.table({"x": pa.array([DAY, None], pa.date32())}), "column `x` has a null in row 2, where int is meant"),
        (pa.table({"x": pa.array([1], pa.time32("s"))}), "is no int"),
        (pa.table({"x": pa.array([1], pa.duration("s"))}), "is no int"),
    ],
)
def test_what_is_no_number_of_days_or_microseconds_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        counts(rows)


def test_dates_are_no_floats_and_are_objects() -> None:
    with pytest.raises(DlogError, match="is no float"):
        counts([DAY], float)
    assert counts([DAY], object) == counts(pa.table({"x": pa.array([DAY])}), object) == {(DAY,): 1}


def test_dates_are_computed_with_and_sought() -> None:
    flow = Dataflow()
    orders = flow.input(item=int, placed=int)
    late = orders.filter(col("placed") >= 2).map(due=col("placed") + 30).capture()
    trace = orders.arrange_by_key("placed").trace()
    orders.insert([(7, DAY), (8, date(1970, 1, 1))])
    flow.commit()
    assert late.counts() == {(32,): 1}
    assert trace.cursor().seek_key(DAY) == [((2, 7), 0, 1)]


@pytest.mark.parametrize(
    "rows",
    [
        [(1, DAY)],
        (1, DAY),
        {"day": [DAY], "x": [1]},
        {"day": np.array([DAY], "M8[D]"), "x": np.array([1])},
        {"day": pa.array([DAY]), "x": pa.array([1])},
        pa.table({"day": pa.array([DAY]), "x": [1]}),
    ],
)
@pytest.mark.parametrize("sets", [[], ["orders"]])
def test_they_are_the_same_as_rules(rows: Any, sets: list[str]) -> None:
    flow = Dataflow()
    orders = flow.input("orders", x=int, day=int)
    rules = dlog.rules(days=orders.map("day").distinct(), sets=sets)
    session = rules.session()
    session.insert("orders", rows)
    session.commit()
    assert list(session["days"]) == list(rules.run({"orders": rows})["days"]) == [(2,)]


def test_what_is_no_date_is_refused_as_rules_do() -> None:
    session = dlog.rules(days=Dataflow().input("orders", day=int, x=int).distinct()).session()
    with pytest.raises(DlogError, match="is not of type number"):
        session.insert("orders", ("monday", 1))


COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
DATES = st.dates(date(1969, 12, 28), date(1970, 1, 5))
TIMES = st.datetimes(datetime(1969, 12, 31), datetime(1970, 1, 2))


@examples(40)
@given(st.sampled_from([*COMPARED]), st.booleans(), st.one_of(*(st.tuples(st.lists(x, max_size=6), x) for x in (DATES, TIMES))))
def test_columns_of_dates_are_compared_with_dates(sign: str, mirrored: bool, case: tuple[list[Any], Any]) -> None:
    values, other = case
    flow, compare = Dataflow(), COMPARED[sign]
    given = flow.input("given", x=int)
    condition = compare(lit(other), col("x")) if mirrored else compare(col("x"), other)
    kept, told = given.filter(condition), given.map("x", told=condition).filter(col("told")).map("x")
    kept.assert_eq(told)
    seen, rules = kept.capture(), dlog.rules(kept=kept, sets=["given"])
    given.insert(set(values))
    flow.commit()
    wanted = {x for x in values if (compare(other, x) if mirrored else compare(x, other))}
    assert seen.counts() == counts(wanted)
    session = rules.session()
    session.insert("given", [(x,) for (x,) in counts(set(values))])
    session.commit()
    assert {tuple(row) for row in session["kept"]} == set(seen.counts())


def test_dates_of_numpy_are_compared_by_their_units() -> None:
    flow = Dataflow()
    days, moments = flow.input(x=int), flow.input(x=int)
    before = days.filter(col("x") < np.datetime64("1970-01-03")).capture()
    later = moments.filter(col("x") >= np.datetime64(2_000, "ns")).capture()
    days.insert([DAY, DAY - timedelta(days=1)])
    moments.insert([1, 2])
    flow.commit()
    assert before.counts() == {(1,): 1} and later.counts() == {(2,): 1}
