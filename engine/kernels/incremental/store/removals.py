"""Rows that leave long groups of an index: those of a batch together.

To find one row, a group is searched. For many rows of one group that would be done over and over, so rows that leave long
groups are only noted (`index_remove`) until the batch is settled: then a group that few have left is searched for each, others
are gone through once.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import wrapped_product
from dlog.engine.kernels.incremental.loop.changes import same_time
from dlog.engine.kernels.incremental.store.densifying import copy_again
from dlog.engine.kernels.incremental.store.groups import item_of_row, slab_at
from dlog.engine.kernels.incremental.store.indexes import drop_group, extend_slab, place_of, shorten_slab
from dlog.engine.kernels.incremental.store.keyed import slot_with
from dlog.engine.kernels.incremental.store.lists import list_free, sort_changes
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.row_structs import Change, Changes, List, Slab
from dlog.engine.kernels.static.storage import clear_words, release, zeroed

MAX_SEARCHED_ROWS = 32
"""Rows up to which a group that they leave is searched for each: as many are compared in the time of one look-up by hash."""
_MIX = -7046029254386353131
_PLACED = 1 << 40
"""Added to items of a table, so that none is 0."""


@kernel
def leave_groups(ctl: Control, index: Index):
    """Takes the rows out that have left long groups in this batch; false with ctl.error set."""
    gone = index.leaving_rows
    if gone.count == 0:
        return True
    counts = ctl.scratch
    spare = Changes(counts.address + BLOCK * 8)
    clear_words(Words(spare.address), List.size >> 3)
    spare.words = Change.size >> 3
    done = sort_changes(ctl, gone, spare, counts)
    first = 0
    while done and first < gone.count:
        last = same_time(gone, first)
        done = leave_group(ctl, index, gone, first, last)
        first = last
    list_free(ctl, gone)
    list_free(ctl, spare)
    return done


@kernel
def leave_group(ctl: Control, index: Index, gone: Changes, first, last):
    """Takes rows [first, last) of those that are gone out of the one group that had them; false with ctl.error set."""
    group = gone.data[first].time
    row = gone.data[first].row
    done = take_rows(ctl, index, group, gone, first, last)
    copy_again(index, group, row)
    return done


@kernel
def take_rows(ctl: Control, index: Index, group, gone: Changes, first, last):
    slab = slab_at(index, group)
    if slab.count == last - first:
        slot = slot_with(index, gone.data[first].row) if index.dense == 0 else 0
        drop_group(index, group, slot)
        return True
    if slab.capacity == 0 and not extend_slab(ctl, index, slab):
        return False
    if last - first > MAX_SEARCHED_ROWS:
        return sweep_slab(ctl, index, slab, gone, first, last)
    pool = index.pool
    start = slab.start
    for i in range(first, last):
        count = slab.count
        at = place_of(pool, start, count, item_of_row(index, gone.data[i].row))
        pool[at] = pool[start + count - 1]
        slab.count = count - 1
        ctl.work = ctl.work + at - start
    return shorten_slab(ctl, index, slab)


@kernel
def sweep_slab(ctl: Control, index: Index, slab: Slab, gone: Changes, first, last):
    """Leaves the items of a slab of which none is that of a row that is gone; false with ctl.error set."""
    places = 64
    while places < 2 * (last - first):
        places *= 2
    table = Words(zeroed(ctl, places * 8))
    if not table:
        return False
    for i in range(first, last):
        item = item_of_row(index, gone.data[i].row) + _PLACED
        table[item_place(table, places - 1, item)] = item
    pool = index.pool
    start = slab.start
    count = slab.count
    kept = start
    for at in range(start, start + count):
        item = pool[at]
        pool[kept] = item
        if table[item_place(table, places - 1, item + _PLACED)] == 0:
            kept += 1
    slab.count = kept - start
    ctl.work += count
    release(ctl, table.address, places * 8)
    return shorten_slab(ctl, index, slab)


@kernel
def item_place(table: Words, mask, item):
    """Where an item is in a table, or would be."""
    # Unsigned: a product of signed numbers is taken not to overflow, and items are known to be small.
    at = (wrapped_product(item, _MIX) >> 32) & mask
    while table[at] != 0 and table[at] != item:
        at = (at + 1) & mask
    return at
