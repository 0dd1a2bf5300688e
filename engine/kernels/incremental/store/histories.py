"""Histories: when each row of a collection is present.

A row is a set of entries (time, diff). Nearly every row has one, (settled, +1), and needs no memory for it but its iteration:
the row's bit is clear, and its time is HI_BASE + HI_ITERS[row]. Rows with the bit set have an item with a chain of entries,
perhaps none. A view is a limit: entries with time < limit are seen. `neu` at time t is limit t + 1, `alt` is limit t; all
settled times are below all times of a batch, so prior rounds precede whatever their iteration (the iteration-only layer
which keeps half-joins right under compaction).
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import bit_length, load_i32, load_i64, store_i32, store_i64, wrapped_product
from dlog.engine.kernels.incremental.store.lists import list_empty, list_room, pool_give, pool_take
from dlog.engine.kernels.layout import (
    CO_ALIVE,
    CO_OUTER,
    CO_QUIET,
    ENTRY_DIFF,
    ENTRY_NEXT,
    ENTRY_SIZE,
    ENTRY_TIME,
    HI_BASE,
    HI_BITS,
    HI_ENTRIES,
    HI_ITEMS,
    HI_ITERS,
    HI_TABLE,
    HI_TABLE_COUNT,
    ITEM_HEAD,
    ITEM_ROW,
    ITEM_SIZE,
    ITEM_SLOT,
    LIST_COUNT,
    LIST_DATA,
    NEVER,
    POOL_FREE,
    REL_ROWS,
)
from dlog.engine.kernels.static.storage import release, zeroed

_MIX = -7046029254386353131
_ITERATION = 0xFFFFFFFF
_NO_TIME = 1 << 62
"""Of a row that is not there: no limit is beyond."""


@kernel
def get_bit(bits, row):
    return (load_i64(bits, row >> 6) >> (row & 63)) & 1


@kernel
def put_bit(bits, row):
    store_i64(bits, row >> 6, load_i64(bits, row >> 6) | (1 << (row & 63)))


@kernel
def clear_bit(bits, row):
    store_i64(bits, row >> 6, load_i64(bits, row >> 6) & ~(1 << (row & 63)))


@kernel
def next_bit(bits, first, last):
    """The first bit of [first, last) that is set; `last` if none is."""
    word = first >> 6
    if first >= last:
        return last
    current = load_i64(bits, word) >> (first & 63) << (first & 63)
    while current == 0:
        word += 1
        if word << 6 >= last:
            return last
        current = load_i64(bits, word)
    return min(last, (word << 6) + bit_length(current & -current) - 1)


@kernel
def item_slot(row, mask):
    return (wrapped_product(row, _MIX) >> 24) & mask


@kernel
def item_of(history, row):
    """Address of the item of a row whose bit is set."""
    items = load_i64(load_i64(history, HI_ITEMS), LIST_DATA)
    iterations = load_i64(history, HI_ITERS)
    if iterations != 0:
        return items + load_i32(iterations, row) * (ITEM_SIZE * 8)
    table = load_i64(history, HI_TABLE)
    mask = load_i64(history, HI_TABLE_COUNT) - 1
    at = item_slot(row, mask)
    while True:
        item = items + (load_i32(table, at) - 1) * (ITEM_SIZE * 8)
        if load_i64(item, ITEM_ROW) == row:
            return item
        at = (at + 1) & mask


@kernel
def place_item(history, number):
    """Notes where an item is: in the place of its row's iteration or, where there is none, in the table."""
    item = load_i64(load_i64(history, HI_ITEMS), LIST_DATA) + number * (ITEM_SIZE * 8)
    iterations = load_i64(history, HI_ITERS)
    if iterations != 0:
        store_i32(iterations, load_i64(item, ITEM_ROW), number)
        return
    table = load_i64(history, HI_TABLE)
    mask = load_i64(history, HI_TABLE_COUNT) - 1
    at = item_slot(load_i64(item, ITEM_ROW), mask)
    while load_i32(table, at) != 0:
        at = (at + 1) & mask
    store_i32(table, at, number + 1)
    store_i64(item, ITEM_SLOT, at)


@kernel
def grow_table(ctl, history, items):
    """Keeps the table, if there has to be one, at least twice as long as the items; false with CTL_ERROR set when out of
    memory."""
    count = load_i64(history, HI_TABLE_COUNT)
    if items * 2 <= count or load_i64(history, HI_ITERS) != 0:
        return True
    target = max(count * 2, 64)
    table = zeroed(ctl, target * 4)
    if table == 0:
        return False
    release(ctl, load_i64(history, HI_TABLE), count * 4)
    store_i64(history, HI_TABLE, table)
    store_i64(history, HI_TABLE_COUNT, target)
    for number in range(load_i64(load_i64(history, HI_ITEMS), LIST_COUNT)):
        place_item(history, number)
    return True


@kernel
def open_item(ctl, history, row):
    """Gives a row whose bit is clear an item without entries. Returns its address, 0 with CTL_ERROR set."""
    items = load_i64(history, HI_ITEMS)
    number = load_i64(items, LIST_COUNT)
    if not list_room(ctl, items, 1) or not grow_table(ctl, history, number + 1):
        return 0
    store_i64(items, LIST_COUNT, number + 1)
    item = load_i64(items, LIST_DATA) + number * (ITEM_SIZE * 8)
    store_i64(item, ITEM_ROW, row)
    store_i64(item, ITEM_HEAD, 0)
    place_item(history, number)
    put_bit(load_i64(history, HI_BITS), row)
    return item


@kernel
def chain_entry(ctl, history, item, time, diff):
    """Adds an entry to an item; false with CTL_ERROR set."""
    pool = load_i64(history, HI_ENTRIES)
    number = pool_take(ctl, pool)
    if number < 0:
        return False
    entry = load_i64(pool, LIST_DATA) + number * (ENTRY_SIZE * 8)
    store_i64(entry, ENTRY_TIME, time)
    store_i64(entry, ENTRY_DIFF, diff)
    store_i64(entry, ENTRY_NEXT, load_i64(item, ITEM_HEAD))
    store_i64(item, ITEM_HEAD, number + 1)
    return True


@kernel
def settled_time(history, row):
    """The time from which on a row whose bit is clear is there."""
    iterations = load_i64(history, HI_ITERS)
    if iterations == 0:
        return load_i64(history, HI_BASE)
    iteration = load_i32(iterations, row)
    return load_i64(history, HI_BASE) + iteration if iteration != NEVER else _NO_TIME


@kernel
def change_iteration(ctl, history, row, time, diff):
    """`add_entry` where nobody looks at the row before the round is over: one that appears at an iteration, or was there from
    it on and goes, has no need of entries. False with CTL_ERROR set."""
    if get_bit(load_i64(history, HI_BITS), row) == 0:
        iterations = load_i64(history, HI_ITERS)
        known = load_i32(iterations, row)
        iteration = time & _ITERATION
        if diff == 1 and known == NEVER:
            store_i32(iterations, row, iteration)
            return True
        if diff == -1 and known == iteration:
            store_i32(iterations, row, NEVER)
            return True
    return add_entry(ctl, history, row, time, diff)


@kernel
def add_entry(ctl, history, row, time, diff):
    """Adds (time, diff) to a row; false with CTL_ERROR set.

    A row that was never there yet and appears needs no item: its iteration is noted.
    """
    if get_bit(load_i64(history, HI_BITS), row) == 0:
        iterations = load_i64(history, HI_ITERS)
        never = iterations != 0 and load_i32(iterations, row) == NEVER
        if never and diff == 1 and time >= load_i64(history, HI_BASE):
            store_i32(iterations, row, time - load_i64(history, HI_BASE))
            return True
        settled = settled_time(history, row)
        if not never and not list_room(ctl, load_i64(history, HI_ENTRIES), 2):
            # Before there is an item: one without entries says that the row has never been there.
            return False
        item = open_item(ctl, history, row)
        if item == 0 or (not never and not chain_entry(ctl, history, item, settled, 1)):
            return False
        return chain_entry(ctl, history, item, time, diff)
    return chain_entry(ctl, history, item_of(history, row), time, diff)


@kernel
def first_entry(history, row):
    """The first entry, plus one, of a row whose bit is set; 0 if it has none."""
    return load_i64(item_of(history, row), ITEM_HEAD)


@kernel
def entry_at(history, number):
    """Address of an entry by its number plus one."""
    return load_i64(load_i64(history, HI_ENTRIES), LIST_DATA) + (number - 1) * (ENTRY_SIZE * 8)


@kernel
def presence(history, row, limit):
    """Sum of the diffs before `limit`."""
    if get_bit(load_i64(history, HI_BITS), row) == 0:
        return 1 if settled_time(history, row) < limit else 0
    total = 0
    at = first_entry(history, row)
    while at != 0:
        entry = entry_at(history, at)
        if load_i64(entry, ENTRY_TIME) < limit:
            total += load_i64(entry, ENTRY_DIFF)
        at = load_i64(entry, ENTRY_NEXT)
    return total


@kernel
def has_marked(history):
    """Whether there is a row whose bit is set, in a collection where paths look rows up."""
    return load_i64(load_i64(history, HI_ITEMS), LIST_COUNT) != 0


@kernel
def is_here(collection, row):
    """Whether a living row is present after all changes so far."""
    history = load_i64(collection, CO_OUTER)
    if get_bit(load_i64(history, HI_BITS), row) == 0:
        return True
    return load_i64(collection, CO_QUIET) == 0 and presence(history, row, 9223372036854775807) > 0


@kernel
def forget_items(ctl, history):
    """Drops all items, and all entries, of a history without iterations at once; memory that is much is given back."""
    items = load_i64(history, HI_ITEMS)
    count = load_i64(items, LIST_COUNT)
    data = load_i64(items, LIST_DATA)
    table = load_i64(history, HI_TABLE)
    for number in range(count):
        store_i32(table, load_i64(data, number * ITEM_SIZE + ITEM_SLOT), 0)
    list_empty(ctl, items)
    list_empty(ctl, load_i64(history, HI_ENTRIES))
    store_i64(load_i64(history, HI_ENTRIES), POOL_FREE, 0)


@kernel
def drop_entries(history, item):
    """Frees an item's entries."""
    pool = load_i64(history, HI_ENTRIES)
    at = load_i64(item, ITEM_HEAD)
    while at != 0:
        following = load_i64(entry_at(history, at), ENTRY_NEXT)
        pool_give(pool, at - 1)
        at = following
    store_i64(item, ITEM_HEAD, 0)


@kernel
def settle_entries(history, item):
    """Makes all entries of an item settled: rounds are dropped, equal iterations merged, zeros freed. Returns the number left.

    Items have few entries, so each is compared with those before it.
    """
    pool = load_i64(history, HI_ENTRIES)
    at = load_i64(item, ITEM_HEAD)
    kept = 0
    store_i64(item, ITEM_HEAD, 0)
    while at != 0:
        entry = entry_at(history, at)
        following = load_i64(entry, ENTRY_NEXT)
        time = load_i64(entry, ENTRY_TIME) & 0xFFFFFFFF
        known = load_i64(item, ITEM_HEAD)
        while known != 0 and load_i64(entry_at(history, known), ENTRY_TIME) != time:
            known = load_i64(entry_at(history, known), ENTRY_NEXT)
        if known != 0:
            total = load_i64(entry_at(history, known), ENTRY_DIFF) + load_i64(entry, ENTRY_DIFF)
            store_i64(entry_at(history, known), ENTRY_DIFF, total)
            pool_give(pool, at - 1)
        else:
            store_i64(entry, ENTRY_TIME, time)
            store_i64(entry, ENTRY_NEXT, load_i64(item, ITEM_HEAD))
            store_i64(item, ITEM_HEAD, at)
        at = following
    at = load_i64(item, ITEM_HEAD)
    store_i64(item, ITEM_HEAD, 0)
    while at != 0:
        entry = entry_at(history, at)
        following = load_i64(entry, ENTRY_NEXT)
        if load_i64(entry, ENTRY_DIFF) == 0:
            pool_give(pool, at - 1)
        else:
            store_i64(entry, ENTRY_NEXT, load_i64(item, ITEM_HEAD))
            store_i64(item, ITEM_HEAD, at)
            kept += 1
        at = following
    return kept


@kernel
def close_item(history, row):
    """Drops the item of a row whose bit is set, and clears the bit; its entries are gone already. Where rows have iterations,
    the row's is to be noted again."""
    clear_bit(load_i64(history, HI_BITS), row)
    items = load_i64(history, HI_ITEMS)
    data = load_i64(items, LIST_DATA)
    item = item_of(history, row)
    iterations = load_i64(history, HI_ITERS)
    if iterations == 0:
        leave_table(history, load_i64(item, ITEM_SLOT))
    last = load_i64(items, LIST_COUNT) - 1
    store_i64(items, LIST_COUNT, last)
    moved = data + last * (ITEM_SIZE * 8)
    if moved != item:
        for word in range(ITEM_SIZE):
            store_i64(item, word, load_i64(moved, word))
        number = (item - data) // (ITEM_SIZE * 8)
        if iterations != 0:
            store_i32(iterations, load_i64(item, ITEM_ROW), number)
        else:
            store_i32(load_i64(history, HI_TABLE), load_i64(item, ITEM_SLOT), number + 1)


@kernel
def leave_table(history, hole):
    """Empties a slot of the table; later items of its run move up."""
    table = load_i64(history, HI_TABLE)
    mask = load_i64(history, HI_TABLE_COUNT) - 1
    data = load_i64(load_i64(history, HI_ITEMS), LIST_DATA)
    at = hole
    while True:
        at = (at + 1) & mask
        number = load_i32(table, at) - 1
        if number < 0:
            break
        item = data + number * (ITEM_SIZE * 8)
        home = item_slot(load_i64(item, ITEM_ROW), mask)
        if (at - home) & mask >= (at - hole) & mask:
            store_i32(table, hole, number + 1)
            store_i64(item, ITEM_SLOT, hole)
            hole = at
    store_i32(table, hole, 0)


@entry()
def copy_present(collection, limit, numbers):
    """Writes the numbers (int32) of the living rows that are present before `limit`; returns how many."""
    alive = load_i64(collection, CO_ALIVE)
    history = load_i64(collection, CO_OUTER)
    bits = load_i64(history, HI_BITS)
    plain = load_i64(history, HI_BASE) < limit
    count = 0
    for row in range(load_i64(collection, REL_ROWS)):
        if get_bit(alive, row) == 0:
            continue
        here = plain
        if get_bit(bits, row) != 0:
            here = load_i64(collection, CO_QUIET) == 0 and presence(history, row, limit) > 0
        if here:
            store_i32(numbers, count, row)
            count += 1
    return count


@entry()
def copy_ranks(history, rows, count, ranks):
    """ranks[i] (int32) = the last iteration from which on row rows[i] is present."""
    for i in range(count):
        row = load_i32(rows, i)
        rank = 0
        if get_bit(load_i64(history, HI_BITS), row) == 0:
            rank = load_i32(load_i64(history, HI_ITERS), row)
        else:
            at = first_entry(history, row)
            while at != 0:
                entry = entry_at(history, at)
                if load_i64(entry, ENTRY_DIFF) > 0:
                    rank = max(rank, load_i64(entry, ENTRY_TIME) & 0xFFFFFFFF)
                at = load_i64(entry, ENTRY_NEXT)
        store_i32(ranks, i, rank)
