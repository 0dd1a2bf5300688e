"""A commit that brings many times the rows that there are begins anew: a dataflow that is planned for all of them and loads
them at once, as a first commit does, takes the place of the one there is. So does a large one where rows that came and went
have left memory behind. What has changed is found by comparing the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.values.differences import Columns, apply_changes, difference
from dlog.engine.values.updates import Updates

REBUILD_GROWTH = 8
"""Rows that a commit brings per row there from which on it begins anew; growth by less is cheaper as a change."""
MIN_REBUILD_ROWS = 1 << 11
"""Rows from which on it matters whether a commit begins anew."""
MIN_REBUILD_ROWS_PER_RULE = 1 << 8
"""Rows, for each rule, from which on a commit begins anew: planning a rule takes about as long as so many rows, a quarter of a
millisecond (2,000 and 10,000 rules)."""
MAX_ROWS_PER_CHANGE = 32
"""Rows there per changed row up to which a commit may begin anew: fewer changes do not pay for loading all others."""
FRAGMENTED_BYTES_RATIO = 1.5
"""Bytes of a row, as a multiple of those when all were loaded at once, from which on a dataflow is fragmented."""


def dwarfs(given: Mapping[str, Updates], flow: Dataflow) -> bool:
    """Whether the changes of one round, not few, bring many times what there is. What passes adds nothing to that."""
    passing = flow.program.passing
    growth = sum(int(updates.diffs.sum()) for name, updates in given.items() if name not in passing)
    if growth < MIN_REBUILD_ROWS or growth < REBUILD_GROWTH * live_rows(flow):
        return False
    return growth >= MIN_REBUILD_ROWS_PER_RULE * sum(len(stratum.rules) for stratum in flow.program.strata)


class Fragmentation:
    """The fragmentation of a dataflow by coming and going rows: each takes more memory than those that were loaded at once."""

    def __init__(self) -> None:
        self.changed = 0
        """The rows that came and went since all were loaded at once."""
        self._bytes_of_a_row = 0.0

    def begin(self, flow: Dataflow, used: int) -> None:
        """All rows of a dataflow were loaded at once; they take so many bytes."""
        self.changed, self._bytes_of_a_row = 0, used / max(live_rows(flow), MIN_REBUILD_ROWS)

    def is_fragmented(self, coming: int, flow: Dataflow, used: int) -> bool:
        """Whether a commit of so many changes should begin anew: it is large, as many rows as there are have changed, and
        memory is to be had."""
        rows = live_rows(flow)
        large = coming * MAX_ROWS_PER_CHANGE >= rows and self.changed >= rows >= MIN_REBUILD_ROWS
        return large and used >= FRAGMENTED_BYTES_RATIO * self._bytes_of_a_row * rows


def live_rows(flow: Dataflow) -> int:
    """The live rows of all relations."""
    return sum(c.struct[L.collection.live] for c in flow.collections.values())


def all_rows(flow: Dataflow, before: Before, given: Mapping[str, Updates], round: int) -> dict[str, Updates]:
    """The rows of all inputs after these changes, to be inserted."""
    found = {}
    for name, held in flow.inputs():
        columns, count = before.rows(name) if held is flow.collections.get(name) else _rows_of(held)
        if name in flow.program.passing:
            columns, count = tuple(column[:0] for column in columns), 0
        if name in given:
            columns, count = _changed(columns, count, given[name])
        if count:
            found[name] = Updates(columns, _all_alike(1, count), _all_alike(round, count))
    return found


def _changed(columns: Columns, rows: int, changes: Updates) -> tuple[Columns, int]:
    """Rows after changes. Where none goes a row may come twice: what is inserted is sorted out there, and faster."""
    if changes.rows and changes.only_come:
        return tuple(np.concatenate(pair) for pair in zip(columns, changes.columns, strict=True)), rows + changes.rows
    return apply_changes(columns, rows, changes.columns, changes.diffs)


class Before:
    """The rows of relations before a commit that began anew; `read` gives those that one has now."""

    def __init__(self, flow: Dataflow, read: Callable[[str], tuple[Columns, int]]) -> None:
        names = [name for name in flow.program.relations if name in flow.collections]
        self._rows = {name: _rows_of(flow.collections[name]) for name in names}
        self._read = read
        self._changes: dict[str, Updates] = {}

    @property
    def relations(self) -> list[str]:
        """The relations that had rows."""
        return [name for name, (_, rows) in self._rows.items() if rows]

    def rows(self, relation: str) -> tuple[Columns, int]:
        """The rows that one had, as words, and how many."""
        return self._rows[relation]

    def changes(self, relation: str, round: int) -> Updates:
        """The changes of a relation by the commit."""
        if relation not in self._changes:
            columns, diffs = _difference(self._rows[relation], _words(*self._read(relation)))
            self._changes[relation] = Updates(columns, diffs, np.full(len(diffs), round, np.int64))
        return self._changes[relation]


def _all_alike(value: int, count: int) -> np.ndarray:
    """An array of so many values, which takes no memory for them."""
    return np.ndarray(count, np.int64, np.array([value], np.int64), strides=(0,))  # as `broadcast_to`, but faster


def _rows_of(held: Collection) -> tuple[Columns, int]:
    """The rows that are present, as words, and how many."""
    if held.grouped is None and not held.struct[L.collection.live]:
        return (np.empty(0, np.int64),) * held.arity, 0
    return _words(*held.read())


def _words(columns: Columns, rows: int) -> tuple[Columns, int]:
    return tuple(column.astype(np.int64, copy=False) for column in columns), rows


def _difference(old: tuple[Columns, int], new: tuple[Columns, int]) -> tuple[Columns, np.ndarray]:
    """`difference` of few rows and many, most of which have a first value that none of the few has."""
    if not old[0] or not old[1]:
        return difference(*old, *new)
    known = np.isin(new[0][0], old[0][0])
    columns, diffs = difference(*old, tuple(column[known] for column in new[0]), int(known.sum()))
    others = tuple(column[~known] for column in new[0])
    joined = tuple(np.concatenate(pair) for pair in zip(columns, others, strict=True))
    return joined, np.concatenate([diffs, np.ones(len(others[0]), np.int64)])
