"""Dense indexes by one column, built in one go: a counting sort of the living rows by their values, division by division."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.bits import get_bit
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
from dlog.engine.kernels.incremental.store.groups import SPREAD, grow_groups, key_of
from dlog.engine.kernels.incremental.store.keyed import to_hash
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.row_structs import Slab
from dlog.engine.kernels.static.storage import behind, release, resize


@kernel
def choose_dense(ctl: Control, index: Index, rows):
    """Lets an empty index be dense if its one key column allows it for all living rows; false with ctl.error set."""
    if index.dense == 0:
        return True
    alive = index.collection.alive
    low = (1 << 63) - 1
    high = -(1 << 63)
    for row in range(rows):
        if get_bit(alive, row) != 0:
            value = key_of(index, 0, row)
            low = min(low, value)
            high = max(high, value)
    index.groups = 0
    if low > high:
        return True
    if low < -(1 << 40) or high > 1 << 40 or high - low >= rows * SPREAD:
        return to_hash(ctl, index)
    if not grow_groups(ctl, index, high - low + 1):
        return False
    index.low = low
    index.groups = high - low + 1
    return True


@kernel
def build_dense(ctl: Control, index: Index, rows):
    """Puts the living rows into an empty index whose groups are there; false with ctl.error set."""
    size = (room_of(rows) + 1) * 8
    rooms = Words(resize(ctl, 0, 0, size))
    if not rooms:
        return False
    room = behind(rooms, 1)
    rooms[0] = room.address
    shift = shift_of(index.groups, rows)
    divide_items(index, 0, rows, shift, room)
    used, wanted = count_items(index, rooms, 1, 0, DIVISIONS, shift)
    start = index.pool_size
    done = make_pool(ctl, index, used, wanted)
    if done:
        place_items(index, rooms, 1, 0, DIVISIONS, shift, start)
    release(ctl, rooms.address, size)
    return done


@kernel
def divide_items(index: Index, start, end, shift, room: Words):
    """Divides the living rows of [start, end), or the values that the index has of them, by their groups."""
    collection = index.collection
    column = collection.columns[index.keys[0]]
    items = collection.columns[index.values - 1].data if index.values != 0 else 0
    divide_rows(column.data, column.width, collection.alive, items, 4, start, end, index.low, shift, room)


@kernel
def count_items(index: Index, rooms: Words, count, first, last, shift):
    """Counts the rows of each group of divisions [first, last), which are in so many rooms. Returns how many of these groups
    have some, and how much of the pool they take."""
    slabs = index.slabs
    used = 0
    for division in range(first, last):
        for number in range(count):
            room = Words(rooms[number])
            for at in range(first_word(room, division), first_word(room, division + 1)):
                slab = slabs[key_of_word(room[at])]
                used += 1 if slab.count == 0 else 0
                slab.count += 1
    return used, pool_of(index, first_key(first, shift, index.groups), first_key(last, shift, index.groups))


@kernel
def pool_of(index: Index, first, last):
    """How much of the pool groups [first, last) take: one row alone is a run, and takes nothing."""
    runs = 1 if index.values == 0 else 0
    wanted = 0
    for group in range(first, last):
        count = index.slabs[group].count
        wanted += count if count > runs else 0
    return wanted


@kernel
def place_items(index: Index, rooms: Words, count, first, last, shift, start):
    """Gives each group of divisions [first, last) a slab of the pool from `start` on, and puts its rows there."""
    lay_out_groups(index, first_key(first, shift, index.groups), first_key(last, shift, index.groups), start)
    slabs = index.slabs
    pool = index.pool
    for division in range(first, last):
        for number in range(count):
            room = Words(rooms[number])
            for at in range(first_word(room, division), first_word(room, division + 1)):
                item = item_of_word(room[at])
                place_item(pool, slabs[key_of_word(room[at])], item, item)


@kernel
def lay_out(ctl: Control, index: Index):
    """Gives each group a slab for as many rows as it counts, unless that is one which is a run, and counts anew. Of an empty
    index, whose pool has nothing yet; false with ctl.error set."""
    start = index.pool_size
    if not make_pool(ctl, index, index.used, pool_of(index, 0, index.groups)):
        return False
    lay_out_groups(index, 0, index.groups, start)
    return True


@kernel
def make_pool(ctl: Control, index: Index, used, wanted):
    """Room for what so many groups take of the pool; false with ctl.error set."""
    size = index.pool_size + wanted
    if size > index.pool_capacity:
        pool = resize(ctl, index.pool.address, index.pool_capacity * 4, size * 4)
        if pool == 0:
            return False
        index.pool = Numbers(pool)
        index.pool_capacity = size
    index.used = used
    index.pool_size = size
    return True


@kernel
def lay_out_groups(index: Index, first, last, start):
    """`lay_out` of groups [first, last): their slabs are of the pool from `start` on."""
    runs = 1 if index.values == 0 else 0
    for group in range(first, last):
        slab = index.slabs[group]
        count = slab.count
        if count > runs:
            slab.start = start
            slab.capacity = count
            start += count
        if count > 0:
            slab.count = 0


@kernel
def place_item(pool: Numbers, slab: Slab, row, item):
    """Puts a row, of which the pool is to hold an item, into its group's slab: one without room is a run of this one row."""
    count = slab.count
    if slab.capacity == 0:
        slab.start = row
    else:
        pool[slab.start + count] = item
    slab.count = count + 1
