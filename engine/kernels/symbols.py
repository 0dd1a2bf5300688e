"""The symbol table for kernels: strings as ids, found or added many at once.

Ids are dense from 0. Strings are UTF-8, checked when they are new: other bytes get no id. All lie in one heap, string i from
offset i to offset i + 1; an open-addressing table of `(hash << 32) | (id + 1)` finds them, 0 marking a free slot. Entries never
change. The arrays are Python's (values/symbols.py), which replaces them by larger ones: whoever uses their addresses holds the
table's lock, as one of many who read or as the only one who writes. A kernel that finds no room stops and lets Python make
some; so it does where bytes are no text.
"""

from __future__ import annotations

from dlog.engine.kernels.jit import entry, kernel
from dlog.engine.kernels.layout import (
    SYM_COUNT,
    SYM_HEAP,
    SYM_HEAP_SIZE,
    SYM_LOCK,
    SYM_OFFSET_COUNT,
    SYM_OFFSETS,
    SYM_SLOT_COUNT,
    SYM_SLOTS,
    SYM_USED,
)
from dlog.engine.kernels.memory import atomic_add, load_i64, prefetch, store_i64
from dlog.engine.kernels.storage import store_cell
from dlog.engine.kernels.utf8 import is_utf8
from dlog.engine.kernels.words import copy_bytes, equal_bytes, hash_bytes

AHEAD = 32
"""Strings whose slots are fetched together."""
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
def has_room(table, length):
    """Whether one more string of this length fits."""
    count = load_i64(table, SYM_COUNT)
    slots = load_i64(table, SYM_SLOT_COUNT)
    return (
        count + 1 < load_i64(table, SYM_OFFSET_COUNT)
        and count + 1 < slots - (slots >> 2)
        and load_i64(table, SYM_USED) + length <= load_i64(table, SYM_HEAP_SIZE)
    )


@kernel
def warm(table, hashes, size):
    """Asks for what finding strings by these hashes will touch: first their slots, then where the strings begin."""
    slots = load_i64(table, SYM_SLOTS)
    offsets = load_i64(table, SYM_OFFSETS)
    mask = load_i64(table, SYM_SLOT_COUNT) - 1
    for k in range(size):
        prefetch(slots + (load_i64(hashes, k) & mask) * 8)
    for k in range(size):
        entry = load_i64(slots, load_i64(hashes, k) & mask)
        if entry != 0 and (entry >> 32) & _LOW == load_i64(hashes, k):
            prefetch(offsets + ((entry & _LOW) - 1) * 8)


@kernel
def find_text(table, address, limit, length, hashed):
    """The id of the bytes at an address, or -1 - slot where it would go."""
    slots = load_i64(table, SYM_SLOTS)
    mask = load_i64(table, SYM_SLOT_COUNT) - 1
    heap = load_i64(table, SYM_HEAP)
    offsets = load_i64(table, SYM_OFFSETS)
    heap_limit = heap + load_i64(table, SYM_HEAP_SIZE)
    slot = hashed & mask
    while True:
        entry = load_i64(slots, slot)
        if entry == 0:
            return -1 - slot
        if (entry >> 32) & _LOW == hashed:
            found = (entry & _LOW) - 1
            at = load_i64(offsets, found)
            if load_i64(offsets, found + 1) - at == length and equal_bytes(address, limit, heap + at, heap_limit, length):
                return found
        slot = (slot + 1) & mask


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
    from `begin`; source 0 is the table's own heap. Stops before the first new string that does not fit or is not UTF-8 and
    returns its number; `count` when done. `hashes` has room for AHEAD words."""
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
def rehash(slots, count, larger, mask):
    """Enters the entries of `count` slots into an empty table with this mask."""
    for i in range(count):
        entry = load_i64(slots, i)
        if entry != 0:
            slot = (entry >> 32) & mask
            while load_i64(larger, slot) != 0:
                slot = (slot + 1) & mask
            store_i64(larger, slot, entry)
