"""Collections: the rows of a relation that is maintained over rounds.

A row is found by hash over all columns; row numbers are reused. Columns begin with 4 bytes per value and are widened when a
value does not fit. A row that is alive is in every index of its collection. Rows come as `values`: the address of one word per
column.
"""

from __future__ import annotations

from dlog.engine.kernels.histories import clear_bit, get_bit, open_item, put_bit
from dlog.engine.kernels.indexes import build_index, index_insert, index_remove, warm_group
from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    CO_ALIVE,
    CO_BORN,
    CO_COUNTS,
    CO_CURRENT,
    CO_FREE,
    CO_FREE_CAPACITY,
    CO_FREE_COUNT,
    CO_FRESH,
    CO_HEADS,
    CO_INDEX_COUNT,
    CO_INDEXED,
    CO_INDEXES,
    CO_INNER,
    CO_LIVE,
    CO_NEXTS,
    CO_OUTER,
    CO_PREVIOUS,
    CO_QUIET,
    CO_SLOT_COUNT,
    CO_SLOTS,
    CO_STAMPS,
    CO_SUMS,
    CO_SUPPORT,
    CO_TAKEN,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    CTL_BYTES,
    CTL_ERROR,
    CTL_LIMIT,
    ERROR_MEMORY,
    ERROR_ROWS,
    HI_BITS,
    HI_ITERS,
    LIST_COUNT,
    LIST_DATA,
    NEVER,
    REL_ARITY,
    REL_CAPACITY,
    REL_COLUMNS,
    REL_ROWS,
    SUM_WORDS,
)
from dlog.engine.kernels.lists import list_push
from dlog.engine.kernels.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.storage import ROWS_MAX, load_cell, mix, release, resize, zeroed

# ----------------------------------------------------------------------------------------------------------------- room


@kernel
def grow_words(ctl, struct, field, old, new):
    """Grows the array of `old` words at a field to `new`, zeroed; false with CTL_ERROR set. No array: nothing to do."""
    address = load_i64(struct, field)
    if address == 0:
        return True
    moved = resize(ctl, address, old * 8, new * 8)
    if moved == 0:
        return False
    for word in range(old, new):
        store_i64(moved, word, 0)
    store_i64(struct, field, moved)
    return True


@kernel
def grow_history(ctl, history, old, new):
    if history == 0:
        return True
    return grow_words(ctl, history, HI_BITS, old >> 6, new >> 6) and grow_words(ctl, history, HI_ITERS, old >> 1, new >> 1)


@kernel
def grow_rows(ctl, collection):
    """Makes room for half as many rows again; false with CTL_ERROR set."""
    old = load_i64(collection, REL_CAPACITY)
    new = (max(old + (old >> 1), 64) + 63) & ~63
    return reserve_rows(ctl, collection, new)


@kernel
def bytes_per_row(collection):
    """Bytes that a row takes beside its bits and its slot, rounded up."""
    total = 1
    for c in range(load_i64(collection, REL_ARITY)):
        total += load_i64(load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8, COL_WIDTH)
    for field in (CO_SUPPORT, CO_STAMPS, CO_HEADS, CO_NEXTS, CO_PREVIOUS, CO_CURRENT):
        total += 4 if load_i64(collection, field) != 0 else 0
    total += 8 if load_i64(collection, CO_COUNTS) != 0 else 0
    total += SUM_WORDS * 8 if load_i64(collection, CO_SUMS) != 0 else 0
    return total + 4 if load_i64(collection, CO_INNER) != 0 else total


@kernel
def reserve_rows(ctl, collection, new):
    """Makes room for `new` rows, a multiple of 64; false with CTL_ERROR set."""
    old = load_i64(collection, REL_CAPACITY)
    if new > ROWS_MAX:
        store_i64(ctl, CTL_ERROR, ERROR_ROWS)
        return False
    if load_i64(load_i64(ctl, CTL_BYTES), 0) + (new - old) * bytes_per_row(collection) > load_i64(ctl, CTL_LIMIT):
        # All of it or nothing: what a failure leaves behind must be what the capacity says.
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
        return False
    for c in range(load_i64(collection, REL_ARITY)):
        column = load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8
        width = load_i64(column, COL_WIDTH)
        moved = resize(ctl, load_i64(column, COL_DATA), old * width, new * width)
        if moved == 0:
            return False
        store_i64(column, COL_DATA, moved)
    for field in (CO_SUPPORT, CO_STAMPS, CO_HEADS, CO_NEXTS, CO_PREVIOUS, CO_CURRENT):
        if not grow_words(ctl, collection, field, old >> 1, new >> 1):
            return False
    if not grow_words(ctl, collection, CO_ALIVE, old >> 6, new >> 6):
        return False
    if not grow_words(ctl, collection, CO_COUNTS, old, new):
        return False
    if not grow_words(ctl, collection, CO_SUMS, old * SUM_WORDS, new * SUM_WORDS):
        return False
    if not grow_history(ctl, load_i64(collection, CO_OUTER), old, new):
        return False
    if not grow_history(ctl, load_i64(collection, CO_INNER), old, new):
        return False
    store_i64(collection, REL_CAPACITY, new)
    return True


@kernel
def trim_rows(ctl, collection):
    """Gives back the room that a fresh collection reserved and did not use; false with CTL_ERROR set."""
    rows = max((load_i64(collection, REL_ROWS) + 63) & ~63, 64)
    if rows * 9 > load_i64(collection, REL_CAPACITY) * 8:
        return True
    if not reserve_rows(ctl, collection, rows):
        return False
    live = load_i64(collection, CO_LIVE)
    tight = load_i64(collection, CO_SLOT_COUNT) <= live + (live >> 1) + (live >> 3) + 64
    return tight or resize_slots(ctl, collection, live + live * 3 // 7 + 64)


@kernel
def widen(ctl, collection, column):
    """Gives a column of 4-byte values 8 bytes each; false with CTL_ERROR set."""
    capacity = load_i64(collection, REL_CAPACITY)
    wide = resize(ctl, 0, 0, capacity * 8)
    if wide == 0:
        return False
    narrow = load_i64(column, COL_DATA)
    for row in range(load_i64(collection, REL_ROWS)):
        store_i64(wide, row, load_i32(narrow, row))
    release(ctl, narrow, capacity * 4)
    store_i64(column, COL_DATA, wide)
    store_i64(column, COL_WIDTH, 8)
    return True


@kernel
def put_cell(ctl, collection, number, row, value):
    column = load_i64(collection, REL_COLUMNS) + number * COL_SIZE * 8
    if load_i64(column, COL_WIDTH) == 4:
        if -2147483648 <= value <= 2147483647:
            store_i32(load_i64(column, COL_DATA), row, value)
            return True
        if not widen(ctl, collection, column):
            return False
    store_i64(load_i64(column, COL_DATA), row, value)
    return True


@kernel
def cell(collection, number, row):
    """Value of a column in a row."""
    column = load_i64(collection, REL_COLUMNS) + number * COL_SIZE * 8
    return load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)


# ---------------------------------------------------------------------------------------------------------------- slots


@kernel
def hash_values(values, arity):
    hashed = 0
    for c in range(arity):
        hashed = mix(hashed, load_i64(values, c))
    return hashed


@kernel
def hash_row(collection, row):
    hashed = 0
    for c in range(load_i64(collection, REL_ARITY)):
        hashed = mix(hashed, cell(collection, c, row))
    return hashed


@kernel
def slot_of(hashed, count):
    """The home of a hash among any number of slots."""
    return (((hashed >> 32) & 0xFFFFFFFF) * count) >> 32


@kernel
def has_values(collection, row, values):
    columns = load_i64(collection, REL_COLUMNS)
    for c in range(load_i64(collection, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        if load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row) != load_i64(values, c):
            return False
    return True


@kernel
def find_values(collection, values, hashed):
    """The row with these values, or -1."""
    count = load_i64(collection, CO_SLOT_COUNT)
    if count == 0:
        return -1
    table = load_i64(collection, CO_SLOTS)
    at = slot_of(hashed, count)
    while True:
        row = load_i32(table, at) - 1
        if row == -1 or (row >= 0 and has_values(collection, row, values)):
            return row
        at += 1
        if at == count:
            at = 0


@kernel
def place_row(collection, hashed, row):
    """Enters a row that the table does not have; the slot of a removed one will do."""
    table = load_i64(collection, CO_SLOTS)
    count = load_i64(collection, CO_SLOT_COUNT)
    at = slot_of(hashed, count)
    while load_i32(table, at) > 0:
        at += 1
        if at == count:
            at = 0
    if load_i32(table, at) == 0:
        store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) + 1)
    store_i32(table, at, row + 1)


@kernel
def grow_slots(ctl, collection):
    """Keeps a free slot for one more row, and a fifth of all slots free; false with CTL_ERROR set."""
    if (load_i64(collection, CO_TAKEN) + 1) * 5 <= load_i64(collection, CO_SLOT_COUNT) * 4:
        return True
    return resize_slots(ctl, collection, max(load_i64(collection, CO_LIVE) * 2, 64))


@kernel
def resize_slots(ctl, collection, count):
    """Places all rows in a table of `count` slots; false with CTL_ERROR set."""
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    release(ctl, load_i64(collection, CO_SLOTS), load_i64(collection, CO_SLOT_COUNT) * 4)
    store_i64(collection, CO_SLOTS, table)
    store_i64(collection, CO_SLOT_COUNT, count)
    store_i64(collection, CO_TAKEN, 0)
    alive = load_i64(collection, CO_ALIVE)
    for row in range(load_i64(collection, REL_ROWS)):
        if get_bit(alive, row) != 0:
            place_row(collection, hash_row(collection, row), row)
    return True


@kernel
def remove_slot(collection, row):
    """Takes a row out of the table."""
    table = load_i64(collection, CO_SLOTS)
    count = load_i64(collection, CO_SLOT_COUNT)
    at = slot_of(hash_row(collection, row), count)
    while load_i32(table, at) != row + 1:
        at += 1
        if at == count:
            at = 0
    store_i32(table, at, -1)


# ----------------------------------------------------------------------------------------------------------------- rows


@kernel
def take_number(ctl, collection):
    """A free row number; -1 with CTL_ERROR set."""
    free = load_i64(collection, CO_FREE_COUNT)
    if free > 0:
        store_i64(collection, CO_FREE_COUNT, free - 1)
        return load_i32(load_i64(collection, CO_FREE), free - 1)
    row = load_i64(collection, REL_ROWS)
    if row == load_i64(collection, REL_CAPACITY) and not grow_rows(ctl, collection):
        return -1
    store_i64(collection, REL_ROWS, row + 1)
    return row


@kernel
def clear_row(collection, row):
    """Zeroes what the collection notes beside a row's values."""
    for field in (CO_SUPPORT, CO_STAMPS, CO_HEADS, CO_NEXTS, CO_PREVIOUS, CO_CURRENT):
        address = load_i64(collection, field)
        if address != 0:
            store_i32(address, row, 0)
    counts = load_i64(collection, CO_COUNTS)
    if counts != 0:
        store_i64(counts, row, 0)
    sums = load_i64(collection, CO_SUMS)
    if sums != 0:
        for word in range(SUM_WORDS):
            store_i64(sums, row * SUM_WORDS + word, 0)


@kernel
def born_absent(ctl, history, row, fresh):
    """Notes that a new row is not there before this batch; false with CTL_ERROR set."""
    if history == 0:
        return True
    iterations = load_i64(history, HI_ITERS)
    if iterations != 0:
        store_i32(iterations, row, NEVER)
    if fresh != 0:
        return True
    return open_item(ctl, history, row) != 0


@kernel
def add_values(ctl, collection, values, hashed):
    """Makes a row with values that no row has; returns its number, -1 with CTL_ERROR set. It is not present at any time yet
    (in a fresh collection: it has always been, as far as other scopes see)."""
    row = take_number(ctl, collection)
    if row < 0 or not grow_slots(ctl, collection):
        return -1
    for c in range(load_i64(collection, REL_ARITY)):
        if not put_cell(ctl, collection, c, row, load_i64(values, c)):
            return -1
    clear_row(collection, row)
    put_bit(load_i64(collection, CO_ALIVE), row)
    store_i64(collection, CO_LIVE, load_i64(collection, CO_LIVE) + 1)
    place_row(collection, hashed, row)
    fresh = load_i64(collection, CO_FRESH)
    outer = load_i64(collection, CO_OUTER)
    if load_i64(collection, CO_QUIET) != 0:
        if fresh == 0:
            put_bit(load_i64(outer, HI_BITS), row)
    elif not born_absent(ctl, outer, row, fresh):
        return -1
    if not born_absent(ctl, load_i64(collection, CO_INNER), row, fresh):
        return -1
    born = load_i64(collection, CO_BORN)
    if born != 0 and fresh == 0 and not list_push(ctl, born, row):
        return -1
    return row


@kernel
def warm_rows(collection, hashes, n):
    """Asks for what finding rows by these hashes will touch: first their slots, then the rows that are there."""
    slots = load_i64(collection, CO_SLOT_COUNT)
    arity = load_i64(collection, REL_ARITY)
    if slots == 0 or n == 1 or arity == 0:
        return
    table = load_i64(collection, CO_SLOTS)
    for i in range(n):
        prefetch(table + slot_of(load_i64(hashes, i), slots) * 4)
    column = load_i64(collection, REL_COLUMNS)
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    second = column if arity == 1 else column + COL_SIZE * 8
    other = load_i64(second, COL_DATA)
    breadth = load_i64(second, COL_WIDTH)
    for i in range(n):
        row = load_i32(table, slot_of(load_i64(hashes, i), slots))
        if row > 0:
            prefetch(data + (row - 1) * width)
            prefetch(other + (row - 1) * breadth)


@kernel
def enter_indexes(ctl, collection):
    """Adds the rows born since the last call to the indexes; false with CTL_ERROR set. Never while a path runs: it may stand in
    a slab."""
    born = load_i64(collection, CO_BORN)
    fresh = load_i64(collection, CO_FRESH) != 0
    first = load_i64(collection, CO_INDEXED)
    last = load_i64(collection, REL_ROWS) if fresh else load_i64(born, LIST_COUNT)
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        index = load_i64(indexes, i)
        if fresh and first == 0:
            if not build_index(ctl, index, last):
                return False
            continue
        rows = load_i64(born, LIST_DATA)
        for number in range(first, last):
            if not fresh and number + 8 < last:
                warm_group(index, load_i64(rows, number + 8))
            if not index_insert(ctl, index, number if fresh else load_i64(rows, number)):
                return False
    store_i64(collection, CO_INDEXED, last)
    return True


@kernel
def find_or_add(ctl, collection, values, hashed):
    """The row with these values, made if there is none; -1 with CTL_ERROR set."""
    row = find_values(collection, values, hashed)
    if row >= 0:
        return row
    return add_values(ctl, collection, values, hashed)


@kernel
def remove_row(ctl, collection, row):
    """Frees a row: out of the indexes, the table and the living; false with CTL_ERROR set. Its history is the caller's."""
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        index_remove(load_i64(indexes, i), row)
    remove_slot(collection, row)
    clear_bit(load_i64(collection, CO_ALIVE), row)
    store_i64(collection, CO_LIVE, load_i64(collection, CO_LIVE) - 1)
    count = load_i64(collection, CO_FREE_COUNT)
    capacity = load_i64(collection, CO_FREE_CAPACITY)
    if count == capacity:
        target = max(capacity + (capacity >> 1), 64)
        moved = resize(ctl, load_i64(collection, CO_FREE), capacity * 4, target * 4)
        if moved == 0:
            return False
        store_i64(collection, CO_FREE, moved)
        store_i64(collection, CO_FREE_CAPACITY, target)
    store_i32(load_i64(collection, CO_FREE), count, row)
    store_i64(collection, CO_FREE_COUNT, count + 1)
    return True
