"""The history of a row in a merge: times advanced to the frontier, in order, with the sum of their diffs."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.machine_structs import Words

INSERTED = 24
"""Updates of a row up to which sorting by insertion beats a heap."""


@kernel
def _later(times: Words, depth, a, b):
    """Whether the time of entry a is after that of entry b in the lexicographic order."""
    for c in range(depth):
        x, y = times[a * depth + c], times[b * depth + c]
        if x != y:
            return x > y
    return False


@kernel
def _swap(times: Words, diffs: Words, depth, a, b):
    for c in range(depth):
        kept = times[a * depth + c]
        times[a * depth + c] = times[b * depth + c]
        times[b * depth + c] = kept
    kept = diffs[a]
    diffs[a] = diffs[b]
    diffs[b] = kept


@kernel
def _sift(times: Words, diffs: Words, depth, root, size):
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
def sort_history(times: Words, diffs: Words, depth, size):
    """Orders the entries by time: by insertion where they are few, by a heap where they are many."""
    ordered = 1
    while ordered < size and not _later(times, depth, ordered - 1, ordered):
        ordered += 1
    if ordered >= size:
        return
    if size <= INSERTED:
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
def sum_history(times: Words, diffs: Words, depth, size):
    """Adds up the diffs of equal times of an ordered history and leaves out zeros; returns what is left."""
    kept, i = 0, 0
    while i < size:
        diff, k = diffs[i], i + 1
        while k < size and not _later(times, depth, k, i):
            diff += diffs[k]
            k += 1
        if diff != 0:
            for c in range(depth):
                times[kept * depth + c] = times[i * depth + c]
            diffs[kept] = diff
            kept += 1
        i = k
    return kept
