"""The values of literals: text to 64-bit numbers, doubles and symbols."""

from __future__ import annotations

from typing import Final

from dlog.engine.ir.functors import find_functor
from dlog.engine.ir.kinds import FLOAT, INTEGRAL, NUMERIC, UNSIGNED
from dlog.engine.ir.rules import Constant, Domain, Kind
from dlog.engine.ir.scalars import narrow, round_short
from dlog.grammar.syntax import Call, Number, String, Term

LIMITS: Final = {
    (Kind.NUMBER, False): (-(2**63), 2**63 - 1),
    (Kind.UNSIGNED, False): (0, 2**64 - 1),
    (Kind.NUMBER, True): (-(2**31), 2**31 - 1),
    (Kind.UNSIGNED, True): (0, 2**32 - 1),
}
"""The integers of a kind, and whether they have 32 bits."""

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
    if digits.startswith(("0x", "0b")) or _is_address(digits):
        return NUMERIC
    return FLOAT if any(c in digits for c in ".e") else NUMERIC


def number_constant(text: str, kind: Kind, short: bool = False) -> Constant | None:
    """The literal's value as a `kind`, of 32 bits where it is `short`, or None where it does not fit."""
    if kind in INTEGRAL and not short and text.isdecimal() and len(text) <= FITTING:
        return Constant(int(text), kind)
    if kind is Kind.FLOAT:
        try:
            value = float(_integer(text)) if _is_integer(text) else float(text)
        except OverflowError:
            return None
        value = round_short(value) if short else value
        return None if value in (float("inf"), float("-inf")) else Constant(value, kind)
    if not _is_integer(text):
        return None
    low, high = LIMITS[kind, short]
    integer = _integer(text)
    if short and kind is Kind.NUMBER and _is_address(text):  # all of its 32 bits
        integer = int(narrow(integer))
    return Constant(integer, kind) if low <= integer <= high else None


def _is_integer(text: str) -> bool:
    return literal_kinds(text) != FLOAT


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    digits = digits.lower().removesuffix("u").replace("_", "")
    if _is_address(digits):
        value = 0
        for part in digits.split("."):
            value = value * 256 + _decimal(part)
        return sign * value
    return sign * (int(digits, 0) if digits.startswith(("0x", "0b")) else _decimal(digits))


def _is_address(text: str) -> bool:
    """Whether it is a.b.c.d, an IPv4 address."""
    return text.count(".") == 3


def _decimal(digits: str) -> int:
    """The number; another one that fits no kind either where Python would refuse to convert so many digits."""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS
