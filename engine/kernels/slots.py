"""Slots: where the rows of a collection are found by their values.

An open table of any size, at most 7/8 full. A slot is a row number and, in bytes of their own behind all the numbers, a tag:
seven bits of the row's hash. A search walks along the tags and reads rows only where it meets its own: for a row that is not
there it hardly ever reads any (the idea of Abseil's "Swiss tables").

Not all rows have slots: those of a base (base.py) and those of a direct table (direct.py) are found without.
"""

from __future__ import annotations

from dlog.engine.kernels.base import find_base
from dlog.engine.kernels.direct import (
    are_close,
    drop_direct,
    extend_direct,
    find_direct,
    has_place,
    move_direct,
    set_direct,
    trim_direct,
)
from dlog.engine.kernels.histories import get_bit
from dlog.engine.kernels.implied import cell_at
from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    CO_ALIVE,
    CO_BASE_DEAD,
    CO_BASE_ROWS,
    CO_DIRECT_COUNT,
    CO_DIRECT_LOW,
    CO_EXPECTED,
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
from dlog.engine.kernels.storage import SMALL, mix, release, zeroed

AHEAD = 16
"""Rows whose slots are asked for before they are looked at."""
NEAR = 16
"""Slots of a row that are looked at when it is searched ahead."""
ABSENT, UNKNOWN = -1, -2
DIRECT_ROWS = 1024
"""Rows from which values in slots are looked at whether they have become close."""


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
    if load_i64(collection, CO_DIRECT_COUNT) != 0:
        set_direct(collection, only_value(collection, row), row + 1)
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
    if load_i64(collection, CO_DIRECT_COUNT) != 0:
        set_direct(collection, only_value(collection, row), 0)
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
def only_value(collection, row):
    """Value of the one column in a row."""
    column = load_i64(collection, REL_COLUMNS)
    return cell_at(column, row)


@kernel
def slotted(collection):
    """Living rows that are not of the base."""
    return load_i64(collection, CO_LIVE) - load_i64(collection, CO_BASE_ROWS) + load_i64(collection, CO_BASE_DEAD)


@kernel
def make_slot(ctl, collection, values):
    """Sees to it that one more row, with these values, can be placed; false with CTL_ERROR set."""
    if load_i64(collection, CO_UNKEYED) != 0:
        return True
    single = load_i64(collection, REL_ARITY) == 1
    if single and load_i64(collection, CO_SLOT_COUNT) == 0:
        return make_place(ctl, collection, load_i64(values, 0))
    # An eighth of all slots stays free.
    if (load_i64(collection, CO_TAKEN) + 1) * 8 <= load_i64(collection, CO_SLOT_COUNT) * 7:
        return True
    rows = slotted(collection)
    if single and rows >= DIRECT_ROWS:
        # Values that came in no order may have filled their range by now.
        found = to_direct(ctl, collection)
        if found != 0:
            return found > 0 and make_place(ctl, collection, load_i64(values, 0))
    return resize_slots(ctl, collection, more_slots(rows))


@kernel
def make_place(ctl, collection, value):
    """Gives a value a place in the direct table or, where it is too far away, all rows slots; false with CTL_ERROR set."""
    if has_place(collection, value):
        return True
    extended = extend_direct(ctl, collection, value)
    return extended > 0 or (extended == 0 and resize_slots(ctl, collection, more_slots(slotted(collection))))


@kernel
def to_direct(ctl, collection):
    """Puts rows that are in slots into a direct table if their values lie close together. Returns 1, 0 if they do not, -1 with
    CTL_ERROR set."""
    alive = load_i64(collection, CO_ALIVE)
    rows = load_i64(collection, REL_ROWS)
    low = 1 << 62
    high = -(1 << 62)
    for row in range(load_i64(collection, CO_BASE_ROWS), rows):
        if get_bit(alive, row) != 0:
            value = only_value(collection, row)
            low = min(low, value)
            high = max(high, value)
    if not are_close(low, high, slotted(collection)):
        return 0
    if not move_direct(ctl, collection, low, high - low + 1):
        return -1
    drop_slots(ctl, collection)
    for row in range(load_i64(collection, CO_BASE_ROWS), rows):
        if get_bit(alive, row) != 0:
            set_direct(collection, only_value(collection, row), row + 1)
    return 1


@kernel
def meet_expectation(ctl, collection):
    """Ends what CO_EXPECTED says: slots for rows that are fewer than their direct table is for. False with CTL_ERROR set."""
    store_i64(collection, CO_EXPECTED, 0)
    if load_i64(collection, CO_DIRECT_COUNT) == 0:
        return True
    if not trim_direct(ctl, collection):
        return False
    low = load_i64(collection, CO_DIRECT_LOW)
    count = load_i64(collection, CO_DIRECT_COUNT)
    if are_close(low, low + count - 1, load_i64(collection, CO_LIVE) + 1):
        return True
    return resize_slots(ctl, collection, more_slots(slotted(collection)))


@kernel
def drop_slots(ctl, collection):
    release(ctl, load_i64(collection, CO_SLOTS), load_i64(collection, CO_SLOT_COUNT) * SLOT_BYTES)
    store_i64(collection, CO_SLOTS, 0)
    store_i64(collection, CO_SLOT_COUNT, 0)
    store_i64(collection, CO_TAKEN, 0)


@kernel
def trim_slots(ctl, collection):
    """Gives back slots that are many more than the rows need; false with CTL_ERROR set."""
    if load_i64(collection, CO_DIRECT_COUNT) != 0:
        return trim_direct(ctl, collection)
    live = slotted(collection)
    if load_i64(collection, CO_UNKEYED) != 0 or load_i64(collection, CO_SLOT_COUNT) <= live + (live >> 1) + 64:
        return True
    return resize_slots(ctl, collection, slots_for(live))


@kernel
def resize_slots(ctl, collection, count):
    """Places all rows but those of the base in a table of `count` slots; false with CTL_ERROR set."""
    table = zeroed(ctl, count * SLOT_BYTES)
    if table == 0:
        return False
    drop_direct(ctl, collection)
    drop_slots(ctl, collection)
    store_i64(collection, CO_SLOTS, table)
    store_i64(collection, CO_SLOT_COUNT, count)
    alive = load_i64(collection, CO_ALIVE)
    rows = load_i64(collection, REL_ROWS)
    for row in range(load_i64(collection, CO_BASE_ROWS), rows):
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
def warm_others(collection, columns, step, first, n, rows, hashes):
    """Hashes the rows first + i of columns (see `search_base`) where rows[i] is -1, and asks for their slots."""
    count = load_i64(collection, CO_SLOT_COUNT)
    table = load_i64(collection, CO_SLOTS)
    arity = load_i64(collection, REL_ARITY)
    for i in range(n):
        hashed = 0
        for c in range(arity):
            hashed = mix(hashed, load_i64(load_i64(columns, c), (first + i) * step))
        store_i64(hashes, i, hashed)
        if count != 0 and load_i64(rows, i) < 0:
            warm_slot(table, count, hashed)


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
