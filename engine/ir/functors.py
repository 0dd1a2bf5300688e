"""The intrinsic functors: one row each, which every stage reads.

To add a functor: a row here, a case in the kernels for each opcode that it names (kernels/arithmetic.py, or
kernels/values/texts.py for strings), a line in the oracle (tests/naive_functors.py), and `python -m tests.reference` for its
documentation.
"""

from __future__ import annotations

import math
import operator
from typing import Final

from dlog.engine.ir import scalars
from dlog.engine.ir.calendar_functors import CALENDAR_FUNCTORS
from dlog.engine.ir.kinds import ALL, FLOAT, INTEGRAL, NUMBER, NUMERIC, ORDERED, SYMBOL, UNSIGNED
from dlog.engine.ir.rules import AUTOINC, NOW, Constant, Functor, Kind, Record, Term, printed_types
from dlog.engine.ir.short_functors import SHORT_FUNCTORS
from dlog.engine.ir.signatures import (
    KEEP,
    Intrinsic,
    Signature,
    alike,
    bitwise,
    converting,
    numeric,
    reading,
    rounding,
    same,
)
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS

_ROWS: Final = (
    Intrinsic(
        "+",
        same(ORDERED),
        numeric("ADD", "ADD", "ADD_F"),
        operator.add,
        "The sum; integers wrap around at 64 bits. Symbols are joined, as by `cat`.",
        "2 + 3 = 5",
        "infix",
        overloads={Kind.SYMBOL: "cat"},
        monotone="all",
    ),
    Intrinsic(
        "-",
        same(NUMERIC),
        numeric("SUB", "SUB", "SUB_F"),
        operator.sub,
        "The difference; integers wrap around at 64 bits.",
        "2 - 3 = -1",
        "infix",
        monotone="first",
    ),
    Intrinsic(
        "*",
        same(NUMERIC),
        numeric("MUL", "MUL", "MUL_F"),
        operator.mul,
        "The product; integers wrap around at 64 bits.",
        "2 * 3 = 6",
        "infix",
    ),
    Intrinsic(
        "/",
        same(NUMERIC),
        numeric("DIV", "DIV_U", "DIV_F"),
        scalars.quotient,
        "The quotient; of integers, towards zero.",
        "-7 / 2 = -3",
        "infix",
        partial="an integer divided by zero",
    ),
    Intrinsic(
        "%",
        same(INTEGRAL),
        {Kind.NUMBER: "MOD", Kind.UNSIGNED: "MOD_U"},
        scalars.remainder,
        "The remainder of `/`: it has the sign of the left side.",
        "-7 % 2 = -1",
        "infix",
        partial="zero on the right",
    ),
    Intrinsic(
        "^",
        same(NUMERIC),
        numeric("POW", "POW_U", "POW_F"),
        scalars.power,
        "The power; integers wrap around at 64 bits, and a negative power of one is the reciprocal, towards zero.",
        "2 ^ 10 = 1024",
        "infix",
    ),
    Intrinsic(
        "neg",
        same(NUMBER | FLOAT, 1),
        {Kind.NUMBER: "NEG", Kind.FLOAT: "NEG_F"},
        operator.neg,
        "The negative.",
        "-(2 + 3) = 0 - 5",
        "prefix",
        "-",
    ),
    bitwise("band", "BAND", operator.and_, "Bitwise and.", "12 band 10 = 8"),
    bitwise("bor", "BOR", operator.or_, "Bitwise or.", "12 bor 10 = 14"),
    bitwise("bxor", "BXOR", operator.xor, "Bitwise exclusive or.", "12 bxor 10 = 6"),
    Intrinsic(
        "bnot", same(INTEGRAL, 1), alike(INTEGRAL, "BNOT"), operator.invert, "All bits inverted.", "bnot 0 = -1", "prefix"
    ),
    bitwise(
        "bshl",
        "SHL",
        lambda a, b: a << (b & 63),
        "The left side's bits shifted left; of the right side, the low six bits count.",
        "3 bshl 2 = 12",
    ),
    Intrinsic(
        "bshr",
        same(INTEGRAL),
        {Kind.NUMBER: "SHR", Kind.UNSIGNED: "SHRU"},
        lambda a, b: a >> (b & 63),
        "The left side's bits shifted right, a number's sign coming in; of the right side, the low six bits count.",
        "-8 bshr 1 = -4",
        "infix",
    ),
    bitwise(
        "bshru",
        "SHRU",
        lambda a, b: scalars.unsigned(a) >> (b & 63),
        "The left side's bits shifted right, zeros coming in; of the right side, the low six bits count.",
        "-1 bshru 63 = 1",
    ),
    bitwise("land", "LAND", lambda a, b: int(a != 0 and b != 0), "1 where neither side is zero, else 0.", "2 land 3 = 1"),
    bitwise("lor", "LOR", lambda a, b: int(a != 0 or b != 0), "0 where both sides are zero, else 1.", "0 lor 3 = 1"),
    bitwise("lxor", "LXOR", lambda a, b: int((a != 0) != (b != 0)), "1 where one side is zero, else 0.", "2 lxor 3 = 0"),
    Intrinsic(
        "lnot", same(INTEGRAL, 1), alike(INTEGRAL, "LNOT"), lambda a: int(a == 0), "1 for zero, else 0.", "lnot 5 = 0", "prefix"
    ),
    Intrinsic(
        "min",
        same(ORDERED, 1, variadic=True),
        numeric("MIN", "MIN_U", "MIN_F") | {Kind.SYMBOL: "MIN"},
        min,
        "The least of two values or more; symbols are ordered by their texts' code points.",
        "min(3, 1, 2) = 1",
        monotone="all",
    ),
    Intrinsic(
        "max",
        same(ORDERED, 1, variadic=True),
        numeric("MAX", "MAX_U", "MAX_F") | {Kind.SYMBOL: "MAX"},
        max,
        "The greatest of two values or more; symbols are ordered by their texts' code points.",
        "max(3, 1, 2) = 3",
        monotone="all",
    ),
    Intrinsic(
        "abs",
        same(NUMBER | FLOAT, 1),
        {Kind.NUMBER: "ABS", Kind.FLOAT: "ABS_F"},
        abs,
        "The value without its sign; the least number, which has no positive, stays as it is.",
        "abs(-3) = 3",
    ),
    Intrinsic(
        "bit_count",
        Signature((INTEGRAL,), Kind.NUMBER),
        alike(INTEGRAL, "BIT_COUNT"),
        lambda a: scalars.unsigned(a).bit_count(),
        "How many of the 64 bits are ones.",
        "bit_count(11) = 3",
    ),
    rounding("floor", "FLOOR", math.floor, "The greatest whole float that is not above the value.", "floor(-2.5) = -3.0"),
    rounding("ceil", "CEIL", math.ceil, "The least whole float that is not below the value.", "ceil(-2.5) = -2.0"),
    Intrinsic(
        "sqrt",
        same(FLOAT, 1),
        {Kind.FLOAT: "SQRT"},
        scalars.root,
        "The square root; of a negative value it is NaN.",
        "sqrt(6.25) = 2.5",
    ),
    Intrinsic(
        "cat",
        Signature((SYMBOL,), Kind.SYMBOL, variadic=True),
        {Kind.SYMBOL: "CAT"},
        lambda *texts: "".join(texts),
        "The texts, one after the other.",
        'cat("data", "log") = "datalog"',
    ),
    Intrinsic(
        "strlen",
        Signature((SYMBOL,), Kind.NUMBER),
        {Kind.SYMBOL: "LENGTH"},
        len,
        "How many characters a text has.",
        'strlen("datalog") = 7',
    ),
    Intrinsic(
        "substr",
        Signature((SYMBOL, NUMBER, NUMBER), Kind.SYMBOL),
        {Kind.SYMBOL: "SUBSTR"},
        scalars.substring,
        "The characters of a text from an index on (the first one has 0), at most so many, or all where that is negative; the "
        "empty text where the index lies outside.",
        'substr("datalog", 4, 3) = "log"',
    ),
    Intrinsic(
        "strpos",
        Signature((SYMBOL, SYMBOL), Kind.NUMBER),
        {Kind.SYMBOL: "POSITION"},
        str.find,
        "Where the second text first occurs in the first one: the index of a character, or -1 where it does not.",
        'strpos("datalog", "log") = 4',
    ),
    Intrinsic(
        "byte_length",
        Signature((SYMBOL,), Kind.NUMBER),
        {Kind.SYMBOL: "BYTE_LENGTH"},
        lambda text: len(text.encode()),
        "How many bytes a text takes as UTF-8.",
        'byte_length("Käse") = 5',
    ),
    Intrinsic(
        "byte_substr",
        Signature((SYMBOL, NUMBER, NUMBER), Kind.SYMBOL),
        {Kind.SYMBOL: "BYTE_SUBSTR"},
        scalars.byte_substring,
        "As `substr`, but index and length count bytes of UTF-8; a character that does not lie wholly within is left out.",
        'byte_substr("Käse", 1, 3) = "äs"',
    ),
    Intrinsic(
        "ord",
        Signature((ALL,), Kind.NUMBER),
        alike(ALL, KEEP),
        lambda value: scalars.bits_of_float(value) if isinstance(value, float) else value,
        "The number that stands for a value; of a symbol or a record it differs between runs. The branches of an algebraic "
        "data type without fields count from 0, in the order of their names.",
        'ord("a") - ord("a") = 0',
        identity=True,
    ),
    reading(
        "to_number", Kind.NUMBER, "NUMBER", {Kind.FLOAT: "ftoi", Kind.UNSIGNED: "utoi"}, "a number", 'to_number("0x1F") = 31'
    ),
    reading(
        "to_unsigned",
        Kind.UNSIGNED,
        "UNSIGNED",
        {Kind.NUMBER: "itou", Kind.FLOAT: "ftou"},
        "an unsigned number",
        'to_unsigned("7") = 7u',
    ),
    reading("to_float", Kind.FLOAT, "FLOAT", {Kind.NUMBER: "itof", Kind.UNSIGNED: "utof"}, "a float", 'to_float("2.5") = 2.5'),
    Intrinsic(
        "to_string",
        Signature((ORDERED,), Kind.SYMBOL),
        alike(NUMERIC, "CAT"),
        scalars.text_of,
        "The text of a value; floats have six digits behind the point.",
        'to_string(12) = "12"',
        identity=True,
    ),
    converting("itof", NUMBER, Kind.FLOAT, "ITOF", float, "itof(3) = 3.0"),
    converting("ftoi", FLOAT, Kind.NUMBER, "FTOI", int, "ftoi(-2.5) = -2"),
    converting("utof", UNSIGNED, Kind.FLOAT, "UTOF", float, "utof(3u) = 3.0"),
    converting("ftou", FLOAT, Kind.UNSIGNED, "FTOU", int, "ftou(2.5) = 2u"),
    converting("itou", NUMBER, Kind.UNSIGNED, KEEP, scalars.unsigned, "itou(3) = 3u"),
    converting("utoi", UNSIGNED, Kind.NUMBER, KEEP, int, "utoi(3u) = 3"),
    Intrinsic(
        "float_of_bits",
        Signature((INTEGRAL,), Kind.FLOAT),
        alike(INTEGRAL, KEEP),
        scalars.float_of_bits,
        "The float that has the bits of an integer; it may be a NaN other than the one there is.",
        "",
        "internal",
    ),
    Intrinsic(
        "symbol_of",
        Signature((INTEGRAL,), Kind.SYMBOL),
        alike(INTEGRAL, "NONE"),
        lambda value: value,
        "The symbol that has a number, which `ord` gives of it.",
        "",
        "internal",
        partial="a number that is that of no symbol",
    ),
    Intrinsic(
        "weight",
        Signature((NUMBER,), Kind.NUMBER),
        {Kind.NUMBER: "WEIGHT"},
        lambda value: value,
        "What a match adds to a sum of which only a bound is known.",
        "",
        "internal",
        partial="a negative number, or one so great that a sum of two would leave 64 bits",
    ),
    *CALENDAR_FUNCTORS,
    *SHORT_FUNCTORS,
)

FUNCTORS: Final = {row.name: row for row in _ROWS}
_CALLED: Final = {row.written: row for row in _ROWS if row.form == "call"}
_OPERATORS: Final = {(row.written, 1 if row.form == "prefix" else 2): row for row in _ROWS if row.form in ("infix", "prefix")}
_PARTIAL: Final = frozenset(row.name for row in _ROWS if row.partial and row.name != "weight")
"""Those that a body may keep values away from; weights come into rules when that is settled."""


def written_functors() -> list[str]:
    """What a program may write before arguments in parentheses."""
    return [*_CALLED, *TABLE_FUNCTIONS, NOW]


def find_functor(name: str, arity: int) -> Intrinsic | None:
    """The functor that a program writes with a name, or an operator, and so many arguments: `-x` is `neg`."""
    return _OPERATORS.get((name, arity)) or _CALLED.get(name)


def is_called(op: str) -> bool:
    """Whether a functor is none of the language's own kernels: Python is called for it."""
    return op == AUTOINC or op.startswith("@") or printed_types(op) is not None


def is_infix(op: str) -> bool:
    return op in FUNCTORS and FUNCTORS[op].form == "infix"


def fold(name: str, args: tuple[scalars.Scalar, ...], result: Kind) -> scalars.Scalar:
    """The value of a functor on values, which has this kind."""
    return scalars.as_kind(FUNCTORS[name].value(*args), result)


def may_stop(term: Term | None) -> bool:
    """Whether evaluating a term can stop the run, or is seen by others: it must not see values that the rest of its body keeps
    away."""
    match term:
        case Functor(op=op, args=args):
            divided = op in ("/", "%") and isinstance(args[-1], Constant) and bool(args[-1].value)
            return (op in _PARTIAL and not divided) or is_called(op) or any(map(may_stop, args))
        case Record(args=args):
            return any(map(may_stop, args))
        case _:
            return False
