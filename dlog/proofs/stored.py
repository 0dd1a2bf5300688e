"""Relations at rest as a proof looks rows up in them: by any columns, with an index for each choice that is used often.

Rows are columns of 64-bit words. Look-ups are for many keys at once and come in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

BLOCK = 1 << 16
"""About how many pairs a piece of a look-up has."""
SCANS = 12
"""So often a relation is searched row by row before an index is made for the columns in question."""
NEVER = np.iinfo(np.int32).max
"""The rank of a row that has not been derived yet."""


class Index:
    """The rows of a table by the values of some columns."""

    def __init__(self, columns: Sequence[np.ndarray]) -> None:
        self._values: list[np.ndarray] = []
        self._dense: list[np.ndarray | None] = []
        codes = np.zeros(len(columns[0]), np.int64)
        distinct = 1
        for column in columns:
            values, places = np.unique(column, return_inverse=True)
            codes = codes * len(values) + places
            distinct *= max(len(values), 1)
            dense = None
            if distinct >= 1 << 62:
                dense, codes = np.unique(codes, return_inverse=True)
                distinct = len(dense)
            self._values.append(values)
            self._dense.append(dense)
        self.order = np.argsort(codes, kind="stable")
        self._codes = codes[self.order]

    def ranges(self, keys: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The start in `order` of each key's rows, and their number."""
        codes = np.zeros(len(keys[0]), np.int64)
        known = np.ones(len(codes), bool)
        for key, values, dense in zip(keys, self._values, self._dense, strict=True):
            codes = codes * len(values) + _positions(values, key, known)
            if dense is not None:
                codes = _positions(dense, codes, known)
        starts = np.searchsorted(self._codes, codes, "left")
        ends = np.searchsorted(self._codes, codes, "right")
        return starts, np.where(known, ends - starts, 0)


def _positions(values: np.ndarray, keys: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The places of keys among sorted values; clears `known` where there is none."""
    if not len(values):
        known[:] = False
        return np.zeros(len(keys), np.int64)
    places = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    known &= values[places] == keys
    return places


class Stored:
    """One relation. `ranks`, where there are any, are the iterations at which its rows appear (int32)."""

    def __init__(self, columns: Sequence[np.ndarray], rows: int, ranks: np.ndarray | None = None) -> None:
        self.columns = tuple(columns)
        self.rows = rows
        self.ranks = ranks
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._scans = 0

    def pairs(self, places: tuple[int, ...], keys: Sequence[np.ndarray], count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All pairs of the number of a key (there are `count`) and a row whose columns `places` have its values."""
        if not self.rows or not count:
            return
        if not places:
            yield from self._all(count)
        elif places not in self._indexes and count == 1 and self._scans < SCANS:
            self._scans += 1
            found = self._scan(places, keys)
            yield np.zeros(len(found), np.int64), found
        else:
            yield from self._indexed(self._index(places), keys)

    def find(self, row: tuple[int, ...]) -> int | None:
        """The position of the row."""
        everywhere = tuple(range(len(self.columns)))
        keys = [np.array([word], np.int64) for word in row]
        for _, found in self.pairs(everywhere, keys, 1):
            if len(found):
                return int(found[0])
        return None

    def row(self, place: int) -> tuple[int, ...]:
        return tuple(int(column[place]) for column in self.columns)

    def estimate(self, bound: int) -> float:
        """About how many rows have given values in `bound` of the columns."""
        free = len(self.columns) - bound
        return 1.0 if not free else float(self.rows) ** (free / len(self.columns))

    def _index(self, places: tuple[int, ...]) -> Index:
        if places not in self._indexes:
            self._indexes[places] = Index([self.columns[c] for c in places])
        return self._indexes[places]

    def _scan(self, places: tuple[int, ...], keys: Sequence[np.ndarray]) -> np.ndarray:
        mask = np.ones(self.rows, bool)
        for place, key in zip(places, keys, strict=True):
            mask &= self.columns[place] == key[0]
        return np.flatnonzero(mask)

    def _all(self, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        step = max(BLOCK // self.rows, 1)
        for low in range(0, count, step):
            numbers = np.arange(low, min(low + step, count))
            yield np.repeat(numbers, self.rows), np.tile(np.arange(self.rows), len(numbers))

    def _indexed(self, index: Index, keys: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        starts, counts = index.ranges(keys)
        ends = np.cumsum(counts)
        low = 0
        while low < len(counts):
            before = int(ends[low - 1]) if low else 0
            high = max(int(np.searchsorted(ends, before + BLOCK, "right")), low + 1)
            numbers = np.repeat(np.arange(low, high), counts[low:high])
            firsts = np.repeat(starts[low:high] - (ends[low:high] - counts[low:high]) + before, counts[low:high])
            yield numbers, index.order[firsts + np.arange(len(numbers))]
            low = high
