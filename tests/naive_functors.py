"""What functors compute on Python values: wrap-around at 64 or 32 bits for number and unsigned, doubles or floats of 32 bits,
text for symbol."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Any

import numpy as np


class DivisionByZero(Exception):
    """`/` or `%` by zero on number or unsigned."""


BITS: ContextVar[int] = ContextVar("BITS", default=64)
"""The word size of the program that is evaluated."""


def wrap(value: int, kind: str) -> int:
    """The low bits, read as the kind says."""
    bits = BITS.get()
    value &= 2**bits - 1
    return value - 2**bits if kind == "number" and value >= 2 ** (bits - 1) else value


def rounded(value: Any) -> Any:
    """A float as the word size has it; anything else as it is."""
    if not isinstance(value, float) or BITS.get() == 64:
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def literal(text: str, kind: str) -> int | float:
    """The value of a number as written, in a place of this kind."""
    if kind == "float":
        return float(rounded(float(text)))
    if text.count(".") == 3:
        return wrap(int.from_bytes(map(int, text.split("."))), kind)
    return wrap(int(text.rstrip("u").replace("_", ""), 0 if text[:2].lower() in ("0x", "0b") else 10), kind)


def divide(a: int, b: int) -> int:
    """Rounds towards zero, as the hardware does."""
    if b == 0:
        raise DivisionByZero
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 2**64)
    if a == 0:
        raise DivisionByZero
    return int(float(a) ** b)


def substr(text: str, index: int, length: int) -> str:
    """From `index`, at most `length` characters, a negative length meaning all; outside of the text there is nothing."""
    end = index + length if length >= 0 else len(text)
    return text[index:end] if 0 <= index <= len(text) else ""


def byte_substr(text: str, index: int, length: int) -> str:
    """The characters of which all bytes lie between these two."""
    end, place, found = index + length if length >= 0 else 4 * len(text), 0, ""
    for character in text if index >= 0 else "":
        size = len(character.encode())
        found += character if index <= place and place + size <= end else ""
        place += size
    return found


DAY = 24 * 60 * 60 * 10**6
"""In microseconds."""
ERA = 400
"""Years, after which the calendar repeats; none that begins before 1970 is asked of Python."""
ERA_DAYS = date(2000 + ERA, 1, 1).toordinal() - date(2000, 1, 1).toordinal()


def days(value: date) -> int:
    return (value - date(1970, 1, 1)).days


def microseconds(value: datetime) -> int:
    value = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def moment(value: int, unit: int) -> tuple[datetime, int]:
    """So many units (in microseconds) after 1970: a time whose year is right but for the years that are added."""
    eras, rest = divmod(value * unit, ERA_DAYS * DAY)
    return datetime(1970, 1, 1) + timedelta(microseconds=rest), eras * ERA


def iso(value: datetime, years: int) -> str:
    year = value.year + years
    shown = f"{year:04}" if 0 <= year < 10**4 else f"-{-year:04}" if year < 0 else f"+{year}"
    return shown + value.isoformat()[4:]


def add_months(day: int, months: int) -> int:
    start, years = moment(day, DAY)
    month = start.month - 1 + months
    years, year = years + month // 12 // ERA * ERA, start.year + month // 12 % ERA
    years, year = (years + ERA, year - ERA) if year >= 1970 + ERA else (years, year)
    last = (date(year + month % 12 // 11, (month + 1) % 12 + 1, 1) - timedelta(1)).day
    return days(date(year, month % 12 + 1, min(start.day, last))) + years // ERA * ERA_DAYS


INTEGER: dict[str, Callable[..., int]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": divide,
    "%": lambda a, b: a - b * divide(a, b),
    "^": power,
    "band": operator.and_,
    "bor": operator.or_,
    "bxor": operator.xor,
    "bnot": operator.invert,
    "bshl": lambda a, b: a << b % BITS.get(),
    "bshr": lambda a, b: a >> b % BITS.get(),
    "bshru": lambda a, b: (a & 2 ** BITS.get() - 1) >> b % BITS.get(),
    "land": lambda a, b: int(a != 0 and b != 0),
    "lor": lambda a, b: int(a != 0 or b != 0),
    "lxor": lambda a, b: int((a != 0) != (b != 0)),
    "lnot": lambda a: int(a == 0),
}
FLOAT: dict[str, Callable[..., float]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
    "floor": lambda a: float(np.floor(a)),
    "ceil": lambda a: float(np.ceil(a)),
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
}
FIXED: dict[str, tuple[str, Callable[..., Any]]] = {
    "cat": ("symbol", lambda *parts: "".join(parts)),
    "substr": ("symbol", substr),
    "strlen": ("number", len),
    "byte_length": ("number", lambda text: sum(1 + (c > "\x7f") + (c > "\u07ff") + (c > "\uffff") for c in text)),
    "byte_substr": ("symbol", byte_substr),
    "strpos": ("number", str.find),
    "bit_count": ("number", lambda a: f"{a & 2 ** BITS.get() - 1:b}".count("1")),
    "to_string": ("symbol", str),
    "to_number": ("number", int),
    "to_unsigned": ("unsigned", int),
    "to_float": ("float", float),
    "itof": ("float", float),
    "utof": ("float", float),
    "ftoi": ("number", int),
    "utoi": ("number", int),
    "ftou": ("unsigned", int),
    "itou": ("unsigned", int),
    "date": ("date", lambda text: days(date.fromisoformat(text))),
    "timestamp": ("timestamp", lambda text: microseconds(datetime.fromisoformat(text))),
    "date_text": ("symbol", lambda d: iso(*moment(d, DAY))[:-9]),
    "timestamp_text": ("symbol", lambda t: iso(*moment(t, 1))),
    "year": ("number", lambda d: moment(d, DAY)[0].year + moment(d, DAY)[1]),
    "month": ("number", lambda d: moment(d, DAY)[0].month),
    "day": ("number", lambda d: moment(d, DAY)[0].day),
    "weekday": ("number", lambda d: moment(d, DAY)[0].isoweekday()),
    "hour": ("number", lambda t: moment(t, 1)[0].hour),
    "minute": ("number", lambda t: moment(t, 1)[0].minute),
    "second": ("number", lambda t: moment(t, 1)[0].second),
    "microsecond": ("number", lambda t: moment(t, 1)[0].microsecond),
    "date_of": ("date", lambda t: t // DAY),
    "timestamp_of": ("timestamp", lambda d: d * DAY),
    "add_days": ("date", operator.add),
    "add_months": ("date", lambda d, n: add_months(d, n)),
    "days_between": ("number", lambda a, b: b - a),
    "add_seconds": ("timestamp", lambda t, n: t + n * 10**6),
    "seconds_between": ("number", lambda a, b: divide(wrap(b - a, "number"), 10**6)),
}
"""Functors whose result does not have the type of their arguments, with that type."""


def result_type(name: str) -> str | None:
    """The type of the functor's result, None where it is that of its arguments."""
    return "number" if name == "ord" else FIXED[name][0] if name in FIXED else None


CALENDAR = ("date", "timestamp")
"""The types that are numbers of days, and of microseconds."""

AGGREGATES: dict[str, tuple[int | None, Callable[[list[Any]], Any]]] = {
    "count": (0, len),
    "sum": (0, sum),
    "min": (None, min),
    "max": (None, max),
    "bit_xor": (0, lambda values: reduce(operator.xor, values)),
    "mean": (None, lambda values: sum(values) / len(values)),
}
"""Aggregates: the value of nothing, None where there is none, and that of values."""


def aggregated(name: str, values: list[Any], kind: str) -> Any:
    """The aggregate over values; its own is of this kind, None if there is none."""
    nothing, function = AGGREGATES[name]
    value = function(values) if values else nothing
    if value is None or kind not in ("number", "unsigned"):
        return value if value is None or kind != "float" else rounded(float(value))
    return wrap(value, kind)


def apply(name: str, args: list[Any], kind: str) -> Any:
    """The functor on values of this kind; `as` reads a value as this kind."""
    return rounded(_applied(name, args, kind))


def _applied(name: str, args: list[Any], kind: str) -> Any:
    whole, real = ("<I", "<f") if BITS.get() == 32 else ("<Q", "<d")
    match name, args:
        case ("as", [value]):
            if isinstance(value, float) and kind != "float":
                value = int.from_bytes(struct.pack(real, value), "little")
            if isinstance(value, int) and kind == "float":
                return struct.unpack(real, struct.pack(whole, value % 2 ** BITS.get()))[0]
            return wrap(value, kind) if kind in ("number", "unsigned") else value
        case ("min", _):
            return min(args)
        case ("max", _):
            return max(args)
        case ("abs", [value]):
            return abs(value) if kind == "float" else wrap(abs(value), kind)
        case ("-", [value]):
            return -value if kind == "float" else wrap(-value, kind)
        case ("-", _):
            return reduce(operator.sub, args) if kind == "float" else wrap(reduce(operator.sub, args), kind)
    if name in FIXED:
        value = FIXED[name][1](*args)
        return wrap(value, kind) if kind in ("number", "unsigned") else value
    return FLOAT[name](*args) if kind == "float" else wrap(INTEGER[name](*args), kind)
