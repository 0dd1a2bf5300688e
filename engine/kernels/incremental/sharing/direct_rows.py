"""Rows of one column that parts of a path have noted for a fresh collection with a direct table: one worker numbers them all,
one after the other; what the collection notes beside them may be cleared by several, each its rows (`clear_made`)."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.gathering import ROW_UNKNOWN
from dlog.engine.kernels.incremental.sharing.parts import NEIGHBOURS, part_of
from dlog.engine.kernels.incremental.store.bits import fill_bits
from dlog.engine.kernels.incremental.store.collections import born_absent, clear_row, room_for_rows
from dlog.engine.kernels.incremental.store.direct import has_place
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import List
from dlog.engine.kernels.static.storage import store_cell

NOTED_WORDS = 2
"""Words that are noted of a row: its place among what has been found, and the value."""
ROWS_AHEAD = 24
"""Rows between one whose place in the table is asked for and one that is looked at."""


@kernel
def are_direct(collection: Collection, noted: List):
    """Whether all rows that are noted have places in a collection's direct table, and nothing is in the way of new ones."""
    if collection.arity != 1 or collection.fresh == 0 or collection.free_count != 0 or collection.base.rows != 0:
        return False
    low = collection.direct.low
    high = low
    for at in range(1, noted.count, NOTED_WORDS):
        low = min(low, noted.data[at])
        high = max(high, noted.data[at])
    narrow = low >= -2147483648 and high <= 2147483647
    return has_place(collection, low) and has_place(collection, high) and (narrow or collection.columns[0].width == 8)


@kernel
def find_direct_rows(ctl: Control, collection: Collection, noted: List, found: Words):
    """Finds or makes the rows that are noted, and writes them where they have been found: what the collection notes beside new
    ones is not cleared, yet. False with ctl.error set."""
    if not room_for_rows(ctl, collection, noted.count // NOTED_WORDS):
        return False
    first = collection.rows
    table = collection.direct.rows
    low = collection.direct.low
    column = collection.columns[0]
    rows = first
    for at in range(0, noted.count, NOTED_WORDS):
        if at + ROWS_AHEAD * NOTED_WORDS < noted.count:
            prefetch(table.address + (noted.data[at + ROWS_AHEAD * NOTED_WORDS + 1] - low) * 4)
        value = noted.data[at + 1]
        number = table[value - low]
        if number == 0:
            store_cell(column.data, column.width, rows, value)
            rows += 1
            table[value - low] = rows
            number = rows
        found[noted.data[at]] += number - 1 - ROW_UNKNOWN
    fill_bits(collection.alive, first, rows)
    collection.rows = rows
    collection.live += rows - first
    return True


@kernel
def clear_made(ctl: Control, collection: Collection, first, last):
    """Clears what is noted beside rows [first, last) that have been made, as `add_values` does; false with ctl.error
    set."""
    for row in range(first, last):
        clear_row(collection, row)
    if collection.no_readers == 0:
        for row in range(first, last):
            if not born_absent(ctl, collection.outer, row, 1):
                return False
    for row in range(first, last):
        if not born_absent(ctl, collection.inner, row, 1):
            return False
    return True


@kernel
def clear_own(ctl: Control, collection: Collection, first, last, part, parts):
    """`clear_made` of those rows that are a part's."""
    row = first
    while row < last:
        end = min((row | (NEIGHBOURS - 1)) + 1, last)
        if part_of(row, parts) == part and not clear_made(ctl, collection, row, end):
            return False
        row = end
    return True
