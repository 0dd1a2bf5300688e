"""A pool of large arrays that come and go, batch after batch: new ones take the memory of the last ones.

New memory is expensive to touch for the first time, on virtual machines several times as expensive as what is done with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from threading import RLock
from typing import Any

import numpy as np

MIN_POOLED_WORDS = 1 << 17
"""Words below which the allocator serves as well."""
MIN_RECURRING_WORDS = 1 << 14
"""Words from which on what is made anew each round is worth pooling: the allocator may give its memory back each time."""
MAX_POOLED_WORDS = 1 << 23
"""Words above which nothing is kept: trades the cost of fresh memory against holding it."""
MAX_FREE_BLOCKS = 2
"""Blocks that are kept: the last batch's arrays are still read when the next ones are made."""


class ArrayPool:
    """Hands out memory, and keeps a little of what comes back."""

    def __init__(self, least: int = MIN_POOLED_WORDS) -> None:
        """Of arrays of so many words, at least."""
        self._least = least
        self._free: list[np.ndarray] = []
        self._lock = RLock()
        """Who has it may take memory back, too, as arrays die."""

    def words(self, count: int) -> np.ndarray:
        """An array of so many int64 without values. When nobody has it or a part of it any more, its memory is handed out
        again."""
        if not self._least <= count <= MAX_POOLED_WORDS:
            return np.empty(count, np.int64)
        with self._lock:
            fitting = [block for block in self._free if count <= len(block) <= 2 * count]
            block = min(fitting, key=len) if fitting else np.empty(count + (count >> 3), np.int64)
            self._free = [other for other in self._free if other is not block]
        return np.asarray(_PooledArray(self, block))[:count]

    def back(self, block: np.ndarray) -> None:
        """Takes memory back; keeps the latest blocks."""
        with self._lock:
            self._free = [*self._free, block][-MAX_FREE_BLOCKS:]

    def clear(self) -> None:
        """Keeps nothing of what has come back."""
        self._free = []


class RecurringBlocks:
    """Blocks of words of which one is made each round: large ones take the memory of those before, until there is a small
    one."""

    def __init__(self) -> None:
        self._pool = ArrayPool(MIN_RECURRING_WORDS)

    def block(self, fields: int, rows: int) -> np.ndarray:
        """One without values."""
        if fields * rows < MIN_RECURRING_WORDS:
            self._pool.clear()
            return np.empty((fields, rows), np.int64)
        return self._pool.words(fields * rows).reshape(fields, rows)


ROOM_FACTOR = 2
"""The memory of a buffer, as a multiple of what is wanted: what is not touched costs nothing."""
ALIGNMENT_BYTES = 64
"""A cache line, at which each column begins."""


class DoubleBuffer:
    """Two pieces of memory that take turns: what was written last may be read while the next is written."""

    def __init__(self) -> None:
        self._now, self._next = np.empty(0, np.uint8), np.empty(0, np.uint8)

    def columns(self, dtypes: Sequence[np.dtype[Any]], rows: int) -> list[np.ndarray]:
        """Columns without values, which hold until the next but one are asked for."""
        sizes = [-(-rows * dtype.itemsize // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for dtype in dtypes]
        self._now, self._next = self._next, self._now
        if len(self._now) < sum(sizes):
            self._now = np.empty(0, np.uint8)  # so that it is free before there is more
            self._now = np.empty(ROOM_FACTOR * sum(sizes), np.uint8)
        starts = accumulate(sizes, initial=0)
        return [self._now[at : at + rows * d.itemsize].view(d) for at, d in zip(starts, dtypes, strict=False)]


class _PooledArray:
    """The owner of pooled memory, on which arrays rest."""

    def __init__(self, pool: ArrayPool, block: np.ndarray) -> None:
        self._pool, self._block = pool, block

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._block.__array_interface__

    def __del__(self) -> None:
        self._pool.back(self._block)
