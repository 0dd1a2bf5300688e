"""Functors that the compiler puts into programs whose numbers have 32 bits: rows of the table in functors.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dlog.engine.ir import scalars
from dlog.engine.ir.kinds import FLOAT, INTEGRAL, NUMBER, SYMBOL, Kinds
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.signatures import Intrinsic, Signature, alike, same


def _reading(name: str, result: Kind, opcode: str, what: str) -> Intrinsic:
    value = scalars.round_short if result is Kind.FLOAT else int
    doc, partial = f"{what} of 32 bits that a text begins with.", f"a text that does not begin with {what.lower()} of 32 bits"
    return Intrinsic(name, Signature((SYMBOL,), result), {Kind.SYMBOL: opcode}, value, doc, "", "internal", partial=partial)


def _bits(
    name: str, source: Kinds, result: Kind, opcode: str, value: Callable[..., int | float], documentation: str
) -> Intrinsic:
    return Intrinsic(name, Signature((source,), result), alike(source, opcode), value, documentation, "", "internal")


NARROWING: Final = ("narrow", "narrow_unsigned")
"""What brings the value of an operation back into the range of its kind."""

SHORT_FUNCTORS: Final = (
    Intrinsic(
        "narrow",
        same(NUMBER | FLOAT, 1),
        {Kind.NUMBER: "NARROW", Kind.FLOAT: "NARROW_F"},
        scalars.narrow,
        "The low 32 bits of a number; the nearest float of 32 bits.",
        "",
        "internal",
        monotone="all",
    ),
    _bits(
        "narrow_unsigned",
        INTEGRAL,
        Kind.UNSIGNED,
        "NARROW_U",
        lambda a: a & 0xFFFFFFFF,
        "The low 32 bits as an unsigned number.",
    ),
    _bits("short_bits", FLOAT, Kind.NUMBER, "SHORT_BITS", scalars.short_bits, "The bits of a float of 32 bits."),
    _bits(
        "float_of_short_bits",
        INTEGRAL,
        Kind.FLOAT,
        "FLOAT_OF_SHORT_BITS",
        scalars.float_of_short_bits,
        "The float that has these 32 bits.",
    ),
    _reading("to_short_number", Kind.NUMBER, "NUMBER_SHORT", "A number"),
    _reading("to_short_unsigned", Kind.UNSIGNED, "UNSIGNED_SHORT", "An unsigned number"),
    _reading("to_short_float", Kind.FLOAT, "FLOAT_SHORT", "A float"),
)
