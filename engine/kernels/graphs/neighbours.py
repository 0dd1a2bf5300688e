"""The neighbours of each vertex of a graph that changes: slabs of a pool, an entry for each neighbour.

Two vertices are neighbours while an arc leads from one to the other. An entry says which of the two arcs are there, so that it
goes with the last of them.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.graph_structs import Cores
from dlog.engine.kernels.machine_structs import Words

OUT, IN = 1, 2
"""The arcs to a neighbour, and from it."""
MIN_ROOM = 4
ENTRIES_COMPARED_TOGETHER = 16


@kernel
def neighbour_at(cores: Cores, at):
    return cores.pool[at] >> 2


@kernel
def find_entry(cores: Cores, vertex, other):
    """Where a vertex has a neighbour in the pool, or -1. Many are asked together, without a branch."""
    pool = cores.pool
    at = cores.starts[vertex]
    end = at + cores.counts[vertex]
    cores.work += cores.counts[vertex] // ENTRIES_COMPARED_TOGETHER
    while at + ENTRIES_COMPARED_TOGETHER <= end:
        hits = 0
        for i in range(ENTRIES_COMPARED_TOGETHER):
            hits += 1 if pool[at + i] >> 2 == other else 0
        if hits != 0:
            break
        at += ENTRIES_COMPARED_TOGETHER
    while at < end:
        if pool[at] >> 2 == other:
            return at
        at += 1
    return -1


@kernel
def may_enter(cores: Cores, vertex):
    """Sees to it that there is room for one more neighbour; false where the pool has none."""
    count = cores.counts[vertex]
    if count < cores.rooms[vertex]:
        return True
    room = max(MIN_ROOM, count + (count >> 1))
    start = cores.pool_size
    if start + room > cores.pool_capacity:
        return False
    pool = cores.pool
    for i in range(count):
        pool[start + i] = pool[cores.starts[vertex] + i]
    cores.starts[vertex] = start
    cores.rooms[vertex] = room
    cores.pool_size = start + room
    return True


@kernel
def enter_arc(cores: Cores, vertex, other, arc):
    """Notes an arc at one of its ends, where there is room; whether it makes a neighbour."""
    at = find_entry(cores, vertex, other)
    if at >= 0:
        cores.pool[at] |= arc
        return False
    cores.pool[cores.starts[vertex] + cores.counts[vertex]] = other << 2 | arc
    cores.counts[vertex] += 1
    return True


@kernel
def drop_arc(cores: Cores, vertex, other, arc):
    """Forgets an arc at one of its ends; whether a neighbour goes with it."""
    at = find_entry(cores, vertex, other)
    if at < 0:
        return False
    pool = cores.pool
    left = pool[at] & ~arc
    pool[at] = left
    if left & (OUT | IN) != 0:
        return False
    last = cores.counts[vertex] - 1
    pool[at] = pool[cores.starts[vertex] + last]
    cores.counts[vertex] = last
    return True


@entry()
def move_slabs(cores: Cores, pool: Words, capacity):
    """Moves all slabs to another pool, each with room for a quarter more, which has room for that."""
    size = 0
    for vertex in range(cores.vertices):
        start = cores.starts[vertex]
        count = cores.counts[vertex]
        for i in range(count):
            pool[size + i] = cores.pool[start + i]
        cores.starts[vertex] = size
        cores.rooms[vertex] = count + (count >> 2)
        size += cores.rooms[vertex]
    cores.pool = pool
    cores.pool_size = size
    cores.pool_capacity = capacity
