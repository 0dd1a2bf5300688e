"""Groups of indexes (indexes.py): the rows with one key, in a slab.

The groups of one key column with values close together are found by the value itself; others by hash, where the first row of a
slab stands for its key. An index without key columns has one group: all rows.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.implied import cell_at
from dlog.engine.kernels.layout import RUN
from dlog.engine.kernels.machine_structs import Column, Numbers
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.row_structs import Slab
from dlog.engine.kernels.static.storage import grown, lengthen, mix

BULK = 1024
"""Rows from which an empty index is built in one go."""
SPREAD = 4
"""A dense index has at most this many groups for each key in use, and 4,096 more."""


@kernel
def key_of(index: Index, number, row):
    """Value of the key column in a row."""
    column = index.collection.columns[index.keys[number]]
    return cell_at(column, row)


@kernel
def hash_key(index: Index, row):
    hashed = 0
    for k in range(index.key_count):
        hashed = mix(hashed, key_of(index, k, row))
    return hashed


@kernel
def slab_at(index: Index, group) -> Slab:
    return index.slabs[group]


@kernel
def slab_first(slab: Slab):
    """Where the rows of a slab begin: a position for `row_at`."""
    start = slab.start
    return start + RUN if slab.capacity == 0 else start


@kernel
def row_at(pool: Numbers, at):
    """The row at a position of a slab."""
    return at - RUN if at >= RUN else pool[at]


@kernel
def item_of_row(index: Index, row):
    """What the pool holds for a row: its number, or its value."""
    column = Column(index.values)
    if not column:
        return row
    column = index.collection.columns[column.address - 1]
    return Numbers(column.data)[row]


@kernel
def grow_groups(ctl: Control, index: Index, groups):
    """Room for slabs of `groups` groups, new ones empty; false with ctl.error set."""
    old = index.group_capacity
    if groups <= old:
        return True
    new = max(groups, grown(old), 16)
    if not lengthen(ctl, index.ref.slabs, old * Slab.size, new * Slab.size):
        return False
    index.group_capacity = new
    return True


@kernel
def fits_dense(index: Index, value):
    """Whether a dense index may be extended to a value: the groups stay few for the keys in use."""
    low = index.low
    groups = index.groups
    allowed = index.used * SPREAD + 4096
    if groups == 0:
        return True
    if value <= low - allowed or value >= low + groups + allowed:
        return False
    return max(low + groups, value + 1) - min(low, value) <= max(allowed, groups)


@kernel
def dense_group(ctl: Control, index: Index, value):
    """Group of a value in a dense index, which is extended; -1 with ctl.error set. The value fits."""
    groups = index.groups
    if groups == 0:
        # The first key is met in the middle, not at the edge.
        index.low = value if value < 0 or value > 64 else 0
    low = index.low
    if value < low:
        by = low - value + (groups >> 2)
        # Keys are often 0 and above.
        if not shift_groups(ctl, index, by if value < 0 else min(by, low)):
            return -1
        low = index.low
    group = value - low
    if group >= index.groups:
        if not grow_groups(ctl, index, group + 1):
            return -1
        index.groups = group + 1
    return group


@kernel
def copy_slab(target: Slab, source: Slab):
    target.start = source.start
    target.count = source.count
    target.capacity = source.capacity


@kernel
def clear_slab(slab: Slab):
    slab.start = 0
    slab.count = 0
    slab.capacity = 0


@kernel
def shift_groups(ctl: Control, index: Index, by):
    """Makes room for `by` groups below the first; false with ctl.error set."""
    groups = index.groups
    if not grow_groups(ctl, index, groups + by):
        return False
    slabs = index.slabs
    for group in range(groups - 1, -1, -1):
        copy_slab(slabs[group + by], slabs[group])
    for group in range(by):
        clear_slab(slabs[group])
    index.groups = groups + by
    index.low -= by
    return True


@kernel
def free_group(index: Index, group):
    """Links an empty group to the free ones; its slab's memory stays with it."""
    slab = slab_at(index, group)
    slab.count = -1 - index.free_group
    index.free_group = group + 1


@kernel
def same_key(index: Index, left, right):
    for k in range(index.key_count):
        if key_of(index, k, left) != key_of(index, k, right):
            return False
    return True


@kernel
def first_row(index: Index, group):
    return row_at(index.pool, slab_first(slab_at(index, group)))
