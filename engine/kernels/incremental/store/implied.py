"""The key column of a base (base.py), which its offsets imply: it takes no memory, but for the rows that came later.

The key of a base row is that of the offsets between which its number lies; every 64th row's is noted, so that the search is
short. Such a column has the width IMPLIED, and its data is the collection itself. It suits inputs whose rows are looked up by
that key alone: keys are read of rows that change, not of all.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.layout import IMPLIED
from dlog.engine.kernels.machine_structs import Column, Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import load_cell, release, resize, zeroed

MIN_IMPLIED_ROWS = 1 << 12
"""Rows below which the column is worth its memory."""
SAMPLE_BITS = 6
"""Of the number of rows between two whose keys are noted."""


@kernel
def key_column(collection: Collection) -> Column:
    return collection.columns[collection.base.key]


@kernel
def is_implied(collection: Collection):
    """Whether there is a base with an implied key."""
    return collection.base.samples.address != 0


@kernel
def implied_key(collection: Collection, row):
    """The key of a row."""
    base = collection.base.rows
    if row >= base:
        return collection.base.tail[row - base]
    samples = collection.base.samples
    offsets = collection.base.offsets
    first = samples[row >> SAMPLE_BITS]
    last = samples[(row >> SAMPLE_BITS) + 1]
    while first < last:
        middle = (first + last + 1) >> 1
        if offsets[middle] <= row:
            first = middle
        else:
            last = middle - 1
    return collection.base.low + first


@kernel
def warm_key(collection: Collection, row):
    """Asks for the offsets among which the key of a row of a base is looked for, if it is implied; after `warm_cell`."""
    if is_implied(collection) and row < collection.base.rows:
        prefetch(collection.base.offsets.address + collection.base.samples[row >> SAMPLE_BITS] * 4)


@kernel
def cell_at(column: Column, row):
    """Value of a column of a collection in a row."""
    width = column.width
    if width == IMPLIED:
        return implied_key(Collection(column.data), row)
    return load_cell(column.data, width, row)


@kernel
def warm_cell(column: Column, row):
    """Asks for the value of a column of a collection in a row."""
    width = column.width
    if width != IMPLIED:
        prefetch(column.data + row * width)
        return
    collection = Collection(column.data)
    base = collection.base.rows
    if row >= base:
        prefetch(collection.base.tail.address + (row - base) * 4)
    else:
        prefetch(collection.base.samples.address + (row >> SAMPLE_BITS) * 4)


@kernel
def gather_keys(column: Column, rows: Words, n, target: Words):
    """target[i] = the implied key of rows[i]; a negative row reads row 0."""
    collection = Collection(column.data)
    base = collection.base.rows
    samples = collection.base.samples
    tail = collection.base.tail
    for i in range(n):
        row = max(rows[i], 0)
        prefetch(tail.address + (row - base) * 4 if row >= base else samples.address + (row >> SAMPLE_BITS) * 4)
    for i in range(n):
        target[i] = implied_key(collection, max(rows[i], 0))


# -------------------------------------------------------------------------------------------------------------- to and fro


@kernel
def may_be_implied(collection: Collection):
    """Whether the base is large, its key takes 4 bytes, and all indexes are by it."""
    if collection.base.rows < MIN_IMPLIED_ROWS or key_column(collection).width != 4:
        return False
    indexes = collection.indexes
    for i in range(collection.index_count):
        index = indexes[i]
        if index.key_count != 1 or index.keys[0] != collection.base.key:
            return False
    return True


@kernel
def imply_key(ctl: Control, collection: Collection):
    """Gives back the key column's memory, where that may be; false with ctl.error set."""
    if is_implied(collection) or not may_be_implied(collection):
        return True
    base = collection.base.rows
    capacity = collection.capacity
    column = key_column(collection)
    data = Numbers(column.data)
    low = collection.base.low
    samples = Numbers(zeroed(ctl, sample_bytes(base)))
    tail = Numbers(zeroed(ctl, (capacity - base) * 4))
    if not samples or not tail:
        release(ctl, samples.address, sample_bytes(base))
        release(ctl, tail.address, (capacity - base) * 4)
        return False
    for number in range((base - 1 >> SAMPLE_BITS) + 1):
        samples[number] = data[number << SAMPLE_BITS] - low
    samples[(base - 1 >> SAMPLE_BITS) + 1] = data[base - 1] - low
    for row in range(base, collection.rows):
        tail[row - base] = data[row]
    release(ctl, data.address, capacity * 4)
    collection.base.samples = samples
    collection.base.tail = tail
    column.data = collection.address
    column.width = IMPLIED
    return True


@kernel
def sample_bytes(base):
    """Of the noted keys of so many rows, and that of the last."""
    return ((base - 1 >> SAMPLE_BITS) + 2) * 4


@kernel
def resize_tail(ctl: Control, collection: Collection, old, new):
    """Room for `new` rows in the place of `old` in an implied column; false with ctl.error set."""
    base = collection.base.rows
    moved = resize(ctl, collection.base.tail.address, (old - base) * 4, (new - base) * 4)
    if moved == 0:
        return False
    collection.base.tail = Numbers(moved)
    return True


@kernel
def room_for_samples(ctl: Control, collection: Collection, rows):
    """Makes room for what is noted of the keys of a base that has all rows and is to have so many, if they are implied; false
    with ctl.error set."""
    if not is_implied(collection):
        return True
    samples = resize(ctl, collection.base.samples.address, sample_bytes(collection.base.rows), sample_bytes(rows))
    if samples == 0:
        return False
    collection.base.samples = Numbers(samples)
    return True


@kernel
def note_samples(ctl: Control, collection: Collection, before, keys: Words, step, first):
    """After a base of `before` rows has grown: notes some keys of the new ones, which are those of a column from a row on, if
    they are implied. There is room for them. False with ctl.error set."""
    base = collection.base
    if not is_implied(collection):
        return True
    last = base.rows - 1
    for number in range((before - 1 >> SAMPLE_BITS) + 1, (last >> SAMPLE_BITS) + 1):
        base.samples[number] = keys[(first + (number << SAMPLE_BITS) - before) * step] - base.low
    base.samples[(last >> SAMPLE_BITS) + 1] = keys[(first + last - before) * step] - base.low
    capacity = collection.capacity
    tail = resize(ctl, base.tail.address, (capacity - before) * 4, (capacity - base.rows) * 4)
    base.tail = Numbers(tail)
    return tail != 0


@entry()
def write_keys(ctl: Control, collection: Collection):
    """Makes an implied column one like others; false with ctl.error set."""
    if not is_implied(collection):
        return True
    base = collection.base.rows
    capacity = collection.capacity
    data = Numbers(zeroed(ctl, capacity * 4))
    if not data:
        return False
    offsets = collection.base.offsets
    low = collection.base.low
    for group in range(collection.base.keys):
        for row in range(offsets[group], offsets[group + 1]):
            data[row] = low + group
    tail = collection.base.tail
    for row in range(base, collection.rows):
        data[row] = tail[row - base]
    release(ctl, tail.address, (capacity - base) * 4)
    release(ctl, collection.base.samples.address, sample_bytes(base))
    collection.base.tail = Numbers(0)
    collection.base.samples = Numbers(0)
    key_column(collection).data = data.address
    key_column(collection).width = 4
    return True


@entry()
def copy_keys(collection: Collection, rows: Numbers, count, target: Numbers):
    """target[i] (int32) = the implied key of rows[i] (int32)."""
    for i in range(count):
        target[i] = implied_key(collection, rows[i])
