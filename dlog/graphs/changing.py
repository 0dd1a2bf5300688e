"""The edges of a graph that changes: rows that are there or not, found by their ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered

_SHIFT = np.int64(1) << np.int64(32)
FILLER = "no attributes"
RECENT = 50_000
"""So many edges are looked up one by one before they are sorted in."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The edges that a commit removes and adds."""

    removed: Numbered
    added: Numbered


class ChangingEdges:
    """Edges by row: rows are only ever appended, and have a flag that says whether they are there."""

    def __init__(self, graph: Numbered) -> None:
        self._directed = graph.directed
        self._src, self._dst = graph.src, graph.dst
        self._attributes = self._before = graph.attributes
        self._there = np.ones(len(graph.src), np.bool_)
        self._committed = len(graph.src)
        self._gone: list[Codes] = []
        self._index = _Index()

    def add(self, src: Codes, dst: Codes, attributes: pa.Table) -> None:
        """Appends rows."""
        self._src, self._dst = np.concatenate([self._src, src]), np.concatenate([self._dst, dst])
        self._attributes = _stacked(self._attributes, attributes)
        self._there = np.concatenate([self._there, np.ones(len(src), np.bool_)])

    def remove(self, src: Codes, dst: Codes) -> None:
        """Flags all rows with these ends."""
        rows = self._index.rows(self._keys(self._src, self._dst), self._keys(src, dst))
        rows = np.unique(rows[self._there[rows]])
        self._there[rows] = False
        self._gone.append(rows)

    def rollback(self) -> None:
        """Takes back what has happened since the last `settle`."""
        for rows in self._gone:
            self._there[rows] = True
        self._src, self._dst = self._src[: self._committed], self._dst[: self._committed]
        self._there = self._there[: self._committed]
        self._attributes = self._before
        self._gone = []
        self._index = _Index()

    def edited(self) -> Edited:
        """What has happened since the last `settle`."""
        gone = np.concatenate([np.empty(0, np.int64), *self._gone])
        new = np.arange(self._committed, len(self._src))
        return Edited(self._chosen(gone[gone < self._committed]), self._chosen(new[self._there[new]]))

    def settle(self) -> None:
        """Forgets what has happened."""
        self._committed = len(self._src)
        self._before = self._attributes
        self._gone = []

    def numbered(self, vertices: int) -> Numbered:
        """All edges that are there as of the last `settle`."""
        there = self._there.copy()
        for rows in self._gone:
            there[rows] = True
        rows = np.flatnonzero(there[: self._committed])
        return self._chosen(rows, vertices)

    def _chosen(self, rows: Codes, vertices: int = 0) -> Numbered:
        attributes = self._attributes.take(pa.array(rows)) if self._attributes.num_columns else self._attributes
        return Numbered(vertices, self._src[rows], self._dst[rows], rows, attributes, self._directed)

    def _keys(self, src: Codes, dst: Codes) -> Codes:
        """A number for each pair of ends, the same for both directions if there are none."""
        if self._directed:
            return src * _SHIFT + dst
        return np.minimum(src, dst) * _SHIFT + np.maximum(src, dst)


class _Index:
    """The rows with a key: most of them sorted, those that came lately in a dict."""

    def __init__(self) -> None:
        self._sorted: Codes = np.empty(0, np.int64)
        self._order: Codes = np.empty(0, np.int64)
        self._recent: dict[int, list[int]] = {}
        self._known = 0

    def rows(self, keys: Codes, wanted: Codes) -> Codes:
        """The numbers of rows with any of the keys `wanted`; `keys` has those of all rows."""
        self._learn(keys)
        low, high = (np.searchsorted(self._sorted, wanted, side) for side in ("left", "right"))
        found: list[NDArray[np.int64]] = [self._order[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True) if a < b]
        late = [row for key in wanted.tolist() for row in self._recent.get(key, ())]
        return np.concatenate([np.array(late, np.int64), *found])

    def _learn(self, keys: Codes) -> None:
        new = len(keys) - self._known
        if len(self._recent) + new > RECENT or self._known == 0:
            self._order = np.argsort(keys, kind="stable")
            self._sorted = keys[self._order]
            self._recent = {}
        else:
            for row, key in enumerate(keys[self._known :].tolist(), self._known):
                self._recent.setdefault(key, []).append(row)
        self._known = len(keys)


def _stacked(first: pa.Table, second: pa.Table) -> pa.Table:
    """The rows of both, null where one lacks a column of the other."""
    if not first.num_columns and not second.num_columns:
        return first
    counted = [table if table.num_columns else pa.table({FILLER: pa.nulls(table.num_rows)}) for table in (first, second)]
    both = pa.concat_tables(counted, promote_options="permissive")
    return both.drop_columns([FILLER]) if FILLER in both.column_names else both
