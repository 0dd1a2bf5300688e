"""Base: the rows of an input that came in one go, sorted, which need no table to be found.

Rows [0, base.rows) are sorted by the column `base.key` and then by the others in their order; those with key k are
[offsets[k - low], offsets[k - low + 1]). They keep their numbers for good: one that is removed is dead, and lives again when
its values return. All other rows are found by the slots. (The idea of a base layer without times of differential dataflow's
traces.)
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length, prefetch
from dlog.engine.kernels.machine_structs import Column, Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import load_cell, release

MAX_COUNTED_VALUES = 24
"""Values that are counted rather than halved."""
ROWS_AHEAD = 12
"""Rows between one whose offset, or group, is asked for and one that is searched."""
KEYS_PER_ROW = 5
"""Keys from the first to the last for each row of a base, at most: their offsets take about as much as slots would."""
MAX_PREFETCHED_BYTES = 128
"""Bytes of a key's rows up to which both ends are asked for before they are searched, not the middle."""


@kernel
def offset_room(keys):
    """How many offsets there is room for with so many keys: one more, and some for keys that come later."""
    step = 1 << max(bit_length(keys) - 3, 4)
    return (keys + step) & -step


@kernel
def base_group(collection: Collection, values: Words):
    """Place of the values' key among the offsets, or -1."""
    value = values[collection.base.key]
    low = collection.base.low
    return value - low if low <= value < low + collection.base.keys else -1


@kernel
def compare_base(collection: Collection, row, values: Words):
    """-1, 0 or 1 as a base row is before, at or behind values with its key."""
    key = collection.base.key
    for c in range(collection.arity):
        if c != key:
            column = collection.columns[c]
            cell = load_cell(column.data, column.width, row)
            wanted = values[c]
            if cell != wanted:
                return -1 if cell < wanted else 1
    return 0


@kernel
def find_base(collection: Collection, values: Words):
    """The base row with these values, dead or alive, or -1."""
    group = base_group(collection, values)
    if group < 0:
        return -1
    offsets = collection.base.offsets
    first = offsets[group]
    last = offsets[group + 1]
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
def search_base(collection: Collection, columns: WordColumns, step, first, n, rows: Words, buffer: Words):
    """rows[i] = the base row, dead or alive, with the values of row first + i of columns, or -1. Value c of row r is
    columns[c][r * step]; `buffer` has room for a row.

    Offsets are asked for some rows ahead, then the keys' rows, so that memory answers while the search goes on."""
    find_base_groups(collection, columns[collection.base.key], step, first, n, rows)
    if n > 1:
        begin_search(collection, rows, n)
    search_groups(collection, columns, step, first, n, rows, Words(0), 0, buffer)


@kernel
def searched_column(collection: Collection):
    """The column by which a key's rows are sorted first, or the key where there is no other."""
    return 1 if collection.base.key == 0 and collection.arity > 1 else 0


@kernel
def begin_search(collection: Collection, groups: Words, n):
    """Before n rows of these groups are searched: asks for what is read of the first."""
    offsets = collection.base.offsets
    column = collection.columns[searched_column(collection)]
    for i in range(min(2 * ROWS_AHEAD, n)):
        warm_offsets(offsets, groups[i])
    for i in range(min(ROWS_AHEAD, n)):
        warm_group(column, offsets, groups[i])


@kernel
def search_groups(
    collection: Collection, columns: WordColumns, step, first, n, rows: Words, others: Words, following, buffer: Words
):
    """`search_base` of rows whose groups are known, which `rows` has; `others` are the groups of those that follow, so many:
    what is read of the first of these has been asked for, too."""
    offsets = collection.base.offsets
    arity = collection.arity
    column = collection.columns[searched_column(collection)]
    wanted = columns[searched_column(collection)]
    counts = arity == 2 and column.width == 4
    for i in range(n):
        ahead = i + 2 * ROWS_AHEAD
        if ahead < n:
            warm_offsets(offsets, rows[ahead])
        elif ahead - n < following:
            warm_offsets(offsets, others[ahead - n])
        ahead -= ROWS_AHEAD
        if ahead < n:
            warm_group(column, offsets, rows[ahead])
        elif ahead - n < following:
            warm_group(column, offsets, others[ahead - n])
        group = rows[i]
        if group >= 0 and counts:
            rows[i] = search_values(Numbers(column.data), offsets[group], offsets[group + 1], wanted[(first + i) * step])
        elif group >= 0:
            for c in range(arity):
                buffer[c] = columns[c][(first + i) * step]
            rows[i] = find_base(collection, buffer)


@kernel
def warm_offsets(offsets: Numbers, group):
    """Asks for where a group of the base begins; -1: none."""
    if group >= 0:
        prefetch(offsets.address + group * 4)


@kernel
def warm_group(column: Column, offsets: Numbers, group):
    """Asks for the values that are searched first in a group of the base; -1: none."""
    if group >= 0:
        low = offsets[group]
        high = offsets[group + 1] - 1
        if (high - low) * column.width > MAX_PREFETCHED_BYTES:
            low = (low + high) >> 1
            high = low
        prefetch(column.data + low * column.width)
        prefetch(column.data + high * column.width)


@kernel
def find_base_groups(collection: Collection, keys: Words, step, first, n, groups: Words):
    """groups[i] = place among the offsets of key first + i, or -1."""
    low = collection.base.low
    count = collection.base.keys
    for i in range(n):
        group = keys[(first + i) * step] - low
        groups[i] = group if 0 <= group < count else -1


@kernel
def search_values(data: Numbers, first, last, value):
    """Where a value is among the ascending 4-byte values [first, last), or -1."""
    place = place_of_value(data, first, last, value)
    return place if place < last and data[place] == value else -1


@kernel
def place_of_value(data: Numbers, first, last, value):
    """The first of the ascending 4-byte values [first, last) that is not less than a value; `last` if all are."""
    while last - first > MAX_COUNTED_VALUES:
        middle = (first + last) >> 1
        if data[middle] < value:
            first = middle + 1
        else:
            last = middle
    # Which half a value is in cannot be foretold: a few are counted without a branch.
    place = first
    for at in range(first, last):
        place += 1 if data[at] < value else 0
    return place


@kernel
def drop_base(ctl: Control, collection: Collection):
    """Forgets the base; what is known of its rows is the caller's."""
    release(ctl, collection.base.offsets.address, offset_room(collection.base.keys) * 4)
    collection.base.rows = 0
    collection.base.keys = 0
    collection.base.offsets = Numbers(0)
    collection.base.dead = 0
    collection.base.removed = 0
    collection.base.refilled = 0
    collection.base.next = 0
