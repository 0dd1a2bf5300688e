"""The speed of light: one hand-written loop per workload, with the data structure that suits it.

No engine can run these loops (they know their program); the ratio to them says how much is lost to generality.
Shapes: `left`, `right` are int32 columns of equal length; a CSR index is `(starts, targets)`, where the targets of `x` are
`targets[starts[x]:starts[x + 1]]`; a set of pairs is a bit matrix `seen` beside the columns of its members. As the loops know
their program, they also know a bound for their output; arrays that a kernel fills are that long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Column = NDArray[np.int32]
Csr = tuple[NDArray[np.int64], Column]

# Numba counts references to the arrays that a call passes, ten times the work of `add`, unless its memory manager is off; a
# kernel then cannot allocate: what surrounds the kernels does, and hands in arrays to be filled.
kernel = njit(cache=True, boundscheck=False, _nrt=False)

# -------------------------------------------------------------------------------------------------------------- indexes, sets


def column(capacity: int) -> Column:
    return np.empty(capacity, np.int32)


def bit_matrix(size: int) -> NDArray[np.uint64]:
    return np.zeros((size, (size + 63) // 64), np.uint64)


def index(size: int, keys: Column, values: Column) -> Csr:
    starts, targets = np.zeros(size + 1, np.int64), np.empty_like(values)
    fill_index(starts, targets, keys, values)
    return starts, targets


@kernel
def fill_index(starts, targets, keys, values):
    """Counting sort. Each start is kept one place to the right until its key's values are in place."""
    size = len(starts) - 1
    for key in keys:
        if key + 2 <= size:
            starts[key + 2] += 1
    for x in range(1, size + 1):
        starts[x] += starts[x - 1]
    for row in range(len(keys)):
        free = keys[row] + 1
        targets[starts[free]] = values[row]
        starts[free] += 1


@kernel
def add(seen, left, right, count, x, y):
    """Appends (x, y) unless it was seen; returns the new count."""
    bit = np.uint64(1) << np.uint64(y & 63)
    if seen[x, y >> 6] & bit == 0:
        seen[x, y >> 6] |= bit
        left[count] = x
        right[count] = y
        count += 1
    return count


# ------------------------------------------------------------------------------------------------------------------- graphs


@kernel
def closure(starts, targets, reached_from, left, right):
    """A breadth-first search from every node; `reached_from` is -1 everywhere."""
    count = 0
    for source in range(len(reached_from)):
        head = count
        for e in range(starts[source], starts[source + 1]):
            y = targets[e]
            if reached_from[y] != source:
                reached_from[y] = source
                left[count], right[count] = source, y
                count += 1
        while head < count:
            x = right[head]
            head += 1
            for e in range(starts[x], starts[x + 1]):
                y = targets[e]
                if reached_from[y] != source:
                    reached_from[y] = source
                    left[count], right[count] = source, y
                    count += 1
    return count


@kernel
def same_generation(starts, children, seen, left, right):
    count = 0
    for parent in range(len(starts) - 1):
        for i in range(starts[parent], starts[parent + 1]):
            for j in range(starts[parent], starts[parent + 1]):
                count = add(seen, left, right, count, children[i], children[j])
    head = 0
    while head < count:
        a, b = left[head], right[head]
        head += 1
        for i in range(starts[a], starts[a + 1]):
            for j in range(starts[b], starts[b + 1]):
                count = add(seen, left, right, count, children[i], children[j])
    return count


@kernel
def reachable(starts, targets, source, seen, queue):
    queue[0], seen[source] = source, True
    head, count = 0, 1
    while head < count:
        x = queue[head]
        head += 1
        for e in range(starts[x], starts[x + 1]):
            y = targets[e]
            if not seen[y]:
                seen[y] = True
                queue[count] = y
                count += 1
    return count


@kernel
def root(parent, x):
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@kernel
def components(left, right, parent):
    """Union-find; the smaller root stays, so that it is the label. At first each node is its own `parent`."""
    for row in range(len(left)):
        a, b = root(parent, left[row]), root(parent, right[row])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
    for x in range(len(parent)):
        parent[x] = root(parent, x)


class Entries(NamedTuple):
    """(node, distance) entries in linked lists, one list for each distance modulo the number of buckets."""

    first: NDArray[np.int64]
    following: NDArray[np.int64]
    node: Column
    dist: Column


@kernel
def distances(starts, weighted, source, dist, entry):
    """Dial's algorithm. `weighted`: 64-bit targets, the weight in the lower half. `dist` is far everywhere; `entry.first` is -1
    everywhere, and one longer than the heaviest weight."""
    buckets = len(entry.first)
    dist[source], entry.node[0], entry.dist[0], entry.following[0], entry.first[0] = 0, source, 0, -1, 0
    entries, pending, now = 1, 1, 0
    while pending > 0:
        bucket = now % buckets
        while entry.first[bucket] >= 0:
            e = entry.first[bucket]
            entry.first[bucket] = entry.following[e]
            pending -= 1
            x = entry.node[e]
            if entry.dist[e] != dist[x]:
                continue
            for f in range(starts[x], starts[x + 1]):
                y, d = weighted[f] >> 32, dist[x] + (weighted[f] & 0xFFFFFFFF)
                if d < dist[y]:
                    dist[y] = d
                    later = d % buckets
                    entry.node[entries], entry.dist[entries] = y, d
                    entry.following[entries], entry.first[later] = entry.first[later], entries
                    entries += 1
                    pending += 1
        now += 1


@kernel
def orient(low, high, degree):
    """Turns each edge, in place, to lead from the end with fewer neighbours to the one with more."""
    for row in range(len(low)):
        degree[low[row]] += 1
        degree[high[row]] += 1
    for row in range(len(low)):
        a, b = low[row], high[row]
        if degree[a] > degree[b] or (degree[a] == degree[b] and a > b):
            low[row], high[row] = b, a


@kernel
def triangles(starts, targets, neighbour_of, out):
    """`starts, targets` index the oriented edges; `neighbour_of` is -1 everywhere; `out` has three rows."""
    count = 0
    for x in range(len(neighbour_of)):
        for e in range(starts[x], starts[x + 1]):
            neighbour_of[targets[e]] = x
        for e in range(starts[x], starts[x + 1]):
            y = targets[e]
            for f in range(starts[y], starts[y + 1]):
                z = targets[f]
                if neighbour_of[z] == x:
                    out[0, count], out[1, count], out[2, count] = x, y, z
                    count += 1
    return count


# --------------------------------------------------------------------------------------------------------- pointer analyses


class Pairs(NamedTuple):
    """A growing relation: its members, and lists of the processed ones by left and by right value."""

    seen: NDArray[np.uint64]
    left: Column
    right: Column
    first_by_left: NDArray[np.int64]
    next_by_left: NDArray[np.int64]
    first_by_right: NDArray[np.int64]
    next_by_right: NDArray[np.int64]


def pairs(size: int, capacity: int) -> Pairs:
    first, following = (np.full((2, size), -1, np.int64), np.empty((2, capacity), np.int64))
    return Pairs(bit_matrix(size), column(capacity), column(capacity), first[0], following[0], first[1], following[1])


@kernel
def link(relation, member):
    """Enters a member into both lists; returns its values."""
    x, y = relation.left[member], relation.right[member]
    relation.next_by_left[member] = relation.first_by_left[x]
    relation.first_by_left[x] = member
    relation.next_by_right[member] = relation.first_by_right[y]
    relation.first_by_right[y] = member
    return x, y


@kernel
def insert(relation, count, x, y):
    return add(relation.seen, relation.left, relation.right, count, x, y)


@kernel
def copy_all(points, copies, count, copied, source, target):
    """A new copy edge: what `source` points to so far goes to `target`, and the edge is kept for what comes later."""
    before = copied
    copied = insert(copies, copied, source, target)
    if copied > before:
        link(copies, before)
        member = points.first_by_left[source]
        while member >= 0:
            count = insert(points, count, target, points.right[member])
            member = points.next_by_left[member]
    return count, copied


@kernel
def points_to(pointer, target, assign, load, store, points, copies):
    """`assign`: targets by source; `load` (x = *y): x by y; `store` (*x = y): y by x. Loads and stores make `copies`."""
    count, copied, head = 0, 0, 0
    for row in range(len(pointer)):
        count = insert(points, count, pointer[row], target[row])
    while head < count:
        y, o = link(points, head)
        head += 1
        for e in range(assign[0][y], assign[0][y + 1]):
            count = insert(points, count, assign[1][e], o)
        edge = copies.first_by_left[y]
        while edge >= 0:
            count = insert(points, count, copies.right[edge], o)
            edge = copies.next_by_left[edge]
        for e in range(load[0][y], load[0][y + 1]):
            count, copied = copy_all(points, copies, count, copied, o, load[1][e])
        for e in range(store[0][y], store[0][y + 1]):
            count, copied = copy_all(points, copies, count, copied, store[1][e], o)
    return count


@kernel
def flow_step(flow, memory, value, flows, values, x, y):
    """What value_flow(x, y) gives together with all that was processed before it."""
    m = flow.first_by_left[y]  # value_flow(x, b) :- value_flow(x, y), value_flow(y, b).
    while m >= 0:
        flows = insert(flow, flows, x, flow.right[m])
        m = flow.next_by_left[m]
    m = flow.first_by_right[x]  # value_flow(a, y) :- value_flow(a, x), value_flow(x, y).
    while m >= 0:
        flows = insert(flow, flows, flow.left[m], y)
        m = flow.next_by_right[m]
    m = flow.first_by_left[x]  # value_alias(y, b) :- value_flow(x, y), value_flow(x, b).  And its mirror image.
    while m >= 0:
        values = insert(value, values, y, flow.right[m])
        values = insert(value, values, flow.right[m], y)
        m = flow.next_by_left[m]
    m = memory.first_by_left[x]  # value_alias(y, b) :- value_flow(x, y), memory_alias(x, w), value_flow(w, b).
    while m >= 0:
        n = flow.first_by_left[memory.right[m]]
        while n >= 0:
            values = insert(value, values, y, flow.right[n])
            n = flow.next_by_left[n]
        m = memory.next_by_left[m]
    m = memory.first_by_right[x]  # value_alias(a, y) :- value_flow(z, a), memory_alias(z, x), value_flow(x, y).
    while m >= 0:
        n = flow.first_by_left[memory.left[m]]
        while n >= 0:
            values = insert(value, values, flow.right[n], y)
            n = flow.next_by_left[n]
        m = memory.next_by_right[m]
    return flows, values


@kernel
def memory_step(flow, value, assign, flows, values, x, y):
    """What memory_alias(x, y) gives together with all that was processed before it."""
    for e in range(assign[0][x], assign[0][x + 1]):  # value_flow(a, y) :- assign(a, x), memory_alias(x, y).
        flows = insert(flow, flows, assign[1][e], y)
    m = flow.first_by_left[x]  # value_alias(a, b) :- value_flow(x, a), memory_alias(x, y), value_flow(y, b).
    while m >= 0:
        n = flow.first_by_left[y]
        while n >= 0:
            values = insert(value, values, flow.right[m], flow.right[n])
            n = flow.next_by_left[n]
        m = flow.next_by_left[m]
    return flows, values


@kernel
def pointer_analysis(target, source, assign, dereference, flow, memory, value):
    """`assign`: targets by source; `dereference`: held values by pointer. One tuple at a time, the small relations first."""
    flows, memories, values = 0, 0, 0
    for row in range(len(target)):
        x, y = target[row], source[row]
        flows = insert(flow, flows, x, y)
        flows = insert(flow, insert(flow, flows, x, x), y, y)
        memories = insert(memory, insert(memory, memories, x, x), y, y)
    next_flow, next_memory, next_value = 0, 0, 0
    while next_flow < flows or next_memory < memories or next_value < values:
        if next_memory < memories:
            x, y = link(memory, next_memory)
            next_memory += 1
            flows, values = memory_step(flow, value, assign, flows, values, x, y)
        elif next_flow < flows:
            x, y = link(flow, next_flow)
            next_flow += 1
            flows, values = flow_step(flow, memory, value, flows, values, x, y)
        else:
            x, y = value.left[next_value], value.right[next_value]
            next_value += 1
            # memory_alias(a, b) :- dereference(x, a), value_alias(x, y), dereference(y, b).
            for e in range(dereference[0][x], dereference[0][x + 1]):
                for f in range(dereference[0][y], dereference[0][y + 1]):
                    memories = insert(memory, memories, dereference[1][e], dereference[1][f])
    return flows, memories, values
