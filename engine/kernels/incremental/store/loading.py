"""Bringing rows from outside into inputs; an empty one is loaded from columns in one go.

Rows whose key column has few values for so many rows become a base: a counting sort by the key, then each key's rows in order
and without repetition. Others are found by slots.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.inputs import apply_columns, apply_input, make_rows, may_be_pairs
from dlog.engine.kernels.incremental.store.collections import cell, enter_indexes, put_cell, reserve_rows, widen
from dlog.engine.kernels.incremental.store.histories import put_bit
from dlog.engine.kernels.incremental.store.pairs import can_be_pairs, load_pairs
from dlog.engine.kernels.incremental.store.slot_room import keep_last_free, resize_slots
from dlog.engine.kernels.incremental.store.slots import slot_of, slots_for, tag_of, warm_slots
from dlog.engine.kernels.layout import BLOCK, TAG_FREE
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import mix, store_cell, zeroed

_UNLIMITED = 4611686018427387904
AHEAD = 16
SHORT = 24
"""Rows of a key up to which they are sorted by insertion."""
FEWEST = 64
"""Rows below which there is no base."""


@kernel
def load_columns(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Loads a fresh input from columns of words: rows to insert at the first round, which may repeat. False with ctl.error
    set."""
    if may_be_pairs(collection) and can_be_pairs(columns, 1, count):
        return load_pairs(ctl, collection, columns, count)
    if not reserve_rows(ctl, collection, (count + 63) & ~63):
        return False
    key = -1
    if collection.rows == 0 and count >= FEWEST:
        key = choose_key(collection, columns, count)
    done = load_base(ctl, collection, columns, count, key) if key >= 0 else load_slots(ctl, collection, columns, count)
    if not done:
        return False
    collection.log.count = collection.rows
    return enter_indexes(ctl, collection)


# ------------------------------------------------------------------------------------------------------------------ base


@kernel
def choose_key(collection: Collection, columns: WordColumns, count):
    """The column that a base is to be sorted by: that of an index, if there is one that can be; -1 if no column can."""
    indexes = collection.indexes
    for i in range(collection.index_count):
        index = indexes[i]
        if index.key_count == 1:
            key = index.keys[0]
            if is_narrow(columns[key], count):
                return key
    for c in range(collection.arity):
        if is_narrow(columns[c], count):
            return c
    return -1


@kernel
def least(values: Words, count):
    found = values[0]
    for i in range(count):
        found = min(found, values[i])
    return found


@kernel
def greatest(values: Words, count):
    found = values[0]
    for i in range(count):
        found = max(found, values[i])
    return found


@kernel
def is_narrow(values: Words, count):
    """Whether so many values lie in a range no larger than their number."""
    low = least(values, count)
    high = greatest(values, count)
    return low >= -2147483648 and high <= 2147483647 and high - low < count


@kernel
def load_base(ctl: Control, collection: Collection, columns: WordColumns, count, key):
    """Makes rows in columns of words the base of a collection without rows, sorted by a column; false with ctl.error set."""
    keys = columns[key]
    low = least(keys, count)
    groups = greatest(keys, count) - low + 1
    for c in range(collection.arity):
        column = collection.columns[c]
        if column.width == 4:
            values = columns[c]
            wide = least(values, count) < -2147483648 or greatest(values, count) > 2147483647
            if wide and not widen(ctl, collection, column):
                return False
    offsets = Numbers(zeroed(ctl, (groups + 1) * 4))
    if not offsets:
        return False
    collection.base.offsets = offsets
    collection.base.keys = groups
    collection.base.low = low
    collection.base.key = key
    collection.base.dead = 0
    count_keys(offsets, keys, low, groups, count)
    for c in range(collection.arity):
        if c != key:
            scatter(collection, c, columns[c], keys, offsets, low, count)
            rewind(offsets, groups)
    rows = order_groups(collection, offsets, groups)
    collection.base.rows = rows
    collection.rows = rows
    collection.live = rows
    collection.free_count = 0
    alive = collection.alive
    for word in range(rows >> 6):
        alive[word] = -1
    for row in range(rows >> 6 << 6, rows):
        put_bit(alive, row)
    return True


@kernel
def count_keys(offsets: Numbers, keys: Words, low, groups, count):
    """offsets[g] = rows with keys before the g-th."""
    for i in range(count):
        group = keys[i] - low
        offsets[group] += 1
    total = 0
    for group in range(groups + 1):
        size = offsets[group]
        offsets[group] = total
        total += size


@kernel
def scatter(collection: Collection, c, values: Words, keys: Words, offsets: Numbers, low, count):
    """Writes a column's values in the order of the keys. Offsets become the ends of their keys' rows."""
    column = collection.columns[c]
    data = column.data
    width = column.width
    for i in range(count):
        if i + 2 * AHEAD < count:
            prefetch(offsets.address + (keys[i + 2 * AHEAD] - low) * 4)
            prefetch(data + offsets[keys[i + AHEAD] - low] * width)
        group = keys[i] - low
        at = offsets[group]
        offsets[group] = at + 1
        store_cell(data, width, at, values[i])


@kernel
def rewind(offsets: Numbers, groups):
    """Makes the ends of all keys' rows their beginnings again."""
    for group in range(groups, 0, -1):
        offsets[group] = offsets[group - 1]
    offsets[0] = 0


@kernel
def order_groups(collection: Collection, offsets: Numbers, groups):
    """Sorts each key's rows by the other columns, drops repeated ones, writes the keys; returns how many rows are left."""
    key = collection.base.key
    low = collection.base.low
    column = collection.columns[key]
    data = column.data
    width = column.width
    other = collection.columns[1 - key]
    pairs = collection.arity == 2 and other.width == 4
    rows = 0
    for group in range(groups):
        first = offsets[group]
        last = offsets[group + 1]
        offsets[group] = rows
        start = rows
        if pairs and last - first <= SHORT:
            rows = order_values(Numbers(other.data), first, last, rows)
        else:
            rows = order_rows(collection, key, first, last, rows)
        for row in range(start, rows):
            store_cell(data, width, row, low + group)
    offsets[groups] = rows
    return rows


@kernel
def order_values(data: Numbers, first, last, rows):
    """Sorts 4-byte values [first, last) and moves different ones to `rows` and on; returns where they end."""
    for i in range(first + 1, last):
        value = data[i]
        at = i
        while at > first and data[at - 1] > value:
            data[at] = data[at - 1]
            at -= 1
        data[at] = value
    start = rows
    for i in range(first, last):
        value = data[i]
        if rows == start or data[rows - 1] != value:
            data[rows] = value
            rows += 1
    return rows


@kernel
def order_rows(collection: Collection, key, first, last, rows):
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
def compare_rows(collection: Collection, key, left, right):
    """-1, 0 or 1: the order of two rows by all columns but the key."""
    for c in range(collection.arity):
        if c != key:
            one = cell(collection, c, left)
            other = cell(collection, c, right)
            if one != other:
                return -1 if one < other else 1
    return 0


@kernel
def move_row(collection: Collection, key, source, target):
    for c in range(collection.arity):
        if c != key:
            column = collection.columns[c]
            store_cell(column.data, column.width, target, cell(collection, c, source))


@kernel
def swap_rows(collection: Collection, key, left, right):
    for c in range(collection.arity):
        if c != key:
            column = collection.columns[c]
            data = column.data
            width = column.width
            kept = cell(collection, c, left)
            store_cell(data, width, left, cell(collection, c, right))
            store_cell(data, width, right, kept)


@kernel
def sort_rows(collection: Collection, key, first, last):
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
def sift_down(collection: Collection, key, first, root, count):
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
def load_slots(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Appends rows of columns of words to an input with room for them, and gives them slots; false with ctl.error set."""
    if not resize_slots(ctl, collection, slots_for(count)):
        return False
    hashes = ctl.scratch
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        for i in range(size):
            hashes[i] = 0
        for c in range(collection.arity):
            column = columns[c]
            for i in range(size):
                hashes[i] = mix(hashes[i], column[first + i])
        warm_slots(collection, hashes, size)
        if not load_block(ctl, collection, columns, first, size, hashes):
            return False
    return True


@kernel
def load_block(ctl: Control, collection: Collection, columns: WordColumns, first, size, hashes: Words):
    """Appends those of rows [first, first + size) of the columns that an input, fresh and with room, does not have; false with
    ctl.error set."""
    arity = collection.arity
    if not keep_last_free(ctl, collection, size):
        return False
    rows = collection.rows
    start = rows
    for i in range(first, first + size):
        hashed = hashes[i - first]
        at = search_cells(collection, hashed, columns, i)
        if at < 0:
            continue
        collection.row_slots[at] = rows
        collection.tags[at] = tag_of(hashed)
        put_bit(collection.alive, rows)
        collection.rows = rows + 1
        for c in range(arity):
            if not put_cell(ctl, collection, c, rows, columns[c][i]):
                return False
        rows += 1
    collection.live = collection.live + rows - start
    collection.taken = collection.taken + rows - start
    return True


@kernel
def search_cells(collection: Collection, hashed, columns: WordColumns, i):
    """The free slot for the row at place i of columns of words, -1 if it is there already. No row has ever been removed."""
    table = collection.row_slots
    tags = collection.tags
    wanted = tag_of(hashed)
    at = slot_of(collection, hashed)
    while True:
        tag = tags[at]
        if tag == TAG_FREE:
            return at
        if tag == wanted and same_cells(collection, table[at], columns, i):
            return -1
        at += 1


@kernel
def same_cells(collection: Collection, row, columns: WordColumns, i):
    """Whether a row has the values at place i of columns of words."""
    for c in range(collection.arity):
        if cell(collection, c, row) != columns[c][i]:
            return False
    return True


# ---------------------------------------------------------------------------------------------------------------- either


@entry()
def bring_in(ctl: Control, collection: Collection, updates, columns: WordColumns, count):
    """Applies changes from outside (`apply_input`) or, where `updates` is 0, loads columns. False with ctl.error set."""
    limit = without_limit(ctl)
    by_row = updates != 0
    done = apply_input(ctl, collection, updates, count) if by_row else load_columns(ctl, collection, columns, count)
    return within_limit(ctl, limit, done)


@entry()
def bring_changes(ctl: Control, collection: Collection, columns: WordColumns, start, count):
    """Applies changes from outside, as columns (`apply_columns`), the batch's first round being `start`. False with ctl.error
    set."""
    limit = without_limit(ctl)
    return within_limit(ctl, limit, apply_columns(ctl, collection, columns, 1, start, count))


@entry()
def unpack_pairs(ctl: Control, collection: Collection, values: Words):
    """Makes ordinary rows of the pairs of an input, between batches, with room for two words. False with ctl.error set."""
    limit = without_limit(ctl)
    return within_limit(ctl, limit, make_rows(ctl, collection, values))


@kernel
def without_limit(ctl: Control):
    """Lifts the limit of memory, and returns it.

    There is no way back from half of an input, so the limit of memory is asked afterwards."""
    limit = ctl.limit
    ctl.limit = _UNLIMITED
    return limit


@kernel
def within_limit(ctl: Control, limit, done):
    """Sets the limit of memory again; whether what was done has been, and is within it, else ctl.error is set."""
    ctl.limit = limit
    if done and ctl.account.bytes > limit:
        ctl.error = Error.MEMORY
        return False
    return done
