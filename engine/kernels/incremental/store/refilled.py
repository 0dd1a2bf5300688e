"""Writing what refilling (refilling.py) has planned for a stretch of a base: places get their rows, and indexes their numbers.

`order[i]` is the number that the row for place i of the stretch has so far, or the complement of that of a dead row. None of
this can fail; indexes are written before the places are.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.densifying import copy_again
from dlog.engine.kernels.incremental.store.groups import slab_at
from dlog.engine.kernels.incremental.store.histories import clear_bit, fill_bits
from dlog.engine.kernels.incremental.store.implied import SAMPLE_BITS, is_implied, key_column
from dlog.engine.kernels.incremental.store.indexes import free_slab
from dlog.engine.kernels.incremental.store.slots import remove_slot
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Index
from dlog.engine.kernels.static.storage import behind, store_cell

OTHER_WORDS = 2
"""Words of a row that is to come: its key's place among the offsets, and its number or, before that is known, its value."""
STEP = 1 << SAMPLE_BITS


@kernel
def number_of(entry):
    return entry if entry >= 0 else -1 - entry


@kernel
def write_spots(collection: Collection, number, order: Words, places, spots: Words, start):
    """Has all indexes but one by the base's column know rows by their new numbers."""
    for k in range(collection.index_count):
        index = collection.indexes[k]
        found = behind(spots, k * places)
        if k != number and index.values == 0:
            for i in range(places):
                if order[i] >= 0 and found[i] >= 0:
                    index.pool[found[i]] = start + i
                elif order[i] >= 0:
                    slab_at(index, -1 - found[i]).start = start + i
                    copy_again(index, -1 - found[i], number_of(order[i]))


@kernel
def write_home(home: Index, key, order: Words, begin, end, start, base_rows):
    """The same for a key of the index by the base's column, whose rows are order[begin:end], and others behind the base. They
    become a run, if they can."""
    if not 0 <= key - home.low < home.groups:
        return
    slab = slab_at(home, key - home.low)
    if slab.count == 0:
        return
    low, high = begin, end
    while low < high and order[low] < 0:
        low += 1
    while low < high and order[high - 1] < 0:
        high -= 1
    # Dead ones stay only where no others do: so many places in a row have nothing but the key's rows.
    if high - low == slab.count:
        free_slab(home, slab.start, slab.capacity)
        slab.start = start + low
        slab.capacity = 0
    elif slab.capacity != 0 and home.values == 0:
        taken = 0
        for i in range(low, high):
            taken += 1 if order[i] >= base_rows else 0
        at = keep_others(home.pool, slab.start, slab.count, taken, base_rows)
        for i in range(low, high):
            if order[i] >= 0:
                home.pool[at] = start + i
                at += 1


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
def write_cells(collection: Collection, order: Words, places, values: Words, start):
    """Gives the places the values of their rows, but for the keys. `values` has room for a column."""
    for c in range(collection.arity):
        if c != collection.base.key:
            column = collection.columns[c]
            if column.width == 4:
                data = Numbers(column.data)
                for i in range(places):
                    values[i] = data[number_of(order[i])]
                for i in range(places):
                    data[start + i] = values[i]
            else:
                wide = Words(column.data)
                for i in range(places):
                    values[i] = wide[number_of(order[i])]
                for i in range(places):
                    wide[start + i] = values[i]


@kernel
def write_living(collection: Collection, order: Words, places, staying, start):
    """Has the places live but for those of so many dead ones."""
    fill_bits(collection.alive, start, start + places)
    for i in range(places if staying > 0 else 0):
        if order[i] < 0:
            clear_bit(collection.alive, start + i)


@kernel
def free_others(collection: Collection, others: Words, coming):
    """Gives up slots and numbers of the rows that were behind the base, which their places have now."""
    for i in range(coming):
        row = others[i * OTHER_WORDS + 1]
        remove_slot(collection, row)
        clear_bit(collection.alive, row)
        collection.free[collection.free_count] = row
        collection.free_count += 1


@kernel
def write_keys_of(collection: Collection, first, last, ends: Words, start):
    """Gives the places the keys first, ... of which ends[i + 1] is the end of the i-th's."""
    base = collection.base
    column = key_column(collection)
    implied = is_implied(collection)
    for i in range(last - first):
        begin = start + ends[i]
        end = start + ends[i + 1]
        if i > 0:
            base.offsets[first + i] = begin
        if not implied:
            for row in range(begin, end):
                store_cell(column.data, column.width, row, base.low + first + i)
        else:
            for sample in range((begin + STEP - 1) >> SAMPLE_BITS, (end + STEP - 1) >> SAMPLE_BITS):
                base.samples[sample] = first + i
            if begin < base.rows <= end:
                base.samples[((base.rows - 1) >> SAMPLE_BITS) + 1] = first + i
