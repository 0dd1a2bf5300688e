"""Base: the rows of an input that came in one go, sorted, which need no table to be found.

Rows [0, CO_BASE_ROWS) are sorted by the column CO_BASE_KEY and then by the others in their order; those with key k are
[offsets[k - low], offsets[k - low + 1]). They keep their numbers for good: one that is removed is dead, and lives again when
its values return. All other rows are found by the slots. (The idea of a base layer without times of differential dataflow's
traces.)
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i64
from dlog.engine.kernels.layout import (
    CO_BASE_DEAD,
    CO_BASE_KEY,
    CO_BASE_KEYS,
    CO_BASE_LOW,
    CO_BASE_OFFSETS,
    CO_BASE_ROWS,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    REL_ARITY,
    REL_COLUMNS,
)
from dlog.engine.kernels.static.storage import load_cell, release

SHORT = 24
"""Values that are counted rather than halved."""
LINES = 128
"""Bytes of a key's rows up to which both ends are asked for before they are searched, not the middle."""


@kernel
def base_group(collection, values):
    """Place of the values' key among the offsets, or -1."""
    value = load_i64(values, load_i64(collection, CO_BASE_KEY))
    low = load_i64(collection, CO_BASE_LOW)
    return value - low if low <= value < low + load_i64(collection, CO_BASE_KEYS) else -1


@kernel
def compare_base(collection, row, values):
    """-1, 0 or 1 as a base row is before, at or behind values with its key."""
    key = load_i64(collection, CO_BASE_KEY)
    for c in range(load_i64(collection, REL_ARITY)):
        if c != key:
            column = load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8
            cell = load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)
            wanted = load_i64(values, c)
            if cell != wanted:
                return -1 if cell < wanted else 1
    return 0


@kernel
def find_base(collection, values):
    """The base row with these values, dead or alive, or -1."""
    group = base_group(collection, values)
    if group < 0:
        return -1
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    first = load_i32(offsets, group)
    last = load_i32(offsets, group + 1)
    while first < last:
        middle = (first + last) >> 1
        order = compare_base(collection, middle, values)
        if order == 0:
            return middle
        if order < 0:
            first = middle + 1
        else:
            last = middle
    return -1


@kernel
def search_base(collection, columns, step, first, n, rows, buffer):
    """rows[i] = the base row, dead or alive, with the values of row first + i of columns, or -1. Value c of row r is word
    r * step at the address that is word c of `columns`; `buffer` has room for a row.

    First all offsets are asked for, then the keys' rows, so that memory answers while the search goes on."""
    key = load_i64(collection, CO_BASE_KEY)
    arity = load_i64(collection, REL_ARITY)
    find_base_groups(collection, load_i64(columns, key), step, first, n, rows)
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    number = 1 if key == 0 and arity > 1 else 0
    column = load_i64(collection, REL_COLUMNS) + number * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    if n > 1:
        for i in range(n):
            group = load_i64(rows, i)
            if group >= 0:
                low = load_i32(offsets, group)
                high = load_i32(offsets, group + 1) - 1
                if (high - low) * width > LINES:
                    low = (low + high) >> 1
                    high = low
                prefetch(data + low * width)
                prefetch(data + high * width)
    if arity == 2 and width == 4:
        wanted = load_i64(columns, number)
        for i in range(n):
            group = load_i64(rows, i)
            if group >= 0:
                last = load_i32(offsets, group + 1)
                store_i64(rows, i, search_values(data, load_i32(offsets, group), last, load_i64(wanted, (first + i) * step)))
        return
    for i in range(n):
        if load_i64(rows, i) >= 0:
            for c in range(arity):
                store_i64(buffer, c, load_i64(load_i64(columns, c), (first + i) * step))
            store_i64(rows, i, find_base(collection, buffer))


@kernel
def find_base_groups(collection, keys, step, first, n, groups):
    """groups[i] = place among the offsets of key first + i, or -1."""
    low = load_i64(collection, CO_BASE_LOW)
    count = load_i64(collection, CO_BASE_KEYS)
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    for i in range(n):
        group = load_i64(keys, (first + i) * step) - low
        if 0 <= group < count:
            prefetch(offsets + group * 4)
        else:
            group = -1
        store_i64(groups, i, group)


@kernel
def search_values(data, first, last, value):
    """Where a value is among the ascending 4-byte values [first, last), or -1."""
    while last - first > SHORT:
        middle = (first + last) >> 1
        if load_i32(data, middle) < value:
            first = middle + 1
        else:
            last = middle + 1
    # Which half a value is in cannot be foretold: a few are counted without a branch.
    place = first
    for at in range(first, last):
        place += 1 if load_i32(data, at) < value else 0
    return place if place < last and load_i32(data, place) == value else -1


@kernel
def drop_base(ctl, collection):
    """Forgets the base; what is known of its rows is the caller's."""
    release(ctl, load_i64(collection, CO_BASE_OFFSETS), (load_i64(collection, CO_BASE_KEYS) + 1) * 4)
    for field in (CO_BASE_ROWS, CO_BASE_KEYS, CO_BASE_OFFSETS, CO_BASE_DEAD):
        store_i64(collection, field, 0)
