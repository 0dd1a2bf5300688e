"""Comparisons whose outcome is known from the text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from dlog.engine.ir.rules import Compare, Constant, Variable

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def constant_truth(compare: Compare) -> bool | None:
    """Whether the comparison always or never holds; None where that depends on values. Texts are ordered by code point, as
    their UTF-8 bytes are."""
    left, right = compare.left, compare.right
    if isinstance(left, Constant) and isinstance(right, Constant) and compare.op in _ORDER:
        return _ORDER[compare.op](left.value, right.value)
    if isinstance(left, Variable) and left == right and compare.op == "=":
        return True
    return None
