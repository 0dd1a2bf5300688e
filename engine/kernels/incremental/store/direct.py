"""Direct tables: rows of a collection with one column, found by the value itself.

`direct` holds a row number plus one for each value from `direct_low` on. It is there while the values lie close together;
others are found by slots.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.machine_structs import Numbers
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import lengthen, release, resize, zeroed

SPREAD = 2
"""A direct table has at most this many places for each row, and `MIN_DIRECT_PLACES` more."""
MIN_DIRECT_PLACES = 1024
HOPE = 2
"""Of so many rows that are expected, one counts until all have come."""
EDGE = 1 << 40
"""Values beyond are not looked up directly."""
MIN_UNCACHED_PLACES = 1 << 15
"""Places from which on the cache does not have what rows lead to."""


@kernel
def find_direct(collection: Collection, value):
    """The row with a value, or -1."""
    low = collection.direct.low
    if low <= value < low + collection.direct.count:
        return collection.direct.rows[value - low] - 1
    return -1


@kernel
def has_place(collection: Collection, value):
    low = collection.direct.low
    return low <= value < low + collection.direct.count


@kernel
def are_many(collection: Collection):
    """Whether what the rows lead to is worth being asked for before it is looked at."""
    return collection.direct.count >= MIN_UNCACHED_PLACES


@kernel
def prefetch_direct(collection: Collection, value):
    """Asks for the place of a value that has one."""
    prefetch(collection.direct.rows.address + (value - collection.direct.low) * 4)


@kernel
def set_direct(collection: Collection, value, number):
    """Notes a row number plus one (0: none) for a value that has a place."""
    collection.direct.rows[value - collection.direct.low] = number


@kernel
def are_close(low, high, rows):
    """Whether values from `low` to `high` lie close enough together for so many rows."""
    return low > -EDGE and high < EDGE and high - low < rows * SPREAD + MIN_DIRECT_PLACES


@kernel
def move_direct(ctl: Control, collection: Collection, low, count):
    """Gives the table places for `count` values from `low` on, among them all that are in use; false with ctl.error set."""
    places = collection.direct.count
    if places != 0 and low == collection.direct.low and count >= places:
        if not lengthen(ctl, collection.direct.ref.rows, places * 4, count * 4):
            return False
        collection.direct.count = count
        return True
    table = Numbers(zeroed(ctl, count * 4))
    if not table:
        return False
    old = collection.direct.rows
    shift = collection.direct.low - low
    for place in range(places):
        number = old[place]
        if number != 0:
            table[place + shift] = number
    release(ctl, old.address, places * 4)
    collection.direct.rows = table
    collection.direct.low = low
    collection.direct.count = count
    return True


@kernel
def drop_direct(ctl: Control, collection: Collection):
    release(ctl, collection.direct.rows.address, collection.direct.count * 4)
    collection.direct.rows = Numbers(0)
    collection.direct.count = 0


@kernel
def extend_direct(ctl: Control, collection: Collection, value):
    """Gives a value a place, half as many as there are beside it. Returns 1, 0 if it is too far away, -1 with ctl.error set."""
    low = collection.direct.low
    count = collection.direct.count
    rows = max(collection.live + 1, collection.derivation.expected // HOPE)
    high = low + count - 1
    if count == 0:
        low = 0 if 0 <= value < 64 else value
        high = max(low + 15, value)
    if not are_close(min(low, value), max(high, value), rows):
        return 0
    # Ahead as far as the values may lie apart anyway.
    spare = min(count >> 1, rows * SPREAD + MIN_DIRECT_PLACES - 1 - (max(high, value) - min(low, value)))
    if value < low:
        # Where none of the values is negative, none is to be expected: places there would take the others' away.
        low = value - spare if value < 0 else max(value - spare, 0)
    elif value > high:
        high = value + spare
    return 1 if move_direct(ctl, collection, low, high - low + 1) else -1


@kernel
def trim_direct(ctl: Control, collection: Collection):
    """Gives back the places behind the largest value in use; false with ctl.error set."""
    table = collection.direct.rows
    count = collection.direct.count
    used = count
    while used > 16 and table[used - 1] == 0:
        used -= 1
    if used == count:
        return True
    moved = resize(ctl, table.address, count * 4, used * 4)
    if moved == 0:
        return False
    collection.direct.rows = Numbers(moved)
    collection.direct.count = used
    return True
