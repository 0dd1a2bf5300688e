"""Building a base (base.py) of rows in columns of words: a counting sort by the key, division by division, then each key's rows
in order and without repetition."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.inputs.base_order import (
    MAX_INSERTION_SORTED_ROWS,
    order_rows,
    order_values,
    ordered_key,
)
from dlog.engine.kernels.incremental.store.base import offset_room
from dlog.engine.kernels.incremental.store.bits import put_bit
from dlog.engine.kernels.incremental.store.collections import widen
from dlog.engine.kernels.incremental.store.divisions import (
    DIVISIONS,
    divide_rows,
    first_key,
    first_word,
    item_of_word,
    key_of_word,
    room_of,
    shift_of,
)
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import behind, release, resize, store_cell, zeroed

ROWS_AHEAD = 16
MIN_BASE_ROWS = 64
"""Rows below which there is no base."""


@kernel
def survey(columns: WordColumns, arity, first, last, extents: Words):
    """Writes the least and the greatest value of each column among its rows [first, last), beside each other."""
    for c in range(arity):
        low, high = extent(behind(columns[c], first), last - first)
        extents[2 * c] = low
        extents[2 * c + 1] = high


@kernel
def choose_key(collection: Collection, columns: WordColumns, extents: Words, count):
    """The column that a base of so many rows in columns is to be sorted by: that of an index, if there is one that can be, else
    one by which they are in order already, as those may be that come later; -1 if no column can. With its least value, and how
    many there may be from that on."""
    indexes = collection.indexes
    for i in range(collection.index_count):
        index = indexes[i]
        if index.key_count == 1:
            groups = narrow_range(extents, index.keys[0], count)
            if groups > 0:
                return index.keys[0], extents[2 * index.keys[0]], groups
    key = ordered_key(columns, 1, collection.arity, count)
    if key >= 0:
        return key, columns[key][0], columns[key][count - 1] - columns[key][0] + 1
    for c in range(collection.arity):
        groups = narrow_range(extents, c, count)
        if groups > 0:
            return c, extents[2 * c], groups
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
def narrow_range(extents: Words, c, count):
    """How many values there are from the least up to the greatest of a column with so many rows; 0 if more than those."""
    groups = extents[2 * c + 1] - extents[2 * c] + 1
    return groups if is_narrow(extents, c) and groups <= count else 0


@kernel
def is_narrow(extents: Words, c):
    """Whether all values of a column fit 4 bytes."""
    return extents[2 * c] >= -2147483648 and extents[2 * c + 1] <= 2147483647


@kernel
def load_base(ctl: Control, collection: Collection, columns: WordColumns, extents: Words, count, key, low, groups):
    """Makes rows in columns of words with these extents (`survey`) the base of a collection without rows, sorted by a column
    with so many values from `low` on. False with ctl.error set."""
    if not begin_base(ctl, collection, extents, key, low, groups):
        return False
    size = (room_of(count) + 1) * 8
    rooms = Words(resize(ctl, 0, 0, size))
    if not rooms:
        return False
    room = behind(rooms, 1)
    rooms[0] = room.address
    shift = shift_of(groups, count)
    divide_keys(collection, columns, 0, count, shift, room)
    end_base(collection, fill_divisions(collection, columns, rooms, 1, 0, DIVISIONS, shift, 0))
    release(ctl, rooms.address, size)
    return True


@kernel
def begin_base(ctl: Control, collection: Collection, extents: Words, key, low, groups):
    """Gets ready for rows of so many groups. False with ctl.error set."""
    for c in range(collection.arity):
        column = collection.columns[c]
        if column.width == 4 and not is_narrow(extents, c) and not widen(ctl, collection, column):
            return False
    offsets = Numbers(zeroed(ctl, offset_room(groups) * 4))
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
def divide_keys(collection: Collection, columns: WordColumns, start, end, shift, room: Words):
    """Divides the rows [start, end) of columns by the keys of a base that has begun."""
    key = collection.base.key
    items = columns[1 - key].address if is_packed(collection) else 0
    divide_rows(columns[key].address, 8, Words(0), items, 8, start, end, collection.base.low, shift, room)


@kernel
def is_packed(collection: Collection):
    """Whether a row's other value is in its word."""
    return collection.arity == 2 and collection.columns[1 - collection.base.key].width == 4


@kernel
def fill_divisions(collection: Collection, columns: WordColumns, rooms: Words, count, first, last, shift, start):
    """Writes the rows of divisions [first, last), which are in so many rooms, in order and each once, from row number `start`
    on; returns where they end. Divisions before and behind are another worker's."""
    offsets = collection.base.offsets
    groups = collection.base.keys
    end = start
    for division in range(first, last):
        low = first_key(division, shift, groups)
        high = first_key(division + 1, shift, groups)
        before = end
        count_division(offsets, rooms, count, division)
        for group in range(low, high):
            size = offsets[group]
            offsets[group] = end
            end += size
        for c in range(collection.arity):
            if c != collection.base.key:
                for number in range(count):
                    scatter(collection, c, columns[c], Words(rooms[number]), division)
                rewind(offsets, low, high, before)
    return order_groups(collection, first_key(first, shift, groups), first_key(last, shift, groups), start, end)


@kernel
def count_division(offsets: Numbers, rooms: Words, count, division):
    """offsets[g] = the rows of group g of a division."""
    for number in range(count):
        room = Words(rooms[number])
        for at in range(first_word(room, division), first_word(room, division + 1)):
            offsets[key_of_word(room[at])] += 1


@kernel
def scatter(collection: Collection, c, values: Words, room: Words, division):
    """Writes a column's values of a division in the order of the keys. Offsets become the ends of their rows."""
    data = collection.columns[c].data
    width = collection.columns[c].width
    offsets = collection.base.offsets
    packed = is_packed(collection)
    last = first_word(room, division + 1)
    for at in range(first_word(room, division), last):
        group = key_of_word(room[at])
        item = item_of_word(room[at])
        place = offsets[group]
        offsets[group] = place + 1
        if packed:
            Numbers(data)[place] = item
        else:
            if at + ROWS_AHEAD < last:
                prefetch(values.address + item_of_word(room[at + ROWS_AHEAD]) * 8)
            store_cell(data, width, place, values[item])


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
