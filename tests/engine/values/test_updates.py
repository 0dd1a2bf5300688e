"""Updates held as rows of Python are what their arrays are."""

from __future__ import annotations

import pickle

from dlog.engine.runtime.incremental.batches.changes import staged
from dlog.engine.values.updates import RowUpdates, Updates

ROWS = {(1, 2): 1, (3, -4): -1}


def test_rows_become_arrays_when_these_are_asked_for() -> None:
    updates = RowUpdates(ROWS, 2, 7)
    assert (updates.rows, updates.first, updates.last) == (2, 7, 7)
    assert [column.tolist() for column in updates.columns] == [[1, 3], [2, -4]]
    assert (updates.diffs.tolist(), updates.rounds.tolist()) == ([1, -1], [7, 7])


def test_no_rows_and_no_columns_have_arrays_too() -> None:
    empty, nullary = RowUpdates({}, 2, 7), RowUpdates({(): -1}, 0, 7)
    assert [len(column) for column in empty.columns] == [0, 0]
    assert (nullary.columns, nullary.diffs.tolist()) == ((), [-1])


def test_they_travel_as_arrays() -> None:
    arrived = pickle.loads(pickle.dumps(RowUpdates(ROWS, 2, 7)))
    assert type(arrived) is Updates
    assert (arrived.rows, arrived.first, arrived.diffs.tolist()) == (2, 7, [1, -1])


def test_kernels_take_rows_of_one_and_columns_of_the_other() -> None:
    rows = RowUpdates(ROWS, 2, 7)
    words, at, none = staged(rows, 5)
    assert (words.tolist(), none) == ([1, 2, 1, 2, 3, -4, -1, 2], 0)
    (columns, _), none, listed = staged(Updates(rows.columns, rows.diffs, rows.rounds), 5)
    assert ([column.tolist() for column in columns], none) == ([[1, 3], [2, -4], [1, -1], [7, 7]], 0)
    assert at != 0 != listed
