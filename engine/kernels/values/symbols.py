"""The symbol table for kernels: strings as ids, found or added many at once.

Ids are dense from 0. Strings are UTF-8, checked when they are new: other bytes get no id. All lie in one heap, string i from
offset i to offset i + 1; an open table of `(hash << 32) | (id + 1)` finds them, 0 marking a free slot, and grows where it is,
by instalments (homes.py). What is in heap and offsets never changes; these are Python's (values/symbols.py), which replaces
them by larger ones. Whoever uses an address holds the table's lock, as one of many who read or as the only one who writes. A
kernel that finds no room stops and lets Python make some; so it does where bytes are no text.
"""

from __future__ import annotations

from dlog.engine.kernels.core.blocks import clear_rest, cleared_block, dirty_bytes, free_block, resized_block
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import atomic_add, load_i64, prefetch, store_i64
from dlog.engine.kernels.incremental.store.homes import (
    FEW,
    begin_growing,
    first_to_move,
    home_of,
    homes_from,
    last_to_move,
    missing_room,
    move_edge,
    room_for,
    set_homes,
    still_fits,
)
from dlog.engine.kernels.layout import (
    HM_COUNT,
    HM_EDGE,
    HM_ROOM,
    SYM_COUNT,
    SYM_HEAP,
    SYM_HEAP_SIZE,
    SYM_LOCK,
    SYM_OFFSET_COUNT,
    SYM_OFFSETS,
    SYM_SLOT_COUNT,
    SYM_SLOT_EDGE,
    SYM_SLOT_OLD,
    SYM_SLOT_ROOM,
    SYM_SLOTS,
    SYM_USED,
)
from dlog.engine.kernels.static.storage import store_cell
from dlog.engine.kernels.values.utf8 import is_utf8
from dlog.engine.kernels.values.words import copy_bytes, equal_bytes, hash_bytes

AHEAD = 32
"""Strings whose slots are fetched together."""
FEWEST = 512
"""Homes of the smallest table."""
RATE = 8
"""Slots of which the entries move, in a table that grows, for each string that comes."""
WRITING = 2**40
"""SYM_LOCK is how many read, less this for each who writes or tries to."""
_LOW = 0xFFFFFFFF


@kernel
def begin_reading(table):
    while atomic_add(table, SYM_LOCK, 1) < 0:
        atomic_add(table, SYM_LOCK, -1)


@kernel
def end_reading(table):
    atomic_add(table, SYM_LOCK, -1)


@entry()
def begin_writing(table):
    while atomic_add(table, SYM_LOCK, -WRITING) != 0:
        atomic_add(table, SYM_LOCK, WRITING)


@entry()
def end_writing(table):
    atomic_add(table, SYM_LOCK, WRITING)


@kernel
def homes_of(table):
    return table + SYM_SLOT_COUNT * 8


@kernel
def put_entry(slots, home, entry):
    """Enters an entry into the first free slot from its home on."""
    at = home
    while load_i64(slots, at) != 0:
        at += 1
    store_i64(slots, at, entry)


@kernel
def renew_slots(table, count):
    """Puts all entries into a table with so many homes; false, and all as it was, if there is no memory."""
    homes = homes_of(table)
    old, before, places = load_i64(table, SYM_SLOTS), load_i64(homes, HM_COUNT), load_i64(homes, HM_ROOM)
    slots = cleared_block(room_for(count) * 8)
    if slots == 0:
        return False
    store_i64(table, SYM_SLOTS, slots)
    set_homes(homes, count, room_for(count))
    for first in range(0, places, FEW):
        last = min(first + FEW, places)
        if not keep_last_free(table, last - first):
            free_block(load_i64(table, SYM_SLOTS))
            store_i64(table, SYM_SLOTS, old)
            set_homes(homes, before, places)
            return False
        slots = load_i64(table, SYM_SLOTS)
        for at in range(first, last):
            entry = load_i64(old, at)
            if entry != 0:
                put_entry(slots, (((entry >> 32) & _LOW) * count) >> 32, entry)
    if old != 0:
        free_block(old)
    return True


@kernel
def room_for_slots(table, extra, left):
    """Makes room for so many more entries, and possibly as many as `left`: a quarter of all homes stays free, or less while the
    table grows. False if there is no memory."""
    homes = homes_of(table)
    count = load_i64(homes, HM_COUNT)
    if (load_i64(table, SYM_COUNT) + extra) * 4 > count * 3:
        while load_i64(homes, HM_EDGE) != 0:
            if not move_entries(table, FEW):
                return False
        # A table of the likely final size, half of the strings being new, rather than one after the other.
        more = max(count * (8 if left > count * 4 else 2), FEWEST)
        at_once = count < FEW or left > count >> 2
        if not (renew_slots(table, more) if at_once else grow_slots(table, more)):
            return False
    if load_i64(homes, HM_EDGE) != 0 and not move_entries(table, extra * RATE):
        return False
    while not still_fits(homes, load_i64(table, SYM_SLOTS), 8, extra):
        if not move_entries(table, extra * RATE):
            return False
    return keep_last_free(table, extra)


@kernel
def grow_slots(table, count):
    """Has a table that does not grow do so, to so many homes; false if there is no memory."""
    homes = homes_of(table)
    count = homes_from(homes, load_i64(table, SYM_SLOTS), 8, count)
    room = max(room_for(count), load_i64(homes, HM_ROOM))
    if not lengthen_slots(table, room):
        return False
    begin_growing(homes, count, room)
    return True


@kernel
def keep_last_free(table, extra):
    """Keeps the last slot free when so many entries come; false if there is no memory."""
    missing = missing_room(homes_of(table), load_i64(table, SYM_SLOTS), 8, extra)
    return missing == 0 or lengthen_slots(table, load_i64(table, SYM_SLOT_ROOM) + missing)


@kernel
def lengthen_slots(table, room):
    """Gives the table so many places; false, and all as it was, if there is no memory."""
    old = load_i64(table, SYM_SLOTS)
    places = load_i64(table, SYM_SLOT_ROOM)
    dirty = dirty_bytes(old, places * 8, room * 8)
    slots = resized_block(old, room * 8)
    if slots == 0:
        return False
    clear_rest(slots, places * 8, room * 8, dirty)
    store_i64(table, SYM_SLOTS, slots)
    store_i64(table, SYM_SLOT_ROOM, room)
    return True


@kernel
def move_entries(table, fuel):
    """Moves the entries in so many slots of a table that grows to their new homes; false, and nothing moved, if there is no
    memory."""
    homes = homes_of(table)
    slots = load_i64(table, SYM_SLOTS)
    first = first_to_move(homes, slots, 8, fuel)
    last = last_to_move(homes, slots, 8)
    entries = cleared_block((last - first) * 8)
    if entries == 0:
        return False
    if not keep_last_free(table, last - first):
        free_block(entries)
        return False
    slots = load_i64(table, SYM_SLOTS)
    n = 0
    for at in range(first, last):
        entry = load_i64(slots, at)
        store_i64(entries, n, entry)
        n += 1 if entry != 0 else 0
        store_i64(slots, at, 0)
    move_edge(homes, first)
    count = load_i64(homes, HM_COUNT)
    for i in range(n):
        entry = load_i64(entries, i)
        put_entry(slots, (((entry >> 32) & _LOW) * count) >> 32, entry)
    free_block(entries)
    return True


@kernel
def has_room(table, length):
    """Whether one more string of this length fits the heap and the offsets."""
    return load_i64(table, SYM_COUNT) + 1 < load_i64(table, SYM_OFFSET_COUNT) and load_i64(
        table, SYM_USED
    ) + length <= load_i64(table, SYM_HEAP_SIZE)


@kernel
def warm(table, hashes, size):
    """Asks for what finding strings by these hashes will touch: first their slots, then where the strings begin."""
    slots = load_i64(table, SYM_SLOTS)
    offsets = load_i64(table, SYM_OFFSETS)
    count, old, edge = load_i64(table, SYM_SLOT_COUNT), load_i64(table, SYM_SLOT_OLD), load_i64(table, SYM_SLOT_EDGE)
    for k in range(size):
        hashed = load_i64(hashes, k)
        prefetch(slots + ((hashed * (count if hashed >= edge else old)) >> 32) * 8)
    for k in range(size):
        hashed = load_i64(hashes, k)
        entry = load_i64(slots, (hashed * (count if hashed >= edge else old)) >> 32)
        if entry != 0 and (entry >> 32) & _LOW == load_i64(hashes, k):
            prefetch(offsets + ((entry & _LOW) - 1) * 8)


@kernel
def find_text(table, address, limit, length, hashed):
    """The id of the bytes at an address, or -1 - slot where it would go."""
    slots = load_i64(table, SYM_SLOTS)
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    heap_limit = heap + load_i64(table, SYM_HEAP_SIZE)
    slot = home_of(homes_of(table), hashed)
    while True:
        entry = load_i64(slots, slot)
        if entry == 0:
            return -1 - slot
        if (entry >> 32) & _LOW == hashed:
            found = (entry & _LOW) - 1
            at = load_i64(offsets, found)
            if load_i64(offsets, found + 1) - at == length and equal_bytes(address, limit, heap + at, heap_limit, length):
                return found
        slot += 1


@kernel
def add_text(table, address, limit, length, hashed, slot):
    """Enters a string that is not there at its free slot; returns its id."""
    count = load_i64(table, SYM_COUNT)
    used = load_i64(table, SYM_USED)
    heap = load_i64(table, SYM_HEAP)
    copy_bytes(address, heap + used, length, limit, heap + load_i64(table, SYM_HEAP_SIZE))
    store_i64(load_i64(table, SYM_OFFSETS), count + 1, used + length)
    store_i64(load_i64(table, SYM_SLOTS), slot, (hashed << 32) | (count + 1))
    store_i64(table, SYM_USED, used + length)
    store_i64(table, SYM_COUNT, count + 1)
    return count


@entry()
def intern(table, source, size, starts, ends, begin, count, ids, width, hashes):
    """Writes the id of the bytes `starts[i]` to `ends[i]` behind `source`, where `size` bytes are, to cell i of `ids` for i
    from `begin`; source 0 is the table's own heap. Stops before the first new string that does not fit or is not UTF-8, or
    where there is no memory for slots, and returns its number; `count` when done. `hashes` has room for AHEAD words."""
    begin_writing(table)
    done = intern_locked(table, source, size, starts, ends, begin, count, ids, width, hashes)
    end_writing(table)
    return done


@kernel
def intern_locked(table, source, size, starts, ends, begin, count, ids, width, hashes):
    if source == 0:
        source = load_i64(table, SYM_HEAP)
        size = load_i64(table, SYM_HEAP_SIZE)
    limit = source + size
    for base in range(begin, count, AHEAD):
        ahead = min(AHEAD, count - base)
        if not room_for_slots(table, ahead, count - base):
            return base
        for k in range(ahead):
            start = load_i64(starts, base + k)
            store_i64(hashes, k, int(hash_bytes(source + start, load_i64(ends, base + k) - start, limit)))
        warm(table, hashes, ahead)
        for k in range(ahead):
            start = load_i64(starts, base + k)
            length = load_i64(ends, base + k) - start
            hashed = load_i64(hashes, k)
            found = find_text(table, source + start, limit, length, hashed)
            if found < 0:
                if not has_room(table, length) or not is_utf8(source + start, length):
                    return base + k
                found = add_text(table, source + start, limit, length, hashed, -1 - found)
            store_cell(ids, width, base + k, found)
    return count


@entry()
def find_symbol(table, address, length):
    """The id of the bytes at an address, or -1."""
    begin_reading(table)
    limit = address + length
    found = (
        -1
        if load_i64(table, SYM_SLOTS) == 0
        else find_text(table, address, limit, length, int(hash_bytes(address, length, limit)))
    )
    end_reading(table)
    return max(found, -1)


@entry()
def drop_slots(table):
    if load_i64(table, SYM_SLOTS) != 0:
        free_block(load_i64(table, SYM_SLOTS))
    store_i64(table, SYM_SLOTS, 0)
    set_homes(homes_of(table), 0, 0)
