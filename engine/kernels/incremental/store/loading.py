"""Bringing rows from outside into inputs; an empty one is loaded from columns in one go.

Rows whose key column has few values for so many rows become a base: a counting sort by the key, then each key's rows in order
and without repetition. Others are found by slots.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, load_u8, prefetch, store_i32, store_i64, store_u8
from dlog.engine.kernels.incremental.loop.inputs import apply_columns, apply_input, make_rows, may_be_pairs
from dlog.engine.kernels.incremental.store.collections import cell, enter_indexes, put_cell, reserve_rows, widen
from dlog.engine.kernels.incremental.store.histories import put_bit
from dlog.engine.kernels.incremental.store.pairs import can_be_pairs, load_pairs
from dlog.engine.kernels.incremental.store.slot_room import keep_last_free, resize_slots
from dlog.engine.kernels.incremental.store.slots import slot_of, slots_for, tag_of, warm_slots
from dlog.engine.kernels.layout import (
    BLOCK,
    CO_ALIVE,
    CO_BASE_DEAD,
    CO_BASE_KEY,
    CO_BASE_KEYS,
    CO_BASE_LOW,
    CO_BASE_OFFSETS,
    CO_BASE_ROWS,
    CO_FREE_COUNT,
    CO_INDEX_COUNT,
    CO_INDEXES,
    CO_LIVE,
    CO_LOG,
    CO_SLOTS,
    CO_TAGS,
    CO_TAKEN,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    CTL_BYTES,
    CTL_ERROR,
    CTL_LIMIT,
    CTL_SCRATCH,
    ERROR_MEMORY,
    IX_KEY_COUNT,
    IX_KEYS,
    LIST_COUNT,
    REL_ARITY,
    REL_COLUMNS,
    REL_ROWS,
    TAG_FREE,
)
from dlog.engine.kernels.static.storage import mix, store_cell, zeroed

_UNLIMITED = 4611686018427387904
AHEAD = 16
SHORT = 24
"""Rows of a key up to which they are sorted by insertion."""
FEWEST = 64
"""Rows below which there is no base."""


@kernel
def load_columns(ctl, collection, columns, count):
    """Loads a fresh input from columns of words: rows to insert at the first round, which may repeat. False with CTL_ERROR
    set."""
    if may_be_pairs(collection) and can_be_pairs(columns, 1, count):
        return load_pairs(ctl, collection, columns, count)
    if not reserve_rows(ctl, collection, (count + 63) & ~63):
        return False
    key = -1
    if load_i64(collection, REL_ROWS) == 0 and count >= FEWEST:
        key = choose_key(collection, columns, count)
    done = load_base(ctl, collection, columns, count, key) if key >= 0 else load_slots(ctl, collection, columns, count)
    if not done:
        return False
    store_i64(load_i64(collection, CO_LOG), LIST_COUNT, load_i64(collection, REL_ROWS))
    return enter_indexes(ctl, collection)


# ------------------------------------------------------------------------------------------------------------------ base


@kernel
def choose_key(collection, columns, count):
    """The column that a base is to be sorted by: that of an index, if there is one that can be; -1 if no column can."""
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        index = load_i64(indexes, i)
        if load_i64(index, IX_KEY_COUNT) == 1:
            key = load_i64(load_i64(index, IX_KEYS), 0)
            if is_narrow(load_i64(columns, key), count):
                return key
    for c in range(load_i64(collection, REL_ARITY)):
        if is_narrow(load_i64(columns, c), count):
            return c
    return -1


@kernel
def least(values, count):
    found = load_i64(values, 0)
    for i in range(count):
        found = min(found, load_i64(values, i))
    return found


@kernel
def greatest(values, count):
    found = load_i64(values, 0)
    for i in range(count):
        found = max(found, load_i64(values, i))
    return found


@kernel
def is_narrow(values, count):
    """Whether so many values lie in a range no larger than their number."""
    low = least(values, count)
    high = greatest(values, count)
    return low >= -2147483648 and high <= 2147483647 and high - low < count


@kernel
def load_base(ctl, collection, columns, count, key):
    """Makes rows in columns of words the base of a collection without rows, sorted by a column; false with CTL_ERROR set."""
    keys = load_i64(columns, key)
    low = least(keys, count)
    groups = greatest(keys, count) - low + 1
    for c in range(load_i64(collection, REL_ARITY)):
        column = load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8
        if load_i64(column, COL_WIDTH) == 4:
            values = load_i64(columns, c)
            wide = least(values, count) < -2147483648 or greatest(values, count) > 2147483647
            if wide and not widen(ctl, collection, column):
                return False
    offsets = zeroed(ctl, (groups + 1) * 4)
    if offsets == 0:
        return False
    store_i64(collection, CO_BASE_OFFSETS, offsets)
    store_i64(collection, CO_BASE_KEYS, groups)
    store_i64(collection, CO_BASE_LOW, low)
    store_i64(collection, CO_BASE_KEY, key)
    store_i64(collection, CO_BASE_DEAD, 0)
    count_keys(offsets, keys, low, groups, count)
    for c in range(load_i64(collection, REL_ARITY)):
        if c != key:
            scatter(collection, c, load_i64(columns, c), keys, offsets, low, count)
            rewind(offsets, groups)
    rows = order_groups(collection, offsets, groups)
    store_i64(collection, CO_BASE_ROWS, rows)
    store_i64(collection, REL_ROWS, rows)
    store_i64(collection, CO_LIVE, rows)
    store_i64(collection, CO_FREE_COUNT, 0)
    alive = load_i64(collection, CO_ALIVE)
    for word in range(rows >> 6):
        store_i64(alive, word, -1)
    for row in range(rows >> 6 << 6, rows):
        put_bit(alive, row)
    return True


@kernel
def count_keys(offsets, keys, low, groups, count):
    """offsets[g] = rows with keys before the g-th."""
    for i in range(count):
        group = load_i64(keys, i) - low
        store_i32(offsets, group, load_i32(offsets, group) + 1)
    total = 0
    for group in range(groups + 1):
        size = load_i32(offsets, group)
        store_i32(offsets, group, total)
        total += size


@kernel
def scatter(collection, c, values, keys, offsets, low, count):
    """Writes a column's values in the order of the keys. Offsets become the ends of their keys' rows."""
    column = load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    for i in range(count):
        if i + 2 * AHEAD < count:
            prefetch(offsets + (load_i64(keys, i + 2 * AHEAD) - low) * 4)
            prefetch(data + load_i32(offsets, load_i64(keys, i + AHEAD) - low) * width)
        group = load_i64(keys, i) - low
        at = load_i32(offsets, group)
        store_i32(offsets, group, at + 1)
        store_cell(data, width, at, load_i64(values, i))


@kernel
def rewind(offsets, groups):
    """Makes the ends of all keys' rows their beginnings again."""
    for group in range(groups, 0, -1):
        store_i32(offsets, group, load_i32(offsets, group - 1))
    store_i32(offsets, 0, 0)


@kernel
def order_groups(collection, offsets, groups):
    """Sorts each key's rows by the other columns, drops repeated ones, writes the keys; returns how many rows are left."""
    key = load_i64(collection, CO_BASE_KEY)
    low = load_i64(collection, CO_BASE_LOW)
    column = load_i64(collection, REL_COLUMNS) + key * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    other = load_i64(collection, REL_COLUMNS) + (1 - key) * COL_SIZE * 8
    pairs = load_i64(collection, REL_ARITY) == 2 and load_i64(other, COL_WIDTH) == 4
    rows = 0
    for group in range(groups):
        first = load_i32(offsets, group)
        last = load_i32(offsets, group + 1)
        store_i32(offsets, group, rows)
        start = rows
        if pairs and last - first <= SHORT:
            rows = order_values(load_i64(other, COL_DATA), first, last, rows)
        else:
            rows = order_rows(collection, key, first, last, rows)
        for row in range(start, rows):
            store_cell(data, width, row, low + group)
    store_i32(offsets, groups, rows)
    return rows


@kernel
def order_values(data, first, last, rows):
    """Sorts 4-byte values [first, last) and moves different ones to `rows` and on; returns where they end."""
    for i in range(first + 1, last):
        value = load_i32(data, i)
        at = i
        while at > first and load_i32(data, at - 1) > value:
            store_i32(data, at, load_i32(data, at - 1))
            at -= 1
        store_i32(data, at, value)
    start = rows
    for i in range(first, last):
        value = load_i32(data, i)
        if rows == start or load_i32(data, rows - 1) != value:
            store_i32(data, rows, value)
            rows += 1
    return rows


@kernel
def order_rows(collection, key, first, last, rows):
    """Sorts rows [first, last) by all columns but the key and moves different ones to `rows` and on; returns where they end."""
    sort_rows(collection, key, first, last)
    start = rows
    for row in range(first, last):
        if rows > start and compare_rows(collection, key, rows - 1, row) == 0:
            continue
        if rows != row:
            move_row(collection, key, row, rows)
        rows += 1
    return rows


@kernel
def compare_rows(collection, key, left, right):
    """-1, 0 or 1: the order of two rows by all columns but the key."""
    for c in range(load_i64(collection, REL_ARITY)):
        if c != key:
            one = cell(collection, c, left)
            other = cell(collection, c, right)
            if one != other:
                return -1 if one < other else 1
    return 0


@kernel
def move_row(collection, key, source, target):
    for c in range(load_i64(collection, REL_ARITY)):
        if c != key:
            column = load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8
            store_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), target, cell(collection, c, source))


@kernel
def swap_rows(collection, key, left, right):
    for c in range(load_i64(collection, REL_ARITY)):
        if c != key:
            column = load_i64(collection, REL_COLUMNS) + c * COL_SIZE * 8
            data = load_i64(column, COL_DATA)
            width = load_i64(column, COL_WIDTH)
            kept = cell(collection, c, left)
            store_cell(data, width, left, cell(collection, c, right))
            store_cell(data, width, right, kept)


@kernel
def sort_rows(collection, key, first, last):
    """Sorts rows [first, last) by all columns but the key, in place: by insertion where they are few, else as a heap."""
    if last - first <= SHORT:
        for row in range(first + 1, last):
            at = row
            while at > first and compare_rows(collection, key, at - 1, at) > 0:
                swap_rows(collection, key, at - 1, at)
                at -= 1
        return
    ascending = True
    for row in range(first + 1, last):
        if compare_rows(collection, key, row - 1, row) > 0:
            ascending = False
            break
    if ascending:
        return
    count = last - first
    for root in range((count >> 1) - 1, -1, -1):
        sift_down(collection, key, first, root, count)
    for end in range(count - 1, 0, -1):
        swap_rows(collection, key, first, first + end)
        sift_down(collection, key, first, 0, end)


@kernel
def sift_down(collection, key, first, root, count):
    """Restores a heap of `count` rows, from number `first` on, below a root that may be too small."""
    at = root
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and compare_rows(collection, key, first + child, first + child + 1) < 0:
            child += 1
        if compare_rows(collection, key, first + at, first + child) >= 0:
            return
        swap_rows(collection, key, first + at, first + child)
        at = child


# ----------------------------------------------------------------------------------------------------------------- slots


@kernel
def load_slots(ctl, collection, columns, count):
    """Appends rows of columns of words to an input with room for them, and gives them slots; false with CTL_ERROR set."""
    if not resize_slots(ctl, collection, slots_for(count)):
        return False
    hashes = load_i64(ctl, CTL_SCRATCH)
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        for i in range(size):
            store_i64(hashes, i, 0)
        for c in range(load_i64(collection, REL_ARITY)):
            column = load_i64(columns, c)
            for i in range(size):
                store_i64(hashes, i, mix(load_i64(hashes, i), load_i64(column, first + i)))
        warm_slots(collection, hashes, size)
        if not load_block(ctl, collection, columns, first, size, hashes):
            return False
    return True


@kernel
def load_block(ctl, collection, columns, first, size, hashes):
    """Appends those of rows [first, first + size) of the columns that an input, fresh and with room, does not have; false with
    CTL_ERROR set."""
    arity = load_i64(collection, REL_ARITY)
    if not keep_last_free(ctl, collection, size):
        return False
    rows = load_i64(collection, REL_ROWS)
    start = rows
    for i in range(first, first + size):
        hashed = load_i64(hashes, i - first)
        at = search_cells(collection, hashed, columns, i)
        if at < 0:
            continue
        store_i32(load_i64(collection, CO_SLOTS), at, rows)
        store_u8(load_i64(collection, CO_TAGS), at, tag_of(hashed))
        put_bit(load_i64(collection, CO_ALIVE), rows)
        store_i64(collection, REL_ROWS, rows + 1)
        for c in range(arity):
            if not put_cell(ctl, collection, c, rows, load_i64(load_i64(columns, c), i)):
                return False
        rows += 1
    store_i64(collection, CO_LIVE, load_i64(collection, CO_LIVE) + rows - start)
    store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) + rows - start)
    return True


@kernel
def search_cells(collection, hashed, columns, i):
    """The free slot for the row at place i of columns of words, -1 if it is there already. No row has ever been removed."""
    table = load_i64(collection, CO_SLOTS)
    tags = load_i64(collection, CO_TAGS)
    wanted = tag_of(hashed)
    at = slot_of(collection, hashed)
    while True:
        tag = load_u8(tags, at)
        if tag == TAG_FREE:
            return at
        if tag == wanted and same_cells(collection, load_i32(table, at), columns, i):
            return -1
        at += 1


@kernel
def same_cells(collection, row, columns, i):
    """Whether a row has the values at place i of columns of words."""
    for c in range(load_i64(collection, REL_ARITY)):
        if cell(collection, c, row) != load_i64(load_i64(columns, c), i):
            return False
    return True


# ---------------------------------------------------------------------------------------------------------------- either


@entry()
def bring_in(ctl, collection, updates, columns, count):
    """Applies changes from outside (`apply_input`) or, where `updates` is 0, loads columns. False with CTL_ERROR set."""
    limit = without_limit(ctl)
    by_row = updates != 0
    done = apply_input(ctl, collection, updates, count) if by_row else load_columns(ctl, collection, columns, count)
    return within_limit(ctl, limit, done)


@entry()
def bring_changes(ctl, collection, columns, start, count):
    """Applies changes from outside, as columns (`apply_columns`), the batch's first round being `start`. False with CTL_ERROR
    set."""
    limit = without_limit(ctl)
    return within_limit(ctl, limit, apply_columns(ctl, collection, columns, 1, start, count))


@entry()
def unpack_pairs(ctl, collection, values):
    """Makes ordinary rows of the pairs of an input, between batches, with room for two words. False with CTL_ERROR set."""
    limit = without_limit(ctl)
    return within_limit(ctl, limit, make_rows(ctl, collection, values))


@kernel
def without_limit(ctl):
    """Lifts the limit of memory, and returns it.

    There is no way back from half of an input, so the limit of memory is asked afterwards."""
    limit = load_i64(ctl, CTL_LIMIT)
    store_i64(ctl, CTL_LIMIT, _UNLIMITED)
    return limit


@kernel
def within_limit(ctl, limit, done):
    """Sets the limit of memory again; whether what was done has been, and is within it, else CTL_ERROR is set."""
    store_i64(ctl, CTL_LIMIT, limit)
    if done and load_i64(load_i64(ctl, CTL_BYTES), 0) > limit:
        store_i64(ctl, CTL_ERROR, ERROR_MEMORY)
        return False
    return done
