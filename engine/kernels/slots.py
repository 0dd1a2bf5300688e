"""Slots: where the rows of a collection are found by their values.

An open table of any size, at most 7/8 full. A slot is a row number and, in bytes of their own behind all the numbers, a tag:
seven bits of the row's hash. A search walks along the tags and reads rows only where it meets its own: for a row that is not
there it hardly ever reads any (the idea of Abseil's "Swiss tables").
"""

from __future__ import annotations

from dlog.engine.kernels.histories import get_bit
from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    CO_ALIVE,
    CO_LIVE,
    CO_SLOT_COUNT,
    CO_SLOTS,
    CO_TAKEN,
    CO_UNKEYED,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    REL_ARITY,
    REL_COLUMNS,
    REL_ROWS,
    SLOT_BYTES,
    TAG_FREE,
    TAG_GONE,
    TAG_ROW,
)
from dlog.engine.kernels.memory import load_i32, load_i64, load_u8, prefetch, store_i32, store_i64, store_u8
from dlog.engine.kernels.storage import load_cell, mix, release, zeroed

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
        hashed = mix(hashed, load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row))
    return hashed


@kernel
def slot_of(hashed, count):
    """The home of a hash among any number of slots."""
    return (((hashed >> 32) & 0xFFFFFFFF) * count) >> 32


@kernel
def tag_of(hashed):
    return TAG_ROW | (hashed & (TAG_ROW - 1))


@kernel
def slots_for(rows):
    """How many slots so many rows get when no more are expected soon."""
    return rows + (rows >> 2) + 64


@kernel
def has_values(collection, row, values):
    columns = load_i64(collection, REL_COLUMNS)
    for c in range(load_i64(collection, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        if load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row) != load_i64(values, c):
            return False
    return True


@kernel
def find_values(collection, values, hashed):
    """The row with these values, or -1."""
    count = load_i64(collection, CO_SLOT_COUNT)
    if count == 0:
        return -1
    table = load_i64(collection, CO_SLOTS)
    tags = table + count * 4
    wanted = tag_of(hashed)
    at = slot_of(hashed, count)
    while True:
        tag = load_u8(tags, at)
        if tag == wanted:
            row = load_i32(table, at)
            if has_values(collection, row, values):
                return row
        elif tag == TAG_FREE:
            return -1
        at += 1
        if at == count:
            at = 0


@kernel
def place_row(collection, hashed, row):
    """Enters a row that the table does not have; the slot of a removed one will do."""
    if load_i64(collection, CO_UNKEYED) != 0:
        return
    table = load_i64(collection, CO_SLOTS)
    count = load_i64(collection, CO_SLOT_COUNT)
    tags = table + count * 4
    at = slot_of(hashed, count)
    while load_u8(tags, at) >= TAG_ROW:
        at += 1
        if at == count:
            at = 0
    if load_u8(tags, at) == TAG_FREE:
        store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) + 1)
    store_i32(table, at, row)
    store_u8(tags, at, tag_of(hashed))


@kernel
def remove_slot(collection, row):
    """Takes a row out of the table. Its slot is free again if no search needs to pass it."""
    if load_i64(collection, CO_UNKEYED) != 0:
        return
    table = load_i64(collection, CO_SLOTS)
    count = load_i64(collection, CO_SLOT_COUNT)
    tags = table + count * 4
    hashed = hash_row(collection, row)
    at = slot_of(hashed, count)
    while load_i32(table, at) != row or load_u8(tags, at) != tag_of(hashed):
        at += 1
        if at == count:
            at = 0
    following = 0 if at + 1 == count else at + 1
    if load_u8(tags, following) == TAG_FREE:
        store_u8(tags, at, TAG_FREE)
        store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) - 1)
    else:
        store_u8(tags, at, TAG_GONE)


@kernel
def grow_slots(ctl, collection):
    """Keeps a free slot for one more row, and an eighth of all slots free; false with CTL_ERROR set."""
    if load_i64(collection, CO_UNKEYED) != 0:
        return True
    if (load_i64(collection, CO_TAKEN) + 1) * 8 <= load_i64(collection, CO_SLOT_COUNT) * 7:
        return True
    return resize_slots(ctl, collection, max(load_i64(collection, CO_LIVE) * 2, 64))


@kernel
def trim_slots(ctl, collection):
    """Gives back slots that are many more than the rows need; false with CTL_ERROR set."""
    live = load_i64(collection, CO_LIVE)
    if load_i64(collection, CO_UNKEYED) != 0 or load_i64(collection, CO_SLOT_COUNT) <= live + (live >> 1) + 64:
        return True
    return resize_slots(ctl, collection, slots_for(live))


@kernel
def resize_slots(ctl, collection, count):
    """Places all rows in a table of `count` slots; false with CTL_ERROR set."""
    table = zeroed(ctl, count * SLOT_BYTES)
    if table == 0:
        return False
    release(ctl, load_i64(collection, CO_SLOTS), load_i64(collection, CO_SLOT_COUNT) * SLOT_BYTES)
    store_i64(collection, CO_SLOTS, table)
    store_i64(collection, CO_SLOT_COUNT, count)
    store_i64(collection, CO_TAKEN, 0)
    alive = load_i64(collection, CO_ALIVE)
    rows = load_i64(collection, REL_ROWS)
    for row in range(rows):
        if row + AHEAD < rows:
            warm_slot(table, count, hash_row(collection, row + AHEAD))
        if get_bit(alive, row) != 0:
            place_row(collection, hash_row(collection, row), row)
    return True


@kernel
def warm_slot(table, count, hashed):
    at = slot_of(hashed, count)
    prefetch(table + at * 4)
    prefetch(table + count * 4 + at)


@kernel
def warm_slots(collection, hashes, n):
    """Asks for the slots of rows with these hashes."""
    count = load_i64(collection, CO_SLOT_COUNT)
    if count > 0:
        for i in range(n):
            warm_slot(load_i64(collection, CO_SLOTS), count, load_i64(hashes, i))


@kernel
def search_ahead(collection, hashes, n, making, places):
    """places[i] = the row that is likely to have hash i, ABSENT if certainly none has, UNKNOWN. First all tags are asked for,
    then what they lead to (with `making` also where a new row goes), so that memory answers while the search goes on."""
    count = load_i64(collection, CO_SLOT_COUNT)
    table = load_i64(collection, CO_SLOTS)
    arity = load_i64(collection, REL_ARITY)
    if n == 1 or count == 0 or arity == 0:
        for i in range(n):
            store_i64(places, i, ABSENT if count == 0 else UNKNOWN)
        return
    tags = table + count * 4
    for i in range(n):
        prefetch(tags + slot_of(load_i64(hashes, i), count))
    for i in range(n):
        at = near_slot(tags, count, load_i64(hashes, i))
        store_i64(places, i, at)
        if at >= 0:
            prefetch(table + at * 4)
        elif making:
            prefetch(table + slot_of(load_i64(hashes, i), count) * 4)
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
def near_slot(tags, count, hashed):
    """The first slot with the hash's tag if it is near the hash's home, ABSENT or UNKNOWN."""
    wanted = tag_of(hashed)
    home = slot_of(hashed, count)
    for at in range(home, min(home + NEAR, count)):
        tag = load_u8(tags, at)
        if tag == wanted:
            return at
        if tag == TAG_FREE:
            return ABSENT
    return UNKNOWN
