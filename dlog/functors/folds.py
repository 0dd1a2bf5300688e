"""The values of groups in ascending order: numbers by value, text by its bytes, records field by field, nil first.

A user's aggregate need not be commutative: so what it gives depends neither on the executor nor on how rows came."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any, Final

import numpy as np

from dlog.branch import Branch
from dlog.codec import Codec
from dlog.dataclass import dataclass
from dlog.engine.formats.order import sort_key
from dlog.engine.ir.rules import Kind, Type


@dataclass(frozen=True, slots=True)
class Groups:
    """The values of all groups, one group after the other: those of group g are `values[offsets[g] : offsets[g + 1]]`."""

    values: np.ndarray
    offsets: np.ndarray


def ascending(type: Type, values: np.ndarray, numbers: np.ndarray, count: int, codec: Codec) -> Groups:
    """The groups of values of one type; `numbers` has the group of each."""
    order = np.lexsort((_keys(type, values, codec), numbers))
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(numbers, minlength=count), out=offsets[1:])
    return Groups(values[order], offsets)


def _keys(type: Type, values: np.ndarray, codec: Codec) -> np.ndarray:
    """Numbers that order as the values."""
    if type.kind is not Kind.RECORD:
        return sort_key(type.kind, values, codec.symbols).keys
    distinct, places = np.unique(values, return_inverse=True)
    records = codec.to_python(type, distinct)
    order = sorted(range(len(records)), key=lambda place: _ORDER(records[place]))
    ranks = np.empty(len(records), np.int64)
    ranks[order] = np.arange(len(records))
    return ranks[places.reshape(-1)]


def _compared(left: Any, right: Any) -> int:
    """Below, at or above 0 as one value comes before the other, is it, or comes after it. Values may be deep: no recursion."""
    stack = [(left, right)]
    while stack:
        one, other = stack.pop()
        if isinstance(one, tuple) and isinstance(other, tuple) and _comparable(one, other):
            stack.extend(reversed(list(zip(one, other, strict=True))))
        elif one != other:
            return -1 if _precedes(one, other) else 1
    return 0


def _comparable(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether fields decide: not those of different branches."""
    return not isinstance(one, Branch) or one[0] == other[0]


def _precedes(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is None
    return bool(one[0] < other[0] if isinstance(one, Branch) else one < other)


_ORDER: Final = cmp_to_key(_compared)
