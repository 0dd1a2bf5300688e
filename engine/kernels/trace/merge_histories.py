"""The history of a row in a merge: times advanced to the frontier, in order, with the sum of their diffs."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64


@kernel
def _later(times, depth, a, b):  # type: ignore[no-untyped-def]
    """Whether the time of entry a is after that of entry b in the lexicographic order."""
    for c in range(depth):
        x, y = load_i64(times, a * depth + c), load_i64(times, b * depth + c)
        if x != y:
            return x > y
    return False


@kernel
def _swap(times, diffs, depth, a, b):  # type: ignore[no-untyped-def]
    for c in range(depth):
        kept = load_i64(times, a * depth + c)
        store_i64(times, a * depth + c, load_i64(times, b * depth + c))
        store_i64(times, b * depth + c, kept)
    kept = load_i64(diffs, a)
    store_i64(diffs, a, load_i64(diffs, b))
    store_i64(diffs, b, kept)


@kernel
def _sift(times, diffs, depth, root, size):  # type: ignore[no-untyped-def]
    """Restores the heap with the latest time on top below `root`."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and _later(times, depth, child + 1, child):
            child += 1
        if not _later(times, depth, child, root):
            return
        _swap(times, diffs, depth, root, child)
        root = child


@kernel
def sort_history(times, diffs, depth, size):  # type: ignore[no-untyped-def]
    """Orders the entries by time: by insertion where they are few, by a heap where they are many."""
    ordered = 1
    while ordered < size and not _later(times, depth, ordered - 1, ordered):
        ordered += 1
    if ordered >= size:
        return
    if size <= 24:
        for i in range(ordered, size):
            k = i
            while k > 0 and _later(times, depth, k - 1, k):
                _swap(times, diffs, depth, k - 1, k)
                k -= 1
        return
    for root in range(size // 2 - 1, -1, -1):
        _sift(times, diffs, depth, root, size)
    for last in range(size - 1, 0, -1):
        _swap(times, diffs, depth, 0, last)
        _sift(times, diffs, depth, 0, last)


@kernel
def sum_history(times, diffs, depth, size):  # type: ignore[no-untyped-def]
    """Adds up the diffs of equal times of an ordered history and leaves out zeros; returns what is left."""
    kept, i = 0, 0
    while i < size:
        diff, k = load_i64(diffs, i), i + 1
        while k < size and not _later(times, depth, k, i):
            diff += load_i64(diffs, k)
            k += 1
        if diff != 0:
            for c in range(depth):
                store_i64(times, kept * depth + c, load_i64(times, i * depth + c))
            store_i64(diffs, kept, diff)
            kept += 1
        i = k
    return kept
