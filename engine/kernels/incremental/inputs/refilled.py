"""Writing what refilling (refilling.py) has planned for a stretch of a base: places get their rows, and indexes their numbers.

None of this can fail.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.inputs.refill_plan import number_of
from dlog.engine.kernels.incremental.store.bits import clear_bit, fill_bits, get_bit, next_bit
from dlog.engine.kernels.incremental.store.densifying import copy_again
from dlog.engine.kernels.incremental.store.groups import slab_at
from dlog.engine.kernels.incremental.store.implied import SAMPLE_BITS, is_implied, key_column
from dlog.engine.kernels.incremental.store.indexes import free_slab
from dlog.engine.kernels.incremental.store.slots import remove_slot
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Index
from dlog.engine.kernels.row_structs import Slab, Stretch, StretchKey
from dlog.engine.kernels.static.storage import behind, store_cell

STEP = 1 << SAMPLE_BITS


@kernel
def write_stretch(collection: Collection, number, stretch: Stretch):
    """Writes all of a plan; `number` is that of the index by the base's column. Indexes are written before the rows are, as
    they read these."""
    write_living(collection.alive, stretch)
    write_spots(collection, number, stretch)
    write_home(collection, collection.indexes[number], stretch)
    write_cells(collection, stretch)
    free_others(collection, stretch)
    write_offsets(collection, stretch)
    collection.base.dead -= stretch.incoming


@kernel
def write_living(alive: Words, stretch: Stretch):
    """Has the places live but for those of dead rows that stay."""
    at = stretch.start
    fill_bits(alive, at, at + stretch.places)
    for i in range(stretch.run_count if stretch.staying > 0 else 0):
        if stretch.runs[i].row < 0:
            clear_bit(alive, at)
        at += stretch.runs[i].count


@kernel
def write_spots(collection: Collection, number, stretch: Stretch):
    """Has all indexes but one by the base's column know rows by their new numbers."""
    places = stretch.places
    start = stretch.start
    order = stretch.values
    found = stretch.spots
    for k in range(collection.index_count):
        index = collection.indexes[k]
        if k == number or index.values != 0:
            continue
        for i in range(places):
            if order[i] >= 0 and found[i] >= 0:
                index.pool[found[i]] = start + i
            elif order[i] >= 0:
                slab_at(index, -1 - found[i]).start = start + i
                copy_again(index, -1 - found[i], number_of(order[i]))
        found = behind(found, places)


@kernel
def write_home(collection: Collection, home: Index, stretch: Stretch):
    """The same for the index by the base's column. Its groups become runs, if they can."""
    low = collection.base.low - home.low
    begin = stretch.start
    for key in range(stretch.first, stretch.last):
        place = stretch.keys[key - stretch.first]
        end = stretch.start + place.end
        if 0 <= low + key < home.groups:
            slab = slab_at(home, low + key)
            if place.dead == 0 and slab.count == end - begin:
                write_run(home, slab, begin)
            elif slab.count > 0:
                write_slab(collection, home, slab, place, begin, end)
        begin = end


@kernel
def write_slab(collection: Collection, home: Index, slab: Slab, place: StretchKey, begin, end):
    """Has a group know the rows of the places [begin, end), of which some are dead, or other rows stay behind the base. Dead
    ones stay only where no others do: so many places in a row have nothing but the group's rows."""
    alive = collection.alive
    begin = next_bit(alive, begin, end)
    while end > begin and get_bit(alive, end - 1) == 0:
        end -= 1
    if end - begin == slab.count:
        write_run(home, slab, begin)
    elif slab.capacity != 0 and home.values == 0:
        at = keep_others(home.pool, slab.start, slab.count, place.incoming, collection.base.rows)
        for row in range(begin, end):
            if get_bit(alive, row) != 0:
                home.pool[at] = row
                at += 1


@kernel
def write_run(home: Index, slab: Slab, start):
    """Makes a group, perhaps without rows, those from one on."""
    free_slab(home, slab.start, slab.capacity)
    slab.start = start
    slab.capacity = 0


@kernel
def keep_others(pool: Numbers, start, count, taken, base_rows):
    """Leaves of the items of a slab those that are not of the base, without the last so many; returns where they end."""
    staying = -taken
    for at in range(start, start + count):
        staying += 1 if pool[at] >= base_rows else 0
    kept = start
    for at in range(start, start + count):
        item = pool[at]
        if item >= base_rows and kept < start + staying:
            pool[kept] = item
            kept += 1
    return kept


@kernel
def write_cells(collection: Collection, stretch: Stretch):
    """Gives the places the values of their rows, but for the keys."""
    for c in range(collection.arity):
        if c != collection.base.key:
            column = collection.columns[c]
            if column.width == 4:
                move_cells(Numbers(column.data), Numbers(stretch.values.address), stretch)
            else:
                move_cells(Words(column.data), stretch.values, stretch)


@kernel
def move_cells(cells, before, stretch: Stretch):
    """`write_cells` of a column; `before` has room for what the places have so far."""
    start = stretch.start
    for i in range(stretch.places):
        before[i] = cells[start + i]
    at = start
    for i in range(stretch.run_count):
        row = number_of(stretch.runs[i].row)
        count = stretch.runs[i].count
        if not start <= row < start + stretch.places:
            for j in range(count):
                cells[at + j] = cells[row + j]
        elif row != at:
            for j in range(count):
                cells[at + j] = before[row - start + j]
        at += count


@kernel
def free_others(collection: Collection, stretch: Stretch):
    """Gives up slots and numbers of the rows that were behind the base, which their places have now."""
    for i in range(stretch.incoming):
        row = stretch.others[i].row
        remove_slot(collection, row)
        clear_bit(collection.alive, row)
        collection.free[collection.free_count] = row
        collection.free_count += 1


@kernel
def write_offsets(collection: Collection, stretch: Stretch):
    """Gives the places their keys."""
    base = collection.base
    column = key_column(collection)
    implied = is_implied(collection)
    begin = stretch.start
    for key in range(stretch.first, stretch.last):
        end = stretch.start + stretch.keys[key - stretch.first].end
        base.offsets[key] = begin
        if not implied:
            for row in range(begin, end):
                store_cell(column.data, column.width, row, base.low + key)
        else:
            for sample in range((begin + STEP - 1) >> SAMPLE_BITS, (end + STEP - 1) >> SAMPLE_BITS):
                base.samples[sample] = key
            if begin < base.rows <= end:
                base.samples[((base.rows - 1) >> SAMPLE_BITS) + 1] = key
        begin = end
