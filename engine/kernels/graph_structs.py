"""The struct of a graph whose core numbers are kept while it changes."""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Struct, i64
from dlog.engine.kernels.machine_structs import Numbers, Words


class Cores(Struct):
    """Neighbours (neighbours.py), core numbers and an order that keeps them (core_order.py). All arrays but the pool and those
    by level have a place for each vertex."""

    vertices: i64

    # Neighbours: of each vertex a slab of the pool, whose entries are neighbours times four and the arcs that are there.
    starts: Words
    counts: Numbers
    rooms: Numbers  # entries that the slab has room for
    pool: Words
    pool_size: i64
    pool_capacity: i64

    # The order, level by level, each a list.
    numbers: Words
    later: Numbers  # how many neighbours come later in the order
    labels: Words  # ascend along a level
    before: Numbers  # the vertex before, plus one
    after: Numbers
    first: Numbers  # of each level, plus one
    last: Numbers
    levels: i64

    # While an edge comes or goes; between, marks and `earlier` are 0.
    marks: Numbers
    earlier: Numbers  # neighbours that are to rise and come earlier; or, where some fall, those of its level or above
    heap: Numbers
    heap_count: i64
    candidates: Numbers
    queue: Numbers

    # What a commit may cost.
    work: i64  # entries of the pool that were looked at
    limit: i64

    # What has changed since the last reading.
    changed: Numbers
    changed_count: i64
    former: Numbers  # the number before, plus one; 0: as it is
