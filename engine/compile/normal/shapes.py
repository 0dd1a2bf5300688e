"""Record types whose values are made alike, whatever they and their fields are called."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.engine.ir.rules import Kind, Type


def same_shape(one: str, other: str, types: Mapping[str, Type]) -> bool:
    """Whether every value of a record type is one of the other. An algebraic data type is like no other one."""
    compared: set[tuple[str, str]] = set()
    waiting = [(one, other)]
    while waiting:
        pair = waiting.pop()
        if pair[0] == pair[1] or pair in compared:
            continue
        compared.add(pair)
        left, right = (types.get(name) for name in pair)
        if left is None or right is None or left.kind is not right.kind:
            return False
        if left.kind is not Kind.RECORD:
            continue
        if left.branches or right.branches or len(left.fields) != len(right.fields):
            return False
        waiting += [(a, b) for (_, a), (_, b) in zip(left.fields, right.fields, strict=True)]
    return True
