"""Core numbers of a graph that changes, from what the changes touch.

The core number of a vertex is the greatest k for which it is in a part of the graph where all have k neighbours or more.
Kernels keep the numbers and an order of the vertices by which most edges that come change nothing (kernels/graphs). A commit
that changes much of the graph, or takes too long, has all vertices peeled again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.graphs import core_changes, core_order, neighbours, peeling
from dlog.engine.runtime.storage.native import Struct
from dlog.graphs.adjacency import distinct_pairs
from dlog.graphs.changing import Edited
from dlog.graphs.former_values import FormerValues
from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered
from dlog.graphs.running import Columns

GRAPH_PER_CHANGE = 8
"""Of so many arcs one may come or go in a commit; where more do, peeling all vertices again costs less."""
WORK_PER_ITEM = 40
"""Entries that a commit may look at for each vertex and arc: in that time about, all are peeled again."""
MIN_WORK = 10_000
LEVELS = 64
"""Core numbers that there is room for at first."""
SPARE_ENTRIES = 1024
"""Room in a new pool, beside a quarter of what it holds: two vertices with few neighbours take eight."""
BY_VERTEX = {
    L.cores.starts: np.int64,
    L.cores.counts: np.int32,
    L.cores.rooms: np.int32,
    L.cores.numbers: np.int64,
    L.cores.later: np.int32,
    L.cores.labels: np.int64,
    L.cores.before: np.int32,
    L.cores.after: np.int32,
    L.cores.marks: np.int32,
    L.cores.earlier: np.int32,
    L.cores.heap: np.int32,
    L.cores.candidates: np.int32,
    L.cores.queue: np.int32,
    L.cores.changed: np.int32,
    L.cores.former: np.int32,
}
"""The kernels' arrays that have a place for each vertex."""


class LiveCores:
    """The core number of each vertex."""

    maintained = True

    def __init__(self, graph: Numbered) -> None:
        self._former = FormerValues()
        self._begin(graph)

    # --------------------------------------------------------------------------------------------------------- as a follower

    def rows(self) -> Columns:
        return np.arange(self._vertices), self._numbers

    def changes(self) -> Columns:
        return self._former.changes(self._numbers)

    def prepared(self, edited: Edited) -> Edited:
        return edited

    def close(self) -> None:
        return None

    def advance(self, edited: Edited, vertices: Codes, live: Any) -> None:
        self._former = FormerValues()
        self._former.come(vertices)
        removed, added = _ends(edited.removed), _ends(edited.added)
        few = (len(removed[0]) + len(added[0])) * GRAPH_PER_CHANGE <= self._arcs
        self._grow(self._vertices + len(vertices))
        done = few and self._remove(*removed) and self._add(*added)
        changed = self._arrays[L.cores.changed][: self._struct[L.cores.changed_count]].astype(np.int64)
        self._former.were(changed, self._arrays[L.cores.former][changed].astype(np.int64) - 1)
        if done:
            core_order.forget_changes(self._struct.address)
            self._arcs += len(added[0]) - len(removed[0])
        else:
            before = self._numbers.copy()
            self._begin(live.numbered)
            changed = np.flatnonzero(self._numbers != before)
            self._former.were(changed, before[changed])

    # --------------------------------------------------------------------------------------------------------------- numbers

    @property
    def _vertices(self) -> int:
        return self._struct[L.cores.vertices]

    @property
    def _numbers(self) -> Codes:
        return self._arrays[L.cores.numbers][: self._vertices]

    def _begin(self, graph: Numbered) -> None:
        """Peels all vertices; they are put in order as they go."""
        vertices, self._arcs = graph.vertices, len(graph.src)
        self._struct = Struct(L.cores.size)
        self._arrays: dict[int, np.ndarray] = {}
        self._make_room(vertices)
        self._struct[L.cores.vertices] = vertices
        offsets, entries = _entries(vertices, graph.src, graph.dst)
        self._take_pool(np.concatenate([entries, np.empty(len(entries) // 4 + SPARE_ENTRIES, np.int64)]))
        self._struct[L.cores.pool_size] = len(entries)
        self._arrays[L.cores.starts][:vertices] = offsets[:-1]
        for field in (L.cores.counts, L.cores.rooms):
            self._arrays[field][:vertices] = np.diff(offsets)
        self._numbers[:], order, places = _peel(offsets, entries >> 2)
        self._take_levels(int(self._numbers.max(initial=0)) + LEVELS)
        core_order.order_vertices(self._struct.address, order.ctypes.data, places.ctypes.data)

    def _remove(self, src: Codes, dst: Codes) -> bool:
        """Whether that took no longer than it is worth."""
        self._struct[L.cores.limit] = WORK_PER_ITEM * (self._vertices + self._arcs) + MIN_WORK
        return bool(core_changes.remove_arcs(self._struct.address, *_addresses((src, dst)), len(src)))

    def _add(self, src: Codes, dst: Codes) -> bool:
        """Whether that took no longer than it is worth."""
        done, addresses = 0, _addresses((src, dst))
        while 0 <= (done := core_changes.add_arcs(self._struct.address, *addresses, done, len(src))) < len(src):
            self._widen()
        return done >= 0

    def _grow(self, vertices: int) -> None:
        """Takes in vertices without edges."""
        if vertices > len(self._arrays[L.cores.numbers]):
            self._make_room(vertices + vertices // 2)
        begin = self._vertices
        self._struct[L.cores.vertices] = vertices
        core_order.put_new(self._struct.address, begin, vertices)

    # ---------------------------------------------------------------------------------------------------------------- memory

    def _make_room(self, vertices: int) -> None:
        for field, dtype in BY_VERTEX.items():
            made, held = np.zeros(vertices, dtype), self._arrays.get(field, np.empty(0, dtype))
            made[: len(held)] = held
            self._take(field, made)

    def _widen(self) -> None:
        """Gives neighbours and levels more room: one of them had none."""
        held = int(self._arrays[L.cores.counts].sum())
        pool = np.empty(held + held // 2 + SPARE_ENTRIES, np.int64)
        neighbours.move_slabs(self._struct.address, pool.ctypes.data, len(pool))
        self._take_pool(pool)
        if int(self._numbers.max(initial=0)) + 2 > self._struct[L.cores.levels]:
            self._take_levels(2 * self._struct[L.cores.levels])

    def _take_pool(self, pool: np.ndarray) -> None:
        self._take(L.cores.pool, pool)
        self._struct[L.cores.pool_capacity] = len(pool)

    def _take_levels(self, levels: int) -> None:
        for field in (L.cores.first, L.cores.last):
            made, held = np.zeros(levels, np.int32), self._arrays.get(field, np.empty(0, np.int32))
            made[: len(held)] = held
            self._take(field, made)
        self._struct[L.cores.levels] = levels

    def _take(self, field: int, array: np.ndarray) -> None:
        self._arrays[field] = array
        self._struct[field] = int(array.ctypes.data)


def peeled(vertices: int, src: Codes, dst: Codes) -> Codes:
    """The core number of each vertex. Directions, loops and parallel edges do not count."""
    offsets, entries = _entries(vertices, src, dst)
    return _peel(offsets, entries >> 2)[0]


def _peel(offsets: Codes, others: Codes) -> tuple[Codes, Codes, Codes]:
    """The core number of each vertex, the vertices in the order in which they are peeled off, and the place of each therein."""
    vertices = len(offsets) - 1
    numbers, order, places = (np.empty(vertices, np.int64) for _ in range(3))
    arrays = offsets, others, numbers, order, places, np.zeros(vertices + 1, np.int64)
    peeling.peel(vertices, *(array.ctypes.data for array in arrays))
    return numbers, order, places


def _entries(vertices: int, src: Codes, dst: Codes) -> tuple[Codes, Codes]:
    """The neighbours of all vertices as kernels have them (kernels/graphs/neighbours.py), and where each one's begin."""
    other = src != dst
    src, dst = distinct_pairs(src[other], dst[other])
    arcs = np.repeat(np.array([neighbours.OUT, neighbours.IN]), len(src))
    ends, others = np.concatenate([src, dst]), np.concatenate([dst, src])
    order = np.lexsort((others, ends))
    ends, others, arcs = ends[order], others[order], arcs[order]
    new = np.ones(len(ends), np.bool_)
    new[1:] = (ends[1:] != ends[:-1]) | (others[1:] != others[:-1])
    first = np.flatnonzero(new)
    both = np.bitwise_or.reduceat(arcs, first) if len(first) else arcs
    return np.searchsorted(ends[first], np.arange(vertices + 1)), others[first] << 2 | both


def _ends(graph: Numbered) -> tuple[Codes, Codes]:
    """The ends of edges as kernels read them."""
    return np.ascontiguousarray(graph.src, np.int64), np.ascontiguousarray(graph.dst, np.int64)


def _addresses(arrays: tuple[Codes, Codes]) -> tuple[int, int]:
    return int(arrays[0].ctypes.data), int(arrays[1].ctypes.data)
