"""Room for slots (slots.py): tables that grow, by instalments or at once, and give way to direct ones.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, load_u8, prefetch, store_i32, store_i64, store_u8
from dlog.engine.kernels.incremental.store.direct import (
    are_close,
    drop_direct,
    extend_direct,
    has_place,
    move_direct,
    set_direct,
    trim_direct,
)
from dlog.engine.kernels.incremental.store.histories import get_bit
from dlog.engine.kernels.incremental.store.homes import (
    FEW,
    begin_growing,
    first_to_move,
    homes_from,
    last_to_move,
    missing_room,
    move_edge,
    room_for,
    set_homes,
    still_fits,
)
from dlog.engine.kernels.incremental.store.slots import (
    AHEAD,
    hash_row,
    more_slots,
    only_value,
    slot_of,
    slots_for,
    slots_of,
    slotted,
    tag_of,
    warm_slot,
)
from dlog.engine.kernels.layout import (
    CO_ALIVE,
    CO_BASE_ROWS,
    CO_DIRECT_COUNT,
    CO_DIRECT_LOW,
    CO_EXPECTED,
    CO_LIVE,
    CO_SLOT_COUNT,
    CO_SLOT_EDGE,
    CO_SLOT_ROOM,
    CO_SLOTS,
    CO_TAGS,
    CO_TAKEN,
    CO_UNKEYED,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    HM_COUNT,
    HM_EDGE,
    HM_OLD,
    HM_ROOM,
    REL_ARITY,
    REL_COLUMNS,
    REL_ROWS,
    TAG_FREE,
    TAG_GONE,
    TAG_ROW,
)
from dlog.engine.kernels.static.storage import lengthen, release, resize, zeroed

RATE = 32
"""Slots of which the rows move, in a table that grows, for each that comes."""
PAUSE = 8
"""Rows that come before some move, so that memory answers for many at once."""
DIRECT_ROWS = 1024
"""Rows from which values in slots are looked at whether they have become close."""


@kernel
def make_slot(ctl, collection, values):
    """Sees to it that one more row, with these values, can be placed; false with CTL_ERROR set."""
    if load_i64(collection, CO_UNKEYED) != 0:
        return True
    single = load_i64(collection, REL_ARITY) == 1
    if single and load_i64(collection, CO_SLOT_COUNT) == 0:
        return make_place(ctl, collection, load_i64(values, 0))
    taken = load_i64(collection, CO_TAKEN)
    count = load_i64(collection, CO_SLOT_COUNT)
    growing = load_i64(collection, CO_SLOT_EDGE) != 0
    # An eighth of all slots stays free; while they move, half as many.
    if (taken + 1) * 16 > count * (15 if growing else 14):
        rows = slotted(collection)
        if single and rows >= DIRECT_ROWS:
            # Values that came in no order may have filled their range by now.
            found = to_direct(ctl, collection)
            if found != 0:
                return found > 0 and make_place(ctl, collection, load_i64(values, 0))
        if not more_homes(ctl, collection, more_slots(rows)):
            return False
    elif growing and taken % PAUSE == 0 and not move_slots(ctl, collection, PAUSE * RATE):
        return False
    homes = slots_of(collection)
    while not still_fits(homes, load_i64(collection, CO_TAGS), 1, 1):
        if not move_slots(ctl, collection, PAUSE * RATE):
            return False
    return keep_last_free(ctl, collection, 1)


@kernel
def more_homes(ctl, collection, count):
    """Has a table that is full grow to so many homes or, where those are not more, get rid of removed rows; false with
    CTL_ERROR set."""
    while load_i64(collection, CO_SLOT_EDGE) != 0:
        if not move_slots(ctl, collection, FEW):
            return False
    old = load_i64(collection, CO_SLOT_COUNT)
    if old < FEW or count * 2 < old:
        return resize_slots(ctl, collection, count)
    homes = slots_of(collection)
    count = homes_from(homes, load_i64(collection, CO_TAGS), 1, max(count, old))
    room = max(room_for(count), load_i64(collection, CO_SLOT_ROOM))
    if not lengthen_slots(ctl, collection, room):
        return False
    begin_growing(homes, count, room)
    return True


@kernel
def lengthen_slots(ctl, collection, room):
    """Gives the table so many places; false with CTL_ERROR set and all as it was."""
    old = load_i64(collection, CO_SLOT_ROOM)
    table = resize(ctl, load_i64(collection, CO_SLOTS), old * 4, room * 4)
    if table == 0:
        return False
    store_i64(collection, CO_SLOTS, table)
    if not lengthen(ctl, collection, CO_TAGS, old, room):
        store_i64(collection, CO_SLOTS, resize(ctl, table, room * 4, old * 4))
        return False
    store_i64(collection, CO_SLOT_ROOM, room)
    return True


@kernel
def keep_last_free(ctl, collection, extra):
    """Keeps the last slot free when so many rows come; false with CTL_ERROR set."""
    missing = missing_room(slots_of(collection), load_i64(collection, CO_TAGS), 1, extra)
    return missing == 0 or lengthen_slots(ctl, collection, load_i64(collection, CO_SLOT_ROOM) + missing)


@kernel
def move_slots(ctl, collection, fuel):
    """Moves the rows in so many slots of a table that grows to their new homes; false with CTL_ERROR set and nothing moved."""
    homes = slots_of(collection)
    tags = load_i64(collection, CO_TAGS)
    first = first_to_move(homes, tags, 1, fuel)
    last = last_to_move(homes, tags, 1)
    size = max(last - first, 1) * 16
    rows = zeroed(ctl, size)
    if rows == 0:
        return False
    if not keep_last_free(ctl, collection, last - first):
        release(ctl, rows, size)
        return False
    n = take_out(collection, first, last, rows)
    move_edge(homes, first)
    put_back(collection, rows, n, rows + (last - first) * 8)
    release(ctl, rows, size)
    return True


@kernel
def take_out(collection, first, last, rows):
    """Frees slots [first, last), those of removed rows included, and lists their rows, which are asked for; returns how
    many."""
    table = load_i64(collection, CO_SLOTS)
    tags = load_i64(collection, CO_TAGS)
    column = load_i64(collection, REL_COLUMNS)
    second = column if load_i64(collection, REL_ARITY) < 2 else column + COL_SIZE * 8
    n = 0
    gone = 0
    for at in range(first, last):
        tag = load_u8(tags, at)
        store_u8(tags, at, TAG_FREE)
        gone += 1 if tag == TAG_GONE else 0
        if tag >= TAG_ROW:
            row = load_i32(table, at)
            store_i64(rows, n, row)
            n += 1
            prefetch(load_i64(column, COL_DATA) + row * load_i64(column, COL_WIDTH))
            prefetch(load_i64(second, COL_DATA) + row * load_i64(second, COL_WIDTH))
    store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) - gone)
    return n


@kernel
def put_back(collection, rows, n, hashes):
    """Gives rows slots anew."""
    for i in range(n):
        hashed = hash_row(collection, load_i64(rows, i))
        store_i64(hashes, i, hashed)
        warm_slot(collection, hashed)
    for i in range(n):
        put_row(collection, load_i64(hashes, i), load_i64(rows, i))


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
    wanted = slotted(collection)
    low = 1 << 62
    high = -(1 << 62)
    for row in range(load_i64(collection, CO_BASE_ROWS), rows):
        if get_bit(alive, row) != 0:
            value = only_value(collection, row)
            low = min(low, value)
            high = max(high, value)
            if not are_close(low, high, wanted):
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
def forget_slots(collection):
    store_i64(collection, CO_SLOTS, 0)
    store_i64(collection, CO_TAGS, 0)
    store_i64(collection, CO_TAKEN, 0)
    set_homes(slots_of(collection), 0, 0)


@kernel
def drop_slots(ctl, collection):
    room = load_i64(collection, CO_SLOT_ROOM)
    release(ctl, load_i64(collection, CO_SLOTS), room * 4)
    release(ctl, load_i64(collection, CO_TAGS), room)
    forget_slots(collection)


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
    """Places all rows but those of the base in a table with so many homes; false with CTL_ERROR set and all as it was."""
    homes = slots_of(collection)
    table, tags = load_i64(collection, CO_SLOTS), load_i64(collection, CO_TAGS)
    old, edge = load_i64(homes, HM_OLD), load_i64(homes, HM_EDGE)
    before, room, taken = load_i64(homes, HM_COUNT), load_i64(homes, HM_ROOM), load_i64(collection, CO_TAKEN)
    forget_slots(collection)
    if not fill_slots(ctl, collection, count):
        drop_slots(ctl, collection)
        store_i64(collection, CO_SLOTS, table)
        store_i64(collection, CO_TAGS, tags)
        store_i64(collection, CO_TAKEN, taken)
        set_homes(homes, before, room)
        store_i64(homes, HM_OLD, old)
        store_i64(homes, HM_EDGE, edge)
        return False
    drop_direct(ctl, collection)
    release(ctl, table, room * 4)
    release(ctl, tags, room)
    return True


@kernel
def fill_slots(ctl, collection, count):
    """`resize_slots` of a collection that has none."""
    if not lengthen_slots(ctl, collection, room_for(count)):
        return False
    set_homes(slots_of(collection), count, load_i64(collection, CO_SLOT_ROOM))
    alive = load_i64(collection, CO_ALIVE)
    rows = load_i64(collection, REL_ROWS)
    for row in range(load_i64(collection, CO_BASE_ROWS), rows):
        if row + AHEAD < rows:
            warm_slot(collection, hash_row(collection, row + AHEAD))
        if get_bit(alive, row) != 0:
            if not keep_last_free(ctl, collection, 1):
                return False
            put_row(collection, hash_row(collection, row), row)
            store_i64(collection, CO_TAKEN, load_i64(collection, CO_TAKEN) + 1)
    return True


@kernel
def put_row(collection, hashed, row):
    """Enters a row into the first free slot."""
    tags = load_i64(collection, CO_TAGS)
    at = slot_of(collection, hashed)
    while load_u8(tags, at) != TAG_FREE:
        at += 1
    store_i32(load_i64(collection, CO_SLOTS), at, row)
    store_u8(tags, at, tag_of(hashed))
