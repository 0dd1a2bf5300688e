"""Dates, times and numbers of 32 bits on Spark."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DATED = """.decl e(n: number, d: date, t: timestamp)
.input e
.decl q(n: number, d: date, t: timestamp)
q(n, add_months(d, 1), add_seconds(t, 1)) :- e(n, d, t).
.output q
"""
ROWS = [(1, date(2026, 1, 31), datetime(2026, 1, 31, 12)), (2, date(1969, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 1))]
LATER = [
    (1, date(2026, 2, 28), datetime(2026, 1, 31, 12, 0, 1)),
    (2, date(1970, 1, 31), datetime(1970, 1, 1, 0, 0, 0, 1)),
]
SHORT = '.pragma "word-size" "32"\n.decl e(x: number)\n.input e\n.decl q(x: number)\nq(x + 1) :- e(x).\n.output q\n'


def test_dates_and_times_come_from_python_and_from_dataframes(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, "n bigint, d date, t timestamp_ntz")
    for given in (ROWS, frame):
        result = dlog.run(DATED, {"e": given}, engine="spark", spark=spark)
        assert sorted(result["q"]) == LATER
        assert result["q"].df.schema.simpleString() == "struct<n:bigint,d:date,t:timestamp_ntz>"
    result = dlog.run(DATED, {"e": ROWS * 2000}, engine="spark", spark=spark)
    assert sorted(result["q"]) == LATER


def test_a_time_of_a_zone_is_that_of_utc(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = spark.sql("select 1L as n, date'2026-01-31' as d, timestamp'2026-01-31 13:00:00' as t")
        assert sorted(dlog.run(DATED, {"e": frame}, engine="spark", spark=spark)["q"]) == LATER[:1]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_session_keeps_dates_and_times(spark: SparkSession) -> None:
    with dlog.session(DATED, engine="spark", spark=spark) as session:
        session.insert("e", ROWS)
        assert sorted(row for row, _ in session.commit().changes("q")) == LATER
        session.remove("e", ROWS[0])
        session.commit()
        assert sorted(session["q"]) == LATER[1:]
        assert [tuple(row) for row in session["q"].df.collect()] == LATER[1:]


def test_what_is_no_date_is_refused(spark: SparkSession) -> None:
    frame = spark.sql("select 1L as n, 5L as d, timestamp_ntz'2026-01-31 13:00:00' as t")
    with pytest.raises(DlogError, match="column d is bigint, but d is date"):
        dlog.run(DATED, {"e": frame}, engine="spark", spark=spark)


def test_numbers_of_32_bits_wrap_around_and_are_checked(spark: SparkSession) -> None:
    result = dlog.run(SHORT, {"e": [(2**31 - 1,), (5,)]}, engine="spark", spark=spark)
    assert sorted(result["q"]) == [(-(2**31),), (6,)]
    with pytest.raises(DlogError, match="2147483648 does not fit a number of 32 bits"):
        list(dlog.run(SHORT, {"e": spark.range(2**31, 2**31 + 1)}, engine="spark", spark=spark)["q"])
