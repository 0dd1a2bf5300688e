"""The functors on dates and times: rows of the table in functors.py."""

from __future__ import annotations

from typing import Final

from dlog.engine.ir import calendar, scalars
from dlog.engine.ir.kinds import NUMBER
from dlog.engine.ir.rules import Domain, Kind
from dlog.engine.ir.signatures import Intrinsic, Signature, calendar_text, on_calendar

_DATE, _TIME, _PLAIN = Domain.DATE, Domain.TIMESTAMP, Domain.PLAIN


def _seconds_between(start: int, end: int) -> int:
    difference = scalars.as_kind(end - start, Kind.NUMBER)
    return int(scalars.quotient(int(difference), calendar.SECOND))


CALENDAR_FUNCTORS: Final = (
    calendar_text(
        "date",
        _DATE,
        "DATE",
        calendar.read_date,
        "The date that a text has, year, month and day.",
        'date("2026-03-01") - 1 = date("2026-02-28")',
    ),
    calendar_text(
        "timestamp",
        _TIME,
        "TIMESTAMP",
        calendar.read_timestamp,
        "The time that a text has: a date, and behind `T` or a space hour and minute, with seconds and up to six digits of a "
        "fraction. With `Z` or `+01:00` behind it, it becomes that of UTC.",
        'timestamp("2026-03-01T12:30") = timestamp("2026-03-01 13:30:00.000+01:00")',
    ),
    on_calendar(
        "year",
        "YEAR",
        lambda d: calendar.civil(d)[0],
        (_DATE, _PLAIN),
        "The year of a date.",
        'year(date("2026-11-25")) = 2026',
        "all",
    ),
    on_calendar(
        "month",
        "MONTH",
        lambda d: calendar.civil(d)[1],
        (_DATE, _PLAIN),
        "The month of a date, from 1.",
        'month(date("2026-11-25")) = 11',
    ),
    on_calendar(
        "day",
        "DAY",
        lambda d: calendar.civil(d)[2],
        (_DATE, _PLAIN),
        "The day of a date's month, from 1.",
        'day(date("2026-11-25")) = 25',
    ),
    on_calendar(
        "weekday",
        "WEEKDAY",
        calendar.weekday,
        (_DATE, _PLAIN),
        "The day of a date's week, from 1 for Monday.",
        'weekday(date("2026-11-25")) = 3',
    ),
    on_calendar(
        "add_days",
        "ADD",
        lambda d, n: d + n,
        (_DATE, _PLAIN, _DATE),
        "The date so many days later.",
        'add_days(date("2026-12-31"), 1) = date("2027-01-01")',
        "all",
    ),
    on_calendar(
        "add_months",
        "ADD_MONTHS",
        calendar.add_months,
        (_DATE, _PLAIN, _DATE),
        "The same day so many months later; the last day of a month that is too short.",
        'add_months(date("2024-01-31"), 1) = date("2024-02-29")',
        "all",
    ),
    on_calendar(
        "days_between",
        "DAYS_BETWEEN",
        lambda start, end: end - start,
        (_DATE, _DATE, _PLAIN),
        "How many days the second date is later than the first one.",
        'days_between(date("2026-02-28"), date("2026-03-01")) = 1',
    ),
    on_calendar(
        "hour",
        "HOUR",
        lambda t: t % calendar.DAY // calendar.HOUR,
        (_TIME, _PLAIN),
        "The hour of a time, from 0.",
        'hour(timestamp("2026-11-25T12:30")) = 12',
    ),
    on_calendar(
        "minute",
        "MINUTE",
        lambda t: t % calendar.HOUR // calendar.MINUTE,
        (_TIME, _PLAIN),
        "The minute of a time's hour, from 0.",
        'minute(timestamp("2026-11-25T12:30")) = 30',
    ),
    on_calendar(
        "second",
        "SECOND",
        lambda t: t % calendar.MINUTE // calendar.SECOND,
        (_TIME, _PLAIN),
        "The second of a time's minute, from 0.",
        'second(timestamp("2026-11-25T12:30:15.5")) = 15',
    ),
    on_calendar(
        "microsecond",
        "MICROSECOND",
        lambda t: t % calendar.SECOND,
        (_TIME, _PLAIN),
        "The microseconds of a time's second, from 0.",
        'microsecond(timestamp("2026-11-25T12:30:15.5")) = 500_000',
    ),
    on_calendar(
        "add_seconds",
        "ADD_SECONDS",
        lambda t, n: t + n * calendar.SECOND,
        (_TIME, _PLAIN, _TIME),
        "The time so many seconds later.",
        'add_seconds(timestamp("2026-12-31T23:59:59"), 1) = timestamp("2027-01-01")',
        "all",
    ),
    on_calendar(
        "seconds_between",
        "SECONDS_BETWEEN",
        _seconds_between,
        (_TIME, _TIME, _PLAIN),
        "How many whole seconds the second time is later than the first one, towards zero.",
        'seconds_between(timestamp("2026-11-25T12:30"), timestamp("2026-11-25T12:31:00.9")) = 60',
    ),
    on_calendar(
        "date_of",
        "DATE_OF",
        lambda t: t // calendar.DAY,
        (_TIME, _DATE),
        "The date of a time.",
        'date_of(timestamp("2026-11-25T12:30")) = date("2026-11-25")',
        "all",
    ),
    on_calendar(
        "timestamp_of",
        "TIMESTAMP_OF",
        lambda d: d * calendar.DAY,
        (_DATE, _TIME),
        "The time at which a date begins.",
        'timestamp_of(date("2026-11-25")) = timestamp("2026-11-25T00:00")',
        "all",
    ),
    Intrinsic(
        "date_text",
        Signature((NUMBER,), Kind.SYMBOL),
        {Kind.NUMBER: "DATE_TEXT"},
        calendar.date_text,
        "The text of a date, as files have it.",
        'date_text(date("2026-11-25") + 6) = "2026-12-01"',
        domains=(_DATE, _PLAIN),
    ),
    Intrinsic(
        "timestamp_text",
        Signature((NUMBER,), Kind.SYMBOL),
        {Kind.NUMBER: "TIMESTAMP_TEXT"},
        calendar.timestamp_text,
        "The text of a time, as files have it.",
        'timestamp_text(timestamp("2026-11-25 12:30")) = "2026-11-25T12:30:00"',
        domains=(_TIME, _PLAIN),
    ),
)
"""Days and microseconds of 64 bits have dates and times; what leaves these wraps around."""
