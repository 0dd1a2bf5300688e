"""Values of functors on Python's integers, floats and strings: what constants are folded with, and what is evaluated where no
kernel is.

Integers come as they are read, signed or unsigned, and a result may leave 64 bits: `as_kind` takes it back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from struct import pack, unpack

from dlog.engine.ir.rules import Kind

Scalar = int | float | str


def as_kind(value: Scalar, kind: Kind) -> Scalar:
    """The value in the range of its kind: integers wrap around at 64 bits.

    >>> as_kind(2**63, Kind.NUMBER)
    -9223372036854775808
    """
    if not isinstance(value, int) or kind not in (Kind.NUMBER, Kind.UNSIGNED):
        return value
    low = value & 2**64 - 1
    return low - 2**64 if kind is Kind.NUMBER and low >= 2**63 else low


def quotient(a: int | float, b: int | float) -> int | float:
    """`a / b`; of integers towards zero, and a zero `b` raises ZeroDivisionError."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def remainder(a: int, b: int) -> int:
    return int(a - b * quotient(a, b))


def power(a: int | float, b: int | float) -> int | float:
    """`a ^ b`; a negative power of an integer truncates the reciprocal: 0 unless `a` is 1 or -1."""
    if isinstance(a, int) and isinstance(b, int):
        return pow(a, b, 2**64) if b >= 0 else {1: 1, -1: 1 - b % 2 * 2}.get(a, 0)
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.nan if a != 0 else math.copysign(math.inf, a) if b % 2 == 1 else math.inf


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def whole(rounded: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding of floats to floats, which keeps infinities, NaN and the sign of zero."""
    return lambda value: math.copysign(rounded(value), value) if math.isfinite(value) else value


def float_of_bits(bits: int) -> float:
    """
    >>> float_of_bits(4612811918334230528)
    2.5
    """
    return float(unpack("<d", pack("<Q", bits & 2**64 - 1))[0])


def bits_of_float(value: float) -> int:
    return int(unpack("<q", pack("<d", value))[0])


def round_short(value: float | str) -> float:
    """The nearest float of 32 bits."""
    value = float(value)
    try:
        return float(unpack("<f", pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def narrow(value: int | float) -> int | float:
    """
    >>> narrow(2**31), narrow(0.1)
    (-2147483648, 0.10000000149011612)
    """
    return round_short(value) if isinstance(value, float) else ((value & 2**32 - 1) ^ 2**31) - 2**31


def short_bits(value: float) -> int:
    return 0x7FC00000 if value != value else int(unpack("<i", pack("<f", round_short(value)))[0])


def float_of_short_bits(bits: int) -> float:
    return float(unpack("<f", pack("<I", bits & 2**32 - 1))[0])


def unsigned(value: int) -> int:
    return value & 2**64 - 1


def substring(text: str, index: int, length: int) -> str:
    """At most `length` characters from `index` on, all if it is negative; nothing where the index lies outside the text."""
    return text[index : index + length if length >= 0 else None] if 0 <= index <= len(text) else ""


def byte_substring(text: str, index: int, length: int) -> str:
    """As `substring`, in bytes of UTF-8; of these, the characters that lie wholly within."""
    data = text.encode()
    part = data[index : index + length if length >= 0 else None] if 0 <= index <= len(data) else b""
    return part.decode(errors="ignore")


def text_of(value: Scalar) -> str:
    """A value as `to_string` writes it."""
    return format(value, "f") if isinstance(value, float) else str(value)
