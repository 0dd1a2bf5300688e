"""Collections: the rows of a relation that is maintained over rounds.

A row is found by its values (slots.py, base.py, direct.py); row numbers are reused, but those of a base. Columns begin with
4 bytes per value and are widened when a value does not fit. A row that is alive is in every index of its collection. Rows come
as `values`: the address of one word per column.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.incremental.store.base import drop_base, find_base
from dlog.engine.kernels.incremental.store.histories import clear_bit, get_bit, open_item, put_bit
from dlog.engine.kernels.incremental.store.implied import cell_at, resize_tail, write_keys
from dlog.engine.kernels.incremental.store.index_building import build_index, clear_index, may_insert, trim_index
from dlog.engine.kernels.incremental.store.indexes import index_insert, index_remove, warm_group, warm_slab
from dlog.engine.kernels.incremental.store.lists import list_push
from dlog.engine.kernels.incremental.store.slot_room import make_slot, resize_slots, trim_slots
from dlog.engine.kernels.incremental.store.slots import find_values, place_row, remove_slot, slotted
from dlog.engine.kernels.layout import (
    CO_ALIVE,
    CO_BASE_DEAD,
    CO_BASE_ROWS,
    CO_BETWEEN,
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
    CO_KEY_TAIL,
    CO_LIVE,
    CO_OUTER,
    CO_QUIET,
    CO_RECORD_BYTES,
    CO_RECORDS,
    CO_STAMPS,
    CO_SUM_WORDS,
    CO_SUMS,
    CO_SUPPORT,
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
    IMPLIED,
    LIST_COUNT,
    LIST_DATA,
    NEVER,
    REL_ARITY,
    REL_CAPACITY,
    REL_COLUMNS,
    REL_ROWS,
)
from dlog.engine.kernels.static.storage import ROWS_MAX, grown, release, resize, spare

AHEAD = 8
"""Rows whose groups are asked for before they are looked at."""

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
    """Makes room for more rows; false with CTL_ERROR set."""
    old = load_i64(collection, REL_CAPACITY)
    new = (max(grown(old), 64) + 63) & ~63
    return reserve_rows(ctl, collection, new)


@kernel
def bytes_per_row(collection):
    """Bytes that a row takes beside its bits and its slot, rounded up."""
    total = 1
    for c in range(load_i64(collection, REL_ARITY)):
        total += max(load_i64(load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8, COL_WIDTH), 4)
    for field in (CO_SUPPORT, CO_STAMPS, CO_CURRENT):
        total += 4 if load_i64(collection, field) != 0 else 0
    for field in (CO_COUNTS, CO_HEADS):
        total += 8 if load_i64(collection, field) != 0 else 0
    total += load_i64(collection, CO_SUM_WORDS) * 8 + load_i64(collection, CO_RECORD_BYTES)
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
        if width == IMPLIED:
            if not resize_tail(ctl, collection, old, new):
                return False
            continue
        moved = resize(ctl, load_i64(column, COL_DATA), old * width, new * width)
        if moved == 0:
            return False
        store_i64(column, COL_DATA, moved)
    for field in (CO_SUPPORT, CO_STAMPS, CO_CURRENT):
        if not grow_words(ctl, collection, field, old >> 1, new >> 1):
            return False
    if not grow_words(ctl, collection, CO_ALIVE, old >> 6, new >> 6):
        return False
    if not grow_words(ctl, collection, CO_COUNTS, old, new) or not grow_words(ctl, collection, CO_HEADS, old, new):
        return False
    words = load_i64(collection, CO_RECORD_BYTES) >> 3
    if not grow_words(ctl, collection, CO_RECORDS, old * words, new * words):
        return False
    words = load_i64(collection, CO_SUM_WORDS)
    if not grow_words(ctl, collection, CO_SUMS, old * words, new * words):
        return False
    if not grow_history(ctl, load_i64(collection, CO_OUTER), old, new):
        return False
    if not grow_history(ctl, load_i64(collection, CO_INNER), old, new):
        return False
    store_i64(collection, REL_CAPACITY, new)
    return True


@kernel
def trim_rows(ctl, collection):
    """Gives back most of the room that a fresh collection reserved and did not use; false with CTL_ERROR set."""
    rows = load_i64(collection, REL_ROWS)
    target = max((rows + spare(rows) + 63) & ~63, 64)
    if target + spare(target) < load_i64(collection, REL_CAPACITY) and not reserve_rows(ctl, collection, target):
        return False
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        if not trim_index(ctl, load_i64(indexes, i)):
            return False
    return trim_slots(ctl, collection)


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
    if load_i64(column, COL_WIDTH) != 8:
        if -2147483648 <= value <= 2147483647:
            if load_i64(column, COL_WIDTH) == IMPLIED:
                store_i32(load_i64(collection, CO_KEY_TAIL), row - load_i64(collection, CO_BASE_ROWS), value)
            else:
                store_i32(load_i64(column, COL_DATA), row, value)
            return True
        if not write_keys(ctl, collection) or not widen(ctl, collection, column):
            return False
    store_i64(load_i64(column, COL_DATA), row, value)
    return True


@kernel
def cell(collection, number, row):
    """Value of a column in a row."""
    column = load_i64(collection, REL_COLUMNS) + number * COL_SIZE * 8
    return cell_at(column, row)


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
    for field in (CO_SUPPORT, CO_STAMPS, CO_CURRENT):
        address = load_i64(collection, field)
        if address != 0:
            store_i32(address, row, 0)
    for field in (CO_COUNTS, CO_HEADS):
        address = load_i64(collection, field)
        if address != 0:
            store_i64(address, row, 0)
    sums = load_i64(collection, CO_SUMS)
    words = load_i64(collection, CO_SUM_WORDS)
    for word in range(words):
        store_i64(sums, row * words + word, 0)


@kernel
def born_absent(ctl, history, row, plain):
    """Notes that a new row is not there before this batch, with `plain` in its iteration alone; false with CTL_ERROR set."""
    if history == 0:
        return True
    iterations = load_i64(history, HI_ITERS)
    if iterations != 0:
        store_i32(iterations, row, NEVER)
    if plain != 0:
        return True
    return open_item(ctl, history, row) != 0


@kernel
def new_row(ctl, collection, values, hashed):
    """A row number with these values that is found by them; -1 with CTL_ERROR set."""
    row = take_number(ctl, collection)
    if row < 0 or not make_slot(ctl, collection, values):
        return -1
    for c in range(load_i64(collection, REL_ARITY)):
        if not put_cell(ctl, collection, c, row, load_i64(values, c)):
            return -1
    place_row(collection, hashed, row)
    return row


@kernel
def add_values(ctl, collection, values, hashed):
    """Makes a row with values that no row has; returns its number, -1 with CTL_ERROR set. It is not present at any time yet
    (in a fresh collection: it has always been, as far as other scopes see)."""
    row = find_base(collection, values) if load_i64(collection, CO_BASE_ROWS) != 0 else -1
    if row >= 0:
        store_i64(collection, CO_BASE_DEAD, load_i64(collection, CO_BASE_DEAD) - 1)
    else:
        row = new_row(ctl, collection, values, hashed)
        if row < 0:
            return -1
    clear_row(collection, row)
    fresh = load_i64(collection, CO_FRESH)
    outer = load_i64(collection, CO_OUTER)
    if load_i64(collection, CO_QUIET) != 0:
        if fresh == 0:
            put_bit(load_i64(outer, HI_BITS), row)
    elif not born_absent(ctl, outer, row, fresh):
        return -1
    if not born_absent(ctl, load_i64(collection, CO_INNER), row, fresh | load_i64(collection, CO_BETWEEN)):
        return -1
    # Not before: a living row without a history has always been there, also for what takes a failed batch back.
    put_bit(load_i64(collection, CO_ALIVE), row)
    store_i64(collection, CO_LIVE, load_i64(collection, CO_LIVE) + 1)
    born = load_i64(collection, CO_BORN)
    if born != 0 and fresh == 0 and not list_push(ctl, born, row):
        return -1
    return row


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
            if not fresh and number + 2 * AHEAD < last:
                warm_group(index, load_i64(rows, number + 2 * AHEAD))
                warm_slab(index, load_i64(rows, number + AHEAD))
            row = number if fresh else load_i64(rows, number)
            if not may_insert(index, row) and not hold_rows(ctl, collection, index, number, last, fresh):
                return False
            if not index_insert(ctl, index, row):
                return False
    store_i64(collection, CO_INDEXED, last)
    return True


@kernel
def hold_rows(ctl, collection, index, first, last, fresh):
    """Makes an index of values one of row numbers. Rows [first, last) of those born, or, of a fresh collection, with these
    numbers, are not in it yet. False with CTL_ERROR set."""
    clear_index(ctl, index)
    alive = load_i64(collection, CO_ALIVE)
    rows = load_i64(load_i64(collection, CO_BORN), LIST_DATA)
    for number in range(first, last):
        clear_bit(alive, number if fresh else load_i64(rows, number))
    done = True
    for row in range(load_i64(collection, REL_ROWS)):
        if get_bit(alive, row) != 0:
            done = done and index_insert(ctl, index, row)
    for number in range(first, last):
        put_bit(alive, number if fresh else load_i64(rows, number))
    return done


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
        if not index_remove(ctl, load_i64(indexes, i), row):
            return False
    clear_bit(load_i64(collection, CO_ALIVE), row)
    store_i64(collection, CO_LIVE, load_i64(collection, CO_LIVE) - 1)
    if row < load_i64(collection, CO_BASE_ROWS):
        store_i64(collection, CO_BASE_DEAD, load_i64(collection, CO_BASE_DEAD) + 1)
        return True
    remove_slot(collection, row)
    return free_number(ctl, collection, row)


@kernel
def free_number(ctl, collection, row):
    """Lets a row number be used again; false with CTL_ERROR set."""
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


@kernel
def leave_base(ctl, collection):
    """Makes rows of a base that is mostly dead ordinary ones; false with CTL_ERROR set."""
    rows = load_i64(collection, CO_BASE_ROWS)
    if load_i64(collection, CO_BASE_DEAD) * 2 <= rows:
        return True
    if not write_keys(ctl, collection):
        return False
    drop_base(ctl, collection)
    alive = load_i64(collection, CO_ALIVE)
    for row in range(rows):
        if get_bit(alive, row) == 0 and not free_number(ctl, collection, row):
            return False
    return resize_slots(ctl, collection, max(slotted(collection) * 2, 64))
