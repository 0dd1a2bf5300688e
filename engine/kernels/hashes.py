"""Hash sets of rows: open addressing over 32-bit row numbers, compared through the columns.

Row numbers are kept plus one, so that zeroed memory is an empty table. The load is at most 3/4. Whole blocks ask for their
slots before they look at the first: a table larger than the cache then costs one wait per block instead of one per row.
"""

from __future__ import annotations

from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    REL_ARITY,
    REL_COLUMNS,
    REL_KEY_COUNT,
    REL_KEYS,
    REL_ROWS,
    REL_SLOT_COUNT,
    REL_SLOTS,
)
from dlog.engine.kernels.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.storage import load_cell, mix, register, release, rows_equal, store_cell, zeroed


@kernel
def hash_block(ctl, registers, count, n, hashes):
    for i in range(n):
        store_i64(hashes, i, 0)
    for k in range(count):
        values = register(ctl, load_i64(registers, k))
        for i in range(n):
            store_i64(hashes, i, mix(load_i64(hashes, i), load_i64(values, i)))


@kernel
def hash_row(relation, row):
    columns = load_i64(relation, REL_COLUMNS)
    keys = load_i64(relation, REL_KEYS)
    hashed = 0
    for k in range(load_i64(relation, REL_KEY_COUNT)):
        column = columns + load_i64(keys, k) * COL_SIZE * 8
        hashed = mix(hashed, load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row))
    return hashed


@kernel
def hash_rows(relation, first, count, hashes):
    """hash_row of `count` rows from `first` on, a column at a time; the key is all columns."""
    columns = load_i64(relation, REL_COLUMNS)
    for i in range(count):
        store_i64(hashes, i, 0)
    for c in range(load_i64(relation, REL_KEY_COUNT)):
        column = columns + c * COL_SIZE * 8
        data = load_i64(column, COL_DATA)
        width = load_i64(column, COL_WIDTH)
        for i in range(count):
            store_i64(hashes, i, mix(load_i64(hashes, i), load_cell(data, width, first + i)))


@kernel
def row_equals(relation, ctl, registers, i, row):
    columns = load_i64(relation, REL_COLUMNS)
    keys = load_i64(relation, REL_KEYS)
    for k in range(load_i64(relation, REL_KEY_COUNT)):
        column = columns + load_i64(keys, k) * COL_SIZE * 8
        if load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row) != load_i64(
            register(ctl, load_i64(registers, k)), i
        ):
            return False
    return True


@kernel
def grow_hash(ctl, relation, rows):
    """Makes the hash table large enough for `rows` rows at a load of at most 3/4, rehashing the rows present."""
    slots = load_i64(relation, REL_SLOT_COUNT)
    if rows * 4 <= slots * 3:
        return True
    count = max(slots, 1024)
    while rows * 4 > count * 3:
        count *= 2
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    release(ctl, load_i64(relation, REL_SLOTS), slots * 4)
    store_i64(relation, REL_SLOTS, table)
    store_i64(relation, REL_SLOT_COUNT, count)
    mask = count - 1
    for row in range(load_i64(relation, REL_ROWS)):
        at = (hash_row(relation, row) >> 8) & mask
        while load_i32(table, at) != 0:
            at = (at + 1) & mask
        store_i32(table, at, row + 1)
    return True


@kernel
def find_hash(relation, ctl, registers, i, hashed):
    """Row number with the key of block row i, or -1 - slot where it would go."""
    table = load_i64(relation, REL_SLOTS)
    mask = load_i64(relation, REL_SLOT_COUNT) - 1
    at = (hashed >> 8) & mask
    while True:
        row = load_i32(table, at) - 1
        if row < 0:
            return -1 - at
        if row_equals(relation, ctl, registers, i, row):
            return row
        at = (at + 1) & mask


@kernel
def insert_hash(ctl, relation, registers, n, codes, known):
    """Adds the block's rows that are not in the hash set, but for those with known[i] >= 0. Room is there already."""
    hash_block(ctl, registers, load_i64(relation, REL_KEY_COUNT), n, codes)
    table = load_i64(relation, REL_SLOTS)
    columns = load_i64(relation, REL_COLUMNS)
    arity = load_i64(relation, REL_ARITY)
    rows = load_i64(relation, REL_ROWS)
    start = rows
    mask = load_i64(relation, REL_SLOT_COUNT) - 1
    for i in range(n):
        prefetch(table + ((load_i64(codes, i) >> 8) & mask) * 4)
    for i in range(n):
        if load_i64(known, i) >= 0:
            continue
        slot = find_hash(relation, ctl, registers, i, load_i64(codes, i))
        if slot < 0:
            for c in range(arity):
                column = columns + c * COL_SIZE * 8
                store_cell(
                    load_i64(column, COL_DATA),
                    load_i64(column, COL_WIDTH),
                    rows,
                    load_i64(register(ctl, load_i64(registers, c)), i),
                )
            rows += 1
            store_i32(table, -1 - slot, rows)
    store_i64(relation, REL_ROWS, rows)
    return rows - start


@kernel
def take_slot(relation, table, mask, hashed, row, kept):
    """Enters a row, that will be row `kept`, into the hash table unless an equal row is there. Returns whether it was new."""
    at = (hashed >> 8) & mask
    while True:
        other = load_i32(table, at) - 1
        if other < 0:
            store_i32(table, at, kept + 1)
            return True
        if rows_equal(relation, row, other):
            return False
        at = (at + 1) & mask
