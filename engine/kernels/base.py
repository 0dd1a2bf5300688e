"""Base: the rows of an input that came in one go, sorted, which need no table to be found.

Rows [0, CO_BASE_ROWS) are sorted by the column CO_BASE_KEY and then by the others in their order; those with key k are
[offsets[k - low], offsets[k - low + 1]). They keep their numbers for good: one that is removed is dead, and lives again when
its values return. All other rows are found by the slots. (The idea of a base layer without times of differential dataflow's
traces.)
"""

from __future__ import annotations

from dlog.engine.kernels.jit import kernel
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
from dlog.engine.kernels.memory import load_i32, load_i64, prefetch, store_i64
from dlog.engine.kernels.storage import load_cell, release


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
def warm_base(collection, updates, width, n):
    """Asks for what finding `n` rows of `width` words each will read."""
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    for i in range(n):
        group = base_group(collection, updates + i * width * 8)
        if group >= 0:
            prefetch(offsets + group * 4)
    column = load_i64(collection, REL_COLUMNS)
    if load_i64(collection, CO_BASE_KEY) == 0 and load_i64(collection, REL_ARITY) > 1:
        column += COL_SIZE * 8
    for i in range(n):
        group = base_group(collection, updates + i * width * 8)
        if group >= 0:
            middle = (load_i32(offsets, group) + load_i32(offsets, group + 1)) >> 1
            prefetch(load_i64(column, COL_DATA) + middle * load_i64(column, COL_WIDTH))


@kernel
def drop_base(ctl, collection):
    """Forgets the base; what is known of its rows is the caller's."""
    release(ctl, load_i64(collection, CO_BASE_OFFSETS), (load_i64(collection, CO_BASE_KEYS) + 1) * 4)
    for field in (CO_BASE_ROWS, CO_BASE_KEYS, CO_BASE_OFFSETS, CO_BASE_DEAD):
        store_i64(collection, field, 0)
