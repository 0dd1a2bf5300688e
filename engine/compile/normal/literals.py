"""The values of literals: text to 64-bit numbers, doubles and symbols."""

from __future__ import annotations

from typing import Final

from dlog.engine.ir.functors import find_functor
from dlog.engine.ir.kinds import FLOAT, NUMERIC, UNSIGNED
from dlog.engine.ir.rules import Constant, Domain, Kind
from dlog.grammar.syntax import Call, Number, String, Term

LIMITS: Final = {Kind.NUMBER: (-(2**63), 2**63 - 1), Kind.UNSIGNED: (0, 2**64 - 1)}

FITTING = 18
"""Of so many digits every number fits every kind."""

_CALENDAR = (Domain.DATE.value, Domain.TIMESTAMP.value)
_MAX_DIGITS = 400
"""A number of more digits fits no kind."""


def literal_text(term: Term) -> str | None:
    """The text of a numeric literal, its sign included (`-5` is written as a call of `-`), or None."""
    match term:
        case Number(text=text):
            return text
        case Call(name="-", args=(Number(text=text),)) if not text.startswith("-"):
            return "-" + text
        case _:
            return None


def calendar_literal(term: Term) -> tuple[Domain, int] | None:
    """What `date("2026-11-25")` and `timestamp("...")` are; ValueError where the text is none."""
    match term:
        case Call(name=name, args=(String(value=text),)) if name in _CALENDAR:
            row = find_functor(name, 1)
            assert row is not None
            return row.domains[-1], int(row.value(text))
        case _:
            return None


def literal_kinds(text: str) -> frozenset[Kind]:
    """The kinds a numeric literal may have: `1` may be any number, `1u` is unsigned, `1.5` a float."""
    if text.isdecimal():
        return NUMERIC
    digits = text.lstrip("-").lower()
    if digits.endswith("u"):
        return UNSIGNED
    if digits.startswith(("0x", "0b")) or digits.count(".") == 3:
        return NUMERIC
    return FLOAT if any(c in digits for c in ".e") else NUMERIC


def number_constant(text: str, kind: Kind) -> Constant | None:
    """The literal's value as a `kind`, or None where it does not fit."""
    if kind in LIMITS and text.isdecimal() and len(text) <= FITTING:
        return Constant(int(text), kind)
    if kind is Kind.FLOAT:
        try:
            value = float(_integer(text)) if _is_integer(text) else float(text)
        except OverflowError:
            return None
        return None if value in (float("inf"), float("-inf")) else Constant(value, kind)
    if not _is_integer(text):
        return None
    low, high = LIMITS[kind]
    integer = _integer(text)
    return Constant(integer, kind) if low <= integer <= high else None


def _is_integer(text: str) -> bool:
    return literal_kinds(text) != FLOAT


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    digits = digits.lower().removesuffix("u").replace("_", "")
    if digits.count(".") == 3:  # a.b.c.d, an IPv4 address
        value = 0
        for part in digits.split("."):
            value = value * 256 + _decimal(part)
        return sign * value
    return sign * (int(digits, 0) if digits.startswith(("0x", "0b")) else _decimal(digits))


def _decimal(digits: str) -> int:
    """The number; another one that fits no kind either where Python would refuse to convert so many digits."""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS
