"""Days and microseconds since 1970-01-01 and their ISO texts, on Python's integers: kernels/values/calendar without rows."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

DAY: Final = 86_400_000_000
"""In microseconds, as all below."""
HOUR, MINUTE, SECOND = DAY // 24, DAY // 1440, 1_000_000

_EPOCH = date(1970, 1, 1).toordinal()
_ERA_DAYS, _ERA_YEARS = 146097, 400
_YEAR_OF_DAYS, _YEAR_OF_TIMES = 25_252_734_927_000_000, 290_000
_BLANK = r"[ \t\n\v\f\r]*"
_DAY = r"(?P<year>[+-][0-9]{5,17}|-?[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_DATE = re.compile(_BLANK + _DAY)
_TIME = re.compile(
    rf"{_BLANK}{_DAY}(?:[T ](?P<hour>[0-9]{{2}}):(?P<minute>[0-9]{{2}})(?::(?P<second>[0-9]{{2}})(?:\.(?P<part>[0-9]+))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day.

    >>> civil(20782)
    (2026, 11, 25)
    """
    era, rest = divmod(days, _ERA_DAYS)
    found = date.fromordinal(_EPOCH + rest)
    return found.year + era * _ERA_YEARS, found.month, found.day


def days_of(year: int, month: int, day: int) -> int:
    """Raises ValueError where there is no such day."""
    era, rest = divmod(year - 1970, _ERA_YEARS)
    return date(1970 + rest, month, day).toordinal() - _EPOCH + era * _ERA_DAYS


def add_months(days: int, months: int) -> int:
    """The same day so many months later; the last one of a month that is too short."""
    year, month, day = civil(days)
    years, month = divmod(month - 1 + months, 12)
    for last in (day, 30, 29, 28):
        try:
            return days_of(year + years, month + 1, min(day, last))
        except ValueError:
            continue
    raise AssertionError


def weekday(days: int) -> int:
    """1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def read_date(text: str) -> int:
    """Raises ValueError for what is no date."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError
    return _days(found, _YEAR_OF_DAYS)


def read_timestamp(text: str) -> int:
    """Raises ValueError for what is no date, nor a time of one."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    part = (found["part"] or "").rstrip("0")
    if hour > 23 or minute > 59 or second > 59 or len(part) > 6:
        raise ValueError
    time = hour * HOUR + minute * MINUTE + second * SECOND + int(part.ljust(6, "0"))
    return _days(found, _YEAR_OF_TIMES) * DAY + time - _distance(found["zone"] or "Z")


def _days(found: re.Match[str], most: int) -> int:
    year = int(found["year"])
    if abs(year) > most:
        raise ValueError
    return days_of(year, int(found["month"]), int(found["day"]))


def _distance(zone: str) -> int:
    if zone == "Z":
        return 0
    hour, minute = int(zone[1:3]), int(zone[4:])
    if hour > 23 or minute > 59:
        raise ValueError
    return (hour * HOUR + minute * MINUTE) * (-1 if zone[0] == "-" else 1)


def date_text(days: int) -> str:
    """
    >>> date_text(-719529)
    '-0001-12-31'
    """
    year, month, day = civil(days)
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+06}" if year > 9999 else f"{year:05}"
    return f"{shown}-{month:02}-{day:02}"


def timestamp_text(time: int) -> str:
    """
    >>> timestamp_text(250000)
    '1970-01-01T00:00:00.250000'
    """
    days, rest = divmod(time, DAY)
    part = f".{rest % SECOND:06}" if rest % SECOND else ""
    return f"{date_text(days)}T{rest // HOUR:02}:{rest // MINUTE % 60:02}:{rest // SECOND % 60:02}{part}"
