"""The key column of a base (base.py), which its offsets imply: it takes no memory, but for the rows that came later.

The key of a base row is that of the offsets between which its number lies; every 64th row's is noted, so that the search is
short. Such a column has the width IMPLIED, and its data is the collection itself. It suits inputs whose rows are looked up by
that key alone: keys are read of rows that change, not of all.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.layout import (
    CO_BASE_KEY,
    CO_BASE_KEYS,
    CO_BASE_LOW,
    CO_BASE_OFFSETS,
    CO_BASE_ROWS,
    CO_INDEX_COUNT,
    CO_INDEXES,
    CO_KEY_SAMPLES,
    CO_KEY_TAIL,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    IMPLIED,
    IX_KEY_COUNT,
    IX_KEYS,
    REL_CAPACITY,
    REL_COLUMNS,
    REL_ROWS,
)
from dlog.engine.kernels.static.storage import load_cell, release, resize, zeroed

FEWEST = 1 << 12
"""Rows below which the column is worth its memory."""
BITS = 6
"""Of the number of rows between two whose keys are noted."""


@kernel
def key_column(collection):
    return load_i64(collection, REL_COLUMNS) + load_i64(collection, CO_BASE_KEY) * COL_SIZE * 8


@kernel
def is_implied(collection):
    """Whether there is a base with an implied key."""
    return load_i64(collection, CO_KEY_SAMPLES) != 0


@kernel
def implied_key(collection, row):
    """The key of a row."""
    base = load_i64(collection, CO_BASE_ROWS)
    if row >= base:
        return load_i32(load_i64(collection, CO_KEY_TAIL), row - base)
    samples = load_i64(collection, CO_KEY_SAMPLES)
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    first = load_i32(samples, row >> BITS)
    last = load_i32(samples, (row >> BITS) + 1)
    while first < last:
        middle = (first + last + 1) >> 1
        if load_i32(offsets, middle) <= row:
            first = middle
        else:
            last = middle - 1
    return load_i64(collection, CO_BASE_LOW) + first


@kernel
def cell_at(column, row):
    """Value of a column of a collection in a row."""
    width = load_i64(column, COL_WIDTH)
    if width == IMPLIED:
        return implied_key(load_i64(column, COL_DATA), row)
    return load_cell(load_i64(column, COL_DATA), width, row)


@kernel
def warm_cell(column, row):
    """Asks for the value of a column of a collection in a row."""
    width = load_i64(column, COL_WIDTH)
    if width != IMPLIED:
        prefetch(load_i64(column, COL_DATA) + row * width)
        return
    collection = load_i64(column, COL_DATA)
    base = load_i64(collection, CO_BASE_ROWS)
    if row >= base:
        prefetch(load_i64(collection, CO_KEY_TAIL) + (row - base) * 4)
    else:
        prefetch(load_i64(collection, CO_KEY_SAMPLES) + (row >> BITS) * 4)


@kernel
def gather_keys(column, rows, n, target):
    """target[i] = the implied key of rows[i]; a negative row reads row 0."""
    collection = load_i64(column, COL_DATA)
    base = load_i64(collection, CO_BASE_ROWS)
    samples = load_i64(collection, CO_KEY_SAMPLES)
    tail = load_i64(collection, CO_KEY_TAIL)
    for i in range(n):
        row = max(load_i64(rows, i), 0)
        prefetch(tail + (row - base) * 4 if row >= base else samples + (row >> BITS) * 4)
    for i in range(n):
        store_i64(target, i, implied_key(collection, max(load_i64(rows, i), 0)))


# -------------------------------------------------------------------------------------------------------------- to and fro


@kernel
def may_be_implied(collection):
    """Whether the base is large, its key takes 4 bytes, and all indexes are by it."""
    if load_i64(collection, CO_BASE_ROWS) < FEWEST or load_i64(key_column(collection), COL_WIDTH) != 4:
        return False
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        index = load_i64(indexes, i)
        if load_i64(index, IX_KEY_COUNT) != 1 or load_i64(load_i64(index, IX_KEYS), 0) != load_i64(collection, CO_BASE_KEY):
            return False
    return True


@kernel
def imply_key(ctl, collection):
    """Gives back the key column's memory, where that may be; false with CTL_ERROR set."""
    if is_implied(collection) or not may_be_implied(collection):
        return True
    base = load_i64(collection, CO_BASE_ROWS)
    capacity = load_i64(collection, REL_CAPACITY)
    column = key_column(collection)
    data = load_i64(column, COL_DATA)
    low = load_i64(collection, CO_BASE_LOW)
    samples = zeroed(ctl, sample_bytes(base))
    tail = zeroed(ctl, (capacity - base) * 4)
    if samples == 0 or tail == 0:
        release(ctl, samples, sample_bytes(base))
        release(ctl, tail, (capacity - base) * 4)
        return False
    for number in range((base - 1 >> BITS) + 1):
        store_i32(samples, number, load_i32(data, number << BITS) - low)
    store_i32(samples, (base - 1 >> BITS) + 1, load_i32(data, base - 1) - low)
    for row in range(base, load_i64(collection, REL_ROWS)):
        store_i32(tail, row - base, load_i32(data, row))
    release(ctl, data, capacity * 4)
    store_i64(collection, CO_KEY_SAMPLES, samples)
    store_i64(collection, CO_KEY_TAIL, tail)
    store_i64(column, COL_DATA, collection)
    store_i64(column, COL_WIDTH, IMPLIED)
    return True


@kernel
def sample_bytes(base):
    """Of the noted keys of so many rows, and that of the last."""
    return ((base - 1 >> BITS) + 2) * 4


@kernel
def resize_tail(ctl, collection, old, new):
    """Room for `new` rows in the place of `old` in an implied column; false with CTL_ERROR set."""
    base = load_i64(collection, CO_BASE_ROWS)
    moved = resize(ctl, load_i64(collection, CO_KEY_TAIL), (old - base) * 4, (new - base) * 4)
    if moved == 0:
        return False
    store_i64(collection, CO_KEY_TAIL, moved)
    return True


@entry()
def write_keys(ctl, collection):
    """Makes an implied column one like others; false with CTL_ERROR set."""
    if not is_implied(collection):
        return True
    base = load_i64(collection, CO_BASE_ROWS)
    capacity = load_i64(collection, REL_CAPACITY)
    data = zeroed(ctl, capacity * 4)
    if data == 0:
        return False
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    low = load_i64(collection, CO_BASE_LOW)
    for group in range(load_i64(collection, CO_BASE_KEYS)):
        for row in range(load_i32(offsets, group), load_i32(offsets, group + 1)):
            store_i32(data, row, low + group)
    tail = load_i64(collection, CO_KEY_TAIL)
    for row in range(base, load_i64(collection, REL_ROWS)):
        store_i32(data, row, load_i32(tail, row - base))
    release(ctl, tail, (capacity - base) * 4)
    release(ctl, load_i64(collection, CO_KEY_SAMPLES), sample_bytes(base))
    store_i64(collection, CO_KEY_TAIL, 0)
    store_i64(collection, CO_KEY_SAMPLES, 0)
    store_i64(key_column(collection), COL_DATA, data)
    store_i64(key_column(collection), COL_WIDTH, 4)
    return True


@entry()
def copy_keys(collection, rows, count, target):
    """target[i] (int32) = the implied key of rows[i] (int32)."""
    for i in range(count):
        store_i32(target, i, implied_key(collection, load_i32(rows, i)))
