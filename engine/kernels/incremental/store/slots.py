"""Slots: where the rows of a collection are found by their values.

An open table (homes.py) of any size, at most 7/8 full, or a little more while it grows (slot_room.py). A slot is a row number
and, in an array of their own, a tag: seven bits of the row's hash. A search walks along the tags and reads rows only where it
meets its own: for a row that is not there it hardly ever reads any (the idea of Abseil's "Swiss tables").

Not all rows have slots: those of a base (base.py) and those of a direct table (direct.py) are found without.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, load_u8, prefetch, store_i32, store_i64, store_u8
from dlog.engine.kernels.incremental.store.base import find_base
from dlog.engine.kernels.incremental.store.direct import (
    find_direct,
    set_direct,
)
from dlog.engine.kernels.incremental.store.histories import get_bit
from dlog.engine.kernels.incremental.store.homes import (
    home_of,
)
from dlog.engine.kernels.incremental.store.implied import cell_at
from dlog.engine.kernels.layout import (
    CO_ALIVE,
    CO_BASE_DEAD,
    CO_BASE_ROWS,
    CO_DIRECT_COUNT,
    CO_LIVE,
    CO_SLOT_COUNT,
    CO_SLOT_ROOM,
    CO_SLOTS,
    CO_TAGS,
    CO_TAKEN,
    CO_UNKEYED,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    REL_ARITY,
    REL_COLUMNS,
    TAG_FREE,
    TAG_GONE,
    TAG_ROW,
)
from dlog.engine.kernels.static.storage import SMALL, mix

AHEAD = 16
"""Rows whose slots are asked for before they are looked at."""
NEAR = 16
"""Slots of a row that are looked at when it is searched ahead."""
ABSENT, UNKNOWN = -1, -2


@kernel
def hash_values(values, arity):
    hashed = 0
    for c in range(arity):
        hashed = mix(hashed, load_i64(values, c))
    return hashed


@kernel
def hash_row(collection, row):
    columns = load_i64(collection, REL_COLUMNS)
    hashed = 0
    for c in range(load_i64(collection, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        hashed = mix(hashed, cell_at(column, row))
    return hashed


@kernel
def slots_of(collection):
    return collection + CO_SLOT_COUNT * 8


@kernel
def slot_of(collection, hashed):
    """The home of a hash."""
    return home_of(slots_of(collection), (hashed >> 32) & 0xFFFFFFFF)


@kernel
def tag_of(hashed):
    return TAG_ROW | (hashed & (TAG_ROW - 1))


@kernel
def slots_for(rows):
    """How many slots so many rows get when no more are expected soon."""
    return rows + (rows >> 2) + 64


@kernel
def more_slots(rows):
    """How many slots so many rows get when more come."""
    return max(rows * 2, 64) if rows < SMALL else rows + (rows >> 1)


@kernel
def has_values(collection, row, values):
    columns = load_i64(collection, REL_COLUMNS)
    for c in range(load_i64(collection, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        if cell_at(column, row) != load_i64(values, c):
            return False
    return True


@kernel
def find_values(collection, values, hashed):
    """The row with these values, or -1."""
    if load_i64(collection, CO_BASE_ROWS) != 0:
        row = find_base(collection, values)
        if row >= 0:
            return row if get_bit(load_i64(collection, CO_ALIVE), row) != 0 else -1
    return find_slotted(collection, values, hashed)


@kernel
def find_slotted(collection, values, hashed):
    """The row with these values that is not of the base, or -1."""
    if load_i64(collection, CO_DIRECT_COUNT) != 0:
        return find_direct(collection, load_i64(values, 0))
    tags = load_i64(collection, CO_TAGS)
    if tags == 0:
        return -1
    table = load_i64(collection, CO_SLOTS)
    wanted = tag_of(hashed)
    at = slot_of(collection, hashed)
    while True:
        tag = load_u8(tags, at)
        if tag == wanted:
            row = load_i32(table, at)
            if has_values(collection, row, values):
                return row
        elif tag == TAG_FREE:
            return -1
        at += 1


@kernel
def place_row(collection, hashed, row):
    """Enters a row that the table does not have; the slot of a removed one will do."""
    if load_i64(collection, CO_UNKEYED) != 0:
        return
    if load_i64(collection, CO_DIRECT_COUNT) != 0:
        set_direct(collection, only_value(collection, row), row + 1)
        return
    tags = load_i64(collection, CO_TAGS)
    at = slot_of(collection, hashed)
    while load_u8(tags, at) >= TAG_ROW:
        at += 1
    if load_u8(tags, at) == TAG_FREE:
        store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) + 1)
    store_i32(load_i64(collection, CO_SLOTS), at, row)
    store_u8(tags, at, tag_of(hashed))


@kernel
def remove_slot(collection, row):
    """Takes a row out of the table. Its slot is free again if no search needs to pass it."""
    if load_i64(collection, CO_UNKEYED) != 0:
        return
    if load_i64(collection, CO_DIRECT_COUNT) != 0:
        set_direct(collection, only_value(collection, row), 0)
        return
    table = load_i64(collection, CO_SLOTS)
    tags = load_i64(collection, CO_TAGS)
    hashed = hash_row(collection, row)
    at = slot_of(collection, hashed)
    while load_i32(table, at) != row or load_u8(tags, at) != tag_of(hashed):
        at += 1
    if load_u8(tags, at + 1) == TAG_FREE:
        store_u8(tags, at, TAG_FREE)
        store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) - 1)
    else:
        store_u8(tags, at, TAG_GONE)


@kernel
def only_value(collection, row):
    """Value of the one column in a row."""
    column = load_i64(collection, REL_COLUMNS)
    return cell_at(column, row)


@kernel
def slotted(collection):
    """Living rows that are not of the base."""
    return load_i64(collection, CO_LIVE) - load_i64(collection, CO_BASE_ROWS) + load_i64(collection, CO_BASE_DEAD)


@kernel
def warm_slot(collection, hashed):
    at = slot_of(collection, hashed)
    prefetch(load_i64(collection, CO_SLOTS) + at * 4)
    prefetch(load_i64(collection, CO_TAGS) + at)


@kernel
def warm_slots(collection, hashes, n):
    """Asks for the slots of rows with these hashes."""
    count = load_i64(collection, CO_SLOT_COUNT)
    if count > 0:
        for i in range(n):
            warm_slot(collection, load_i64(hashes, i))


@kernel
def warm_others(collection, columns, step, first, n, rows, hashes):
    """Hashes the rows first + i of columns (see `search_base`) where rows[i] is -1, and asks for their slots."""
    count = load_i64(collection, CO_SLOT_COUNT)
    arity = load_i64(collection, REL_ARITY)
    for i in range(n):
        hashed = 0
        for c in range(arity):
            hashed = mix(hashed, load_i64(load_i64(columns, c), (first + i) * step))
        store_i64(hashes, i, hashed)
        if count != 0 and load_i64(rows, i) < 0:
            warm_slot(collection, hashed)


@kernel
def search_ahead(collection, hashes, n, making, places):
    """places[i] = the row that is likely to have hash i, ABSENT if certainly none has, UNKNOWN. First all tags are asked for,
    then what they lead to (with `making` also where a new row goes), so that memory answers while the search goes on."""
    count = load_i64(collection, CO_SLOT_COUNT)
    table = load_i64(collection, CO_SLOTS)
    arity = load_i64(collection, REL_ARITY)
    others = load_i64(collection, CO_BASE_ROWS) != 0 or load_i64(collection, CO_DIRECT_COUNT) != 0
    if n == 1 or count == 0 or arity == 0 or others:
        for i in range(n):
            store_i64(places, i, UNKNOWN if others or count != 0 else ABSENT)
        return
    tags = load_i64(collection, CO_TAGS)
    for i in range(n):
        prefetch(tags + slot_of(collection, load_i64(hashes, i)))
    for i in range(n):
        at = near_slot(collection, load_i64(hashes, i))
        store_i64(places, i, at)
        if at >= 0:
            prefetch(table + at * 4)
        elif making:
            prefetch(table + slot_of(collection, load_i64(hashes, i)) * 4)
    column = load_i64(collection, REL_COLUMNS)
    second = column if arity == 1 else column + COL_SIZE * 8
    for i in range(n):
        at = load_i64(places, i)
        if at >= 0:
            row = load_i32(table, at)
            store_i64(places, i, row)
            prefetch(load_i64(column, COL_DATA) + row * load_i64(column, COL_WIDTH))
            prefetch(load_i64(second, COL_DATA) + row * load_i64(second, COL_WIDTH))


@kernel
def near_slot(collection, hashed):
    """The first slot with the hash's tag if it is near the hash's home, ABSENT or UNKNOWN."""
    tags = load_i64(collection, CO_TAGS)
    wanted = tag_of(hashed)
    home = slot_of(collection, hashed)
    for at in range(home, min(home + NEAR, load_i64(collection, CO_SLOT_ROOM))):
        tag = load_u8(tags, at)
        if tag == wanted:
            return at
        if tag == TAG_FREE:
            return ABSENT
    return UNKNOWN
