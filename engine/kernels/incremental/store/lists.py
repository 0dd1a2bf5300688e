"""Lists and pools of small items in kernel memory: what a batch of rounds writes down as it goes.

An item is a few words. A pool is a list whose items are freed and used again. Addresses of items hold until the list grows.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.row_structs import Changes, Items, List, Pool
from dlog.engine.kernels.static.storage import grown, release, resize

MAX_KEPT_WORDS = 1 << 17
"""Words above which an emptied list is not kept: a megabyte."""
MAX_USED_WORDS = 1 << 20
"""Words above which one is not that was used for the most part: as many are likely to come again."""


@kernel
def list_room(ctl: Control, items: Items, extra):
    """Makes room for `extra` more items; false with ctl.error set when there is none."""
    wanted = items.count + extra
    capacity = items.capacity
    if wanted <= capacity:
        return True
    size = items.words * 8
    target = max(wanted, grown(capacity), 16)
    moved = resize(ctl, items.data.address, capacity * size, target * size)
    if moved == 0:
        return False
    items.data = Words(moved)
    items.capacity = target
    return True


@entry()
def list_free(ctl: Control, items: Items):
    """Gives the list's memory back; it is empty afterwards."""
    release(ctl, items.data.address, items.capacity * items.words * 8)
    items.data = Words(0)
    items.count = 0
    items.capacity = 0


@kernel
def lists_free(ctl: Control, items, count):
    """`list_free` of so many lists that lie one after the other."""
    for number in range(count):
        list_free(ctl, List(items + number * List.size))


@entry()
def list_empty(ctl: Control, items: Items):
    """Empties a list, and gives its memory back where that is much."""
    kept = MAX_KEPT_WORDS if items.count * 4 < items.capacity else MAX_USED_WORDS
    items.count = 0
    if items.capacity * items.words > kept:
        list_free(ctl, items)


@kernel
def list_again(ctl: Control, items: List):
    """Empties a list, and gives its memory back where that is much and most of it was not used."""
    count = items.count
    items.count = 0
    if items.capacity > count * 4 and items.capacity * items.words > MAX_KEPT_WORDS:
        list_free(ctl, items)


@kernel
def list_trim(ctl: Control, items: Pool):
    """Gives back the room that a list does not use; false with ctl.error set."""
    count = items.count
    capacity = items.capacity
    if count * 9 > capacity * 8 or capacity < 64:
        return True
    size = items.words * 8
    target = max(count, 16)
    moved = resize(ctl, items.data.address, capacity * size, target * size)
    if moved == 0:
        return False
    items.data = Words(moved)
    items.capacity = target
    return True


@kernel
def list_push(ctl: Control, items: List, value):
    """Appends an item of one word; false with ctl.error set when out of memory."""
    count = items.count
    if count == items.capacity and not list_room(ctl, items, 1):
        return False
    items.data[count] = value
    items.count = count + 1
    return True


@kernel
def push_change(ctl: Control, changes: Changes, row, time, diff, value):
    """Appends a change; false with ctl.error set when out of memory."""
    count = changes.count
    if count == changes.capacity and not list_room(ctl, changes, 1):
        return False
    at = changes.data[count]
    at.row = row
    at.time = time
    at.diff = diff
    at.value = value
    changes.count = count + 1
    return True


@kernel
def pool_take(ctl: Control, pool: Pool):
    """Number of an item of a pool, reused or new; -1 with ctl.error set when out of memory."""
    free = pool.free - 1
    words = pool.words
    if free >= 0:
        pool.free = pool.data[free * words]
        return free
    count = pool.count
    if count == pool.capacity and not list_room(ctl, pool, 1):
        return -1
    pool.count = count + 1
    return count


@kernel
def pool_give(pool: Pool, number):
    """Frees an item of a pool."""
    pool.data[number * pool.words] = pool.free
    pool.free = number + 1


@kernel
def sort_changes(ctl: Control, changes: Changes, spare: Changes, counts: Words):
    """Sorts changes by time, stably, through the empty list `spare` and room for 256 words; false with ctl.error set when out
    of memory.

    Radix sort by the bytes of the round; changes of one batch differ in few of them.
    """
    count = changes.count
    ascending = True
    last = changes.data[0].time if count > 0 else 0
    differing = 0
    for i in range(1, count):
        time = changes.data[i].time
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
def sort_digit(changes: Changes, spare: Changes, count, shift, counts: Words):
    """One stable pass by eight bits of the time, with room for 256 counts; the two lists change places."""
    source = changes.data
    target = spare.data
    for digit in range(256):
        counts[digit] = 0
    for i in range(count):
        digit = (source[i].time >> shift) & 255
        counts[digit] += 1
    place = 0
    for digit in range(256):
        size = counts[digit]
        counts[digit] = place
        place += size
    for i in range(count):
        item = source[i]
        digit = (item.time >> shift) & 255
        at = counts[digit]
        counts[digit] = at + 1
        moved = target[at]
        moved.row, moved.time = item.row, item.time
        moved.diff, moved.value = item.diff, item.value
    capacity = changes.capacity
    changes.data = target
    changes.capacity = spare.capacity
    spare.data = source
    spare.capacity = capacity
