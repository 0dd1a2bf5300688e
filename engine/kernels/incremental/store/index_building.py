"""Indexes that are built in one go, emptied, or turned from values to rows."""

from __future__ import annotations

from dlog.engine.kernels.codes import Status
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.dense_building import build_dense, choose_dense, lay_out, place_item
from dlog.engine.kernels.incremental.store.densifying import give_up_densifying, group_of
from dlog.engine.kernels.incremental.store.groups import (
    BULK,
    clear_slab,
    copy_slab,
    fits_dense,
    grow_groups,
    key_of,
    slab_at,
)
from dlog.engine.kernels.incremental.store.homes import set_homes
from dlog.engine.kernels.incremental.store.implied import write_keys
from dlog.engine.kernels.incremental.store.indexes import index_insert, warm_index, warming_steps
from dlog.engine.kernels.incremental.store.keyed import hash_group, slots_of
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Control, Index
from dlog.engine.kernels.row_structs import Slab, Slabs
from dlog.engine.kernels.static.storage import release, resize, spare, zeroed

ROWS_AHEAD = 16
KEYS_AHEAD = 8
"""Rows between two steps of what is asked for before the group of one is looked for."""
FREE_SIZES = 124
"""Lists of freed slabs, by their sizes (`indexes.size_for`)."""


@entry()
def fill_index(ctl: Control, index: Index, alive: Words, rows):
    """Adds all living rows to an empty index; false with ctl.error set."""
    if rows >= BULK and index.dense != 0 and index.key_count == 1:
        give_up_densifying(ctl, index)
        if not choose_dense(ctl, index, rows):
            return False
        if index.dense != 0:
            return build_dense(ctl, index, rows)
    for row in range(rows):
        if (alive[row >> 6] >> (row & 63)) & 1 != 0 and not index_insert(ctl, index, row):
            return False
    return True


@kernel
def build_index(ctl: Control, index: Index, rows):
    """Fills an empty index with rows [0, rows), all alive, with slabs that fit exactly; false with ctl.error set."""
    status = begin_index(ctl, index, rows)
    return status == Status.DONE or (status == Status.BULK and build_dense(ctl, index, rows))


@kernel
def begin_index(ctl: Control, index: Index, rows):
    """`build_index` but for what `build_dense` does: then BULK, else DONE, or FAILED with ctl.error set."""
    collection = index.collection
    if not write_keys(ctl, collection):
        return Status.FAILED
    dense = index.dense != 0 and index.key_count == 1 and index.used == 0
    give_up_densifying(ctl, index)
    if index.used == 0:
        index.values = 0
    if dense and collection.base.rows == rows and index.keys[0] == collection.base.key:
        hold_values(index)
        return Status.DONE if build_runs(ctl, index, collection) else Status.FAILED
    if index.used != 0 or rows < BULK:
        for row in range(rows):
            if not index_insert(ctl, index, row):
                return Status.FAILED
        return Status.DONE
    if index.key_count > 0 and not choose_dense(ctl, index, rows):
        return Status.FAILED
    if index.dense != 0 and index.key_count == 1:
        hold_values(index)
        return Status.BULK
    return Status.DONE if build_groups(ctl, index, rows) else Status.FAILED


@kernel
def build_groups(ctl: Control, index: Index, rows):
    """`build_index` of rows whose groups are found one by one; false with ctl.error set."""
    groups = Numbers(zeroed(ctl, rows * 4))
    if not groups:
        return False
    done = assign_groups(ctl, index, groups, rows) and lay_out(ctl, index)
    if done:
        place_rows(index, groups, rows)
    release(ctl, groups.address, rows * 4)
    return done


@kernel
def hold_values(index: Index):
    """Lets an empty index hold the values of the column it is wanted for, if they take 4 bytes."""
    if index.allowed_values != 0 and fits_values(index, index.allowed_values):
        index.values = index.allowed_values


@kernel
def fits_values(index: Index, column):
    """Whether the values of a column, plus one, take 4 bytes."""
    place = index.collection.columns[column - 1]
    return place.width == 4


@kernel
def may_insert(index: Index, row):
    """Whether an index can take a row as it is: one of values takes none that needs 8 bytes or makes it one by hash."""
    column = index.values
    if column == 0:
        return True
    if not fits_values(index, column):
        return False
    value = key_of(index, 0, row)
    return 0 <= value - index.low < index.groups or fits_dense(index, value)


@kernel
def trim_index(ctl: Control, index: Index):
    """Gives back most of the room that an index does not use; false with ctl.error set."""
    drop_leading(index)
    groups = index.groups
    room = index.group_capacity
    target = groups + spare(groups)
    if target + spare(target) < room:
        slabs = resize(ctl, index.slabs.address, room * Slab.size, target * Slab.size)
        if slabs == 0:
            return False
        index.slabs = Slabs(slabs)
        index.group_capacity = target
    size = index.pool_size
    room = index.pool_capacity
    target = size + spare(size)
    if target + spare(target) < room:
        pool = resize(ctl, index.pool.address, room * 4, target * 4)
        if pool == 0:
            return False
        index.pool = Numbers(pool)
        index.pool_capacity = target
    return True


@kernel
def drop_leading(index: Index):
    """Drops the groups of a dense index below the first that has rows."""
    groups = index.groups
    if index.dense == 0 or index.key_count == 0 or index.used == 0:
        return
    first = 0
    while slab_at(index, first).count == 0:
        first += 1
    slabs = index.slabs
    if first > 0:
        for group in range(first, groups):
            copy_slab(slabs[group - first], slabs[group])
        for group in range(groups - first, groups):
            clear_slab(slabs[group])
        index.groups = groups - first
        index.low += first


@kernel
def clear_index(ctl: Control, index: Index):
    """Empties an index: one of row numbers and, where one column at most is its key, dense."""
    release(ctl, index.slabs.address, index.group_capacity * Slab.size)
    release(ctl, index.slots.address, index.slot_homes.room * 8)
    give_up_densifying(ctl, index)
    release(ctl, index.pool.address, index.pool_capacity * 4)
    index.low = 0
    index.groups = 0
    index.group_capacity = 0
    index.slabs = Slabs(0)
    index.slots = Words(0)
    index.used = 0
    index.free_group = 0
    index.values = 0
    set_homes(slots_of(index), 0, 0)
    index.pool = Numbers(0)
    index.pool_size = 0
    index.pool_capacity = 0
    index.dense = 1 if index.key_count <= 1 else 0
    for size in range(FREE_SIZES):
        index.free[size] = 0


@kernel
def build_runs(ctl: Control, index: Index, collection: Collection):
    """`build_index` of a dense index by the column that the collection's base is sorted by; false with ctl.error set."""
    keys = collection.base.keys
    offsets = collection.base.offsets
    if not grow_groups(ctl, index, keys):
        return False
    index.low = collection.base.low
    index.groups = keys
    used = 0
    for group in range(keys):
        first = offsets[group]
        count = offsets[group + 1] - first
        slab = slab_at(index, group)
        slab.start = first
        slab.count = count
        slab.capacity = 0
        used += 1 if count > 0 else 0
    index.used = used
    return True


@kernel
def assign_groups(ctl: Control, index: Index, groups: Numbers, rows):
    """groups[row] and the groups' sizes. A new group is a run of its first row, which one by hash is found by. An index by hash
    stays one: the numbers of groups that rows have already would mean others."""
    for row in range(rows):
        for step in range(warming_steps(index), 0, -1):
            if row + step * KEYS_AHEAD < rows:
                warm_index(index, row + step * KEYS_AHEAD, step)
        group = group_of(ctl, index, row) if index.dense != 0 else hash_group(ctl, index, row)
        if group < 0:
            return False
        slab = slab_at(index, group)
        count = slab.count
        if count == 0:
            index.used += 1
            slab.start = row
        slab.count = count + 1
        groups[row] = group
    return True


@kernel
def place_rows(index: Index, groups: Numbers, rows):
    """Puts the rows into their groups' slabs."""
    pool = index.pool
    slabs = index.slabs
    for row in range(rows):
        if row + ROWS_AHEAD < rows:
            prefetch((slabs[groups[row + ROWS_AHEAD]]).address)
        slab = slabs[groups[row]]
        place_item(pool, slab, row, row)
