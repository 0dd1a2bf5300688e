"""What a trace has to say, from a plain list of updates; and batches from such lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from dlog.engine.times import columns as T
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time, less_equal
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.cursor import TimedUpdates

Row = tuple[int, ...]
Update = tuple[Row, Time, int]


def columns_of(rows: list[Row], arity: int) -> list[np.ndarray]:
    return [np.array([row[c] for row in rows], np.int64) for c in range(arity)]


def batch_of(updates: list[Update], arity: int, lower: Antichain, upper: Antichain) -> Batch:
    depth = len(lower.elements[0])
    times = T.pack([time for _, time, _ in updates], depth)
    diffs = np.array([diff for _, _, diff in updates], np.int64)
    return Batch.of(lower, upper, columns_of([row for row, _, _ in updates], arity), times, diffs)


def summed(updates: Iterable[Update]) -> dict[tuple[Row, Time], int]:
    """Diffs of equal row and time added up, zeros left out."""
    found: Counter[tuple[Row, Time]] = Counter()
    for row, time, diff in updates:
        found[row, time] += diff
    return {key: diff for key, diff in found.items() if diff}


def accumulated(updates: Iterable[Update], time: Time) -> dict[Row, int]:
    """The collection at a time."""
    found: Counter[Row] = Counter()
    for row, at, diff in updates:
        if less_equal(at, time):
            found[row] += diff
    return {row: diff for row, diff in found.items() if diff}


def updates_of(found: TimedUpdates) -> list[Update]:
    rows = list(zip(*(c.tolist() for c in found.columns), strict=True)) if found.columns else [()] * found.rows
    return list(zip(rows, T.unpack(found.times), found.diffs.tolist(), strict=True))


def rows_of(found: TimedUpdates) -> dict[Row, int]:
    """Rows with their multiplicities; each row once."""
    listed = updates_of(found)
    assert len({row for row, _, _ in listed}) == len(listed)
    return {row: diff for row, _, diff in listed}
