"""Strongly connected components of a graph that changes, from what the changes touch.

Edges that go. A component stays one as long as each edge that it lost has another way from its one end to the other. Searches
from both ends look for it, in turns, so that the smaller side decides. Where there is none, the side that came to its end has
no way to the rest (or none from it): it leaves, and is divided by itself. Whatever led through it must have another way now:
from every vertex with an edge to it to the ends of the edges that it lost. (An edge that must have another way is a *debt*.)

Edges that come. A new cycle has a new edge. All its vertices are found forward from the new heads, or backward from the new
tails, and the components of these vertices alone are those of the graph. The greatest component is one vertex in this, whose
edges nobody follows; a side that comes to its end without it has every cycle in it, and the other side is not looked at.

Where this takes more than a share of the graph, all is computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from dlog.graphs.adjacency import Adjacency, distinct
from dlog.graphs.changing import Edited, Growing
from dlog.graphs.former_values import FormerValues
from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered
from dlog.graphs.running import Columns

Components = Callable[[int, Codes, Codes], Codes]
"""The least vertex of the component of each of so many vertices, for edges between them."""

GRAPH_PER_WORK = 4
"""A commit may look at one in so many of the vertices and edges; beyond, computing all again costs less."""
MIN_WORK = 1000
MAX_DEBTS = 256
"""Pairs of vertices whose connection one side of a component leaves open; with more, the rest is divided anew."""
MAX_PYTHON_EDGES = 20_000
"""Edges up to which they are divided in Python; more are an engine's."""
FORWARD, BACKWARD = 1, 2
_NONE = np.empty(0, np.int64)


class _TooMuch(Exception):
    """More was looked at than a change is worth."""


class LiveComponents:
    """The least vertex of each vertex's component; `components` says it for a graph as a whole.

    `_part` is the number of each vertex's component, `_least` and `_size` are the least vertex and the size of each."""

    maintained = True

    def __init__(self, graph: Numbered, components: Components) -> None:
        self._components = components
        self._former = FormerValues()
        self._work = 0
        self._edges = Adjacency(graph.src, graph.dst)
        self._marks = np.zeros(graph.vertices, np.int8)
        self._count = graph.vertices + len(graph.src)
        self._number(components(graph.vertices, graph.src, graph.dst))

    def _number(self, least: Codes) -> None:
        """Gives all components numbers, from the least vertex of each vertex's one."""
        names, self._part, sizes = np.unique(least, return_inverse=True, return_counts=True)
        self._leasts, self._sizes = Growing(names), Growing(sizes)
        self._greatest = int(sizes.argmax()) if len(sizes) else -1

    @property
    def _least(self) -> Codes:
        return self._leasts.values

    @property
    def _size(self) -> Codes:
        return self._sizes.values

    # --------------------------------------------------------------------------------------------------------- as a follower

    def rows(self) -> Columns:
        return np.arange(len(self._part)), self._least[self._part]

    def changes(self) -> Columns:
        return self._former.changes(self._least[self._part])

    def prepared(self, edited: Edited) -> Edited:
        return edited

    def close(self) -> None:
        return None

    def advance(self, edited: Edited, vertices: Codes, live: Any) -> None:
        self._former, self._work = FormerValues(), 0
        self._grow(vertices)
        self._count += len(edited.added.src) - len(edited.removed.src)
        removed, added = edited.removed, edited.added
        self._edges.remove(removed.src, removed.dst)
        come = False
        try:
            self._divide(removed.src, removed.dst)
            self._edges.add(added.src, added.dst)
            come = True
            self._unite(added.src, added.dst)
            self._tidy()
        except _TooMuch:
            if not come:
                self._edges.add(added.src, added.dst)
            self._again(live.numbered)

    def _grow(self, vertices: Codes) -> None:
        if len(vertices):
            self._former.come(vertices)
            self._part = np.concatenate([self._part, self._new_parts(vertices, np.ones(len(vertices), np.int64))])
            self._marks = np.zeros(len(self._part), np.int8)
            self._count += len(vertices)

    def _tidy(self) -> None:
        """Forgets components without vertices when they are many, and looks for the greatest one again."""
        if len(self._least) > 2 * len(self._part) + MIN_WORK:
            self._number(self._least[self._part])

    def _again(self, graph: Numbered) -> None:
        now, least = self._least[self._part], self._components(graph.vertices, graph.src, graph.dst)
        moved = np.flatnonzero(now != least)
        self._former.were(moved, now[moved])
        self._number(least)

    # ------------------------------------------------------------------------------------------------------------ components

    def _new_parts(self, least: Codes, sizes: Codes) -> Codes:
        """The numbers of new components."""
        first = len(self._least)
        self._leasts.extend(least)
        self._sizes.extend(sizes)
        return np.arange(first, first + len(least))

    def _move(self, vertices: Codes, parts: Codes) -> None:
        """Vertices become those of other components, whose sizes are the caller's."""
        self._former.were(vertices, self._least[self._part[vertices]])
        self._part[vertices] = parts

    def _rename(self, part: int, least: int) -> None:
        members = np.flatnonzero(self._part == part)
        self._former.were(members, np.full(len(members), self._least[part]))
        self._least[part] = least

    def _follow(self, vertices: Codes, way: int) -> tuple[Codes, Codes]:
        """The edges that leave or reach some vertices, distinct ones: the ends there, and the other ends."""
        src, dst = self._edges.leaving(vertices) if way == FORWARD else self._edges.reaching(vertices)
        self._work += len(vertices) + len(src)
        if self._work > max(MIN_WORK, self._count // GRAPH_PER_WORK):
            raise _TooMuch
        return (src, dst) if way == FORWARD else (dst, src)

    def _divided(self, vertices: Codes, src: Codes, dst: Codes) -> Codes:
        """A number for the component of each of some sorted vertices, from the edges between them."""
        tails, heads = np.searchsorted(vertices, src), np.searchsorted(vertices, dst)
        if len(src) > MAX_PYTHON_EDGES:
            return np.unique(self._components(len(vertices), tails, heads), return_inverse=True)[1]
        groups = np.arange(len(vertices))
        found = nx.DiGraph(list(zip(tails.tolist(), heads.tolist(), strict=True)))
        for group in nx.strongly_connected_components(found):
            members = np.fromiter(group, np.int64, len(group))
            groups[members] = members.min()
        return np.unique(groups, return_inverse=True)[1]

    # ------------------------------------------------------------------------------------------------------- edges that go

    def _divide(self, src: Codes, dst: Codes) -> None:
        """Divides components that are none any more without these edges."""
        inside = (self._part[src] == self._part[dst]) & (src != dst)
        src, dst = src[inside], dst[inside]
        parts = self._part[src]
        for part in distinct(parts).tolist():
            here = parts == part
            self._repair(part, set(zip(src[here].tolist(), dst[here].tolist(), strict=True)))

    def _repair(self, part: int, debts: set[tuple[int, int]]) -> None:
        """Sees to a component that must have another way for each of its debts."""
        while debts:
            tail, head = debt = debts.pop()
            side, way = self._search(tail, head, part)
            if not len(side):
                continue
            left = self._debts_without(side, way, {debt, *debts})
            self._leave(part, side)
            if left is None:
                self._leave(part, np.flatnonzero(self._part == part))
                return
            debts = left

    def _search(self, tail: int, head: int, part: int) -> tuple[Codes, int]:
        """All that the tail of an edge reaches in a component, or all from which its head is reached, whichever is found first,
        and which of the two; nothing if there is a way from the one to the other."""
        fronts = {FORWARD: np.array([tail]), BACKWARD: np.array([head])}
        seen = {way: [front] for way, front in fronts.items()}
        try:
            for way, front in fronts.items():
                self._marks[front] = way
            while True:
                way = min(fronts, key=lambda w: len(fronts[w]))
                _, ends = self._follow(fronts[way], way)
                ends = ends[self._part[ends] == part]
                if (self._marks[ends] == FORWARD + BACKWARD - way).any():
                    return _NONE, way
                fronts[way] = front = distinct(ends[self._marks[ends] == 0])
                if not len(front):
                    return np.sort(np.concatenate(seen[way])), way
                self._marks[front] = way
                seen[way].append(front)
        finally:
            for found in (*seen[FORWARD], *seen[BACKWARD]):
                self._marks[found] = 0

    def _debts_without(self, side: Codes, way: int, debts: set[tuple[int, int]]) -> set[tuple[int, int]] | None:
        """The debts of a component without one side of it; None where they are many. What is found forward has no edge to the
        rest, what is found backward none from it."""
        part, gone = self._part[side[0]], set(side.tolist())
        _, ends = self._follow(side, FORWARD + BACKWARD - way)
        ends = ends[self._part[ends] == part]
        near = set(ends.tolist()) - gone
        into = {a for a, b in debts if a not in gone and b in gone} | (near if way == FORWARD else set())
        out_of = {b for a, b in debts if a in gone and b not in gone} | (near if way == BACKWARD else set())
        if len(into) * len(out_of) > MAX_DEBTS:
            return None
        kept = {(a, b) for a, b in debts if a not in gone and b not in gone}
        return kept | {(a, b) for a in into for b in out_of if a != b}

    def _leave(self, part: int, side: Codes) -> None:
        """Vertices of a component, sorted, are divided by themselves; the rest is renamed if it was named after one of them."""
        src, dst = self._follow(side, FORWARD)
        places = np.minimum(np.searchsorted(side, dst), len(side) - 1)
        inner = side[places] == dst
        groups = self._divided(side, src[inner], dst[inner])
        _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
        self._move(side, self._new_parts(side[first], sizes)[groups])
        self._size[part] -= len(side)
        least = self._least[part]
        if self._size[part] and self._part[least] != part:
            self._rename(part, int(np.flatnonzero(self._part == part)[0]))

    # ----------------------------------------------------------------------------------------------------- edges that come

    def _unite(self, src: Codes, dst: Codes) -> None:
        """Unites components that are one with these edges."""
        across = self._part[src] != self._part[dst]
        if not across.any():
            return
        vertices, joins = self._around(distinct(src[across]), distinct(dst[across]))
        if len(vertices):
            self._close_cycles(vertices, joins)

    def _around(self, tails: Codes, heads: Codes) -> tuple[Codes, bool]:
        """Vertices, sorted, among which all cycles are that some new edges close, and whether the greatest component may be on
        them, too. Of this one no vertex is among them."""
        fronts: dict[int, Codes] = {}
        seen: dict[int, list[Codes]] = {}
        met: dict[int, bool] = {}
        try:
            for way, front in ((FORWARD, heads), (BACKWARD, tails)):
                met[way] = False
                seen[way] = []
                fronts[way] = self._fresh(front, way, seen, met)
            while fronts:
                way = min(fronts, key=lambda w: len(fronts[w]))
                if len(fronts[way]):
                    _, ends = self._follow(fronts[way], way)
                    fronts[way] = self._fresh(distinct(ends), way, seen, met)
                    continue
                del fronts[way]
                if not met[way]:
                    return np.sort(np.concatenate([_NONE, *seen[way]])), False
            return distinct(np.concatenate([_NONE, *seen[FORWARD], *seen[BACKWARD]])), True
        finally:
            for found in (f for listed in seen.values() for f in listed):
                self._marks[found] = 0

    def _fresh(self, ends: Codes, way: int, seen: dict[int, list[Codes]], met: dict[int, bool]) -> Codes:
        """The vertices among some that a side has not seen; it does not go on from the greatest component."""
        great = self._part[ends] == self._greatest
        met[way] = met[way] or bool(great.any())
        ends = ends[~great]
        ends = ends[self._marks[ends] & way == 0]
        self._marks[ends] |= way
        seen[way].append(ends)
        return ends

    def _close_cycles(self, vertices: Codes, joins: bool) -> None:
        """Components of these vertices, all of which are here but of the greatest one, become one where they are on a cycle."""
        src, dst = self._follow(vertices, FORWARD)
        if joins:
            back, from_ = self._follow(vertices, BACKWARD)
            great = self._part[from_] == self._greatest
            src, dst = np.concatenate([src, from_[great]]), np.concatenate([dst, back[great]])
        # The greatest component is the vertex behind all others.
        outside = len(self._part)
        src = np.where(self._part[src] == self._greatest, outside, src)
        dst = np.where(self._part[dst] == self._greatest, outside, dst)
        nodes = np.append(vertices, outside)
        places = np.minimum(np.searchsorted(nodes, dst), len(nodes) - 1)
        inner = nodes[places] == dst
        groups = self._divided(nodes, src[inner], dst[inner])
        order = np.argsort(groups, kind="stable")
        ends = np.flatnonzero(np.diff(groups[order])) + 1
        sizes = np.diff(np.concatenate([[0], ends, [len(order)]]))
        starts = np.concatenate([[0], ends])
        for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
            self._join(nodes[order[start : start + size]], outside)

    def _join(self, members: Codes, outside: int) -> None:
        """All components that the vertices are of become one."""
        great = bool(members[-1] == outside)
        members = members[:-1] if great else members
        parts = np.unique(self._part[members])
        parts = np.append(parts, self._greatest) if great else parts
        if len(parts) < 2:
            return
        into = self._greatest if great else int(parts[self._size[parts].argmax()])
        least = int(self._least[parts].min())
        moving = members[self._part[members] != into]
        staying = members[self._part[members] == into]
        if least != self._least[into]:
            if great:
                self._rename(into, least)
            else:
                self._former.were(staying, self._least[self._part[staying]])
                self._least[into] = least
        self._move(moving, np.full(len(moving), into))
        self._size[into] = self._size[parts].sum()
        self._size[parts[parts != into]] = 0
