"""Programs whose numbers have 32 bits: values stay words and doubles, and what an operation makes is brought back into range.

A number is its 32 bits, read as signed; an unsigned one less than 2^32; a float has no more digits than 32 bits give. Sums,
products and the like of 64 bits, brought back, are those of 32 bits; shifts and what looks at all bits get other operands.
"""

from __future__ import annotations

from typing import Final

from dlog.engine.ir.functors import FUNCTORS
from dlog.engine.ir.rules import Constant, Domain, Functor, Kind, Term
from dlog.grammar.source import Span

_BITS: Final = 2**32 - 1
_READING: Final = {"to_number": "to_short_number", "to_unsigned": "to_short_unsigned", "to_float": "to_short_float"}
_OF_BITS: Final = {"float_of_bits": "float_of_short_bits"}
_SHIFTS: Final = frozenset({"bshl", "bshr", "bshru"})
_WITHIN: Final = frozenset(
    {"%", "band", "bor", "bxor", "bshr", "land", "lor", "lxor", "lnot", "min", "max", "bit_count", "floor", "ceil"}
    | {"strlen", "byte_length", "strpos", "year", "month", "day", "weekday", "narrow", "narrow_unsigned"}
)
"""Those whose values are in range where their operands are."""


def shortened(term: Term) -> Term:
    """A functor on values in range as one whose value is in range and the right one."""
    if not isinstance(term, Functor) or term.op not in FUNCTORS:
        return term
    op, args = term.op, term.args
    if op in _READING:
        return Functor(_READING[op], args, term.kind, term.result, term.span)
    if op in _OF_BITS:
        return Functor(_OF_BITS[op], args, term.kind, term.result, term.span)
    if op == "ord":
        return Functor("short_bits", args, term.kind, term.result, term.span) if term.kind is Kind.FLOAT else _narrowed(term)
    if op in _SHIFTS:
        args = (_all_bits(args[0], term) if op == "bshru" else args[0], _masked(args[1], 31, term))
    elif op == "bit_count":
        args = (_all_bits(args[0], term),)
    made = Functor(op, args, term.kind, term.result, term.span, term.stateful)
    return made if op in _WITHIN else _narrowed(made)


def narrowed(term: Term, kind: Kind, span: Span) -> Term:
    """A value in the range of its kind."""
    match kind:
        case Kind.UNSIGNED:
            return Functor("narrow_unsigned", (term,), kind, kind, span)
        case Kind.NUMBER | Kind.FLOAT:
            return Functor("narrow", (term,), kind, kind, span)
        case Kind.SYMBOL | Kind.RECORD:
            return term


def _narrowed(term: Functor) -> Term:
    return narrowed(term, term.result, term.span)


def speaks_of_times(op: str) -> bool:
    """Whether a functor is about times, which need 64 bits."""
    return op in FUNCTORS and Domain.TIMESTAMP in FUNCTORS[op].domains


def _all_bits(term: Term, around: Functor) -> Term:
    """The bits of a number as they are, without those of its sign in front."""
    return _masked(term, _BITS, around) if around.kind is Kind.NUMBER else term


def _masked(term: Term, mask: int, around: Functor) -> Term:
    return Functor("band", (term, Constant(mask, around.kind)), around.kind, around.kind, around.span)
