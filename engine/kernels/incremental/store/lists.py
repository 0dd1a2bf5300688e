"""Lists and pools of small items in kernel memory: what a batch of rounds writes down as it goes.

An item is a few words. A pool is a list whose items are freed and used again. Addresses of items hold until the list grows.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64
from dlog.engine.kernels.layout import (
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CHANGE_VALUE,
    LIST_CAPACITY,
    LIST_COUNT,
    LIST_DATA,
    LIST_SIZE,
    LIST_WORDS,
    POOL_FREE,
)
from dlog.engine.kernels.static.storage import grown, release, resize

LARGE = 1 << 17
"""Words above which an emptied list is not kept: a megabyte."""


@kernel
def list_room(ctl, items, extra):
    """Makes room for `extra` more items; false with CTL_ERROR set when there is none."""
    wanted = load_i64(items, LIST_COUNT) + extra
    capacity = load_i64(items, LIST_CAPACITY)
    if wanted <= capacity:
        return True
    size = load_i64(items, LIST_WORDS) * 8
    target = max(wanted, grown(capacity), 16)
    moved = resize(ctl, load_i64(items, LIST_DATA), capacity * size, target * size)
    if moved == 0:
        return False
    store_i64(items, LIST_DATA, moved)
    store_i64(items, LIST_CAPACITY, target)
    return True


@entry()
def list_free(ctl, items):
    """Gives the list's memory back; it is empty afterwards."""
    release(ctl, load_i64(items, LIST_DATA), load_i64(items, LIST_CAPACITY) * load_i64(items, LIST_WORDS) * 8)
    store_i64(items, LIST_DATA, 0)
    store_i64(items, LIST_COUNT, 0)
    store_i64(items, LIST_CAPACITY, 0)


@entry()
def lists_free(ctl, items, count):
    """`list_free` of so many lists that lie one after the other."""
    for number in range(count):
        list_free(ctl, items + number * (LIST_SIZE * 8))


@entry()
def list_empty(ctl, items):
    """Empties a list, and gives its memory back where that is much."""
    store_i64(items, LIST_COUNT, 0)
    if load_i64(items, LIST_CAPACITY) * load_i64(items, LIST_WORDS) > LARGE:
        list_free(ctl, items)


@kernel
def list_again(ctl, items):
    """Empties a list, and gives its memory back where that is much and most of it was not used."""
    count = load_i64(items, LIST_COUNT)
    store_i64(items, LIST_COUNT, 0)
    if load_i64(items, LIST_CAPACITY) > count * 4 and load_i64(items, LIST_CAPACITY) * load_i64(items, LIST_WORDS) > LARGE:
        list_free(ctl, items)


@kernel
def list_trim(ctl, items):
    """Gives back the room that a list does not use; false with CTL_ERROR set."""
    count = load_i64(items, LIST_COUNT)
    capacity = load_i64(items, LIST_CAPACITY)
    if count * 9 > capacity * 8 or capacity < 64:
        return True
    size = load_i64(items, LIST_WORDS) * 8
    target = max(count, 16)
    moved = resize(ctl, load_i64(items, LIST_DATA), capacity * size, target * size)
    if moved == 0:
        return False
    store_i64(items, LIST_DATA, moved)
    store_i64(items, LIST_CAPACITY, target)
    return True


@kernel
def list_push(ctl, items, value):
    """Appends an item of one word; false with CTL_ERROR set when out of memory."""
    count = load_i64(items, LIST_COUNT)
    if count == load_i64(items, LIST_CAPACITY) and not list_room(ctl, items, 1):
        return False
    store_i64(load_i64(items, LIST_DATA), count, value)
    store_i64(items, LIST_COUNT, count + 1)
    return True


@kernel
def push_change(ctl, changes, row, time, diff, value):
    """Appends a change; false with CTL_ERROR set when out of memory."""
    count = load_i64(changes, LIST_COUNT)
    if count == load_i64(changes, LIST_CAPACITY) and not list_room(ctl, changes, 1):
        return False
    at = load_i64(changes, LIST_DATA) + count * (CHANGE_SIZE * 8)
    store_i64(at, CHANGE_ROW, row)
    store_i64(at, CHANGE_TIME, time)
    store_i64(at, CHANGE_DIFF, diff)
    store_i64(at, CHANGE_VALUE, value)
    store_i64(changes, LIST_COUNT, count + 1)
    return True


@kernel
def change_at(changes, number):
    """Address of a change."""
    return load_i64(changes, LIST_DATA) + number * (CHANGE_SIZE * 8)


@kernel
def pool_take(ctl, pool):
    """Number of an item of a pool, reused or new; -1 with CTL_ERROR set when out of memory."""
    free = load_i64(pool, POOL_FREE) - 1
    words = load_i64(pool, LIST_WORDS)
    if free >= 0:
        store_i64(pool, POOL_FREE, load_i64(load_i64(pool, LIST_DATA), free * words))
        return free
    count = load_i64(pool, LIST_COUNT)
    if count == load_i64(pool, LIST_CAPACITY) and not list_room(ctl, pool, 1):
        return -1
    store_i64(pool, LIST_COUNT, count + 1)
    return count


@kernel
def pool_give(pool, number):
    """Frees an item of a pool."""
    store_i64(load_i64(pool, LIST_DATA), number * load_i64(pool, LIST_WORDS), load_i64(pool, POOL_FREE))
    store_i64(pool, POOL_FREE, number + 1)


@kernel
def sort_changes(ctl, changes, spare, counts):
    """Sorts changes by time, stably, through the empty list `spare` and room for 256 words; false with CTL_ERROR set when out
    of memory.

    Radix sort by the bytes of the round; changes of one batch differ in few of them.
    """
    count = load_i64(changes, LIST_COUNT)
    ascending = True
    last = load_i64(change_at(changes, 0), CHANGE_TIME) if count > 0 else 0
    differing = 0
    for i in range(1, count):
        time = load_i64(change_at(changes, i), CHANGE_TIME)
        ascending = ascending and time >= last
        differing |= time ^ last
        last = time
    if ascending:
        return True
    if not list_room(ctl, spare, count):
        return False
    for shift in range(0, 64, 8):
        if (differing >> shift) & 255 != 0:
            sort_digit(changes, spare, count, shift, counts)
    return True


@kernel
def sort_digit(changes, spare, count, shift, counts):
    """One stable pass by eight bits of the time, with room for 256 counts; the two lists change places."""
    source = load_i64(changes, LIST_DATA)
    target = load_i64(spare, LIST_DATA)
    for digit in range(256):
        store_i64(counts, digit, 0)
    for i in range(count):
        digit = (load_i64(source, i * CHANGE_SIZE + CHANGE_TIME) >> shift) & 255
        store_i64(counts, digit, load_i64(counts, digit) + 1)
    place = 0
    for digit in range(256):
        size = load_i64(counts, digit)
        store_i64(counts, digit, place)
        place += size
    for i in range(count):
        item = source + i * (CHANGE_SIZE * 8)
        digit = (load_i64(item, CHANGE_TIME) >> shift) & 255
        at = load_i64(counts, digit)
        store_i64(counts, digit, at + 1)
        for w in range(CHANGE_SIZE):
            store_i64(target, at * CHANGE_SIZE + w, load_i64(item, w))
    capacity = load_i64(changes, LIST_CAPACITY)
    store_i64(changes, LIST_DATA, target)
    store_i64(changes, LIST_CAPACITY, load_i64(spare, LIST_CAPACITY))
    store_i64(spare, LIST_DATA, source)
    store_i64(spare, LIST_CAPACITY, capacity)
