"""Comparisons: one row each, and what is known of them from the text of a program."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from dlog.dataclass import dataclass
from dlog.engine.ir.kinds import ALL, ORDERED, SYMBOL, Kinds
from dlog.engine.ir.rules import Compare, Constant, Kind, Variable


@dataclass(frozen=True, slots=True)
class Comparison:
    """`kinds` are those that it works on; both sides have the same one. `opposite` holds where it does not (NaN aside),
    `mirrored` where it does with its sides exchanged. `text` names what the kernels do on symbols (kernels/values/texts.py);
    without one, `mirrored` is compared, or ids are. `truth` decides it on Python's values."""

    name: str
    kinds: Kinds
    opposite: str
    documentation: str
    example: str
    mirrored: str = ""
    text: str = ""
    truth: Callable[[Any, Any], bool] | None = None


_ROWS: Final = (
    Comparison("=", ALL, "!=", "The values are equal.", "1 + 1 = 2", "=", truth=operator.eq),
    Comparison("!=", ALL, "=", "The values are different.", "1 + 1 != 3", "!=", truth=operator.ne),
    Comparison(
        "<", ORDERED, ">=",
        "The left side is less; symbols are ordered by code points.",
        '"a" < "b"',
        ">", "LESS", operator.lt,
    ),
    Comparison(
        "<=", ORDERED, ">",
        "The left side is less or equal; symbols are ordered by code points.",
        "2 <= 2",
        ">=", "LESS_EQUAL", operator.le,
    ),
    Comparison(
        ">", ORDERED, "<=",
        "The left side is greater; symbols are ordered by code points.",
        "3 > 2",
        "<", truth=operator.gt,
    ),
    Comparison(
        ">=", ORDERED, "<",
        "The left side is greater or equal; symbols are ordered by code points.",
        "2 >= 2",
        "<=", truth=operator.ge,
    ),
    Comparison(
        "match",
        SYMBOL,
        "not_match",
        "The whole second text matches the regular expression that is the first.",
        'match("a+b?", "aab")',
        text="MATCH",
    ),
    Comparison("not_match", SYMBOL, "match", "", "", text="MATCH_NOT"),
    Comparison(
        "contains",
        SYMBOL,
        "not_contains",
        "The first text occurs in the second.",
        'contains("log", "datalog")',
        text="CONTAINS",
    ),
    Comparison("not_contains", SYMBOL, "contains", "", "", text="CONTAINS_NOT"),
)

COMPARISONS: Final = {row.name: row for row in _ROWS}

HAS_TYPE: Final = ":"
"""A constraint that only says of which declared type a term is, by the name of the type; nobody can write it."""

OPPOSITE: Final = {HAS_TYPE: HAS_TYPE} | {row.name: row.opposite for row in _ROWS}


def constant_truth(compare: Compare) -> bool | None:
    """Whether the comparison always or never holds; None where that depends on values. Texts are ordered by code point, as
    their UTF-8 bytes are."""
    left, right = compare.left, compare.right
    truth = COMPARISONS[compare.op].truth
    if isinstance(left, Constant) and isinstance(right, Constant) and truth is not None:
        return truth(left.value, right.value)
    if isinstance(left, Variable) and left == right and compare.op == "=":
        return True
    if isinstance(left, Variable) and left == right and compare.op == "!=" and compare.kind is not Kind.FLOAT:
        return False
    return None
