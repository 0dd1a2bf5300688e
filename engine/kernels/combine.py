"""How values of one key come together, in keyed relations (static/merge.py) and over rounds
(incremental/reduce: sums.py, reductions.py, lattices.py).

Of a dominance (ir/dominance.py) the key keeps the value that no other dominates; `dominates` and `rank` say the same.
"""

from __future__ import annotations

from enum import IntEnum, auto

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.layout import sums

_SIGN = -9223372036854775808


class Combine(IntEnum):
    """What becomes of the values of a key: NONE says that they are rows of their own, FIRST that a row that precedes another
    takes its place (where texts, TEXT, are compared by `precedes_text`), BOUND that they add up and count from
    where they exceed the column before, MEAN that a count stands beside their sum."""

    NONE = 0
    COUNT = auto()
    SUM = auto()
    BIT_XOR = auto()
    SUM_FLOAT = auto()
    MEAN = auto()
    BOUND = auto()
    FIRST = auto()
    TEXT = auto()
    LEAST = auto()
    GREATEST = auto()
    LEAST_UNSIGNED = auto()
    GREATEST_UNSIGNED = auto()
    LEAST_FLOAT = auto()
    GREATEST_FLOAT = auto()


DOMINANCES = frozenset(way for way in Combine if way >= Combine.LEAST)
INTEGERS = frozenset(way for way in Combine if Combine.COUNT < way < Combine.SUM_FLOAT)
GROUP_WORDS = dict.fromkeys(INTEGERS, 2) | dict.fromkeys((Combine.SUM_FLOAT, Combine.MEAN), sums.size)
"""Words of a group over rounds by what combines its values, where it is not one."""


@kernel
def joined(combine, total, value, times):
    """What integers make together, before SUM_FLOAT in the list: `total` with a value `times` times more (or less)."""
    if combine == Combine.BIT_XOR:
        return total ^ value if times & 1 else total
    return total + value * times


@kernel
def dominates(combine, left, right):
    """Whether value `left` replaces `right` (bits)."""
    if combine == Combine.LEAST:
        return left < right
    if combine == Combine.GREATEST:
        return left > right
    if combine == Combine.LEAST_UNSIGNED:
        return left ^ _SIGN < right ^ _SIGN
    if combine == Combine.GREATEST_UNSIGNED:
        return left ^ _SIGN > right ^ _SIGN
    if combine == Combine.LEAST_FLOAT:
        return float_rank(left) < float_rank(right)
    return float_rank(left) > float_rank(right)


@kernel
def rank(combine, value):
    """An integer that is smaller the more values this one dominates: that of one that replaces another is less."""
    if combine == Combine.LEAST:
        return value
    if combine == Combine.GREATEST:
        return ~value
    if combine == Combine.LEAST_UNSIGNED:
        return value ^ _SIGN
    if combine == Combine.GREATEST_UNSIGNED:
        return ~(value ^ _SIGN)
    if combine == Combine.GREATEST_FLOAT:
        return ~float_rank(value)
    if combine == Combine.BOUND:
        return 0
    return float_rank(value)


@kernel
def float_rank(value):
    """An integer that orders floats (bits) as their values; -0.0 comes before 0.0, NaN after all others."""
    return value if value >= 0 else value ^ 0x7FFFFFFFFFFFFFFF
