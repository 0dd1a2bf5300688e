"""Days and microseconds since 1970-01-01 in the Gregorian calendar, which holds for all years, and their ISO texts.

What is computed is right for all days of 64 bits; results that leave 64 bits wrap around. Readers and writers are as in
`numerals`: texts are `2026-11-25` and `2026-11-25T12:30:00.250000`, in UTC. Years beyond 0 to 9999 have a sign.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_u8, store_u8

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
"""In microseconds."""

_ERA = 146097
"""The days of 400 years, after which the calendar repeats."""
_YEAR_OF_DAYS, _YEAR_OF_TIMES = 25_252_734_927_000_000, 290_000
"""No year that is read is further away: all of its days, or microseconds, fit 64 bits."""


@kernel
def civil(days):
    """Year, month and day of a number of days (Hinnant, chrono-compatible low-level date algorithms)."""
    era = days // _ERA
    day = days - era * _ERA + 135080  # since the first of March 400 years before 1970's era, which begins 719468 days earlier
    era += 4
    if day >= _ERA:
        day -= _ERA
        era += 1
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    return era * 400 + year + (1 if month <= 2 else 0), month, day + 1


@kernel
def days_of(year, month, day):
    """The number of days of a date."""
    if month <= 2:
        year -= 1
    era = year // 400
    year -= era * 400
    month += -3 if month > 2 else 9
    return era * _ERA + year * 365 + year // 4 - year // 100 + (153 * month + 2) // 5 + day - 1 - 719468


@kernel
def month_length(year, month):
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@kernel
def add_months(days, months):
    """The same day so many months later; the last one of a month that is too short."""
    year, month, day = civil(days)
    years = months // 12
    month += months - years * 12
    year += years
    if month > 12:
        month -= 12
        year += 1
    return days_of(year, month, min(day, month_length(year, month)))


@kernel
def weekday(days):
    """1 for Monday to 7 for Sunday."""
    return (days % 7 + 3) % 7 + 1


# --------------------------------------------------------------------------------------------------------------- reading


@kernel
def _digits(start, stop, count):
    """The value of so many digits, -1 where they are not there."""
    if start + count > stop:
        return -1
    value = 0
    for i in range(count):
        digit = load_u8(start, i) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@kernel
def _byte(start, stop):
    return load_u8(start, 0) if start < stop else 0


@kernel
def _read_day(start, stop, most):
    """A date of years up to `most`: its days, the address behind it, and whether there is such a day."""
    sign, size = _byte(start, stop), 4
    if sign in (43, 45):
        start += 1
        size = 0
        while start + size < stop and size < 17 and 48 <= load_u8(start, size) <= 57:
            size += 1
        if size < 5 and sign == 43:
            return 0, start, False
    year = _digits(start, stop, size)
    start += size
    month = _digits(start + 1, stop, 2)
    day = _digits(start + 4, stop, 2)
    dashes = _byte(start, stop) == 45 and _byte(start + 3, stop) == 45
    if size < 4 or year < 0 or year > most or not dashes or month < 1 or month > 12 or day < 1:
        return 0, start, False
    if sign == 45:
        year = -year
    if day > month_length(year, month):
        return 0, start, False
    return days_of(year, month, day), start + 6, True


@kernel
def read_day(start, stop):
    """A date: its days, the address behind it, and whether there is such a day."""
    return _read_day(start, stop, _YEAR_OF_DAYS)


@kernel
def read_time(start, stop):
    """A date, and behind `T` or a space a time of it, `12:30`, with seconds, a fraction of six digits and a distance from UTC:
    its microseconds, the address behind it, and whether there is such a time."""
    days, start, good = _read_day(start, stop, _YEAR_OF_TIMES)
    value = days * DAY
    if not good or _byte(start, stop) not in (84, 32) or start + 1 >= stop:
        return value, start, good
    hour = _digits(start + 1, stop, 2)
    minute = _digits(start + 4, stop, 2)
    if _byte(start + 3, stop) != 58 or hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return value, start, False
    value += hour * HOUR + minute * MINUTE
    start += 6
    if _byte(start, stop) == 58:
        second = _digits(start + 1, stop, 2)
        if second < 0 or second > 59:
            return value, start, False
        value += second * SECOND
        start += 3
        if _byte(start, stop) == 46:
            start += 1
            unit = SECOND
            while start < stop and 48 <= load_u8(start, 0) <= 57:
                unit //= 10
                value += (load_u8(start, 0) - 48) * unit
                if unit == 0 and load_u8(start, 0) != 48:
                    return value, start, False
                start += 1
            if unit == SECOND:
                return value, start, False
    return _distance(value, start, stop)


@kernel
def _distance(value, start, stop):
    """A time that may have its distance from UTC behind it, `Z` or `+01:00`."""
    sign = _byte(start, stop)
    if sign == 90:
        return value, start + 1, True
    if sign not in (43, 45):
        return value, start, True
    hour = _digits(start + 1, stop, 2)
    minute = _digits(start + 4, stop, 2)
    if _byte(start + 3, stop) != 58 or hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return value, start, False
    distance = hour * HOUR + minute * MINUTE
    return (value - distance if sign == 43 else value + distance), start + 6, True


# --------------------------------------------------------------------------------------------------------------- writing


@kernel
def _put(out, value, count):
    """Writes a number with so many digits."""
    for i in range(count - 1, -1, -1):
        rest = value // 10
        store_u8(out, i, value - rest * 10 + 48)
        value = rest


@kernel
def write_day(out, days):
    year, month, day = civil(days)
    at = out
    size = 4
    if year < 0 or year > 9999:
        store_u8(at, 0, 45 if year < 0 else 43)
        at += 1
        year = abs(year)
        size = 5 if year > 9999 else 4
        rest = year // 100000
        while rest != 0:
            rest //= 10
            size += 1
    _put(at, year, size)
    at += size
    store_u8(at, 0, 45)
    _put(at + 1, month, 2)
    store_u8(at, 3, 45)
    _put(at + 4, day, 2)
    return at + 6 - out


@kernel
def write_time(out, value):
    days = value // DAY
    value -= days * DAY
    at = out + write_day(out, days)
    store_u8(at, 0, 84)
    _put(at + 1, value // HOUR, 2)
    store_u8(at, 3, 58)
    _put(at + 4, value // MINUTE % 60, 2)
    store_u8(at, 6, 58)
    _put(at + 7, value // SECOND % 60, 2)
    at += 9
    fraction = value % SECOND
    if fraction != 0:
        store_u8(at, 0, 46)
        _put(at + 1, fraction, 6)
        at += 7
    return at - out


@kernel
def seconds_between(start, end):
    """Whole seconds, towards zero."""
    difference = np.int64(end) - np.int64(start)
    seconds = difference // SECOND
    return seconds + 1 if seconds < 0 and seconds * SECOND != difference else seconds
