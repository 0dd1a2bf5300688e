"""The edges of a graph that changes: rows that are there or not, found by their ends.

What a change costs goes with the change, not with the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dlog.dataclass import dataclass
from dlog.graphs.mistakes import mistake
from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered

_SHIFT = np.int64(1) << np.int64(32)
FILLER = "no attributes"
MAX_UNSORTED_EDGES = 50_000
"""Edges kept in a dict before they are sorted in: trades memory per edge against sorting all again."""
MAX_TABLE_PIECES = 64
"""Pieces of a table of attributes: trades joining them again and again against looking into each."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The edges that a commit removes and adds."""

    removed: Numbered
    added: Numbered


class ChangingEdges:
    """Edges by row: rows are only ever appended, and have a flag that says whether they are there."""

    def __init__(self, graph: Numbered) -> None:
        self._directed = graph.directed
        self._src, self._dst = Growing(graph.src), Growing(graph.dst)
        self._there = Growing(np.ones(len(graph.src), np.bool_))
        self._attributes = self._before = graph.attributes
        self._committed = len(graph.src)
        self._removed: list[Codes] = []
        self._index: _Index | None = None

    @property
    def rows(self) -> int:
        """How many there ever were."""
        return len(self._there.values)

    def with_attributes(self, more: pa.Table) -> pa.Table:
        """The attributes of all rows and those of more; DlogError where they do not go together."""
        return _stacked(self._attributes, more)

    def add(self, src: Codes, dst: Codes, attributes: pa.Table) -> None:
        """Appends rows; then all have these attributes."""
        if self._index is not None:
            self._index.learn(len(self._there.values), self._keys(src, dst))
        self._src.extend(src)
        self._dst.extend(dst)
        self._there.extend(np.ones(len(src), np.bool_))
        self._attributes = attributes

    def remove(self, src: Codes, dst: Codes) -> None:
        """Flags all rows with these ends."""
        if self._index is None or self._index.full:
            self._index = _Index(self._keys(self._src.values, self._dst.values))
        rows = self._index.rows(self._keys(src, dst))
        rows = np.unique(rows[self._there.values[rows]])
        self._there.values[rows] = False
        self._removed.append(rows)

    def rollback(self) -> None:
        """Takes back what has happened since the last `settle`."""
        for rows in self._removed:
            self._there.values[rows] = True
        for column in (self._src, self._dst, self._there):
            column.truncate(self._committed)
        if self._index is not None:
            self._index.forget_from(self._committed)
        self._attributes = self._before
        self._removed = []

    def edited(self) -> Edited:
        """The edits since the last `settle`."""
        gone = np.concatenate([np.empty(0, np.int64), *self._removed])
        new = np.arange(self._committed, len(self._src.values))
        return Edited(self._numbered_rows(gone[gone < self._committed]), self._numbered_rows(new[self._there.values[new]]))

    def settle(self) -> None:
        """Forgets what has happened."""
        self._committed = len(self._src.values)
        self._before = self._attributes
        self._removed = []

    def numbered(self, vertices: int) -> Numbered:
        """All edges that are there as of the last `settle`."""
        there = self._there.values[: self._committed].copy()
        for rows in self._removed:
            there[rows[rows < self._committed]] = True
        return self._numbered_rows(np.flatnonzero(there), vertices)

    def _numbered_rows(self, rows: Codes, vertices: int = 0) -> Numbered:
        attributes = self._attributes.take(pa.array(rows)) if self._attributes.num_columns else self._attributes
        return Numbered(vertices, self._src.values[rows], self._dst.values[rows], rows, attributes, self._directed)

    def _keys(self, src: Codes, dst: Codes) -> Codes:
        """A number for each pair of ends, the same for both directions if there are none."""
        if self._directed:
            return src * _SHIFT + dst
        return np.minimum(src, dst) * _SHIFT + np.maximum(src, dst)


class Growing:
    """An array to which values are appended, with room for more."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = values
        self.values = values

    def extend(self, values: NDArray[Any]) -> None:
        """Appends values."""
        size = len(self.values)
        if size + len(values) > len(self._room) or self.values.base is None:
            room = np.empty(2 * (size + len(values)), self.values.dtype)
            room[:size] = self.values
            self._room = room
        self._room[size : size + len(values)] = values
        self.values = self._room[: size + len(values)]

    def truncate(self, size: int) -> None:
        """Forgets all values but the first ones."""
        self.values = self.values[:size]


class _Index:
    """The rows with a key: those of the beginning sorted, those that came since in a dict."""

    def __init__(self, keys: Codes) -> None:
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]
        self._recent: dict[int, list[int]] = {}

    @property
    def full(self) -> bool:
        """Whether it is time for a new one."""
        return len(self._recent) > MAX_UNSORTED_EDGES

    def learn(self, first: int, keys: Codes) -> None:
        """Notes the keys of the rows from `first` on."""
        for row, key in enumerate(keys.tolist(), first):
            self._recent.setdefault(key, []).append(row)

    def forget_from(self, first: int) -> None:
        """Forgets the rows from `first` on."""
        self._recent = {key: kept for key, rows in self._recent.items() if (kept := [r for r in rows if r < first])}
        staying = self._order < first
        if not staying.all():
            self._order, self._sorted = self._order[staying], self._sorted[staying]

    def rows(self, wanted: Codes) -> Codes:
        """The numbers of rows with any of the keys."""
        low, high = (np.searchsorted(self._sorted, wanted, side) for side in ("left", "right"))
        found = [self._order[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True) if a < b]
        late = [row for key in wanted.tolist() for row in self._recent.get(key, ())]
        return np.concatenate([np.array(late, np.int64), *found])


def _stacked(first: pa.Table, second: pa.Table) -> pa.Table:
    """The rows of both, null where one lacks a column of the other."""
    if not first.num_columns and not second.num_columns:
        return _filled(first.num_rows + second.num_rows).drop_columns([FILLER])
    counted = [table if table.num_columns else _filled(table.num_rows) for table in (first, second)]
    try:
        both = pa.concat_tables(counted, promote_options="permissive")
    except pa.ArrowException as error:
        message = f"the attributes of these edges do not go with those of the others: {error}"
        raise mistake("bad-attributes", message) from None
    both = both.drop_columns([FILLER]) if FILLER in both.column_names else both
    return both.combine_chunks() if both.column(0).num_chunks > MAX_TABLE_PIECES else both


def _filled(rows: int) -> pa.Table:
    return pa.table({FILLER: pa.nulls(rows)})
