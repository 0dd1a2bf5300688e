"""Deltas: some updates of a collection, in columns.

Columns are int64 words, times an int64 array of shape (depth, n), diffs int64. Nothing of a delta is ever changed in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.times import columns as T
from dlog.engine.trace.layer import Layer, build

Moment = tuple[int, ...]
"""The iterations of a time, without its round: `()` outside of loops."""
Columns = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Updates as arrays of equal length; `layer` is the one that they all are of, in its order, if there is one."""

    columns: Columns
    times: np.ndarray
    diffs: np.ndarray
    layer: Layer | None = None

    @property
    def rows(self) -> int:
        return len(self.diffs)

    @property
    def rounds(self) -> np.ndarray:
        return np.asarray(self.times[0])

    def only(self, chosen: np.ndarray) -> Delta:
        """The chosen updates: a mask, or positions, which may repeat."""
        places = chosen.nonzero()[0] if chosen.dtype == bool else chosen
        return Delta(tuple(c[places] for c in self.columns), self.times[:, places], self.diffs[places])

    def with_columns(self, columns: Sequence[np.ndarray]) -> Delta:
        return Delta(tuple(columns), self.times, self.diffs)

    def consolidated(self) -> Delta:
        """The same updates in order of (row, time), each pair once, without zeros."""
        layer = build(self.columns, self.times, self.diffs)
        return empty(len(self.columns), len(self.times)) if layer is None else of_layer(layer)

    def by_moment(self) -> Iterator[tuple[Moment, Delta]]:
        """The updates of each moment."""
        if not self.rows:
            return
        moments = self.times[1:]
        if not len(moments):
            yield (), self
            return
        if (moments == moments[:, :1]).all():
            yield tuple(moments[:, 0].tolist()), self
            return
        order = T.order(moments)
        sorted_moments = moments[:, order]
        starts = np.flatnonzero(np.r_[True, (sorted_moments[:, 1:] != sorted_moments[:, :-1]).any(axis=0)])
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            yield tuple(sorted_moments[:, start].tolist()), self.only(order[start:end])


def of_layer(layer: Layer) -> Delta:
    """All updates of a layer, in its order."""
    return Delta(*layer.updates(), layer)


def empty(arity: int, depth: int) -> Delta:
    none = np.empty(0, np.int64)
    return Delta((none,) * arity, np.empty((depth, 0), np.int64), none)


def together(parts: Sequence[Delta]) -> Delta:
    """The updates of all parts, of which there is at least one."""
    if len(parts) == 1:
        return parts[0]
    return Delta(
        tuple(np.concatenate(pieces) for pieces in zip(*(p.columns for p in parts), strict=True)),
        np.concatenate([p.times for p in parts], axis=1),
        np.concatenate([p.diffs for p in parts]),
    )


def run_starts(columns: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Where runs of equal values begin in sorted columns of so many rows."""
    if not rows:
        return np.empty(0, np.int64)
    if not columns:
        return np.zeros(1, np.int64)
    differs = np.zeros(rows, bool)
    differs[0] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def repeated(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges written out: for each entry the number of its range, and `starts` of that plus 0, 1, 2 ..."""
    owners = np.repeat(np.arange(len(counts)), counts)
    offsets = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return owners, starts[owners] + offsets
