"""Sets of rows as arrays: what changed between two of them, and what a list of changes comes to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Columns = tuple[np.ndarray, ...]
_INT64 = np.dtype(np.int64)
_WORDS = np.dtype(np.float64), np.dtype(np.uint64)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def words(column: np.ndarray) -> np.ndarray:
    """A column's raw 64-bit words (int64): numbers and ids as they are, floats and unsigned by their bits."""
    dtype = column.dtype
    if dtype == _INT64:
        return column
    if dtype in _WORDS:
        return np.ascontiguousarray(column).view(np.int64)
    return column.astype(np.int64)


def row_groups(columns: Sequence[np.ndarray], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """An order that brings equal rows together, each group in the order of its places, and where each group starts in it."""
    if rows == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if not columns:
        return np.arange(rows), np.zeros(1, np.int64)
    order = np.lexsort(columns[::-1])  # stable: within a group places ascend
    starts = np.zeros(rows, bool)
    starts[0] = True
    for column in columns:
        ordered = column[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(starts)


def difference(old: Columns, old_rows: int, new: Columns, new_rows: int) -> tuple[Columns, np.ndarray]:
    """The rows in one of two sets only, with diff +1 for those of `new` and -1 for those of `old`. Columns are words."""
    rows = old_rows + new_rows
    columns = tuple(np.concatenate(pair) for pair in zip(old, new, strict=True))
    order, starts = row_groups(columns, rows)
    sizes = np.diff(np.append(starts, rows))
    places = order[starts[sizes == 1]]
    return tuple(column[places] for column in columns), np.where(places < old_rows, -1, 1)


def last_of_each(columns: Columns, rows: int) -> np.ndarray:
    """The places, ascending, of the last occurrence of each distinct row."""
    if _all_differ(columns, rows):
        return np.arange(rows)
    order, starts = row_groups(columns, rows)
    return np.sort(order[np.append(starts[1:], rows) - 1]) if rows else order


def _all_differ(columns: Columns, rows: int) -> bool:
    """Whether all hashes of rows differ, and so the rows: one column is sorted in place of all."""
    hashes = _hashes(columns, rows)
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all())


def _hashes(columns: Columns, rows: int) -> np.ndarray:
    found = np.zeros(rows, np.uint64)
    for column in columns:
        found ^= column.view(np.uint64)
        found *= _MULTIPLIER
        found ^= found >> np.uint64(29)
    return found


def apply_changes(columns: Columns, rows: int, changed: Columns, diffs: np.ndarray) -> tuple[Columns, int]:
    """The set `columns` after changes of which the last one of a row counts: +1 puts it in, -1 takes it out."""
    joined = tuple(np.concatenate(pair) for pair in zip(columns, changed, strict=True))
    present = np.concatenate((np.ones(rows, np.int64), diffs)) > 0
    places = last_of_each(joined, rows + len(diffs))
    places = places[present[places]]
    return tuple(column[places] for column in joined), len(places)
