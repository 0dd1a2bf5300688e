"""Direct tables: rows of a collection with one column, found by the value itself.

CO_DIRECT holds a row number plus one for each value from CO_DIRECT_LOW on. It is there while the values lie close together;
others are found by slots.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.layout import (
    CO_DIRECT,
    CO_DIRECT_COUNT,
    CO_DIRECT_LOW,
    CO_EXPECTED,
    CO_LIVE,
)
from dlog.engine.kernels.static.storage import lengthen, release, resize, zeroed

SPREAD = 2
"""A direct table has at most this many places for each row, and `FEWEST` more."""
FEWEST = 1024
HOPE = 2
"""Of so many rows that are expected, one counts until all have come."""
EDGE = 1 << 40
"""Values beyond are not looked up directly."""
MANY = 1 << 15
"""Places from which on the cache does not have what rows lead to."""


@kernel
def find_direct(collection, value):
    """The row with a value, or -1."""
    low = load_i64(collection, CO_DIRECT_LOW)
    if low <= value < low + load_i64(collection, CO_DIRECT_COUNT):
        return load_i32(load_i64(collection, CO_DIRECT), value - low) - 1
    return -1


@kernel
def has_place(collection, value):
    low = load_i64(collection, CO_DIRECT_LOW)
    return low <= value < low + load_i64(collection, CO_DIRECT_COUNT)


@kernel
def are_many(collection):
    """Whether what the rows lead to is worth being asked for before it is looked at."""
    return load_i64(collection, CO_DIRECT_COUNT) >= MANY


@kernel
def prefetch_direct(collection, value):
    """Asks for the place of a value that has one."""
    prefetch(load_i64(collection, CO_DIRECT) + (value - load_i64(collection, CO_DIRECT_LOW)) * 4)


@kernel
def set_direct(collection, value, number):
    """Notes a row number plus one (0: none) for a value that has a place."""
    store_i32(load_i64(collection, CO_DIRECT), value - load_i64(collection, CO_DIRECT_LOW), number)


@kernel
def are_close(low, high, rows):
    """Whether values from `low` to `high` lie close enough together for so many rows."""
    return low > -EDGE and high < EDGE and high - low < rows * SPREAD + FEWEST


@kernel
def move_direct(ctl, collection, low, count):
    """Gives the table places for `count` values from `low` on, among them all that are in use; false with CTL_ERROR set."""
    places = load_i64(collection, CO_DIRECT_COUNT)
    if places != 0 and low == load_i64(collection, CO_DIRECT_LOW) and count >= places:
        if not lengthen(ctl, collection, CO_DIRECT, places * 4, count * 4):
            return False
        store_i64(collection, CO_DIRECT_COUNT, count)
        return True
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    old = load_i64(collection, CO_DIRECT)
    shift = load_i64(collection, CO_DIRECT_LOW) - low
    for place in range(places):
        number = load_i32(old, place)
        if number != 0:
            store_i32(table, place + shift, number)
    release(ctl, old, places * 4)
    store_i64(collection, CO_DIRECT, table)
    store_i64(collection, CO_DIRECT_LOW, low)
    store_i64(collection, CO_DIRECT_COUNT, count)
    return True


@kernel
def drop_direct(ctl, collection):
    release(ctl, load_i64(collection, CO_DIRECT), load_i64(collection, CO_DIRECT_COUNT) * 4)
    store_i64(collection, CO_DIRECT, 0)
    store_i64(collection, CO_DIRECT_COUNT, 0)


@kernel
def extend_direct(ctl, collection, value):
    """Gives a value a place, half as many as there are beside it. Returns 1, 0 if it is too far away, -1 with CTL_ERROR set."""
    low = load_i64(collection, CO_DIRECT_LOW)
    count = load_i64(collection, CO_DIRECT_COUNT)
    rows = max(load_i64(collection, CO_LIVE) + 1, load_i64(collection, CO_EXPECTED) // HOPE)
    high = low + count - 1
    if count == 0:
        low = 0 if 0 <= value < 64 else value
        high = max(low + 15, value)
    if not are_close(min(low, value), max(high, value), rows):
        return 0
    # Ahead as far as the values may lie apart anyway.
    spare = min(count >> 1, rows * SPREAD + FEWEST - 1 - (max(high, value) - min(low, value)))
    if value < low:
        # Where none of the values is negative, none is to be expected: places there would take the others' away.
        low = value - spare if value < 0 else max(value - spare, 0)
    elif value > high:
        high = value + spare
    return 1 if move_direct(ctl, collection, low, high - low + 1) else -1


@kernel
def trim_direct(ctl, collection):
    """Gives back the places behind the largest value in use; false with CTL_ERROR set."""
    table = load_i64(collection, CO_DIRECT)
    count = load_i64(collection, CO_DIRECT_COUNT)
    used = count
    while used > 16 and load_i32(table, used - 1) == 0:
        used -= 1
    if used == count:
        return True
    moved = resize(ctl, table, count * 4, used * 4)
    if moved == 0:
        return False
    store_i64(collection, CO_DIRECT, moved)
    store_i64(collection, CO_DIRECT_COUNT, used)
    return True
