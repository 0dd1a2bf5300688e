"""Hash sets of rows: open addressing with linear probing over 32-bit words.

A word is a row number plus one, so that zeroed memory is an empty table, and above it as many bits of the row's hash as are
left: rows are compared through the columns only where these agree. A table has any number of slots, not a power of two (the
home of a hash is its upper half scaled to the table), and grows by a half, a large one by a quarter, when it is 4/5 full: from
the columns, after the old one is freed. So it takes 5 to 6.25 bytes per row, also while it grows.

Whole blocks ask for their slots, then for the rows these name, before they look at the first: a table larger than the cache
then costs two waits per block instead of two per row.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length, load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.layout import (
    BLOCK,
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
from dlog.engine.kernels.static.storage import load_cell, mix, register, release, rows_equal, store_cell, zeroed

LARGE = 2**21
"""Slots from which on tables grow by a quarter: what that saves is more than the time it takes."""


@kernel
def hash_block(ctl, registers, count, n, hashes):
    for i in range(n):
        store_i64(hashes, i, 0)
    for k in range(count):
        values = register(ctl, load_i64(registers, k))
        for i in range(n):
            store_i64(hashes, i, mix(load_i64(hashes, i), load_i64(values, i)))


@kernel
def hash_rows(relation, first, count, hashes):
    """Hashes of the keys of `count` rows from `first` on, a column at a time."""
    columns = load_i64(relation, REL_COLUMNS)
    keys = load_i64(relation, REL_KEYS)
    for i in range(count):
        store_i64(hashes, i, 0)
    for k in range(load_i64(relation, REL_KEY_COUNT)):
        column = columns + load_i64(keys, k) * COL_SIZE * 8
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
def home(hashed, count):
    """The slot of `count` where a hash is looked for first: its upper 31 bits as a fraction of the table."""
    return (((hashed >> 33) & 0x7FFFFFFF) * count) >> 31


@kernel
def row_bits(count):
    """Bits of a slot's word that hold the row number plus one: a table of `count` slots has fewer rows than slots."""
    return bit_length(count)


@kernel
def slot_word(hashed, row, bits):
    """The word of a row; only its lower 32 bits are kept."""
    return (hashed << bits) | (row + 1)


@kernel
def may_be(word, hashed, bits):
    """Whether a slot's word can be that of a row with this hash."""
    return ((word ^ (hashed << bits)) & 0xFFFFFFFF) >> bits == 0


@kernel
def row_of(word, bits):
    return (word & ((1 << bits) - 1)) - 1


@kernel
def prefetch_homes(table, count, hashes, n):
    for i in range(n):
        prefetch(table + home(load_i64(hashes, i), count) * 4)


@kernel
def grow_hash(ctl, relation, rows):
    """Makes the hash table large enough for `rows` rows at a load of at most 4/5, with the rows present in it."""
    slots = load_i64(relation, REL_SLOT_COUNT)
    if rows * 5 <= slots * 4:
        return True
    count = max(slots, 1024)
    while rows * 5 > count * 4:
        count += count >> (1 if count < LARGE else 2)
    release(ctl, load_i64(relation, REL_SLOTS), slots * 4)
    store_i64(relation, REL_SLOTS, 0)
    store_i64(relation, REL_SLOT_COUNT, 0)
    hashes = zeroed(ctl, BLOCK * 8)
    if hashes == 0:
        return False
    table = zeroed(ctl, count * 4)
    if table != 0:
        store_i64(relation, REL_SLOTS, table)
        store_i64(relation, REL_SLOT_COUNT, count)
        enter_rows(relation, table, count, hashes)
    release(ctl, hashes, BLOCK * 8)
    return table != 0


@kernel
def enter_rows(relation, table, count, hashes):
    """Enters the rows present, which are distinct, into an empty table. `hashes` is a scratch block."""
    rows = load_i64(relation, REL_ROWS)
    bits = row_bits(count)
    for first in range(0, rows, BLOCK):
        n = min(BLOCK, rows - first)
        hash_rows(relation, first, n, hashes)
        prefetch_homes(table, count, hashes, n)
        for i in range(n):
            hashed = load_i64(hashes, i)
            at = home(hashed, count)
            while load_i32(table, at) != 0:
                at += 1
                if at == count:
                    at = 0
            store_i32(table, at, slot_word(hashed, first + i, bits))


@kernel
def seek_slot(table, count, bits, hashed, at):
    """The first slot from `at` on that is free or whose row can have this hash."""
    while True:
        word = load_i32(table, at)
        if word == 0 or may_be(word, hashed, bits):
            return at
        at += 1
        if at == count:
            at = 0


@kernel
def find_hash(relation, ctl, registers, i, hashed, at):
    """Row number with the key of block row i, or -1 - slot where it would go; looks from slot `at` on."""
    table = load_i64(relation, REL_SLOTS)
    count = load_i64(relation, REL_SLOT_COUNT)
    bits = row_bits(count)
    while True:
        at = seek_slot(table, count, bits, hashed, at)
        word = load_i32(table, at)
        if word == 0:
            return -1 - at
        row = row_of(word, bits)
        if row_equals(relation, ctl, registers, i, row):
            return row
        at += 1
        if at == count:
            at = 0


@kernel
def seek_slots(relation, n, hashes, slots):
    """slots[i] = -1 - the slot that `find_hash` shall begin at, where slots[i] < 0; asks for the row that is in it."""
    table = load_i64(relation, REL_SLOTS)
    count = load_i64(relation, REL_SLOT_COUNT)
    columns = load_i64(relation, REL_COLUMNS)
    keys = load_i64(relation, REL_KEYS)
    bits = row_bits(count)
    prefetch_homes(table, count, hashes, n)
    for i in range(n):
        if load_i64(slots, i) >= 0:
            continue
        hashed = load_i64(hashes, i)
        at = seek_slot(table, count, bits, hashed, home(hashed, count))
        store_i64(slots, i, -1 - at)
        word = load_i32(table, at)
        if word != 0:
            for k in range(load_i64(relation, REL_KEY_COUNT)):
                column = columns + load_i64(keys, k) * COL_SIZE * 8
                prefetch(load_i64(column, COL_DATA) + row_of(word, bits) * load_i64(column, COL_WIDTH))


@kernel
def insert_hash(ctl, relation, registers, n, codes, known):
    """Adds the block's rows that are not in the hash set, but for those with known[i] >= 0. Room is there already."""
    hash_block(ctl, registers, load_i64(relation, REL_KEY_COUNT), n, codes)
    seek_slots(relation, n, codes, known)
    table = load_i64(relation, REL_SLOTS)
    bits = row_bits(load_i64(relation, REL_SLOT_COUNT))
    columns = load_i64(relation, REL_COLUMNS)
    arity = load_i64(relation, REL_ARITY)
    rows = load_i64(relation, REL_ROWS)
    start = rows
    for i in range(n):
        if load_i64(known, i) >= 0:
            continue
        hashed = load_i64(codes, i)
        slot = find_hash(relation, ctl, registers, i, hashed, -1 - load_i64(known, i))
        if slot < 0:
            for c in range(arity):
                column = columns + c * COL_SIZE * 8
                store_cell(
                    load_i64(column, COL_DATA),
                    load_i64(column, COL_WIDTH),
                    rows,
                    load_i64(register(ctl, load_i64(registers, c)), i),
                )
            store_i32(table, -1 - slot, slot_word(hashed, rows, bits))
            rows += 1
    store_i64(relation, REL_ROWS, rows)
    return rows - start


@kernel
def take_slot(relation, table, count, bits, hashed, row, kept):
    """Enters a row, that will be row `kept`, into a table of `count` slots unless an equal row is there. Returns whether it
    was new. `bits` hold any row number plus one."""
    at = home(hashed, count)
    while True:
        at = seek_slot(table, count, bits, hashed, at)
        word = load_i32(table, at)
        if word == 0:
            store_i32(table, at, slot_word(hashed, kept, bits))
            return True
        if rows_equal(relation, row, row_of(word, bits)):
            return False
        at += 1
        if at == count:
            at = 0
