"""Building a base (base.py) of rows in columns of words: a counting sort by the key, then each key's rows in order and without
repetition."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.bits import put_bit
from dlog.engine.kernels.incremental.store.collections import cell, widen
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import store_cell, zeroed

ROWS_AHEAD = 16
MAX_INSERTION_SORTED_ROWS = 24
"""Rows of a key up to which they are sorted by insertion."""
MIN_BASE_ROWS = 64
"""Rows below which there is no base."""


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
        if i + 2 * ROWS_AHEAD < count:
            prefetch(offsets.address + (keys[i + 2 * ROWS_AHEAD] - low) * 4)
            prefetch(data + offsets[keys[i + ROWS_AHEAD] - low] * width)
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
        if pairs and last - first <= MAX_INSERTION_SORTED_ROWS:
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
    if last - first <= MAX_INSERTION_SORTED_ROWS:
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
