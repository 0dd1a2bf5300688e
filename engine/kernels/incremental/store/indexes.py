"""Indexes: arrangements of a collection by key columns, kept while its rows come and go.

A group (groups.py) is a slab of row numbers. The groups of a collection's base (base.py) by its own column are runs: rows with
consecutive numbers, which take no place in the pool until one in the middle goes or another one comes. So are those of one row.

A dense index of a binary relation that only proposes values (proposals.py) may hold these, of 4 bytes each, in the place of
row numbers (IX_VALUES): who wants a group's values then finds them side by side.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.incremental.store.groups import first_row, free_group, item_of_row, key_of, slab_at, slab_first
from dlog.engine.kernels.incremental.store.homes import home_of
from dlog.engine.kernels.incremental.store.keyed import group_of, hash_slot, remove_key, slots_of
from dlog.engine.kernels.incremental.store.lists import push_change
from dlog.engine.kernels.layout import (
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    IX_COLLECTION,
    IX_DENSE,
    IX_FREE,
    IX_GONE,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_KEYS,
    IX_LOW,
    IX_POOL,
    IX_POOL_CAPACITY,
    IX_POOL_SIZE,
    IX_SLOTS,
    IX_USED,
    IX_VALUES,
    IXS_CAPACITY,
    IXS_COUNT,
    IXS_START,
    REL_ARITY,
    REL_COLUMNS,
    RUN,
)
from dlog.engine.kernels.static.storage import grown, mix, register, resize

STRETCH = 64
"""Rows of a slab that are compared together."""
LONG = 1024
"""Rows of a group from which on it is not searched for each row that leaves it."""
# ----------------------------------------------------------------------------------------------------------------- slabs


@kernel
def room_of(size):
    """Items that a slab of a size holds: 1 to 8, then four sizes from each power of two to the next."""
    if size < 8:
        return size + 1
    return (5 + ((size - 8) & 3)) << (((size - 8) >> 2) + 1)


@kernel
def size_for(items):
    """The least size that holds so many items."""
    if items <= 8:
        return items - 1
    power = 0
    while (16 << power) < items:
        power += 1
    return 8 + power * 4 + ((items - (8 << power) - 1) >> (power + 1))


@kernel
def extend_slab(ctl, index, slab):
    """Gives a full slab the next power of two, or a run a place in the pool with little to spare: most change once or twice.
    Freed ones of each size are kept in lists threaded through their first item."""
    capacity = load_i32(slab, IXS_CAPACITY)
    count = load_i32(slab, IXS_COUNT)
    first = slab_first(slab)
    target = room_of(size_for(count + 1))
    if capacity > 0:
        target = 1
        while target <= capacity:
            target *= 2
    size = size_for(target)
    lists = load_i64(index, IX_FREE)
    start = load_i64(lists, size) - 1
    pool = load_i64(index, IX_POOL)
    if start >= 0:
        store_i64(lists, size, load_i32(pool, start))
    else:
        start = load_i64(index, IX_POOL_SIZE)
        room = load_i64(index, IX_POOL_CAPACITY)
        if start + target > room:
            wanted = max(grown(room), start + target, 64)
            pool = resize(ctl, pool, room * 4, wanted * 4)
            if pool == 0:
                return False
            store_i64(index, IX_POOL, pool)
            store_i64(index, IX_POOL_CAPACITY, wanted)
        store_i64(index, IX_POOL_SIZE, start + target)
    for i in range(count):
        if capacity == 0:
            store_i32(pool, start + i, item_of_row(index, first - RUN + i))
        else:
            store_i32(pool, start + i, load_i32(pool, first + i))
    free_slab(index, first, capacity)
    store_i32(slab, IXS_START, start)
    store_i32(slab, IXS_CAPACITY, target)
    return True


@kernel
def free_slab(index, start, capacity):
    """Keeps a slab for reuse, in the list of the largest size that it holds."""
    if capacity > 0:
        size = size_for(capacity + 1) - 1
        lists = load_i64(index, IX_FREE)
        store_i32(load_i64(index, IX_POOL), start, load_i64(lists, size))
        store_i64(lists, size, start + 1)


@kernel
def index_insert(ctl, index, row):
    """Adds a row; false with CTL_ERROR set."""
    group = group_of(ctl, index, row)
    if group < 0:
        return False
    slab = slab_at(index, group)
    count = load_i32(slab, IXS_COUNT)
    if count == 0:
        store_i64(index, IX_USED, load_i64(index, IX_USED) + 1)
        if load_i64(index, IX_VALUES) == 0:
            store_i32(slab, IXS_START, row)
            store_i32(slab, IXS_COUNT, 1)
            return True
    if count >= load_i32(slab, IXS_CAPACITY) and not extend_slab(ctl, index, slab):
        return False
    store_i32(load_i64(index, IX_POOL), load_i32(slab, IXS_START) + count, item_of_row(index, row))
    store_i32(slab, IXS_COUNT, count + 1)
    return True


@kernel
def index_remove(ctl, index, row):
    """Takes a row out, of a long group when the batch is settled (removals.py); false with CTL_ERROR set. The last of its group
    takes its place."""
    dense = load_i64(index, IX_DENSE) != 0
    slot = 0
    if not dense:
        slot = hash_slot(index, row)
        group = load_i32(load_i64(index, IX_SLOTS), slot) - 1
    elif load_i64(index, IX_KEY_COUNT) > 0:
        group = key_of(index, 0, row) - load_i64(index, IX_LOW)
    else:
        group = 0
    slab = slab_at(index, group)
    last = load_i32(slab, IXS_COUNT) - 1
    if last >= LONG:
        return push_change(ctl, load_i64(index, IX_GONE), row, group, 0, 0)
    if load_i32(slab, IXS_CAPACITY) == 0 and last > 0:
        if shorten_run(slab, row):
            return True
        if not extend_slab(ctl, index, slab):
            return False
    start = load_i32(slab, IXS_START)
    pool = load_i64(index, IX_POOL)
    at = place_of(pool, start, last + 1, item_of_row(index, row)) if last > 0 else start
    if last == 0:
        drop_group(index, group, slot)
    else:
        store_i32(pool, at, load_i32(pool, start + last))
        store_i32(slab, IXS_COUNT, last)
    return True


@kernel
def drop_group(index, group, slot):
    """Gives up the group of a key of which the last row goes; `slot` is where an index by hash has it."""
    slab = slab_at(index, group)
    dense = load_i64(index, IX_DENSE) != 0
    if not dense:
        remove_key(index, slot)
    free_slab(index, load_i32(slab, IXS_START), load_i32(slab, IXS_CAPACITY))
    store_i32(slab, IXS_CAPACITY, 0)
    store_i32(slab, IXS_COUNT, 0)
    store_i64(index, IX_USED, load_i64(index, IX_USED) - 1)
    if not dense:
        free_group(index, group)


@kernel
def place_of(pool, start, count, item):
    """Where an item is among `count` from `start` on, of which it is one. Many are asked together, without a branch."""
    at = start
    end = start + count
    while at + STRETCH <= end:
        hits = 0
        for i in range(STRETCH):
            hits += 1 if load_i32(pool, at + i) == item else 0
        if hits != 0:
            break
        at += STRETCH
    while load_i32(pool, at) != item:
        at += 1
    return at


@kernel
def shorten_run(slab, row):
    """Takes the first or the last row off a run; false if the row is in its middle."""
    start = load_i32(slab, IXS_START)
    count = load_i32(slab, IXS_COUNT)
    if row == start:
        store_i32(slab, IXS_START, start + 1)
    elif row != start + count - 1:
        return False
    store_i32(slab, IXS_COUNT, count - 1)
    return True
# ---------------------------------------------------------------------------------------------------------------- lookup


@kernel
def find_group(index, values):
    """Group of a key (one word per key column), or -1."""
    if load_i64(index, IX_DENSE) != 0:
        group = 0
        if load_i64(index, IX_KEY_COUNT) > 0:
            group = load_i64(values, 0) - load_i64(index, IX_LOW)
        return group if 0 <= group < load_i64(index, IX_GROUPS) else -1
    table = load_i64(index, IX_SLOTS)
    if table == 0:
        return -1
    keys = load_i64(index, IX_KEY_COUNT)
    hashed = 0
    for k in range(keys):
        hashed = mix(hashed, load_i64(values, k))
    at = home_of(slots_of(index), (hashed >> 32) & 0xFFFFFFFF)
    while True:
        group = load_i32(table, at) - 1
        if group < 0:
            return -1
        row = first_row(index, group)
        equal = True
        for k in range(keys):
            equal = equal and key_of(index, k, row) == load_i64(values, k)
        if equal:
            return group
        at += 1


@kernel
def warm_group(index, row):
    """Asks for the slab of a row's group in a dense index."""
    if load_i64(index, IX_DENSE) != 0 and load_i64(index, IX_KEY_COUNT) == 1:
        group = key_of(index, 0, row) - load_i64(index, IX_LOW)
        if 0 <= group < load_i64(index, IX_GROUPS):
            prefetch(slab_at(index, group))


@kernel
def warm_slab(index, row):
    """Asks for the place in the pool of the slab of a row's group in a dense index; after `warm_group`."""
    if load_i64(index, IX_DENSE) != 0 and load_i64(index, IX_KEY_COUNT) == 1:
        group = key_of(index, 0, row) - load_i64(index, IX_LOW)
        if 0 <= group < load_i64(index, IX_GROUPS):
            slab = slab_at(index, group)
            if load_i32(slab, IXS_CAPACITY) != 0:
                prefetch(load_i64(index, IX_POOL) + load_i32(slab, IXS_START) * 4)


@kernel
def warm_run(index, slab):
    """Asks for the first and the last values of a run, in the column that is not its key."""
    collection = load_i64(index, IX_COLLECTION)
    column = load_i64(collection, REL_COLUMNS)
    if load_i64(load_i64(index, IX_KEYS), 0) == 0 and load_i64(collection, REL_ARITY) > 1:
        column += COL_SIZE * 8
    first = load_i64(column, COL_DATA) + load_i32(slab, IXS_START) * load_i64(column, COL_WIDTH)
    prefetch(first)
    prefetch(first + (load_i32(slab, IXS_COUNT) - 1) * load_i64(column, COL_WIDTH))


@kernel
def find_index_groups(index, ctl, registers, n, buffer, groups):
    """groups[i] = group of the key in block row i, or -1. `buffer` has room for a key."""
    keys = load_i64(index, IX_KEY_COUNT)
    if load_i64(index, IX_DENSE) != 0 and keys == 1:
        low = load_i64(index, IX_LOW)
        count = load_i64(index, IX_GROUPS)
        values = register(ctl, load_i64(registers, 0))
        for i in range(n):
            group = load_i64(values, i) - low
            if 0 <= group < count:
                prefetch(slab_at(index, group))
            else:
                group = -1
            store_i64(groups, i, group)
        if n > 1:
            pool = load_i64(index, IX_POOL)
            for i in range(n):
                if load_i64(groups, i) >= 0:
                    slab = slab_at(index, load_i64(groups, i))
                    if load_i32(slab, IXS_CAPACITY) != 0:
                        prefetch(pool + load_i32(slab, IXS_START) * 4)
                        prefetch(pool + (load_i32(slab, IXS_START) + load_i32(slab, IXS_COUNT) - 1) * 4)
                    else:
                        warm_run(index, slab)
        return
    for i in range(n):
        for k in range(keys):
            store_i64(buffer, k, load_i64(register(ctl, load_i64(registers, k)), i))
        store_i64(groups, i, find_group(index, buffer))
