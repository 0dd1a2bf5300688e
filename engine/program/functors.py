"""The intrinsic functors: one row each, which every stage reads.

A signature names the kinds each argument may have and the result's. Without a result's kind, all arguments and the result have
one common kind among those: that is how `+` and `min` are overloaded.

To add a functor: a row here, a case in the kernels for each opcode that it names (kernels/arithmetic.py, or kernels/texts.py
for strings), a line in the oracle (tests/naive_functors.py), and `python -m tests.reference` for its documentation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, Literal, TypeAlias

from dlog.engine.program import scalars
from dlog.engine.program.kinds import ALL, FLOAT, INTEGRAL, NUMBER, NUMERIC, ORDERED, SYMBOL, UNSIGNED, Kinds
from dlog.engine.program.rules import Constant, Functor, Kind, Record, Term

Form: TypeAlias = Literal["call", "infix", "prefix", "internal"]
"""How a functor is written: `f(x, y)`, `x f y`, `f x`, or not at all: the compiler makes it."""

KEEP: Final = "KEEP"
"""The opcode of a functor whose value has the bits of its argument: there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Signature:
    """`args` per argument (the last repeats when `variadic`); `result` None says: of the arguments' common kind."""

    args: tuple[Kinds, ...]
    result: Kind | None
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        return count >= len(self.args) if self.variadic else count == len(self.args)

    def arg(self, index: int) -> Kinds:
        return self.args[min(index, len(self.args) - 1)]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A functor of the language.

    `opcodes` names, by the kind of the first argument, the kernels' operation: of kernels/texts.py for symbols, else of
    kernels/arithmetic.py; more than two arguments are taken from the left. `overloads` are functors of their own that it
    becomes on some kinds. `partial` tells on which arguments it stops the run; empty: it is total. `value` computes it in
    Python, up to `scalars.as_kind`. `example` is a condition that holds.
    """

    name: str
    signature: Signature
    opcodes: Mapping[Kind, str]
    value: Callable[..., Any]
    documentation: str
    example: str
    form: Form = "call"
    symbol: str = ""
    """What is written, where that is not the name."""
    overloads: Mapping[Kind, str] = field(default_factory=dict)
    identity: bool = False
    """Whether it is the value itself where that has the result's kind already: a conversion."""
    partial: str = ""
    monotone: Literal["", "first", "all"] = ""
    """The arguments with which a number it makes never falls."""

    @property
    def written(self) -> str:
        return self.symbol or self.name

    @property
    def by_argument(self) -> bool:
        """Whether an operation is told by the kind of its arguments and not by that of its result."""
        result = self.signature.result
        kinds = self.signature.args[0] - self.overloads.keys() - ({result} if self.identity else set())
        return result is None or len(kinds) > 1


def _same(allowed: Kinds, count: int = 2, variadic: bool = False) -> Signature:
    """Arguments and result have one kind."""
    return Signature((allowed,) * count, None, variadic)


def _of(kinds: Kinds, opcode: str) -> dict[Kind, str]:
    return dict.fromkeys(kinds, opcode)


def _numeric(number: str, unsigned: str, floating: str) -> dict[Kind, str]:
    return {Kind.NUMBER: number, Kind.UNSIGNED: unsigned, Kind.FLOAT: floating}


def _bitwise(name: str, opcode: str, value: Callable[..., Any], documentation: str, example: str) -> Intrinsic:
    return Intrinsic(name, _same(INTEGRAL), _of(INTEGRAL, opcode), value, documentation, example, "infix")


def _reading(name: str, result: Kind, opcode: str, overloads: dict[Kind, str], kind: str, example: str) -> Intrinsic:
    """A conversion that reads the number a text begins with."""
    return Intrinsic(
        name,
        Signature((ORDERED,), result),
        {Kind.SYMBOL: opcode},
        float if result is Kind.FLOAT else int,
        f"The value as {kind}; of a symbol, the one that its text begins with.",
        example,
        overloads=overloads,
        identity=True,
        partial=f"a text that does not begin with {kind}",
    )


def _converting(name: str, source: Kinds, result: Kind, opcode: str, value: Callable[..., Any], example: str) -> Intrinsic:
    (kind,) = source
    rounded = ", towards zero" if kind is Kind.FLOAT else ""
    documentation = f"The {kind.value} as {'an' if result is Kind.UNSIGNED else 'a'} {result.value}{rounded}."
    return Intrinsic(name, Signature((source,), result), {kind: opcode}, value, documentation, example)


def _rounding(name: str, opcode: str, value: Callable[[float], int], documentation: str, example: str) -> Intrinsic:
    return Intrinsic(name, _same(FLOAT, 1), {Kind.FLOAT: opcode}, scalars.whole(value), documentation, example)


_ROWS: Final = (
    Intrinsic(
        "+",
        _same(ORDERED),
        _numeric("ADD", "ADD", "ADD_F"),
        operator.add,
        "The sum; integers wrap around at 64 bits. Symbols are joined, as by `cat`.",
        "2 + 3 = 5",
        "infix",
        overloads={Kind.SYMBOL: "cat"},
        monotone="all",
    ),
    Intrinsic(
        "-",
        _same(NUMERIC),
        _numeric("SUB", "SUB", "SUB_F"),
        operator.sub,
        "The difference; integers wrap around at 64 bits.",
        "2 - 3 = -1",
        "infix",
        monotone="first",
    ),
    Intrinsic(
        "*",
        _same(NUMERIC),
        _numeric("MUL", "MUL", "MUL_F"),
        operator.mul,
        "The product; integers wrap around at 64 bits.",
        "2 * 3 = 6",
        "infix",
    ),
    Intrinsic(
        "/",
        _same(NUMERIC),
        _numeric("DIV", "DIV_U", "DIV_F"),
        scalars.quotient,
        "The quotient; of integers, towards zero.",
        "-7 / 2 = -3",
        "infix",
        partial="an integer divided by zero",
    ),
    Intrinsic(
        "%",
        _same(INTEGRAL),
        {Kind.NUMBER: "MOD", Kind.UNSIGNED: "MOD_U"},
        scalars.remainder,
        "The remainder of `/`: it has the sign of the left side.",
        "-7 % 2 = -1",
        "infix",
        partial="zero on the right",
    ),
    Intrinsic(
        "^",
        _same(NUMERIC),
        _numeric("POW", "POW_U", "POW_F"),
        scalars.power,
        "The power; integers wrap around at 64 bits, and a negative power of one is the reciprocal, towards zero.",
        "2 ^ 10 = 1024",
        "infix",
    ),
    Intrinsic(
        "neg",
        _same(NUMBER | FLOAT, 1),
        {Kind.NUMBER: "NEG", Kind.FLOAT: "NEG_F"},
        operator.neg,
        "The negative.",
        "-(2 + 3) = 0 - 5",
        "prefix",
        "-",
    ),
    _bitwise("band", "BAND", operator.and_, "Bitwise and.", "12 band 10 = 8"),
    _bitwise("bor", "BOR", operator.or_, "Bitwise or.", "12 bor 10 = 14"),
    _bitwise("bxor", "BXOR", operator.xor, "Bitwise exclusive or.", "12 bxor 10 = 6"),
    Intrinsic(
        "bnot", _same(INTEGRAL, 1), _of(INTEGRAL, "BNOT"), operator.invert, "All bits inverted.", "bnot 0 = -1", "prefix"
    ),
    _bitwise(
        "bshl",
        "SHL",
        lambda a, b: a << (b & 63),
        "The left side's bits shifted left; of the right side, the low six bits count.",
        "3 bshl 2 = 12",
    ),
    Intrinsic(
        "bshr",
        _same(INTEGRAL),
        {Kind.NUMBER: "SHR", Kind.UNSIGNED: "SHRU"},
        lambda a, b: a >> (b & 63),
        "The left side's bits shifted right, a number's sign coming in; of the right side, the low six bits count.",
        "-8 bshr 1 = -4",
        "infix",
    ),
    _bitwise(
        "bshru",
        "SHRU",
        lambda a, b: scalars.unsigned(a) >> (b & 63),
        "The left side's bits shifted right, zeros coming in; of the right side, the low six bits count.",
        "-1 bshru 63 = 1",
    ),
    _bitwise("land", "LAND", lambda a, b: int(a != 0 and b != 0), "1 where neither side is zero, else 0.", "2 land 3 = 1"),
    _bitwise("lor", "LOR", lambda a, b: int(a != 0 or b != 0), "0 where both sides are zero, else 1.", "0 lor 3 = 1"),
    _bitwise("lxor", "LXOR", lambda a, b: int((a != 0) != (b != 0)), "1 where one side is zero, else 0.", "2 lxor 3 = 0"),
    Intrinsic(
        "lnot", _same(INTEGRAL, 1), _of(INTEGRAL, "LNOT"), lambda a: int(a == 0), "1 for zero, else 0.", "lnot 5 = 0", "prefix"
    ),
    Intrinsic(
        "min",
        _same(ORDERED, 1, variadic=True),
        _numeric("MIN", "MIN_U", "MIN_F") | {Kind.SYMBOL: "MIN"},
        min,
        "The least of two values or more; symbols are ordered by their texts' code points.",
        "min(3, 1, 2) = 1",
        monotone="all",
    ),
    Intrinsic(
        "max",
        _same(ORDERED, 1, variadic=True),
        _numeric("MAX", "MAX_U", "MAX_F") | {Kind.SYMBOL: "MAX"},
        max,
        "The greatest of two values or more; symbols are ordered by their texts' code points.",
        "max(3, 1, 2) = 3",
        monotone="all",
    ),
    Intrinsic(
        "abs",
        _same(NUMBER | FLOAT, 1),
        {Kind.NUMBER: "ABS", Kind.FLOAT: "ABS_F"},
        abs,
        "The value without its sign; the least number, which has no positive, stays as it is.",
        "abs(-3) = 3",
    ),
    Intrinsic(
        "bit_count",
        Signature((INTEGRAL,), Kind.NUMBER),
        _of(INTEGRAL, "BIT_COUNT"),
        lambda a: scalars.unsigned(a).bit_count(),
        "How many of the 64 bits are ones.",
        "bit_count(11) = 3",
    ),
    _rounding("floor", "FLOOR", math.floor, "The greatest whole float that is not above the value.", "floor(-2.5) = -3.0"),
    _rounding("ceil", "CEIL", math.ceil, "The least whole float that is not below the value.", "ceil(-2.5) = -2.0"),
    Intrinsic(
        "sqrt",
        _same(FLOAT, 1),
        {Kind.FLOAT: "SQRT"},
        scalars.root,
        "The square root; of a negative value it is NaN.",
        "sqrt(6.25) = 2.5",
    ),
    Intrinsic(
        "cat",
        Signature((SYMBOL, SYMBOL), Kind.SYMBOL, variadic=True),
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
        "ord",
        Signature((ALL,), Kind.NUMBER),
        _of(ALL, KEEP),
        lambda value: value,
        "The number that stands for a value; of a symbol or a record it differs between runs.",
        'ord("a") - ord("a") = 0',
        identity=True,
    ),
    _reading(
        "to_number", Kind.NUMBER, "NUMBER", {Kind.FLOAT: "ftoi", Kind.UNSIGNED: "utoi"}, "a number", 'to_number("0x1F") = 31'
    ),
    _reading(
        "to_unsigned",
        Kind.UNSIGNED,
        "UNSIGNED",
        {Kind.NUMBER: "itou", Kind.FLOAT: "ftou"},
        "an unsigned number",
        'to_unsigned("7") = 7u',
    ),
    _reading("to_float", Kind.FLOAT, "FLOAT", {Kind.NUMBER: "itof", Kind.UNSIGNED: "utof"}, "a float", 'to_float("2.5") = 2.5'),
    Intrinsic(
        "to_string",
        Signature((ORDERED,), Kind.SYMBOL),
        _of(NUMERIC, "CAT"),
        scalars.text_of,
        "The text of a value; floats have six digits behind the point.",
        'to_string(12) = "12"',
        identity=True,
    ),
    _converting("itof", NUMBER, Kind.FLOAT, "ITOF", float, "itof(3) = 3.0"),
    _converting("ftoi", FLOAT, Kind.NUMBER, "FTOI", int, "ftoi(-2.5) = -2"),
    _converting("utof", UNSIGNED, Kind.FLOAT, "UTOF", float, "utof(3u) = 3.0"),
    _converting("ftou", FLOAT, Kind.UNSIGNED, "FTOU", int, "ftou(2.5) = 2u"),
    _converting("itou", NUMBER, Kind.UNSIGNED, KEEP, scalars.unsigned, "itou(3) = 3u"),
    _converting("utoi", UNSIGNED, Kind.NUMBER, KEEP, int, "utoi(3u) = 3"),
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
)

FUNCTORS: Final = {row.name: row for row in _ROWS}
_CALLED: Final = {row.written: row for row in _ROWS if row.form == "call"}
_OPERATORS: Final = {(row.written, 1 if row.form == "prefix" else 2): row for row in _ROWS if row.form in ("infix", "prefix")}
_PARTIAL: Final = frozenset(row.name for row in _ROWS if row.partial and row.form != "internal")


def written_functors() -> list[str]:
    """What a program may write before arguments in parentheses."""
    return list(_CALLED)


def find_functor(name: str, arity: int) -> Intrinsic | None:
    """The functor that a program writes with a name, or an operator, and so many arguments: `-x` is `neg`."""
    return _OPERATORS.get((name, arity)) or _CALLED.get(name)


def fold(name: str, args: tuple[scalars.Scalar, ...], result: Kind) -> scalars.Scalar:
    """The value of a functor on values, which has this kind."""
    row = FUNCTORS[name]
    value = reduce(row.value, args) if len(args) > 2 and row.form == "infix" else row.value(*args)
    return scalars.as_kind(value, result)


def may_stop(term: Term | None) -> bool:
    """Whether evaluating a term can stop the run: it must not see values that the rest of its body keeps away."""
    match term:
        case Functor(op=op, args=args):
            divided = op in ("/", "%") and isinstance(args[-1], Constant) and bool(args[-1].value)
            return (op in _PARTIAL and not divided) or any(map(may_stop, args))
        case Record(args=args):
            return any(map(may_stop, args))
        case _:
            return False
