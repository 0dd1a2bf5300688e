"""The intrinsic functors and comparisons: their names, aliases and signatures over kinds.

A signature names the kinds each argument may have and the result's. Without a result's kind, all arguments and the
result have one common kind among those: that is how `+` and `min` are overloaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dlog.engine.ir.rules import Kind

ALL: Final = frozenset(Kind)
NUMERIC: Final = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT})
INTEGRAL: Final = frozenset({Kind.NUMBER, Kind.UNSIGNED})
ORDERED: Final = NUMERIC | {Kind.SYMBOL}
SYMBOL: Final = frozenset({Kind.SYMBOL})
NUMBER: Final = frozenset({Kind.NUMBER})
UNSIGNED: Final = frozenset({Kind.UNSIGNED})
FLOAT: Final = frozenset({Kind.FLOAT})


@dataclass(frozen=True, slots=True)
class Signature:
    """`args` per argument (the last repeats when `variadic`); `result` None says: of the arguments' common kind."""

    args: tuple[frozenset[Kind], ...]
    result: Kind | None
    variadic: bool = False

    def accepts(self, count: int) -> bool:
        return count >= len(self.args) if self.variadic else count == len(self.args)

    def arg(self, index: int) -> frozenset[Kind]:
        return self.args[min(index, len(self.args) - 1)]


def _conversion(source: frozenset[Kind], result: Kind) -> Signature:
    return Signature((source,), result)


_BINARY_INTEGRAL = Signature((INTEGRAL, INTEGRAL), None)
_BINARY_NUMERIC = Signature((NUMERIC, NUMERIC), None)

SIGNATURES: Final[dict[str, Signature]] = {
    "+": Signature((ORDERED, ORDERED), None),
    "-": _BINARY_NUMERIC,
    "*": _BINARY_NUMERIC,
    "/": _BINARY_NUMERIC,
    "^": _BINARY_NUMERIC,
    "%": _BINARY_INTEGRAL,
    "neg": Signature((frozenset({Kind.NUMBER, Kind.FLOAT}),), None),
    "bnot": Signature((INTEGRAL,), None),
    "lnot": Signature((INTEGRAL,), None),
    **dict.fromkeys(("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"), _BINARY_INTEGRAL),
    "min": Signature((ORDERED,), None, variadic=True),
    "max": Signature((ORDERED,), None, variadic=True),
    "cat": Signature((SYMBOL, SYMBOL), Kind.SYMBOL, variadic=True),
    "strlen": Signature((SYMBOL,), Kind.NUMBER),
    "substr": Signature((SYMBOL, NUMBER, NUMBER), Kind.SYMBOL),
    "ord": _conversion(ALL, Kind.NUMBER),
    "to_number": _conversion(ORDERED, Kind.NUMBER),
    "to_unsigned": _conversion(ORDERED, Kind.UNSIGNED),
    "to_float": _conversion(ORDERED, Kind.FLOAT),
    "to_string": _conversion(ORDERED, Kind.SYMBOL),
    "itof": _conversion(NUMBER, Kind.FLOAT),
    "ftoi": _conversion(FLOAT, Kind.NUMBER),
    "utof": _conversion(UNSIGNED, Kind.FLOAT),
    "ftou": _conversion(FLOAT, Kind.UNSIGNED),
    "itou": _conversion(NUMBER, Kind.UNSIGNED),
    "utoi": _conversion(UNSIGNED, Kind.NUMBER),
}

_ALIASES: Final = {
    "**": "^",
    "&": "band",
    "|": "bor",
    "~": "bnot",
    "<<": "bshl",
    ">>": "bshr",
    ">>>": "bshru",
    "&&": "land",
    "||": "lor",
    "^^": "lxor",
    "!": "lnot",
}

CONVERSIONS: Final = {
    ("to_number", Kind.FLOAT): "ftoi",
    ("to_number", Kind.UNSIGNED): "utoi",
    ("to_unsigned", Kind.NUMBER): "itou",
    ("to_unsigned", Kind.FLOAT): "ftou",
    ("to_float", Kind.NUMBER): "itof",
    ("to_float", Kind.UNSIGNED): "utof",
}
"""What an overloaded conversion is called once its argument's kind is known."""

COMPARISONS: Final = {
    "=": ALL,
    "!=": ALL,
    "<": ORDERED,
    "<=": ORDERED,
    ">": ORDERED,
    ">=": ORDERED,
    "match": SYMBOL,
    "contains": SYMBOL,
    "not_match": SYMBOL,
    "not_contains": SYMBOL,
}
"""The kinds that each comparison works on; both sides have the same kind."""

HAS_TYPE: Final = ":"
"""A constraint that only says of which declared type a term is, by the name of the type; nobody can write it."""

OPPOSITE: Final = {
    HAS_TYPE: HAS_TYPE,
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "match": "not_match",
    "not_match": "match",
    "contains": "not_contains",
    "not_contains": "contains",
}


def canonical(name: str, arity: int) -> str:
    """The name of a functor in typed programs: `-x` is `neg`, `a & b` is `band`."""
    return "neg" if name == "-" and arity == 1 else _ALIASES.get(name, name)
