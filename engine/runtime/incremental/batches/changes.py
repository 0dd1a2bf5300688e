"""The changes of a commit, cut to the batches that go through the dataflow together and in the form that kernels take."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dlog.engine.values.addresses import address_of
from dlog.engine.values.updates import BlockUpdates, RowUpdates, Updates

MAX_ROWS_STAGED_ONE_BY_ONE = 32
"""Rows up to which a list of words takes less time than arrays."""
_NOTHING = np.empty(0, np.int64)


def net(rows: np.ndarray, rounds: np.ndarray, diffs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of changes, and their diffs, of which those of one row (its number or word) in one round are added up."""
    code = rows
    if len(rows) and rounds.min() != rounds.max():
        if rows.min() < 0 or rows.max() >= 1 << 32:
            rows = np.unique(rows, return_inverse=True)[1]
        code = (rounds << 32) + rows
    ordered = np.sort(code)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.arange(len(rows)), diffs
    _, firsts, groups = np.unique(code, return_index=True, return_inverse=True)
    totals = np.zeros(len(rows), np.int64)
    np.add.at(totals, firsts[groups], diffs)
    places = np.flatnonzero(totals)
    return places, totals[places]


def batches(given: Sequence[np.ndarray], first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    """The first and last rounds of the batches of a commit, of at most so many rounds, which `given` arrays name in ascending
    order; rounds far apart are not gone through one by one."""
    if last - first < most:
        yield first, last
        return
    start: int | None = first
    while start is not None:
        ends = [(rounds, int(np.searchsorted(rounds, start + most))) for rounds in given]
        yield start, max([start, *(int(rounds[end - 1]) for rounds, end in ends if end > 0)])
        start = min((int(rounds[end]) for rounds, end in ends if end < len(rounds)), default=None)


def of_rounds(given: Mapping[str, Updates], first: int, last: int) -> dict[str, Updates]:
    """The changes of rounds first to last."""
    result = {}
    for name, updates in given.items():
        if updates.rows and first <= updates.first and updates.last <= last:
            result[name] = updates
            continue
        low, high = np.searchsorted(updates.rounds, (first, last + 1))
        if low < high:
            columns = tuple(column[low:high] for column in updates.columns)
            result[name] = Updates(columns, updates.diffs[low:high], updates.rounds[low:high])
    return result


def staged(updates: Updates, first: int) -> tuple[Any, int, int]:
    """Changes as the kernels take them: what holds them, and where they are, few as rows of values, diff and round of the
    batch, or as columns of these, with rounds as they are; 0 in the place of the other."""
    if isinstance(updates, RowUpdates) and updates.rows <= MAX_ROWS_STAGED_ONE_BY_ONE:
        words = array("q", updates.flat(updates.round - first))
        return words, words.buffer_info()[0], 0
    held, listed = all_columns(updates)
    return held, 0, listed


def all_columns(updates: Updates) -> tuple[Any, int]:
    """Changes as columns of values, diffs and rounds: what holds them, and where the list of them is."""
    if isinstance(updates, BlockUpdates):
        block = updates.block
        first, step = address_of(block), block.itemsize * block.shape[1]
        listed = array("q", range(first, first + step * len(block), step))
        return (block, listed), listed.buffer_info()[0]
    return as_columns((*updates.columns, updates.diffs, updates.rounds))


def as_columns(given: Sequence[np.ndarray]) -> tuple[Any, int]:
    """Columns of words, as the kernels take them: what holds them, and where the list of them is."""
    columns = [np.ascontiguousarray(column, np.int64) for column in given]
    listed = array("q", map(address_of, columns))
    return (columns, listed), listed.buffer_info()[0]


def insertions(columns: tuple[np.ndarray, ...], rows: int, round: int) -> Updates:
    """Rows that come in one round."""
    return Updates(columns, np.ones(rows, np.int64), np.full(rows, round, np.int64))


def no_updates(arity: int) -> Updates:
    return Updates((_NOTHING,) * arity, _NOTHING, _NOTHING)
