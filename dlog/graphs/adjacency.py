"""The edges at a vertex of a graph that changes: pairs of ends, sorted, and the few that came since."""

from __future__ import annotations

import numpy as np

from dlog.graphs.names import Codes

_SHIFT = np.int64(32)
_LOW = (np.int64(1) << _SHIFT) - 1
MAX_UNSORTED_PAIRS = 4096
"""Pairs (or an eighth of all, if more) looked up beside the sorted ones before they are sorted in: trades look-ups against
sorting."""


class Adjacency:
    """The distinct edges of a graph, by the end that they leave and by the one that they reach."""

    def __init__(self, src: Codes, dst: Codes) -> None:
        self._leaving, self._reaching = _Pairs(src, dst), _Pairs(dst, src)

    def remove(self, src: Codes, dst: Codes) -> None:
        """Edges that are not there do not matter."""
        self._leaving.remove(src, dst)
        self._reaching.remove(dst, src)

    def add(self, src: Codes, dst: Codes) -> None:
        """Edges that are there do not matter."""
        self._leaving.add(src, dst)
        self._reaching.add(dst, src)

    def leaving(self, vertices: Codes) -> tuple[Codes, Codes]:
        """The ends of all edges that leave some of the vertices, distinct ones."""
        return self._leaving.of(vertices)

    def reaching(self, vertices: Codes) -> tuple[Codes, Codes]:
        """The ends of all edges that reach some of the vertices, distinct ones."""
        dst, src = self._reaching.of(vertices)
        return src, dst


class _Pairs:
    """Pairs of vertices, found by the first."""

    def __init__(self, first: Codes, second: Codes) -> None:
        self._sort_in(distinct(_key(first, second)))

    def _sort_in(self, keys: Codes) -> None:
        self._keys = keys
        self._there = np.ones(len(keys), np.bool_)
        self._removed_count = 0
        self._recent = np.empty(0, np.int64)

    def remove(self, first: Codes, second: Codes) -> None:
        keys = distinct(_key(first, second))
        places = _places(self._keys, keys)
        places = places[self._there[places]]
        self._there[places] = False
        self._removed_count += len(places)
        self._recent = np.delete(self._recent, _places(self._recent, keys))
        self._tidy()

    def add(self, first: Codes, second: Codes) -> None:
        keys = distinct(_key(first, second))
        places = _places(self._keys, keys)
        self._removed_count -= int(len(places) - self._there[places].sum())
        self._there[places] = True
        more = np.setdiff1d(keys, self._keys[places], assume_unique=True)
        self._recent = np.union1d(self._recent, more) if len(more) else self._recent
        self._tidy()

    def _tidy(self) -> None:
        if len(self._recent) + self._removed_count > max(MAX_UNSORTED_PAIRS, len(self._keys) // 8):
            self._sort_in(np.sort(np.concatenate([self._keys[self._there], self._recent])))

    def of(self, vertices: Codes) -> tuple[Codes, Codes]:
        """The pairs with some of the vertices, distinct ones, as first."""
        rows = _ranges(self._keys, vertices)
        keys = self._keys[rows[self._there[rows]]]
        if len(self._recent):
            keys = np.concatenate([keys, self._recent[_ranges(self._recent, vertices)]])
        return keys >> _SHIFT, keys & _LOW


def distinct(values: Codes) -> Codes:
    """The distinct ones, in their order; NumPy's `unique` goes by hashes, which takes several times as long."""
    values = np.sort(values)
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return values[new]


def distinct_pairs(first: Codes, second: Codes) -> tuple[Codes, Codes]:
    """The distinct pairs, in their order."""
    keys = distinct(_key(first, second))
    return keys >> _SHIFT, keys & _LOW


def _key(first: Codes, second: Codes) -> Codes:
    return first.astype(np.int64) << _SHIFT | second


def _places(keys: Codes, wanted: Codes) -> Codes:
    """The positions of the wanted ones among the sorted keys."""
    if not len(keys):
        return np.empty(0, np.int64)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.asarray(places[keys[places] == wanted], np.int64)


def _ranges(keys: Codes, vertices: Codes) -> Codes:
    """The positions of the sorted keys that begin with some of the vertices."""
    begin = np.searchsorted(keys, vertices << _SHIFT)
    lengths = np.searchsorted(keys, (vertices + 1) << _SHIFT) - begin
    total = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(total) + np.repeat(begin - starts, lengths), np.int64)
