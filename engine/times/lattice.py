"""One time at a time: a point of the product lattice, its order, joins and meets.

A time is a tuple of non-negative integers: `(round,)` outside recursion, `(round, iteration)` inside a recursive stratum, one
more coordinate per nested scope. Times are ordered coordinate by coordinate, which is a partial order: `(0, 1)` and `(1, 0)`
are incomparable. Python's own order of tuples is the *lexicographic* order, a total order that refines it. All times of a
comparison have the same depth. `columns.py` has the same operations over arrays.
"""

from __future__ import annotations

from collections.abc import Iterable

Time = tuple[int, ...]


def minimum(depth: int) -> Time:
    """The time before all others."""
    return (0,) * depth


def less_equal(a: Time, b: Time) -> bool:
    """Whether `a` is at or before `b` in every coordinate.

    >>> less_equal((0, 1), (2, 1)), less_equal((0, 1), (1, 0))
    (True, False)
    """
    return all(x <= y for x, y in zip(a, b, strict=True))


def less_than(a: Time, b: Time) -> bool:
    """Whether `a` is before `b`: at or before it, and not `b` itself."""
    return a != b and less_equal(a, b)


def join(a: Time, b: Time) -> Time:
    """The least time at or after both: when two updates meet.

    >>> join((0, 1), (1, 0))
    (1, 1)
    """
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def meet(a: Time, b: Time) -> Time:
    """The greatest time at or before both.

    >>> meet((0, 1), (1, 0))
    (0, 0)
    """
    return tuple(min(x, y) for x, y in zip(a, b, strict=True))


def advance(time: Time, frontier: Iterable[Time]) -> Time:
    """The representative of `time` for readers at or after some element of `frontier`: the meet of its joins with them.

    A reader at such a time g finds `time <= g` exactly when `advance(time, frontier) <= g`. An empty frontier has no readers;
    the time is left as it is.

    >>> advance((17,), [(20,)]), advance((2, 5), [(3, 0), (0, 4)])
    ((20,), (2, 5))
    """
    joins = [join(time, f) for f in frontier]
    if not joins:
        return time
    found = joins[0]
    for other in joins[1:]:
        found = meet(found, other)
    return found


def step_back(time: Time) -> Time | None:
    """The time a round earlier, up to which history may be compacted while the rounds from `time` on are being worked out.

    A half-join compares the time of a stored update with that of a change in the lexicographic order. History advanced to the
    round at work, `(R, 0)`, no longer precedes all changes of that round; advanced to `(R - 1, 0)` it does. None where there is
    no earlier round.

    >>> step_back((3, 2)), step_back((0, 5))
    ((2, 0), None)
    """
    return (time[0] - 1, *minimum(len(time) - 1)) if time and time[0] > 0 else None
