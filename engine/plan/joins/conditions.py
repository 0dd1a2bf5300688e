"""When an order of a body applies its conditions, and which first."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.engine.ir.nodes import AntiJoin, LookUp
from dlog.engine.ir.rules import Compare, Generator, Unpack
from dlog.engine.plan.joins.ranges import range_checks
from dlog.engine.plan.query import Condition, condition_mask, is_partial, targets

CHECK = 0
"""The rank of a condition that only compares."""


def rank(condition: Condition, added: int) -> int:
    """Cheap and selective conditions come first, those that can stop the run last."""
    if is_partial(condition):
        return 5
    match condition:
        case Compare():
            return 1 if added else CHECK
        case Unpack():
            return 2
        case Generator():
            return 6 if added else 2
        case LookUp():
            return 3
        case AntiJoin():
            return 4


def is_late(condition: Condition, conditions: Sequence[Condition], masks: Sequence[int]) -> bool:
    """Whether a condition that can stop the run, or that multiplies rows, waits until all readings are placed, which have the
    variables of `masks`: yes, unless one of them needs its variable."""
    if not is_partial(condition) and not isinstance(condition, Generator):
        return False
    read, reach = 0, targets(condition)
    for variables in masks:
        read |= variables
    for _ in conditions:
        for other in conditions:
            if other is not condition and condition_mask(other) & reach:
                reach |= targets(other)
    if isinstance(condition, Generator) and range_checks(condition) is not None:
        return not _only_by(reach, masks)
    return not reach & read


def _only_by(reach: int, masks: Sequence[int]) -> bool:
    """Whether some reading would be a cross product with the others but for these variables: then their values had better be
    generated, and not compared."""
    for i, variables in enumerate(masks):
        others = 0
        for j, other in enumerate(masks):
            others |= other if j != i else 0
        if variables & reach and not variables & ~reach & others:
            return True
    return False
