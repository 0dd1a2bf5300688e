"""The precedence of arithmetic operators: one table for the parser and the printer."""

from __future__ import annotations

BINDING = {
    "lor": 1,
    "lxor": 2,
    "land": 3,
    "bor": 4,
    "bxor": 5,
    "band": 6,
    "bshl": 7,
    "bshr": 7,
    "bshru": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
    "^": 11,
}
"""Infix operators, loosest first; all but `^` group to the left."""

PREFIX = frozenset({"-", "bnot", "lnot"})
PREFIX_BINDING = 10
"""Between `*` and `^`: `-a * b` is `(-a) * b`, `-a ^ b` is `-(a ^ b)`."""

RIGHT_ASSOCIATIVE = frozenset({"^"})
