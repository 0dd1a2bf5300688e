"""Building a base (base.py) of rows in columns of words: a counting sort by the key, then each key's rows in order and without
repetition."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.inputs.base_order import MAX_INSERTION_SORTED_ROWS, order_rows, order_values
from dlog.engine.kernels.incremental.store.bits import put_bit
from dlog.engine.kernels.incremental.store.collections import widen
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import store_cell, zeroed

ROWS_AHEAD = 16
MIN_BASE_ROWS = 64
"""Rows below which there is no base."""


@kernel
def choose_key(collection: Collection, columns: WordColumns, count):
    """The column that a base is to be sorted by: that of an index, if there is one that can be; -1 if no column can. With its
    least value, and how many there may be from that on."""
    indexes = collection.indexes
    for i in range(collection.index_count):
        index = indexes[i]
        if index.key_count == 1:
            low, groups = narrow_range(columns[index.keys[0]], count)
            if groups > 0:
                return index.keys[0], low, groups
    for c in range(collection.arity):
        low, groups = narrow_range(columns[c], count)
        if groups > 0:
            return c, low, groups
    return -1, 0, 0


@kernel
def extent(values: Words, count):
    """The least and the greatest of so many values."""
    low = high = values[0]
    for i in range(count):
        low = min(low, values[i])
        high = max(high, values[i])
    return low, high


@kernel
def narrow_range(values: Words, count):
    """The least of so many values, and how many there are from that up to the greatest; 0 if that is more than their number."""
    low, high = extent(values, count)
    narrow = low >= -2147483648 and high <= 2147483647 and high - low < count
    return low, high - low + 1 if narrow else 0


@kernel
def load_base(ctl: Control, collection: Collection, columns: WordColumns, count, key, low, groups, room: Words):
    """Makes rows in columns of words the base of a collection without rows, sorted by a column with so many values from `low`
    on; there is room for a block. False with ctl.error set."""
    if not begin_base(ctl, collection, columns, count, key, low, groups):
        return False
    count_keys(collection, columns[key], count)
    sum_counts(collection)
    end_base(collection, fill_groups(collection, columns, count, 0, groups, 0, count, room))
    return True


@kernel
def begin_base(ctl: Control, collection: Collection, columns: WordColumns, count, key, low, groups):
    """Gets ready for rows of so many groups: their counts are 0. False with ctl.error set."""
    for c in range(collection.arity):
        column = collection.columns[c]
        if column.width == 4 and c != key:
            least, greatest = extent(columns[c], count)
            if (least < -2147483648 or greatest > 2147483647) and not widen(ctl, collection, column):
                return False
    offsets = Numbers(zeroed(ctl, (groups + 1) * 4))
    if not offsets:
        return False
    base = collection.base
    base.offsets = offsets
    base.keys = groups
    base.low = low
    base.key = key
    base.dead = 0
    return True


@kernel
def end_base(collection: Collection, rows):
    """Makes so many rows, all alive, those of a collection."""
    base = collection.base
    base.offsets[base.keys] = rows
    base.rows = rows
    collection.rows = rows
    collection.live = rows
    collection.free_count = 0
    alive = collection.alive
    for word in range(rows >> 6):
        alive[word] = -1
    for row in range(rows >> 6 << 6, rows):
        put_bit(alive, row)


# --------------------------------------------------------------------------------------------------------------- groups


@kernel
def count_keys(collection: Collection, keys: Words, count):
    """Counts the rows of all groups, the keys of so many rows being `keys`."""
    offsets = collection.base.offsets
    low = collection.base.low
    for i in range(count):
        offsets[keys[i] - low] += 1


@kernel
def count_some(collection: Collection, keys: Words, count, first, last, room: Words):
    """`count_keys` of groups [first, last)."""
    offsets = collection.base.offsets
    low = collection.base.low
    for start in range(0, count, BLOCK):
        n = places_within(keys, start, min(start + BLOCK, count), low + first, low + last, room)
        for i in range(n):
            offsets[keys[room[i]] - low] += 1


@kernel
def places_within(keys: Words, start, end, low, high, places: Words):
    """Lists the rows of [start, end) with keys of [low, high); returns how many there are."""
    n = 0
    for i in range(start, end):
        places[n] = i
        n += 1 if low <= keys[i] < high else 0
    return n


@kernel
def sum_counts(collection: Collection):
    """offsets[g] = rows of the groups before g, where it was how many group g has."""
    offsets = collection.base.offsets
    total = 0
    for group in range(collection.base.keys + 1):
        size = offsets[group]
        offsets[group] = total
        total += size


@kernel
def fill_groups(collection: Collection, columns: WordColumns, count, first, last, start, end, room: Words):
    """Writes the rows of groups [first, last), in order and each once, from row number `start` on, before `end`; returns where
    they end. Groups before and behind are another worker's."""
    keys = columns[collection.base.key]
    for c in range(collection.arity):
        if c != collection.base.key:
            if first == 0 and last == collection.base.keys:
                scatter(collection, c, columns[c], keys, count)
            else:
                scatter_some(collection, c, columns[c], keys, count, first, last, room)
            rewind(collection.base.offsets, first, last, start)
    return order_groups(collection, first, last, start, end)


@kernel
def scatter(collection: Collection, c, values: Words, keys: Words, count):
    """Writes a column's values in the order of the keys. Offsets become the ends of their keys' rows."""
    data = collection.columns[c].data
    width = collection.columns[c].width
    offsets = collection.base.offsets
    low = collection.base.low
    for i in range(count):
        if i + 2 * ROWS_AHEAD < count:
            prefetch(offsets.address + (keys[i + 2 * ROWS_AHEAD] - low) * 4)
            prefetch(data + offsets[keys[i + ROWS_AHEAD] - low] * width)
        group = keys[i] - low
        at = offsets[group]
        offsets[group] = at + 1
        store_cell(data, width, at, values[i])


@kernel
def scatter_some(collection: Collection, c, values: Words, keys: Words, count, first, last, room: Words):
    """`scatter` of groups [first, last)."""
    data = collection.columns[c].data
    width = collection.columns[c].width
    offsets = collection.base.offsets
    low = collection.base.low
    for start in range(0, count, BLOCK):
        n = places_within(keys, start, min(start + BLOCK, count), low + first, low + last, room)
        for i in range(n):
            prefetch(offsets.address + (keys[room[i]] - low) * 4)
        for i in range(n):
            if i + ROWS_AHEAD < n:
                prefetch(data + offsets[keys[room[i + ROWS_AHEAD]] - low] * width)
            group = keys[room[i]] - low
            at = offsets[group]
            offsets[group] = at + 1
            store_cell(data, width, at, values[room[i]])


@kernel
def rewind(offsets: Numbers, first, last, start):
    """Makes the ends of the rows of groups [first, last), which begin at `start`, their beginnings again."""
    for group in range(last - 1, first, -1):
        offsets[group] = offsets[group - 1]
    if first < last:
        offsets[first] = start


@kernel
def order_groups(collection: Collection, first, last, start, end):
    """Sorts the rows of each of groups [first, last), which lie at [start, end), by the other columns, drops repeated ones,
    writes the keys; returns where they end."""
    base = collection.base
    offsets = base.offsets
    key = base.key
    data = collection.columns[key].data
    width = collection.columns[key].width
    other = collection.columns[1 - key]
    pairs = collection.arity == 2 and other.width == 4
    rows = start
    for group in range(first, last):
        begin = offsets[group]
        limit = offsets[group + 1] if group + 1 < last else end
        offsets[group] = rows
        former = rows
        if pairs and limit - begin <= MAX_INSERTION_SORTED_ROWS:
            rows = order_values(Numbers(other.data), begin, limit, rows)
        else:
            rows = order_rows(collection, key, begin, limit, rows)
        for row in range(former, rows):
            store_cell(data, width, row, base.low + group)
    return rows


@kernel
def close_gap(collection: Collection, first, last, start, end, rows):
    """Moves the rows [start, end) of groups [first, last) to `rows` and on; returns where they end."""
    gap = start - rows
    if gap > 0:
        for c in range(collection.arity):
            column = collection.columns[c]
            if column.width == 4:
                move_numbers(Numbers(column.data), start, end, gap)
            else:
                move_words(Words(column.data), start, end, gap)
        offsets = collection.base.offsets
        for group in range(first, last):
            offsets[group] -= gap
    return end - gap


@kernel
def move_numbers(data: Numbers, start, end, gap):
    for row in range(start, end):
        data[row - gap] = data[row]


@kernel
def move_words(data: Words, start, end, gap):
    for row in range(start, end):
        data[row - gap] = data[row]
