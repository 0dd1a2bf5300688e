"""Dense indexes by one column, built in one go: a counting sort of the living rows by their values, whose groups are there
already."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.groups import SPREAD, grow_groups, item_of_row, key_of, slab_at
from dlog.engine.kernels.incremental.store.keyed import to_hash
from dlog.engine.kernels.machine_structs import Numbers
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.row_structs import Slab
from dlog.engine.kernels.static.storage import load_cell, resize

ROWS_AHEAD = 16


@kernel
def choose_dense(ctl: Control, index: Index, rows):
    """Lets an empty index be dense if its one key column allows it for all living rows; false with ctl.error set."""
    if index.dense == 0:
        return True
    alive = index.collection.alive
    low = (1 << 63) - 1
    high = -(1 << 63)
    for row in range(rows):
        if get_bit(alive, row) != 0:
            value = key_of(index, 0, row)
            low = min(low, value)
            high = max(high, value)
    index.groups = 0
    if low > high:
        return True
    if low < -(1 << 40) or high > 1 << 40 or high - low >= rows * SPREAD:
        return to_hash(ctl, index)
    if not grow_groups(ctl, index, high - low + 1):
        return False
    index.low = low
    index.groups = high - low + 1
    return True


@kernel
def build_dense(ctl: Control, index: Index, rows):
    """Puts the living rows into an empty index whose groups are there; false with ctl.error set."""
    count_dense(index, rows)
    if not lay_out(ctl, index):
        return False
    place_dense(index, rows)
    return True


@kernel
def count_dense(index: Index, rows):
    """Counts the rows of each group, and how many of these have some."""
    alive = index.collection.alive
    data = index.collection.columns[index.keys[0]].data
    width = index.collection.columns[index.keys[0]].width
    slabs = index.slabs.address - index.low * Slab.size
    used = 0
    for row in range(rows):
        if row + 2 * ROWS_AHEAD < rows:
            prefetch(slabs + load_cell(data, width, row + 2 * ROWS_AHEAD) * Slab.size)
        if get_bit(alive, row) != 0:
            slab = Slab(slabs + load_cell(data, width, row) * Slab.size)
            count = slab.count
            used += 1 if count == 0 else 0
            slab.count = count + 1
    index.used = used


@kernel
def place_dense(index: Index, rows):
    """Puts the rows into their groups' slabs, which are laid out."""
    alive = index.collection.alive
    data = index.collection.columns[index.keys[0]].data
    width = index.collection.columns[index.keys[0]].width
    slabs = index.slabs.address - index.low * Slab.size
    groups = index.groups
    low = index.low
    pool = index.pool
    for row in range(rows):
        if row + 2 * ROWS_AHEAD < rows:
            prefetch(slabs + load_cell(data, width, row + 2 * ROWS_AHEAD) * Slab.size)
            ahead = load_cell(data, width, row + ROWS_AHEAD)
            if 0 <= ahead - low < groups:  # else it is of a row that is gone
                slab = Slab(slabs + ahead * Slab.size)
                prefetch(pool.address + (slab.start + slab.count) * 4)
        if get_bit(alive, row) != 0:
            slab = Slab(slabs + load_cell(data, width, row) * Slab.size)
            place_item(pool, slab, row, item_of_row(index, row))


@kernel
def lay_out(ctl: Control, index: Index):
    """Gives each group a slab for as many rows as it counts, unless that is one which is a run, and counts anew. Of an empty
    index, whose pool has nothing yet; false with ctl.error set."""
    runs = 1 if index.values == 0 else 0
    groups = index.groups
    wanted = 0
    for group in range(groups):
        count = slab_at(index, group).count
        wanted += count if count > runs else 0
    room = index.pool_capacity
    start = index.pool_size
    if start + wanted > room:
        pool = resize(ctl, index.pool.address, room * 4, (start + wanted) * 4)
        if pool == 0:
            return False
        index.pool = Numbers(pool)
        index.pool_capacity = start + wanted
    for group in range(groups):
        slab = slab_at(index, group)
        count = slab.count
        if count > runs:
            slab.start = start
            slab.capacity = count
            start += count
        if count > 0:
            slab.count = 0
    index.pool_size = start
    return True


@kernel
def place_item(pool: Numbers, slab: Slab, row, item):
    """Puts a row, of which the pool is to hold an item, into its group's slab: one without room is a run of this one row."""
    count = slab.count
    if slab.capacity == 0:
        slab.start = row
    else:
        pool[slab.start + count] = item
    slab.count = count + 1
