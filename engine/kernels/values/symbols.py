"""The symbol table for kernels: strings as ids, found or added many at once.

Ids are dense from 0. Strings are UTF-8, checked when they are new: other bytes get no id. All lie in one heap, string i from
offset i to offset i + 1; an open table of `(hash << 32) | (id + 1)` finds them, 0 marking a free slot, and grows where it is,
by instalments (homes.py). What is in heap and offsets never changes; these are Python's (values/symbols.py), which replaces
them by larger ones. Whoever uses an address holds the table's lock, as one of many who read or as the only one who writes. A
kernel that finds no room stops and lets Python make some; so it does where bytes are no text.
"""

from __future__ import annotations

from dlog.engine.kernels.core.blocks import (
    HUGE_PAGE,
    clear_rest,
    cleared_block,
    dirty_bytes,
    free_block,
    fresh_pages,
    resized_block,
    start_of,
)
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import atomic_add, prefetch
from dlog.engine.kernels.core.page_maker import is_making, make_aside
from dlog.engine.kernels.incremental.store.homes import (
    MAX_HOMES_GROWN_AT_ONCE,
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
from dlog.engine.kernels.machine_structs import Homes, Symbols, Words
from dlog.engine.kernels.static.storage import load_cell, store_cell
from dlog.engine.kernels.values.utf8 import is_utf8
from dlog.engine.kernels.values.words import copy_bytes, equal_bytes, hash_bytes

STRINGS_TOGETHER = 256
"""Strings that are hashed before the first of them is looked for."""
AHEAD = 8
"""Strings between two steps of what is asked for ahead."""
MIN_HOMES = 512
"""Homes of the smallest table."""
SLOTS_MOVED_PER_STRING = 8
"""Slots of which the entries move, in a table that grows, for each string that comes."""
WRITING = 2**40
"""`lock` is how many read, less this for each who writes or tries to."""
_LOW = 0xFFFFFFFF


@kernel
def begin_reading(table: Symbols):
    while atomic_add(table.ref.lock, 0, 1) < 0:
        atomic_add(table.ref.lock, 0, -1)


@kernel
def end_reading(table: Symbols):
    atomic_add(table.ref.lock, 0, -1)


@entry()
def begin_writing(table: Symbols):
    while atomic_add(table.ref.lock, 0, -WRITING) != 0:
        atomic_add(table.ref.lock, 0, WRITING)


@entry()
def end_writing(table: Symbols):
    atomic_add(table.ref.lock, 0, WRITING)


@kernel
def homes_of(table: Symbols) -> Homes:
    return table.slot_homes


@kernel
def put_entry(slots: Words, home, entry):
    """Enters an entry into the first free slot from its home on."""
    at = home
    while slots[at] != 0:
        at += 1
    slots[at] = entry


@kernel
def renew_slots(table: Symbols, count):
    """Puts all entries into a table with so many homes; false, and all as it was, if there is no memory."""
    homes = homes_of(table)
    old, before, places = table.slots, homes.count, homes.room
    slots = Words(cleared_block(room_for(count) * 8, 0))
    if not slots:
        return False
    table.untouched = 0
    table.slots = slots
    set_homes(homes, count, room_for(count))
    for first in range(0, places, MAX_HOMES_GROWN_AT_ONCE):
        last = min(first + MAX_HOMES_GROWN_AT_ONCE, places)
        if not keep_last_free(table, last - first):
            free_block(table.slots.address)
            table.slots = old
            set_homes(homes, before, places)
            return False
        slots = table.slots
        for at in range(first, last):
            entry = old[at]
            if entry != 0:
                put_entry(slots, (((entry >> 32) & _LOW) * count) >> 32, entry)
    if old:
        free_block(old.address)
    return True


@kernel
def room_for_slots(table: Symbols, extra, left):
    """Makes room for so many more entries, and possibly as many as `left`: a quarter of all homes stays free, or less while the
    table grows. False if there is no memory."""
    homes = homes_of(table)
    count = homes.count
    if (table.count + extra) * 4 > count * 3:
        while homes.edge != 0:
            if not move_entries(table, MAX_HOMES_GROWN_AT_ONCE):
                return False
        # A table of the likely final size, half of the strings being new, rather than one after the other.
        more = max(count * (8 if left > count * 4 else 2), MIN_HOMES)
        at_once = count < MAX_HOMES_GROWN_AT_ONCE or left > count >> 2
        if not (renew_slots(table, more) if at_once else grow_slots(table, more)):
            return False
    if homes.edge != 0 and not pages_are_missing(table) and not move_entries(table, extra * SLOTS_MOVED_PER_STRING):
        return False
    while not still_fits(homes, table.slots.address, 8, extra):
        if not move_entries(table, extra * SLOTS_MOVED_PER_STRING):
            return False
    return keep_last_free(table, extra)


@kernel
def grow_slots(table: Symbols, count):
    """Has a table that does not grow do so, to so many homes; false if there is no memory."""
    homes = homes_of(table)
    count = homes_from(homes, table.slots.address, 8, count)
    room = max(room_for(count), homes.room)
    if not lengthen_slots(table, room):
        return False
    begin_growing(homes, count, room)
    return True


@kernel
def pages_are_missing(table: Symbols):
    """Whether pages that a table was given are still to be made, so that it is not yet time to move; has the next one be made
    if it is its turn."""
    if is_making(table.maker):
        return True
    left = table.untouched - 1
    if left < 0:
        return False
    table.untouched = left
    make_aside(table.maker, start_of(table.slots.address + table.slot_homes.room * 8 - 1) - left * HUGE_PAGE)
    return True


@kernel
def keep_last_free(table: Symbols, extra):
    """Keeps the last slot free when so many entries come; false if there is no memory."""
    missing = missing_room(homes_of(table), table.slots.address, 8, extra)
    return missing == 0 or lengthen_slots(table, table.slot_homes.room + missing)


@kernel
def lengthen_slots(table: Symbols, room):
    """Gives the table so many places; false, and all as it was, if there is no memory."""
    old = table.slots
    places = table.slot_homes.room
    dirty = dirty_bytes(old.address, places * 8, room * 8)
    slots = resized_block(old.address, room * 8, 1)
    if slots == 0:
        return False
    table.untouched += fresh_pages(slots, places * 8, room * 8)
    clear_rest(slots, places * 8, room * 8, dirty)
    table.slots = Words(slots)
    table.slot_homes.room = room
    return True


@kernel
def move_entries(table: Symbols, fuel):
    """Moves the entries in so many slots of a table that grows to their new homes; false, and nothing moved, if there is no
    memory."""
    homes = homes_of(table)
    slots = table.slots
    first = first_to_move(homes, slots.address, 8, fuel)
    last = last_to_move(homes, slots.address, 8)
    entries = Words(cleared_block((last - first) * 8, 0))
    if not entries:
        return False
    if not keep_last_free(table, last - first):
        free_block(entries.address)
        return False
    slots = table.slots
    n = 0
    for at in range(first, last):
        entry = slots[at]
        entries[n] = entry
        n += 1 if entry != 0 else 0
        slots[at] = 0
    move_edge(homes, first)
    count = homes.count
    for i in range(n):
        entry = entries[i]
        put_entry(slots, (((entry >> 32) & _LOW) * count) >> 32, entry)
    free_block(entries.address)
    return True


@kernel
def has_room(table: Symbols, length):
    """Whether one more string of this length fits the heap and the offsets."""
    return table.count + 1 < table.offset_count and table.used + length <= table.heap_size


@kernel
def warm(table: Symbols, hashes: Words, k, size):
    """Asks for what finding strings will touch, some strings ahead of string k: for the home of the furthest, where the string
    in the slot of a nearer one begins, and for the bytes of that of the next. The slot is noted above the hash, as how far
    behind its home it is."""
    if k + 3 * AHEAD < size:
        prefetch(table.slots.address + home_of(homes_of(table), hashes[k + 3 * AHEAD]) * 8)
    if 0 <= k + 2 * AHEAD < size:
        hashed = hashes[k + 2 * AHEAD]
        home = home_of(homes_of(table), hashed)
        slot = seek_slot(table, hashed, home)
        prefetch(table.offsets.address + ((table.slots[slot] & _LOW) - 1) * 8)
        hashes[k + 2 * AHEAD] = hashed | ((slot - home) << 32)
    if 0 <= k + AHEAD < size:
        entry = table.slots[noted_slot(table, hashes[k + AHEAD])]
        if entry != 0:
            prefetch(table.heap + table.offsets[(entry & _LOW) - 1])


@kernel
def noted_slot(table: Symbols, noted):
    """The slot that is noted above a hash."""
    return home_of(homes_of(table), noted & _LOW) + (noted >> 32)


@kernel
def seek_slot(table: Symbols, hashed, slot):
    """The first slot from one on that is free or may be that of a string with this hash."""
    slots = table.slots
    while slots[slot] != 0 and (slots[slot] >> 32) & _LOW != hashed:
        slot += 1
    return slot


@kernel
def find_text(table: Symbols, address, limit, length, hashed, slot):
    """The id of the bytes at an address, or -1 - slot where it would go; looks from a slot on."""
    heap = table.heap
    offsets = table.offsets
    heap_limit = heap + table.heap_size
    while True:
        slot = seek_slot(table, hashed, slot)
        entry = table.slots[slot]
        if entry == 0:
            return -1 - slot
        found = (entry & _LOW) - 1
        at = offsets[found]
        if offsets[found + 1] - at == length and equal_bytes(address, limit, heap + at, heap_limit, length):
            return found
        slot += 1


@kernel
def add_text(table: Symbols, address, limit, length, hashed, slot):
    """Enters a string that is not there at its free slot; returns its id."""
    count = table.count
    used = table.used
    heap = table.heap
    copy_bytes(address, heap + used, length, limit, heap + table.heap_size)
    table.offsets[count + 1] = used + length
    table.slots[slot] = (hashed << 32) | (count + 1)
    table.used = used + length
    table.count = count + 1
    return count


@entry()
def intern(table: Symbols, source, size, starts, ends, bound, begin, count, ids: Words, width, hashes: Words):
    """Writes the id of the bytes `starts[i]` to `ends[i]` behind `source`, where `size` bytes are, to cell i of `ids` for i
    from `begin`; source 0 is the table's own heap. `starts` and `ends` are cells of `bound` bytes each. Stops before the first
    new string that does not fit or is not UTF-8, or where there is no memory for slots, and returns its number; `count` when
    done. `hashes` has room for STRINGS_TOGETHER words."""
    begin_writing(table)
    done = intern_locked(table, source, size, starts, ends, bound, begin, count, ids, width, hashes)
    make_next(table, table.ref.heap_ahead, table.heap, table.used, table.heap_size)
    make_next(table, table.ref.offsets_ahead, table.offsets.address, table.count * 8, table.offset_count * 8)
    end_writing(table)
    return done


@kernel
def make_next(table: Symbols, ahead: Words, address, used, size):
    """Has the page be made that an array comes to after that of its used bytes, unless it was the last one that was."""
    following = start_of(address + used) + HUGE_PAGE
    if following < address + size and ahead[0] != following and make_aside(table.maker, following):
        ahead[0] = following


@kernel
def intern_locked(table: Symbols, source, size, starts, ends, bound, begin, count, ids: Words, width, hashes: Words):
    if source == 0:
        source = table.heap
        size = table.heap_size
    limit = source + size
    for base in range(begin, count, STRINGS_TOGETHER):
        ahead = min(STRINGS_TOGETHER, count - base)
        if not room_for_slots(table, ahead, count - base):
            return base
        for k in range(ahead):
            start = load_cell(starts, bound, base + k)
            hashes[k] = int(hash_bytes(source + start, load_cell(ends, bound, base + k) - start, limit))
        if ahead > 1:
            for k in range(-3 * AHEAD, 0):
                warm(table, hashes, k, ahead)
        for k in range(ahead):
            warm(table, hashes, k, ahead)
            start = load_cell(starts, bound, base + k)
            length = load_cell(ends, bound, base + k) - start
            hashed = hashes[k] & _LOW
            found = find_text(table, source + start, limit, length, hashed, noted_slot(table, hashes[k]))
            if found < 0:
                if not has_room(table, length) or not is_utf8(source + start, length):
                    return base + k
                found = add_text(table, source + start, limit, length, hashed, -1 - found)
            store_cell(ids.address, width, base + k, found)
    return count


@entry()
def find_symbol(table: Symbols, address, length):
    """The id of the bytes at an address, or -1."""
    begin_reading(table)
    limit = address + length
    hashed = int(hash_bytes(address, length, limit))
    found = find_text(table, address, limit, length, hashed, noted_slot(table, hashed)) if table.slots else -1
    end_reading(table)
    return max(found, -1)


@entry()
def drop_slots(table: Symbols):
    if table.slots:
        free_block(table.slots.address)
    table.slots = Words(0)
    set_homes(homes_of(table), 0, 0)
