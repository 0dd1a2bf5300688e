"""Groups of indexes (indexes.py): the rows with one key, in a slab.

The groups of one key column with values close together are found by the value itself; others by hash, where the first row of a
slab stands for its key. An index without key columns has one group: all rows.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.incremental.store.implied import cell_at
from dlog.engine.kernels.layout import (
    COL_DATA,
    COL_SIZE,
    IX_COLLECTION,
    IX_FREE_GROUP,
    IX_GROUP_CAPACITY,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_KEYS,
    IX_LOW,
    IX_POOL,
    IX_SLABS,
    IX_USED,
    IX_VALUES,
    IXS_CAPACITY,
    IXS_COUNT,
    IXS_SIZE,
    IXS_START,
    REL_COLUMNS,
    RUN,
)
from dlog.engine.kernels.static.storage import grown, mix, resize

BULK = 1024
"""Rows from which an empty index is built in one go."""
SPREAD = 4
"""A dense index has at most this many groups for each key in use, and 4,096 more."""


@kernel
def key_of(index, number, row):
    """Value of the key column in a row."""
    column = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + load_i64(load_i64(index, IX_KEYS), number) * COL_SIZE * 8
    return cell_at(column, row)


@kernel
def hash_key(index, row):
    hashed = 0
    for k in range(load_i64(index, IX_KEY_COUNT)):
        hashed = mix(hashed, key_of(index, k, row))
    return hashed


@kernel
def slab_at(index, group):
    return load_i64(index, IX_SLABS) + group * (IXS_SIZE * 4)


@kernel
def slab_first(slab):
    """Where the rows of a slab begin: a position for `row_at`."""
    start = load_i32(slab, IXS_START)
    return start + RUN if load_i32(slab, IXS_CAPACITY) == 0 else start


@kernel
def row_at(pool, at):
    """The row at a position of a slab."""
    return at - RUN if at >= RUN else load_i32(pool, at)


@kernel
def item_of_row(index, row):
    """What the pool holds for a row: its number, or its value."""
    column = load_i64(index, IX_VALUES)
    if column == 0:
        return row
    column = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + (column - 1) * COL_SIZE * 8
    return load_i32(load_i64(column, COL_DATA), row)


@kernel
def grow_groups(ctl, index, groups):
    """Room for slabs of `groups` groups, new ones empty; false with CTL_ERROR set."""
    old = load_i64(index, IX_GROUP_CAPACITY)
    if groups <= old:
        return True
    new = max(groups, grown(old), 16)
    moved = resize(ctl, load_i64(index, IX_SLABS), old * IXS_SIZE * 4, new * IXS_SIZE * 4)
    if moved == 0:
        return False
    for word in range(old * IXS_SIZE, new * IXS_SIZE):
        store_i32(moved, word, 0)
    store_i64(index, IX_SLABS, moved)
    store_i64(index, IX_GROUP_CAPACITY, new)
    return True


@kernel
def fits_dense(index, value):
    """Whether a dense index may be extended to a value: the groups stay few for the keys in use."""
    low = load_i64(index, IX_LOW)
    groups = load_i64(index, IX_GROUPS)
    allowed = load_i64(index, IX_USED) * SPREAD + 4096
    if groups == 0:
        return True
    if value <= low - allowed or value >= low + groups + allowed:
        return False
    return max(low + groups, value + 1) - min(low, value) <= max(allowed, groups)


@kernel
def dense_group(ctl, index, value):
    """Group of a value in a dense index, which is extended; -1 with CTL_ERROR set. The value fits."""
    groups = load_i64(index, IX_GROUPS)
    if groups == 0:
        # The first key is met in the middle, not at the edge.
        store_i64(index, IX_LOW, value if value < 0 or value > 64 else 0)
    low = load_i64(index, IX_LOW)
    if value < low:
        by = low - value + (groups >> 2)
        # Keys are often 0 and above.
        if not shift_groups(ctl, index, by if value < 0 else min(by, low)):
            return -1
        low = load_i64(index, IX_LOW)
    group = value - low
    if group >= load_i64(index, IX_GROUPS):
        if not grow_groups(ctl, index, group + 1):
            return -1
        store_i64(index, IX_GROUPS, group + 1)
    return group


@kernel
def shift_groups(ctl, index, by):
    """Makes room for `by` groups below the first; false with CTL_ERROR set."""
    groups = load_i64(index, IX_GROUPS)
    if not grow_groups(ctl, index, groups + by):
        return False
    slabs = load_i64(index, IX_SLABS)
    for word in range(groups * IXS_SIZE - 1, -1, -1):
        store_i32(slabs, word + by * IXS_SIZE, load_i32(slabs, word))
    for word in range(by * IXS_SIZE):
        store_i32(slabs, word, 0)
    store_i64(index, IX_GROUPS, groups + by)
    store_i64(index, IX_LOW, load_i64(index, IX_LOW) - by)
    return True


@kernel
def free_group(index, group):
    """Links an empty group to the free ones; its slab's memory stays with it."""
    slab = slab_at(index, group)
    store_i32(slab, IXS_COUNT, -1 - load_i64(index, IX_FREE_GROUP))
    store_i64(index, IX_FREE_GROUP, group + 1)





@kernel
def same_key(index, left, right):
    for k in range(load_i64(index, IX_KEY_COUNT)):
        if key_of(index, k, left) != key_of(index, k, right):
            return False
    return True


@kernel
def first_row(index, group):
    return row_at(load_i64(index, IX_POOL), slab_first(slab_at(index, group)))
