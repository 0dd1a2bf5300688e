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


def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Least upper bounds."""
    return np.asarray(np.maximum(a, b))


def order(times: np.ndarray) -> np.ndarray:
    """Positions of the times in lexicographic order; equal times keep theirs."""
    return np.asarray(np.lexsort(times[::-1])) if len(times) else np.arange(times.shape[1])


def in_advance(times: np.ndarray, frontier: np.ndarray) -> np.ndarray:
    """A mask of times at or after some element of `frontier`."""
    found = np.zeros(times.shape[1], bool)
    for k in range(frontier.shape[1]):
        found |= less_equal(frontier[:, k : k + 1], times)
    return found
