"""Rows that leave long groups of an index: those of a batch together.

To find one row, a group is searched. For many rows of one group that would be done over and over, so rows that leave long
groups are only noted (`index_remove`) until the batch is settled: then a group that few have left is searched for each, others
are gone through once.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64, wrapped_product
from dlog.engine.kernels.incremental.loop.changes import same_time
from dlog.engine.kernels.incremental.store.groups import item_of_row, slab_at
from dlog.engine.kernels.incremental.store.indexes import drop_group, extend_slab, place_of
from dlog.engine.kernels.incremental.store.keyed import hash_slot
from dlog.engine.kernels.incremental.store.lists import change_at, list_free, sort_changes
from dlog.engine.kernels.layout import (
    BLOCK,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CTL_SCRATCH,
    CTL_WORK,
    IX_DENSE,
    IX_GONE,
    IX_POOL,
    IXS_CAPACITY,
    IXS_COUNT,
    IXS_START,
    LIST_COUNT,
    LIST_SIZE,
    LIST_WORDS,
)
from dlog.engine.kernels.static.storage import release, zeroed

FEW = 32
"""Rows up to which a group that they leave is searched for each: as many are compared in the time of one look-up by hash."""
_MIX = -7046029254386353131
_PLACED = 1 << 40
"""Added to items of a table, so that none is 0."""


@kernel
def leave_groups(ctl, index):
    """Takes the rows out that have left long groups in this batch; false with CTL_ERROR set."""
    gone = load_i64(index, IX_GONE)
    if load_i64(gone, LIST_COUNT) == 0:
        return True
    counts = load_i64(ctl, CTL_SCRATCH)
    spare = counts + BLOCK * 8
    for word in range(LIST_SIZE):
        store_i64(spare, word, 0)
    store_i64(spare, LIST_WORDS, CHANGE_SIZE)
    done = sort_changes(ctl, gone, spare, counts)
    first = 0
    while done and first < load_i64(gone, LIST_COUNT):
        last = same_time(gone, first)
        done = leave_group(ctl, index, gone, first, last)
        first = last
    list_free(ctl, gone)
    list_free(ctl, spare)
    return done


@kernel
def leave_group(ctl, index, gone, first, last):
    """Takes rows [first, last) of those that are gone out of the one group that had them; false with CTL_ERROR set."""
    group = load_i64(change_at(gone, first), CHANGE_TIME)
    row = load_i64(change_at(gone, first), CHANGE_ROW)
    slab = slab_at(index, group)
    if load_i32(slab, IXS_COUNT) == last - first:
        slot = hash_slot(index, row) if load_i64(index, IX_DENSE) == 0 else 0
        drop_group(index, group, slot)
        return True
    if load_i32(slab, IXS_CAPACITY) == 0 and not extend_slab(ctl, index, slab):
        return False
    if last - first > FEW:
        return sweep_slab(ctl, index, slab, gone, first, last)
    pool = load_i64(index, IX_POOL)
    start = load_i32(slab, IXS_START)
    for i in range(first, last):
        count = load_i32(slab, IXS_COUNT)
        at = place_of(pool, start, count, item_of_row(index, load_i64(change_at(gone, i), CHANGE_ROW)))
        store_i32(pool, at, load_i32(pool, start + count - 1))
        store_i32(slab, IXS_COUNT, count - 1)
        store_i64(ctl, CTL_WORK, load_i64(ctl, CTL_WORK) + at - start)
    return True


@kernel
def sweep_slab(ctl, index, slab, gone, first, last):
    """Leaves the items of a slab of which none is that of a row that is gone; false with CTL_ERROR set."""
    places = 64
    while places < 2 * (last - first):
        places *= 2
    table = zeroed(ctl, places * 8)
    if table == 0:
        return False
    for i in range(first, last):
        item = item_of_row(index, load_i64(change_at(gone, i), CHANGE_ROW)) + _PLACED
        store_i64(table, item_place(table, places - 1, item), item)
    pool = load_i64(index, IX_POOL)
    start = load_i32(slab, IXS_START)
    count = load_i32(slab, IXS_COUNT)
    kept = start
    for at in range(start, start + count):
        item = load_i32(pool, at)
        store_i32(pool, kept, item)
        if load_i64(table, item_place(table, places - 1, item + _PLACED)) == 0:
            kept += 1
    store_i32(slab, IXS_COUNT, kept - start)
    store_i64(ctl, CTL_WORK, load_i64(ctl, CTL_WORK) + count)
    release(ctl, table, places * 8)
    return True


@kernel
def item_place(table, mask, item):
    """Where an item is in a table, or would be."""
    # Unsigned: a product of signed numbers is taken not to overflow, and items are known to be small.
    at = (wrapped_product(item, _MIX) >> 32) & mask
    while load_i64(table, at) != 0 and load_i64(table, at) != item:
        at = (at + 1) & mask
    return at
