"""Groups of indexes (indexes.py): the rows with one key, in a slab.

The groups of one key column with values close together are found by the value itself; others by hash, where the first row of a
slab stands for its key. An index without key columns has one group: all rows.
"""

from __future__ import annotations

from dlog.engine.kernels.implied import cell_at
from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    COL_DATA,
    COL_SIZE,
    IX_COLLECTION,
    IX_DENSE,
    IX_FREE_GROUP,
    IX_GROUP_CAPACITY,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_KEYS,
    IX_LOW,
    IX_POOL,
    IX_SLABS,
    IX_SLOT_COUNT,
    IX_SLOTS,
    IX_USED,
    IX_VALUES,
    IXS_CAPACITY,
    IXS_COUNT,
    IXS_SIZE,
    IXS_START,
    REL_COLUMNS,
    RUN,
)
from dlog.engine.kernels.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.storage import grown, mix, release, resize, zeroed

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
        if not shift_groups(ctl, index, low - value + (groups >> 2)):
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
def to_hash(ctl, index):
    """Turns a dense index into one by hash; false with CTL_ERROR set. Empty groups become free ones."""
    store_i64(index, IX_DENSE, 0)
    store_i64(index, IX_FREE_GROUP, 0)
    for group in range(load_i64(index, IX_GROUPS)):
        if load_i32(slab_at(index, group), IXS_COUNT) == 0:
            free_group(index, group)
    return grow_slots(ctl, index, load_i64(index, IX_USED) + 1)


@kernel
def to_dense(ctl, index):
    """Turns an index by hash of one key column into a dense one, if its keys have filled their range; false with CTL_ERROR
    set."""
    used = load_i64(index, IX_USED)
    if used < BULK:
        return True
    groups = load_i64(index, IX_GROUPS)
    low = 1 << 62
    high = -(1 << 62)
    for group in range(groups):
        if load_i32(slab_at(index, group), IXS_COUNT) > 0:
            value = key_of(index, 0, first_row(index, group))
            low = min(low, value)
            high = max(high, value)
    if low < -(1 << 40) or high > 1 << 40 or high - low >= used * SPREAD:
        return True
    count = high - low + 1
    slabs = zeroed(ctl, count * IXS_SIZE * 4)
    if slabs == 0:
        return False
    for group in range(groups):
        slab = slab_at(index, group)
        if load_i32(slab, IXS_COUNT) > 0:
            place = slabs + (key_of(index, 0, first_row(index, group)) - low) * (IXS_SIZE * 4)
            for word in range(IXS_SIZE):
                store_i32(place, word, load_i32(slab, word))
    release(ctl, load_i64(index, IX_SLABS), load_i64(index, IX_GROUP_CAPACITY) * IXS_SIZE * 4)
    release(ctl, load_i64(index, IX_SLOTS), load_i64(index, IX_SLOT_COUNT) * 4)
    store_i64(index, IX_SLABS, slabs)
    store_i64(index, IX_SLOTS, 0)
    store_i64(index, IX_SLOT_COUNT, 0)
    store_i64(index, IX_FREE_GROUP, 0)
    store_i64(index, IX_GROUPS, count)
    store_i64(index, IX_GROUP_CAPACITY, count)
    store_i64(index, IX_LOW, low)
    store_i64(index, IX_DENSE, 1)
    return True


@kernel
def free_group(index, group):
    """Links an empty group to the free ones; its slab's memory stays with it."""
    slab = slab_at(index, group)
    store_i32(slab, IXS_COUNT, -1 - load_i64(index, IX_FREE_GROUP))
    store_i64(index, IX_FREE_GROUP, group + 1)


@kernel
def grow_slots(ctl, index, keys):
    """Keeps at least twice as many slots as keys; false with CTL_ERROR set."""
    old = load_i64(index, IX_SLOT_COUNT)
    if keys * 2 <= old:
        return True
    count = max(old * 2, 64)
    while count < keys * 2:
        count *= 2
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    release(ctl, load_i64(index, IX_SLOTS), old * 4)
    store_i64(index, IX_SLOTS, table)
    store_i64(index, IX_SLOT_COUNT, count)
    pool = load_i64(index, IX_POOL)
    for group in range(load_i64(index, IX_GROUPS)):
        slab = slab_at(index, group)
        if load_i32(slab, IXS_COUNT) > 0:
            at = (hash_key(index, row_at(pool, slab_first(slab))) >> 20) & (count - 1)
            while load_i32(table, at) != 0:
                at = (at + 1) & (count - 1)
            store_i32(table, at, group + 1)
    return True


@kernel
def same_key(index, left, right):
    for k in range(load_i64(index, IX_KEY_COUNT)):
        if key_of(index, k, left) != key_of(index, k, right):
            return False
    return True


@kernel
def first_row(index, group):
    return row_at(load_i64(index, IX_POOL), slab_first(slab_at(index, group)))


@kernel
def hash_slot(index, row):
    """The slot of a row's key: where its group is, or the free slot where it would be."""
    table = load_i64(index, IX_SLOTS)
    mask = load_i64(index, IX_SLOT_COUNT) - 1
    at = (hash_key(index, row) >> 20) & mask
    while True:
        group = load_i32(table, at) - 1
        if group < 0 or same_key(index, first_row(index, group), row):
            return at
        at = (at + 1) & mask


@kernel
def hash_group(ctl, index, row):
    """Group of a row's key, made if it is new; -1 with CTL_ERROR set."""
    if not grow_slots(ctl, index, load_i64(index, IX_USED) + 1):
        return -1
    slot = hash_slot(index, row)
    group = load_i32(load_i64(index, IX_SLOTS), slot) - 1
    if group >= 0:
        return group
    group = load_i64(index, IX_FREE_GROUP) - 1
    if group >= 0:
        slab = slab_at(index, group)
        store_i64(index, IX_FREE_GROUP, -1 - load_i32(slab, IXS_COUNT))
        store_i32(slab, IXS_COUNT, 0)
    else:
        group = load_i64(index, IX_GROUPS)
        if not grow_groups(ctl, index, group + 1):
            return -1
        store_i64(index, IX_GROUPS, group + 1)
    store_i32(load_i64(index, IX_SLOTS), slot, group + 1)
    return group


@kernel
def remove_key(index, hole):
    """Empties a slot; later groups of its run move up."""
    table = load_i64(index, IX_SLOTS)
    mask = load_i64(index, IX_SLOT_COUNT) - 1
    at = hole
    while True:
        at = (at + 1) & mask
        group = load_i32(table, at) - 1
        if group < 0:
            break
        home = (hash_key(index, first_row(index, group)) >> 20) & mask
        if (at - home) & mask >= (at - hole) & mask:
            store_i32(table, hole, group + 1)
            hole = at
    store_i32(table, hole, 0)


@kernel
def group_of(ctl, index, row):
    """Group of a row, made if it is new; -1 with CTL_ERROR set."""
    if load_i64(index, IX_DENSE) != 0:
        value = 0
        if load_i64(index, IX_KEY_COUNT) > 0:
            value = key_of(index, 0, row)
        group = value - load_i64(index, IX_LOW)
        if 0 <= group < load_i64(index, IX_GROUPS):
            return group
        if fits_dense(index, value):
            return dense_group(ctl, index, value)
        if not to_hash(ctl, index):
            return -1
    elif load_i64(index, IX_KEY_COUNT) == 1 and (load_i64(index, IX_USED) + 1) * 2 > load_i64(index, IX_SLOT_COUNT):
        # Before there are more slots: keys that came in no order may have filled their range by now.
        if not to_dense(ctl, index):
            return -1
        if load_i64(index, IX_DENSE) != 0:
            return group_of_dense(ctl, index, row)
    return hash_group(ctl, index, row)


@kernel
def group_of_dense(ctl, index, row):
    """`group_of` right after `to_dense`."""
    value = key_of(index, 0, row)
    group = value - load_i64(index, IX_LOW)
    if 0 <= group < load_i64(index, IX_GROUPS):
        return group
    if fits_dense(index, value):
        return dense_group(ctl, index, value)
    return hash_group(ctl, index, row) if to_hash(ctl, index) else -1
