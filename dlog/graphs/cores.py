"""Core numbers of a graph that changes, from what the changes touch.

The core number of a vertex is the greatest one of which so many neighbours have it or a greater: from any numbers that are none
too small, replacing a vertex's by what its neighbours allow (the h-index of theirs) leads to the core numbers, in whatever
order (Lue, Zhou, Zhang and Stanley 2016).

Edges that go. No core number grows, so the present ones are such numbers; only vertices near one that fell are looked at again.

Edges that come. Of edges without a common end, a *matching*, none raises a core number by more than one. A vertex rises only
with others of its own number, along edges between them, from an end of a new edge with the lesser number of its two; and each
of them has more neighbours of its number or a greater one than the number says (the traversal of Sariyuece and others 2013, for
a matching at once). So these are raised, and fall back where their neighbours do not allow it.

Where this takes more than a share of the graph, all vertices are peeled again (kernels/static/cores.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.engine.kernels.static import cores as K
from dlog.graphs.adjacency import Adjacency, distinct, distinct_pairs
from dlog.graphs.changing import Edited
from dlog.graphs.former import FormerValues
from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered
from dlog.graphs.running import Columns

GRAPH_PER_WORK = 8
"""A commit may look at one in so many of the vertices and edges; beyond, peeling all costs less."""
MIN_WORK = 5_000
WORK_PER_STEP = 100
"""What a step over some vertices costs whatever it looks at, as vertices."""


class _TooMuch(Exception):
    """More was looked at than a change is worth."""


class LiveCores:
    """The core number of each vertex."""

    maintained = True

    def __init__(self, graph: Numbered) -> None:
        self._edges = Adjacency(graph.src, graph.dst)
        self._number = peeled(graph.vertices, graph.src, graph.dst)
        self._raised = np.zeros(graph.vertices, np.bool_)
        self._former = FormerValues()
        self._size = graph.vertices + len(graph.src)
        self._work = 0

    # --------------------------------------------------------------------------------------------------------- as a follower

    def rows(self) -> Columns:
        return np.arange(len(self._number)), self._number

    def changes(self) -> Columns:
        return self._former.changes(self._number)

    def prepared(self, edited: Edited) -> Edited:
        return edited

    def close(self) -> None:
        return None

    def advance(self, edited: Edited, vertices: Codes, live: Any) -> None:
        self._former, self._work = FormerValues(), 0
        self._grow(vertices)
        removed, added = edited.removed, edited.added
        self._size += len(added.src) - len(removed.src)
        self._edges.remove(removed.src, removed.dst)
        left = _pairs(added.src, added.dst)
        try:
            self._fall(distinct(np.concatenate([removed.src, removed.dst])))
            while len(left[0]):
                edges, left = _matching(*left)
                self._edges.add(*edges)
                self._rise(*edges)
        except _TooMuch:
            self._edges.add(added.src, added.dst)
            graph: Numbered = live.numbered
            self._set(np.arange(graph.vertices), peeled(graph.vertices, graph.src, graph.dst))
        self._edges.add(added.src, added.dst)

    def _grow(self, vertices: Codes) -> None:
        self._former.come(vertices)
        self._number = np.concatenate([self._number, np.zeros(len(vertices), np.int64)])
        self._raised = np.zeros(len(self._number), np.bool_)
        self._size += len(vertices)

    # ------------------------------------------------------------------------------------------------------------- numbers

    def _set(self, vertices: Codes, numbers: Codes) -> None:
        moved = self._number[vertices] != numbers
        self._former.were(vertices[moved], self._number[vertices[moved]])
        self._number[vertices[moved]] = numbers[moved]

    def _neighbours(self, vertices: Codes) -> tuple[Codes, Codes]:
        """The pairs of some vertices, distinct and sorted, with their neighbours, by the vertex."""
        src, dst = self._edges.leaving(vertices)
        back, from_ = self._edges.reaching(vertices)
        pairs = _pairs(np.concatenate([src, from_]), np.concatenate([dst, back]))
        self._work += len(vertices) + len(src) + len(back) + WORK_PER_STEP
        if self._work > max(MIN_WORK, self._size // GRAPH_PER_WORK):
            raise _TooMuch
        return pairs

    def _fall(self, vertices: Codes) -> None:
        """Numbers that are too great at some vertices, and by that elsewhere, fall to what neighbours allow."""
        while len(vertices):
            ends, others = self._neighbours(vertices)
            before = self._number[vertices]
            allowed = np.minimum(before, _h_index(np.searchsorted(vertices, ends), self._number[others], len(vertices)))
            fell = allowed < before
            self._set(vertices[fell], allowed[fell])
            # A neighbour had one more of its number or a greater one, if it had this vertex.
            places = np.searchsorted(vertices, ends)
            near = fell[places] & (before[places] >= self._number[others]) & (self._number[others] > allowed[places])
            vertices = distinct(others[near])

    def _rise(self, src: Codes, dst: Codes) -> None:
        """Numbers that new edges without a common end raise."""
        lesser = np.minimum(self._number[src], self._number[dst])
        ends = np.concatenate([src, dst])
        front = distinct(ends[self._number[ends] == np.concatenate([lesser, lesser])])
        found: list[Codes] = []
        try:
            while len(front):
                ends, others = self._neighbours(front)
                places = np.searchsorted(front, ends)
                level = self._number[ends] == self._number[others]
                enough = self._number[others] >= self._number[ends]
                able = np.bincount(places[enough], minlength=len(front)) > self._number[front]
                self._raised[front] = True
                found.append(front[able])
                more = others[level & able[places]]
                front = distinct(more[~self._raised[more]])
        finally:
            self._raised[:] = False
        risen = np.sort(np.concatenate([np.empty(0, np.int64), *found]))
        self._set(risen, self._number[risen] + 1)
        self._fall(risen)


def peeled(vertices: int, src: Codes, dst: Codes) -> Codes:
    """The core number of each vertex. Directions, loops and parallel edges do not count."""
    ends, others = _pairs(np.concatenate([src, dst]), np.concatenate([dst, src]))
    offsets = np.searchsorted(ends, np.arange(vertices + 1))
    numbers, order, places = (np.empty(vertices, np.int64) for _ in range(3))
    arrays = offsets, others, numbers, order, places, np.zeros(vertices + 1, np.int64)
    K.peel(vertices, *(array.ctypes.data for array in arrays))
    return numbers


def _pairs(src: Codes, dst: Codes) -> tuple[Codes, Codes]:
    """The distinct pairs of different vertices, sorted."""
    other = src != dst
    return distinct_pairs(src[other], dst[other])


def _matching(src: Codes, dst: Codes) -> tuple[tuple[Codes, Codes], tuple[Codes, Codes]]:
    """Some edges without a common end, and the others: those are taken that come first at both of their ends."""
    ends = np.concatenate([src, dst])
    order = np.tile(np.arange(len(src)), 2)
    _, places = np.unique(ends, return_inverse=True)
    first = np.full(len(places), len(src))
    np.minimum.at(first, places, order)
    here = (first[places] == order).reshape(2, -1).all(axis=0)
    return (src[here], dst[here]), (src[~here], dst[~here])


def _h_index(places: Codes, values: Codes, count: int) -> Codes:
    """For each of `count` places the greatest h such that h of its values are h or more."""
    order = np.lexsort((-values, places))
    places, values = places[order], values[order]
    rank = np.arange(len(places)) - np.searchsorted(places, places)
    return np.bincount(places[values > rank], minlength=count)
