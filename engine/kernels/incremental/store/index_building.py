"""Indexes that are built in one go, emptied, or turned from values to rows."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.incremental.store.groups import BULK, SPREAD, fits_dense, grow_groups, item_of_row, key_of, slab_at
from dlog.engine.kernels.incremental.store.homes import set_homes
from dlog.engine.kernels.incremental.store.implied import write_keys
from dlog.engine.kernels.incremental.store.indexes import index_insert
from dlog.engine.kernels.incremental.store.keyed import group_of, hash_group, slots_of, to_hash
from dlog.engine.kernels.layout import (
    CO_BASE_KEY,
    CO_BASE_KEYS,
    CO_BASE_LOW,
    CO_BASE_OFFSETS,
    CO_BASE_ROWS,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    IX_COLLECTION,
    IX_DENSE,
    IX_FREE,
    IX_FREE_GROUP,
    IX_GROUP_CAPACITY,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_KEYS,
    IX_LOW,
    IX_POOL,
    IX_POOL_CAPACITY,
    IX_POOL_SIZE,
    IX_SLABS,
    IX_SLOT_ROOM,
    IX_SLOTS,
    IX_USED,
    IX_VALUES,
    IX_WANTED,
    IXS_CAPACITY,
    IXS_COUNT,
    IXS_SIZE,
    IXS_START,
    REL_COLUMNS,
)
from dlog.engine.kernels.static.storage import load_cell, release, resize, spare, zeroed

AHEAD = 16
FREE_SIZES = 124
"""Lists of freed slabs, by their sizes (`indexes.size_for`)."""


@entry()
def fill_index(ctl, index, alive, rows):
    """Adds all living rows to an empty index; false with CTL_ERROR set."""
    for row in range(rows):
        if (load_i64(alive, row >> 6) >> (row & 63)) & 1 != 0 and not index_insert(ctl, index, row):
            return False
    return True


@kernel
def build_index(ctl, index, rows):
    """Fills an empty index with rows [0, rows), all alive, with slabs that fit exactly; false with CTL_ERROR set."""
    collection = load_i64(index, IX_COLLECTION)
    if not write_keys(ctl, collection):
        return False
    dense = load_i64(index, IX_DENSE) != 0 and load_i64(index, IX_KEY_COUNT) == 1
    if load_i64(index, IX_USED) == 0:
        store_i64(index, IX_VALUES, 0)
    if dense and load_i64(index, IX_USED) == 0 and load_i64(collection, CO_BASE_ROWS) == rows:
        column = load_i64(load_i64(index, IX_KEYS), 0)
        if column == load_i64(collection, CO_BASE_KEY):
            hold_values(index)
            return build_runs(ctl, index, collection)
    if load_i64(index, IX_USED) != 0 or rows < BULK:
        for row in range(rows):
            if not index_insert(ctl, index, row):
                return False
        return True
    if load_i64(index, IX_KEY_COUNT) > 0 and not choose_dense(ctl, index, rows):
        return False
    if load_i64(index, IX_DENSE) != 0 and load_i64(index, IX_KEY_COUNT) == 1:
        hold_values(index)
        return build_dense(ctl, index, rows)
    groups = zeroed(ctl, rows * 4)
    if groups == 0:
        return False
    if not assign_groups(ctl, index, groups, rows):
        release(ctl, groups, rows * 4)
        return False
    if not lay_out(ctl, index):
        release(ctl, groups, rows * 4)
        return False
    place_rows(index, groups, rows)
    release(ctl, groups, rows * 4)
    return True


@kernel
def hold_values(index):
    """Lets an empty index hold the values of the column it is wanted for, if they take 4 bytes."""
    if load_i64(index, IX_WANTED) != 0 and fits_values(index, load_i64(index, IX_WANTED)):
        store_i64(index, IX_VALUES, load_i64(index, IX_WANTED))


@kernel
def fits_values(index, column):
    """Whether the values of a column, plus one, take 4 bytes."""
    place = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + (column - 1) * COL_SIZE * 8
    return load_i64(place, COL_WIDTH) == 4


@kernel
def may_insert(index, row):
    """Whether an index can take a row as it is: one of values takes none that needs 8 bytes or makes it one by hash."""
    column = load_i64(index, IX_VALUES)
    if column == 0:
        return True
    if not fits_values(index, column):
        return False
    value = key_of(index, 0, row)
    return 0 <= value - load_i64(index, IX_LOW) < load_i64(index, IX_GROUPS) or fits_dense(index, value)


@kernel
def trim_index(ctl, index):
    """Gives back most of the room that an index does not use; false with CTL_ERROR set."""
    drop_leading(index)
    groups = load_i64(index, IX_GROUPS)
    room = load_i64(index, IX_GROUP_CAPACITY)
    target = groups + spare(groups)
    if target + spare(target) < room:
        slabs = resize(ctl, load_i64(index, IX_SLABS), room * IXS_SIZE * 4, target * IXS_SIZE * 4)
        if slabs == 0:
            return False
        store_i64(index, IX_SLABS, slabs)
        store_i64(index, IX_GROUP_CAPACITY, target)
    size = load_i64(index, IX_POOL_SIZE)
    room = load_i64(index, IX_POOL_CAPACITY)
    target = size + spare(size)
    if target + spare(target) < room:
        pool = resize(ctl, load_i64(index, IX_POOL), room * 4, target * 4)
        if pool == 0:
            return False
        store_i64(index, IX_POOL, pool)
        store_i64(index, IX_POOL_CAPACITY, target)
    return True


@kernel
def drop_leading(index):
    """Drops the groups of a dense index below the first that has rows."""
    groups = load_i64(index, IX_GROUPS)
    if load_i64(index, IX_DENSE) == 0 or load_i64(index, IX_KEY_COUNT) == 0 or load_i64(index, IX_USED) == 0:
        return
    first = 0
    while load_i32(slab_at(index, first), IXS_COUNT) == 0:
        first += 1
    slabs = load_i64(index, IX_SLABS)
    if first > 0:
        for word in range((groups - first) * IXS_SIZE):
            store_i32(slabs, word, load_i32(slabs, word + first * IXS_SIZE))
        for word in range((groups - first) * IXS_SIZE, groups * IXS_SIZE):
            store_i32(slabs, word, 0)
        store_i64(index, IX_GROUPS, groups - first)
        store_i64(index, IX_LOW, load_i64(index, IX_LOW) + first)


@kernel
def clear_index(ctl, index):
    """Empties an index: one of row numbers, and dense."""
    release(ctl, load_i64(index, IX_SLABS), load_i64(index, IX_GROUP_CAPACITY) * IXS_SIZE * 4)
    release(ctl, load_i64(index, IX_SLOTS), load_i64(index, IX_SLOT_ROOM) * 4)
    release(ctl, load_i64(index, IX_POOL), load_i64(index, IX_POOL_CAPACITY) * 4)
    for field in (IX_LOW, IX_GROUPS, IX_GROUP_CAPACITY, IX_SLABS, IX_SLOTS, IX_USED, IX_FREE_GROUP, IX_VALUES):
        store_i64(index, field, 0)
    set_homes(slots_of(index), 0, 0)
    for field in (IX_POOL, IX_POOL_SIZE, IX_POOL_CAPACITY):
        store_i64(index, field, 0)
    store_i64(index, IX_DENSE, 1)
    for size in range(FREE_SIZES):
        store_i64(load_i64(index, IX_FREE), size, 0)


@kernel
def lay_out(ctl, index):
    """Gives each group a slab for as many rows as it counts, unless that is one which is a run, and counts anew. Of an empty
    index, whose pool has nothing yet; false with CTL_ERROR set."""
    runs = 1 if load_i64(index, IX_VALUES) == 0 else 0
    groups = load_i64(index, IX_GROUPS)
    wanted = 0
    for group in range(groups):
        count = load_i32(slab_at(index, group), IXS_COUNT)
        wanted += count if count > runs else 0
    room = load_i64(index, IX_POOL_CAPACITY)
    start = load_i64(index, IX_POOL_SIZE)
    if start + wanted > room:
        pool = resize(ctl, load_i64(index, IX_POOL), room * 4, (start + wanted) * 4)
        if pool == 0:
            return False
        store_i64(index, IX_POOL, pool)
        store_i64(index, IX_POOL_CAPACITY, start + wanted)
    for group in range(groups):
        slab = slab_at(index, group)
        count = load_i32(slab, IXS_COUNT)
        if count > runs:
            store_i32(slab, IXS_START, start)
            store_i32(slab, IXS_CAPACITY, count)
            start += count
        if count > 0:
            store_i32(slab, IXS_COUNT, 0)
    store_i64(index, IX_POOL_SIZE, start)
    return True


@kernel
def build_runs(ctl, index, collection):
    """`build_index` of a dense index by the column that the collection's base is sorted by; false with CTL_ERROR set."""
    keys = load_i64(collection, CO_BASE_KEYS)
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    if not grow_groups(ctl, index, keys):
        return False
    store_i64(index, IX_LOW, load_i64(collection, CO_BASE_LOW))
    store_i64(index, IX_GROUPS, keys)
    used = 0
    for group in range(keys):
        first = load_i32(offsets, group)
        count = load_i32(offsets, group + 1) - first
        slab = slab_at(index, group)
        store_i32(slab, IXS_START, first)
        store_i32(slab, IXS_COUNT, count)
        store_i32(slab, IXS_CAPACITY, 0)
        used += 1 if count > 0 else 0
    store_i64(index, IX_USED, used)
    return True


@kernel
def build_dense(ctl, index, rows):
    """`build_index` of a dense index by one column whose groups are there: a counting sort. False with CTL_ERROR set."""
    column = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + load_i64(load_i64(index, IX_KEYS), 0) * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    slabs = load_i64(index, IX_SLABS) - load_i64(index, IX_LOW) * (IXS_SIZE * 4)
    used = 0
    for row in range(rows):
        if row + 2 * AHEAD < rows:
            prefetch(slabs + load_cell(data, width, row + 2 * AHEAD) * (IXS_SIZE * 4))
        slab = slabs + load_cell(data, width, row) * (IXS_SIZE * 4)
        count = load_i32(slab, IXS_COUNT)
        used += 1 if count == 0 else 0
        store_i32(slab, IXS_COUNT, count + 1)
    if not lay_out(ctl, index):
        return False
    store_i64(index, IX_USED, used)
    pool = load_i64(index, IX_POOL)
    for row in range(rows):
        if row + 2 * AHEAD < rows:
            prefetch(slabs + load_cell(data, width, row + 2 * AHEAD) * (IXS_SIZE * 4))
            slab = slabs + load_cell(data, width, row + AHEAD) * (IXS_SIZE * 4)
            prefetch(pool + (load_i32(slab, IXS_START) + load_i32(slab, IXS_COUNT)) * 4)
        slab = slabs + load_cell(data, width, row) * (IXS_SIZE * 4)
        place_item(pool, slab, row, item_of_row(index, row))
    return True


@kernel
def place_item(pool, slab, row, item):
    """Puts a row, of which the pool is to hold an item, into its group's slab: one without room is a run of this one row."""
    count = load_i32(slab, IXS_COUNT)
    if load_i32(slab, IXS_CAPACITY) == 0:
        store_i32(slab, IXS_START, row)
    else:
        store_i32(pool, load_i32(slab, IXS_START) + count, item)
    store_i32(slab, IXS_COUNT, count + 1)


@kernel
def choose_dense(ctl, index, rows):
    """Lets an empty index be dense if its one key column allows it for all rows; false with CTL_ERROR set."""
    if load_i64(index, IX_DENSE) == 0:
        return True
    low = key_of(index, 0, 0)
    high = low
    for row in range(rows):
        value = key_of(index, 0, row)
        low = min(low, value)
        high = max(high, value)
    store_i64(index, IX_GROUPS, 0)
    if low < -(1 << 40) or high > 1 << 40 or high - low >= rows * SPREAD:
        return to_hash(ctl, index)
    if not grow_groups(ctl, index, high - low + 1):
        return False
    store_i64(index, IX_LOW, low)
    store_i64(index, IX_GROUPS, high - low + 1)
    return True


@kernel
def assign_groups(ctl, index, groups, rows):
    """groups[row] and the groups' sizes. A new group is a run of its first row, which one by hash is found by. An index by hash
    stays one: the numbers of groups that rows have already would mean others."""
    for row in range(rows):
        group = group_of(ctl, index, row) if load_i64(index, IX_DENSE) != 0 else hash_group(ctl, index, row)
        if group < 0:
            return False
        slab = slab_at(index, group)
        count = load_i32(slab, IXS_COUNT)
        if count == 0:
            store_i64(index, IX_USED, load_i64(index, IX_USED) + 1)
            store_i32(slab, IXS_START, row)
        store_i32(slab, IXS_COUNT, count + 1)
        store_i32(groups, row, group)
    return True


@kernel
def place_rows(index, groups, rows):
    """Puts the rows into their groups' slabs."""
    pool = load_i64(index, IX_POOL)
    slabs = load_i64(index, IX_SLABS)
    for row in range(rows):
        if row + AHEAD < rows:
            prefetch(slabs + load_i32(groups, row + AHEAD) * (IXS_SIZE * 4))
        slab = slabs + load_i32(groups, row) * (IXS_SIZE * 4)
        place_item(pool, slab, row, row)
