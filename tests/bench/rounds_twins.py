"""What the maintained relations must be, computed from the edges alone: plain loops over the whole graph, and sorts.

An index is a pair (starts, targets), as in `limit`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.bench.inputs import Rows
from tests.bench.limit import Csr, index, kernel

Codes = NDArray[np.int64]


def out_index(nodes: int, edges: Rows) -> Csr:
    return index(nodes, edges[:, 0].astype(np.int32), edges[:, 1].astype(np.int32))


@kernel
def search(starts, targets, source, distance, queue):
    """Breadth-first; `distance` is -1 everywhere. Returns how many nodes are reached."""
    queue[0], distance[source] = source, 0
    head, count = 0, 1
    while head < count:
        x = queue[head]
        head += 1
        for e in range(starts[x], starts[x + 1]):
            y = targets[e]
            if distance[y] < 0:
                distance[y] = distance[x] + 1
                queue[count] = y
                count += 1
    return count


def distances(nodes: int, graph: Csr, root: int) -> NDArray[np.int64]:
    """Of each node from the root; -1 where it is not reached."""
    distance, queue = np.full(nodes, -1, np.int64), np.empty(nodes, np.int64)
    search(*graph, root, distance, queue)
    return distance


def distance_rows(nodes: int, edges: Rows, root: int) -> Rows:
    distance = distances(nodes, out_index(nodes, edges), root)
    reached = np.flatnonzero(distance >= 0)
    return np.stack([reached, distance[reached]], 1)


def reached_rows(nodes: int, edges: Rows, root: int) -> Rows:
    return distance_rows(nodes, edges, root)[:, :1]


@kernel
def spread_labels(left, right, label):
    """The smaller label goes along every edge until nothing changes."""
    changed = True
    while changed:
        changed = False
        for e in range(len(left)):
            x, y = left[e], right[e]
            least = min(label[x], label[y])
            least = min(least, label[least])
            if label[x] != least or label[y] != least:
                label[x] = label[y] = least
                changed = True


def component_rows(nodes: int, edges: Rows) -> Rows:
    label = np.arange(nodes)
    spread_labels(np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1]), label)
    return np.stack([np.arange(nodes), label], 1)


def distribution_rows(nodes: int, edges: Rows) -> Rows:
    """(degree, how many nodes have it), without degree 0."""
    counts = np.bincount(np.bincount(edges[:, 0], minlength=nodes))
    degrees = np.flatnonzero(counts[1:]) + 1
    return np.stack([degrees, counts[degrees]], 1)


def least_rows(nodes: int, edges: Rows) -> Rows:
    least = np.full(nodes, nodes)
    np.minimum.at(least, edges[:, 0], edges[:, 1])
    sources = np.flatnonzero(least < nodes)
    return np.stack([sources, least[sources]], 1)


def source_rows(nodes: int, edges: Rows) -> Rows:
    return np.unique(edges[:, 0])[:, None]


@kernel
def find_triangles(starts, targets, found):
    """All (x, y, z) with edges x-y, y-z, x-z; targets are sorted. The shorter list is looked up in the longer one. Returns
    their number; only as many are kept as `found` has rows."""
    count = 0
    for x in range(len(starts) - 1):
        for i in range(starts[x], starts[x + 1]):
            y = targets[i]
            a, b = x, y
            if starts[a + 1] - starts[a] > starts[b + 1] - starts[b]:
                a, b = y, x
            low = starts[b]
            for j in range(starts[a], starts[a + 1]):
                z = targets[j]
                high = starts[b + 1]
                while low < high:
                    middle = (low + high) >> 1
                    if targets[middle] < z:
                        low = middle + 1
                    else:
                        high = middle
                if low < starts[b + 1] and targets[low] == z:
                    if count < len(found):
                        found[count, 0], found[count, 1], found[count, 2] = x, y, z
                    count += 1
    return count


def triangle_rows(nodes: int, edges: Rows) -> Rows:
    starts, targets = out_index(nodes, edges[np.lexsort((edges[:, 1], edges[:, 0]))])
    count = find_triangles(starts, targets, np.empty((0, 3), np.int64))
    found = np.empty((count, 3), np.int64)
    find_triangles(starts, targets, found)
    return found


def closure_rows(nodes: int, edges: Rows) -> Rows:
    """A search from every node, from its successors."""
    graph = out_index(nodes, edges)
    parts = []
    for x in range(nodes):
        seen = np.full(nodes, -1, np.int64)
        search_from(*graph, x, seen, np.empty(nodes, np.int64))
        reached = np.flatnonzero(seen >= 0)
        parts.append(np.stack([np.full(len(reached), x), reached], 1))
    return np.concatenate(parts)


@kernel
def search_from(starts, targets, source, seen, queue):
    """Marks what `source` reaches by one edge or more with 0; `seen` is -1 everywhere."""
    head, count = 0, 0
    x = source
    while True:
        for e in range(starts[x], starts[x + 1]):
            y = targets[e]
            if seen[y] < 0:
                seen[y] = 0
                queue[count] = y
                count += 1
        if head == count:
            return count
        x = queue[head]
        head += 1


def codes(rows: Rows, base: int) -> Codes:
    """Each row as one number, sorted."""
    code = np.zeros(len(rows), np.int64)
    for c in range(rows.shape[1]):
        code = code * base + rows[:, c]
    code.sort()
    return code


def same_rows(left: Rows, right: Rows) -> bool:
    """Whether two relations of non-negative numbers are equal."""
    if left.shape != right.shape:
        return False
    base = int(max(left.max(initial=0), right.max(initial=0))) + 1
    return bool((codes(left, base) == codes(right, base)).all())


def checksum(rows: Rows) -> int:
    """The sum over rows of a mix of their two values, the second 0 where there is one, modulo 2**64: as rounds.rs has it."""
    x = rows[:, 0].astype(np.uint64)
    y = rows[:, 1].astype(np.uint64) if rows.shape[1] > 1 else np.zeros(len(rows), np.uint64)
    mixed = x * np.uint64(0x9E3779B97F4A7C15) + y * np.uint64(0xC2B2AE3D27D4EB4F) + x * y * np.uint64(0x165667B19E3779F9)
    return int(mixed.sum(dtype=np.uint64))
