"""The first rows of keys, in an order: what a choice domain keeps.

`cells` has an address and a width for each column, those that rows are compared by among them; a key is a list of columns. Rows
that are kept stand in hash tables by key: a slot is a row's number plus one.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import calloc, free
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.storage import load_cell, mix

LEAST_ROOM = 1024
"""Slots of a table in the beginning; a power of two, as ever after."""


@entry()
def least_rows(cells: Words, key: Words, key_count, compared: Words, compared_count, rows, chosen: Words):
    """Writes the rows that no other row of the same key precedes in the order of the compared columns, in whichever order;
    returns how many, -1 when out of memory."""
    room, count = LEAST_ROOM, 0
    table = Numbers(calloc(room, 4))
    for row in range(rows):
        if table.address == 0:
            return -1
        at = slot_of(table, room, cells, key, key_count, row)
        if table[at] == 0:
            table[at] = row + 1
            count += 1
            if 2 * count > room:
                table = rehashed(table, room, cells, key, key_count)
                room *= 2
        elif precedes(cells, compared, compared_count, row, table[at] - 1):
            table[at] = row + 1
    if table.address == 0:
        return -1
    count = 0
    for at in range(room):
        if table[at] != 0:
            chosen[count] = table[at] - 1
            count += 1
    free(table.address)
    return count


@entry()
def free_rows(cells: Words, keys: Words, ends: Words, key_count, order: Words, rows, chosen: Words):
    """Goes through the rows in an order (that of their numbers where it is null) and writes those that agree on no key with one
    written before; returns how many, -1 when out of memory. Key k has the columns up to `ends[k]` of `keys`."""
    room, count = LEAST_ROOM, 0
    tables = Numbers(calloc(key_count * room, 4))
    for i in range(rows):
        if tables.address == 0:
            return -1
        row = order[i] if order else i
        if not is_free(tables, room, cells, keys, ends, key_count, row):
            continue
        chosen[count] = row
        count += 1
        enter(tables, room, cells, keys, ends, key_count, row)
        if 2 * count > room:
            free(tables.address)
            room *= 2
            tables = Numbers(calloc(key_count * room, 4))
            for j in range(count if tables.address != 0 else 0):
                enter(tables, room, cells, keys, ends, key_count, chosen[j])
    free(tables.address)
    return count


@kernel
def is_free(tables: Numbers, room, cells: Words, keys: Words, ends: Words, key_count, row):
    """Whether no row that was entered has any of the row's keys."""
    first = 0
    for k in range(key_count):
        table = Numbers(tables.address + 4 * k * room)
        key = Words(keys.address + 8 * first)
        if table[slot_of(table, room, cells, key, ends[k] - first, row)] != 0:
            return False
        first = ends[k]
    return True


@kernel
def enter(tables: Numbers, room, cells: Words, keys: Words, ends: Words, key_count, row):
    first = 0
    for k in range(key_count):
        table = Numbers(tables.address + 4 * k * room)
        key = Words(keys.address + 8 * first)
        table[slot_of(table, room, cells, key, ends[k] - first, row)] = row + 1
        first = ends[k]


@kernel
def slot_of(table: Numbers, room, cells: Words, key: Words, key_count, row):
    """The slot of the row's key, or the free one where it would be."""
    hashed = 0
    for k in range(key_count):
        hashed = mix(hashed, load_cell(cells[2 * key[k]], cells[2 * key[k] + 1], row))
    at = (hashed >> 33) & (room - 1)
    while table[at] != 0 and not agree(cells, key, key_count, table[at] - 1, row):
        at = (at + 1) & (room - 1)
    return at


@kernel
def rehashed(table: Numbers, room, cells: Words, key: Words, key_count):
    """The table with twice the slots; its address is 0 when out of memory."""
    larger = Numbers(calloc(2 * room, 4))
    for at in range(room if larger.address != 0 else 0):
        if table[at] != 0:
            larger[slot_of(larger, 2 * room, cells, key, key_count, table[at] - 1)] = table[at]
    free(table.address)
    return larger


@kernel
def agree(cells: Words, key: Words, key_count, one, other):
    for k in range(key_count):
        address, width = cells[2 * key[k]], cells[2 * key[k] + 1]
        if load_cell(address, width, one) != load_cell(address, width, other):
            return False
    return True


@kernel
def precedes(cells: Words, compared: Words, compared_count, one, other):
    for k in range(compared_count):
        address, width = cells[2 * compared[k]], cells[2 * compared[k] + 1]
        left, right = load_cell(address, width, one), load_cell(address, width, other)
        if left != right:
            return left < right
    return False
