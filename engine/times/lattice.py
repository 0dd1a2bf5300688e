"""One time at a time: a point of the product lattice, its order, joins and meets.

A time is a tuple of non-negative integers: `(round,)` outside recursion, `(round, iteration)` inside a recursive stratum, one
more coordinate per nested scope. Times are ordered coordinate by coordinate, which is a partial order: `(0, 1)` and `(1, 0)`
are incomparable. Python's own order of tuples is the *lexicographic* order, a total order that refines it. All times of a
comparison have the same depth. `columns.py` has the same operations over arrays.
"""

from __future__ import annotations

Time = tuple[int, ...]


def minimum(depth: int) -> Time:
    """The time before all others."""
    return (0,) * depth


def less_equal(a: Time, b: Time) -> bool:
    """Whether `a` is at or before `b` in every coordinate.

    >>> less_equal((0, 1), (2, 1)), less_equal((0, 1), (1, 0))
    (True, False)
    """
    if len(a) == len(b) == 1:
        return a[0] <= b[0]
    return all(x <= y for x, y in zip(a, b, strict=True))


def join(a: Time, b: Time) -> Time:
    """The least time at or after both: when two updates meet.

    >>> join((0, 1), (1, 0))
    (1, 1)
    """
    if len(a) == len(b) == 1:
        return a if a[0] >= b[0] else b
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def meet(a: Time, b: Time) -> Time:
    """The greatest time at or before both.

    >>> meet((0, 1), (1, 0))
    (0, 0)
    """
    return tuple(min(x, y) for x, y in zip(a, b, strict=True))
