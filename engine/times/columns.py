"""Many times at once: the lattice over columns.

Times are an int64 array of shape (depth, n), one contiguous row per coordinate and one column per time. Functions of two arrays
broadcast over n, so `(depth, 1)` is one time against many; `one` makes that of a tuple. A frontier is such an array too, in no
particular order. Nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dlog.engine.times.lattice import Time


def pack(times: Iterable[Time], depth: int) -> np.ndarray:
    """Tuples as a (depth, n) array."""
    listed = list(times)
    return np.array(listed, np.int64).reshape(len(listed), depth).T.copy()


def one(time: Time) -> np.ndarray:
    """A single time as a (depth, 1) array."""
    return np.array(time, np.int64).reshape(-1, 1)


def unpack(times: np.ndarray) -> list[Time]:
    """The times as tuples, for tests and messages."""
    return [tuple(map(int, time)) for time in times.T]


def less_equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A mask of where `a` is at or before `b`."""
    return np.asarray((a <= b).all(axis=0))


def less_than(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A mask of where `a` is before `b` and not `b` itself."""
    return np.asarray(less_equal(a, b) & (a != b).any(axis=0))


def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Least upper bounds."""
    return np.asarray(np.maximum(a, b))


def meet(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Greatest lower bounds."""
    return np.asarray(np.minimum(a, b))


def compare(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """-1, 0 or 1 where `a` is before, the same as, or after `b` in the lexicographic order, a total order (int8)."""
    signs = np.zeros(np.broadcast_shapes(a.shape[1:], b.shape[1:]), np.int8)
    for x, y in zip(a[::-1], b[::-1], strict=True):  # the first coordinate decides last
        signs = np.where(x == y, signs, np.where(x < y, np.int8(-1), np.int8(1)))
    return signs


def order(times: np.ndarray) -> np.ndarray:
    """Positions of the times in lexicographic order; equal times keep theirs."""
    return np.asarray(np.lexsort(times[::-1])) if len(times) else np.arange(times.shape[1])


def advance(times: np.ndarray, frontier: np.ndarray) -> np.ndarray:
    """The representative of each time for readers in advance of `frontier`: the meet of its joins with the elements. It is not
    monotone in the lexicographic order: sort again where order matters. An empty frontier leaves all as it is."""
    if not frontier.shape[1]:
        return times
    advanced = np.maximum(times, frontier[:, :1])
    for k in range(1, frontier.shape[1]):
        advanced = np.minimum(advanced, np.maximum(times, frontier[:, k : k + 1]))
    return np.asarray(advanced)


def in_advance(times: np.ndarray, frontier: np.ndarray) -> np.ndarray:
    """A mask of times at or after some element of `frontier`."""
    found = np.zeros(times.shape[1], bool)
    for k in range(frontier.shape[1]):
        found |= less_equal(frontier[:, k : k + 1], times)
    return found


def minimal(times: np.ndarray) -> np.ndarray:
    """The minimal elements, each once, in lexicographic order: the frontier of all these times."""
    rest = times[:, order(times)]
    if len(times) <= 1:
        return rest[:, :1]
    if len(times) == 2:
        return rest[:, _records(rest[1])]
    kept = []
    while rest.shape[1]:  # the first in lexicographic order has nothing before it
        kept.append(rest[:, :1])
        rest = rest[:, ~less_equal(rest[:, :1], rest)]
    return np.concatenate(kept, axis=1) if kept else rest


def _records(values: np.ndarray) -> np.ndarray:
    """A mask of values less than all before them."""
    found = np.ones(len(values), bool)
    found[1:] = values[1:] < np.minimum.accumulate(values)[:-1]
    return found
