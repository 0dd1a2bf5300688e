"""Indexes: arrangements of a collection by key columns, kept while its rows come and go.

A group is a slab of row numbers. The groups of one key column with values close together are found by the value itself; others
by hash, where the first row of a slab stands for its key. An index without key columns has one group: all rows.

The groups of a collection's base (base.py) by its own column are runs: rows with consecutive numbers, which take no place in
the pool until one in the middle goes or another one comes.

A dense index of a binary relation that only proposes values (proposals.py) may hold these, of 4 bytes each, in the place of
row numbers (IX_VALUES): who wants a group's values then finds them side by side.
"""

from __future__ import annotations

from dlog.engine.kernels.jit import entry, kernel
from dlog.engine.kernels.layout import (
    CO_BASE_KEY,
    CO_BASE_KEYS,
    CO_BASE_LOW,
    CO_BASE_OFFSETS,
    CO_BASE_ROWS,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    IX_COLLECTION,
    IX_DENSE,
    IX_FREE,
    IX_FREE_GROUP,
    IX_GROUP_CAPACITY,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_KEYS,
    IX_LOW,
    IX_POOL,
    IX_POOL_CAPACITY,
    IX_POOL_SIZE,
    IX_SLABS,
    IX_SLOT_COUNT,
    IX_SLOTS,
    IX_USED,
    IX_VALUES,
    IX_WANTED,
    IXS_CAPACITY,
    IXS_COUNT,
    IXS_SIZE,
    IXS_START,
    REL_ARITY,
    REL_COLUMNS,
    RUN,
)
from dlog.engine.kernels.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.storage import grown, load_cell, mix, register, release, resize, zeroed

BULK = 1024
"""Rows from which an empty index is built in one go."""
AHEAD = 16
STRETCH = 64
"""Rows of a slab that are compared together."""
FREE_SIZES = 40
"""Lists of freed slabs, by the powers of two that they hold."""
SPREAD = 4
"""A dense index has at most this many groups for each key in use, and 4,096 more."""


@kernel
def key_of(index, number, row):
    """Value of the key column in a row."""
    column = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + load_i64(load_i64(index, IX_KEYS), number) * COL_SIZE * 8
    return load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)


@kernel
def hash_key(index, row):
    hashed = 0
    for k in range(load_i64(index, IX_KEY_COUNT)):
        hashed = mix(hashed, key_of(index, k, row))
    return hashed


@kernel
def slab_at(index, group):
    return load_i64(index, IX_SLABS) + group * (IXS_SIZE * 4)


@kernel
def slab_first(slab):
    """Where the rows of a slab begin: a position for `row_at`."""
    start = load_i32(slab, IXS_START)
    return start + RUN if load_i32(slab, IXS_CAPACITY) == 0 else start


@kernel
def row_at(pool, at):
    """The row at a position of a slab."""
    return at - RUN if at >= RUN else load_i32(pool, at)


@kernel
def item_of_row(index, row):
    """What the pool holds for a row: its number, or its value."""
    column = load_i64(index, IX_VALUES)
    if column == 0:
        return row
    column = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + (column - 1) * COL_SIZE * 8
    return load_i32(load_i64(column, COL_DATA), row)


@kernel
def grow_groups(ctl, index, groups):
    """Room for slabs of `groups` groups, new ones empty; false with CTL_ERROR set."""
    old = load_i64(index, IX_GROUP_CAPACITY)
    if groups <= old:
        return True
    new = max(groups, grown(old), 16)
    moved = resize(ctl, load_i64(index, IX_SLABS), old * IXS_SIZE * 4, new * IXS_SIZE * 4)
    if moved == 0:
        return False
    for word in range(old * IXS_SIZE, new * IXS_SIZE):
        store_i32(moved, word, 0)
    store_i64(index, IX_SLABS, moved)
    store_i64(index, IX_GROUP_CAPACITY, new)
    return True


# ---------------------------------------------------------------------------------------------------------------- dense


@kernel
def fits_dense(index, value):
    """Whether a dense index may be extended to a value: the groups stay few for the keys in use."""
    low = load_i64(index, IX_LOW)
    groups = load_i64(index, IX_GROUPS)
    allowed = load_i64(index, IX_USED) * SPREAD + 4096
    if groups == 0:
        return True
    if value <= low - allowed or value >= low + groups + allowed:
        return False
    return max(low + groups, value + 1) - min(low, value) <= max(allowed, groups)


@kernel
def dense_group(ctl, index, value):
    """Group of a value in a dense index, which is extended; -1 with CTL_ERROR set. The value fits."""
    groups = load_i64(index, IX_GROUPS)
    if groups == 0:
        # The first key is met in the middle, not at the edge.
        store_i64(index, IX_LOW, value if value < 0 or value > 64 else 0)
    low = load_i64(index, IX_LOW)
    if value < low:
        if not shift_groups(ctl, index, low - value + (groups >> 2)):
            return -1
        low = load_i64(index, IX_LOW)
    group = value - low
    if group >= load_i64(index, IX_GROUPS):
        if not grow_groups(ctl, index, group + 1):
            return -1
        store_i64(index, IX_GROUPS, group + 1)
    return group


@kernel
def shift_groups(ctl, index, by):
    """Makes room for `by` groups below the first; false with CTL_ERROR set."""
    groups = load_i64(index, IX_GROUPS)
    if not grow_groups(ctl, index, groups + by):
        return False
    slabs = load_i64(index, IX_SLABS)
    for word in range(groups * IXS_SIZE - 1, -1, -1):
        store_i32(slabs, word + by * IXS_SIZE, load_i32(slabs, word))
    for word in range(by * IXS_SIZE):
        store_i32(slabs, word, 0)
    store_i64(index, IX_GROUPS, groups + by)
    store_i64(index, IX_LOW, load_i64(index, IX_LOW) - by)
    return True


@kernel
def to_hash(ctl, index):
    """Turns a dense index into one by hash; false with CTL_ERROR set. Empty groups become free ones."""
    store_i64(index, IX_DENSE, 0)
    store_i64(index, IX_FREE_GROUP, 0)
    for group in range(load_i64(index, IX_GROUPS)):
        if load_i32(slab_at(index, group), IXS_COUNT) == 0:
            free_group(index, group)
    return grow_slots(ctl, index, load_i64(index, IX_USED) + 1)


@kernel
def to_dense(ctl, index):
    """Turns an index by hash of one key column into a dense one, if its keys have filled their range; false with CTL_ERROR
    set."""
    used = load_i64(index, IX_USED)
    if used < BULK:
        return True
    groups = load_i64(index, IX_GROUPS)
    low = 1 << 62
    high = -(1 << 62)
    for group in range(groups):
        if load_i32(slab_at(index, group), IXS_COUNT) > 0:
            value = key_of(index, 0, first_row(index, group))
            low = min(low, value)
            high = max(high, value)
    if low < -(1 << 40) or high > 1 << 40 or high - low >= used * SPREAD:
        return True
    count = high - low + 1
    slabs = zeroed(ctl, count * IXS_SIZE * 4)
    if slabs == 0:
        return False
    for group in range(groups):
        slab = slab_at(index, group)
        if load_i32(slab, IXS_COUNT) > 0:
            place = slabs + (key_of(index, 0, first_row(index, group)) - low) * (IXS_SIZE * 4)
            for word in range(IXS_SIZE):
                store_i32(place, word, load_i32(slab, word))
    release(ctl, load_i64(index, IX_SLABS), load_i64(index, IX_GROUP_CAPACITY) * IXS_SIZE * 4)
    release(ctl, load_i64(index, IX_SLOTS), load_i64(index, IX_SLOT_COUNT) * 4)
    store_i64(index, IX_SLABS, slabs)
    store_i64(index, IX_SLOTS, 0)
    store_i64(index, IX_SLOT_COUNT, 0)
    store_i64(index, IX_FREE_GROUP, 0)
    store_i64(index, IX_GROUPS, count)
    store_i64(index, IX_GROUP_CAPACITY, count)
    store_i64(index, IX_LOW, low)
    store_i64(index, IX_DENSE, 1)
    return True


# ----------------------------------------------------------------------------------------------------------------- hash


@kernel
def free_group(index, group):
    """Links an empty group to the free ones; its slab's memory stays with it."""
    slab = slab_at(index, group)
    store_i32(slab, IXS_COUNT, -1 - load_i64(index, IX_FREE_GROUP))
    store_i64(index, IX_FREE_GROUP, group + 1)


@kernel
def grow_slots(ctl, index, keys):
    """Keeps at least twice as many slots as keys; false with CTL_ERROR set."""
    old = load_i64(index, IX_SLOT_COUNT)
    if keys * 2 <= old:
        return True
    count = max(old * 2, 64)
    while count < keys * 2:
        count *= 2
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    release(ctl, load_i64(index, IX_SLOTS), old * 4)
    store_i64(index, IX_SLOTS, table)
    store_i64(index, IX_SLOT_COUNT, count)
    pool = load_i64(index, IX_POOL)
    for group in range(load_i64(index, IX_GROUPS)):
        slab = slab_at(index, group)
        if load_i32(slab, IXS_COUNT) > 0:
            at = (hash_key(index, row_at(pool, slab_first(slab))) >> 20) & (count - 1)
            while load_i32(table, at) != 0:
                at = (at + 1) & (count - 1)
            store_i32(table, at, group + 1)
    return True


@kernel
def same_key(index, left, right):
    for k in range(load_i64(index, IX_KEY_COUNT)):
        if key_of(index, k, left) != key_of(index, k, right):
            return False
    return True


@kernel
def first_row(index, group):
    return row_at(load_i64(index, IX_POOL), slab_first(slab_at(index, group)))


@kernel
def hash_slot(index, row):
    """The slot of a row's key: where its group is, or the free slot where it would be."""
    table = load_i64(index, IX_SLOTS)
    mask = load_i64(index, IX_SLOT_COUNT) - 1
    at = (hash_key(index, row) >> 20) & mask
    while True:
        group = load_i32(table, at) - 1
        if group < 0 or same_key(index, first_row(index, group), row):
            return at
        at = (at + 1) & mask


@kernel
def hash_group(ctl, index, row):
    """Group of a row's key, made if it is new; -1 with CTL_ERROR set."""
    if not grow_slots(ctl, index, load_i64(index, IX_USED) + 1):
        return -1
    slot = hash_slot(index, row)
    group = load_i32(load_i64(index, IX_SLOTS), slot) - 1
    if group >= 0:
        return group
    group = load_i64(index, IX_FREE_GROUP) - 1
    if group >= 0:
        slab = slab_at(index, group)
        store_i64(index, IX_FREE_GROUP, -1 - load_i32(slab, IXS_COUNT))
        store_i32(slab, IXS_COUNT, 0)
    else:
        group = load_i64(index, IX_GROUPS)
        if not grow_groups(ctl, index, group + 1):
            return -1
        store_i64(index, IX_GROUPS, group + 1)
    store_i32(load_i64(index, IX_SLOTS), slot, group + 1)
    return group


@kernel
def remove_key(index, hole):
    """Empties a slot; later groups of its run move up."""
    table = load_i64(index, IX_SLOTS)
    mask = load_i64(index, IX_SLOT_COUNT) - 1
    at = hole
    while True:
        at = (at + 1) & mask
        group = load_i32(table, at) - 1
        if group < 0:
            break
        home = (hash_key(index, first_row(index, group)) >> 20) & mask
        if (at - home) & mask >= (at - hole) & mask:
            store_i32(table, hole, group + 1)
            hole = at
    store_i32(table, hole, 0)


# ----------------------------------------------------------------------------------------------------------------- slabs


@kernel
def extend_slab(ctl, index, slab):
    """Doubles a full slab, or gives a run a place in the pool; freed ones of each size are kept in lists threaded through their
    first item."""
    capacity = load_i32(slab, IXS_CAPACITY)
    count = load_i32(slab, IXS_COUNT)
    first = slab_first(slab)
    target = 1
    size = 0
    while target <= max(capacity, count):
        target *= 2
        size += 1
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
    """Keeps a slab for reuse, in the list of the largest power of two that it holds."""
    if capacity > 0:
        size = 0
        while (2 << size) <= capacity:
            size += 1
        lists = load_i64(index, IX_FREE)
        store_i32(load_i64(index, IX_POOL), start, load_i64(lists, size))
        store_i64(lists, size, start + 1)


@kernel
def group_of(ctl, index, row):
    """Group of a row, made if it is new; -1 with CTL_ERROR set."""
    if load_i64(index, IX_DENSE) != 0:
        value = 0
        if load_i64(index, IX_KEY_COUNT) > 0:
            value = key_of(index, 0, row)
        group = value - load_i64(index, IX_LOW)
        if 0 <= group < load_i64(index, IX_GROUPS):
            return group
        if fits_dense(index, value):
            return dense_group(ctl, index, value)
        if not to_hash(ctl, index):
            return -1
    elif load_i64(index, IX_KEY_COUNT) == 1 and (load_i64(index, IX_USED) + 1) * 2 > load_i64(index, IX_SLOT_COUNT):
        # Before there are more slots: keys that came in no order may have filled their range by now.
        if not to_dense(ctl, index):
            return -1
        if load_i64(index, IX_DENSE) != 0:
            return group_of_dense(ctl, index, row)
    return hash_group(ctl, index, row)


@kernel
def group_of_dense(ctl, index, row):
    """`group_of` right after `to_dense`."""
    value = key_of(index, 0, row)
    group = value - load_i64(index, IX_LOW)
    if 0 <= group < load_i64(index, IX_GROUPS):
        return group
    if fits_dense(index, value):
        return dense_group(ctl, index, value)
    return hash_group(ctl, index, row) if to_hash(ctl, index) else -1


@kernel
def index_insert(ctl, index, row):
    """Adds a row; false with CTL_ERROR set."""
    group = group_of(ctl, index, row)
    if group < 0:
        return False
    slab = slab_at(index, group)
    count = load_i32(slab, IXS_COUNT)
    if count >= load_i32(slab, IXS_CAPACITY) and not extend_slab(ctl, index, slab):
        return False
    store_i32(load_i64(index, IX_POOL), load_i32(slab, IXS_START) + count, item_of_row(index, row))
    store_i32(slab, IXS_COUNT, count + 1)
    if count == 0:
        store_i64(index, IX_USED, load_i64(index, IX_USED) + 1)
    return True


@kernel
def index_remove(ctl, index, row):
    """Takes a row out; the last of its group takes its place. False with CTL_ERROR set."""
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
    if load_i32(slab, IXS_CAPACITY) == 0 and last > 0:
        if shorten_run(slab, row):
            return True
        if not extend_slab(ctl, index, slab):
            return False
    start = load_i32(slab, IXS_START)
    pool = load_i64(index, IX_POOL)
    at = place_of(pool, start, last + 1, item_of_row(index, row)) if last > 0 else start
    if last == 0:
        if not dense:
            remove_key(index, slot)
        free_slab(index, start, load_i32(slab, IXS_CAPACITY))
        store_i32(slab, IXS_CAPACITY, 0)
        store_i64(index, IX_USED, load_i64(index, IX_USED) - 1)
    else:
        store_i32(pool, at, load_i32(pool, start + last))
    store_i32(slab, IXS_COUNT, last)
    if last == 0 and not dense:
        free_group(index, group)
    return True


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
    count = load_i64(index, IX_SLOT_COUNT)
    if count == 0:
        return -1
    keys = load_i64(index, IX_KEY_COUNT)
    hashed = 0
    for k in range(keys):
        hashed = mix(hashed, load_i64(values, k))
    table = load_i64(index, IX_SLOTS)
    at = (hashed >> 20) & (count - 1)
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
        at = (at + 1) & (count - 1)


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


@entry()
def fill_index(ctl, index, alive, rows):
    """Adds all living rows to an empty index; false with CTL_ERROR set."""
    for row in range(rows):
        if (load_i64(alive, row >> 6) >> (row & 63)) & 1 != 0 and not index_insert(ctl, index, row):
            return False
    return True


@kernel
def build_index(ctl, index, rows):
    """Fills an empty index with rows [0, rows), all alive, with slabs that fit exactly; false with CTL_ERROR set."""
    collection = load_i64(index, IX_COLLECTION)
    dense = load_i64(index, IX_DENSE) != 0 and load_i64(index, IX_KEY_COUNT) == 1
    if load_i64(index, IX_USED) == 0:
        store_i64(index, IX_VALUES, 0)
    if dense and load_i64(index, IX_USED) == 0 and load_i64(collection, CO_BASE_ROWS) == rows:
        column = load_i64(load_i64(index, IX_KEYS), 0)
        if column == load_i64(collection, CO_BASE_KEY):
            hold_values(index)
            return build_runs(ctl, index, collection)
    if load_i64(index, IX_USED) != 0 or rows < BULK:
        for row in range(rows):
            if not index_insert(ctl, index, row):
                return False
        return True
    if load_i64(index, IX_KEY_COUNT) > 0 and not choose_dense(ctl, index, rows):
        return False
    if load_i64(index, IX_DENSE) != 0 and load_i64(index, IX_KEY_COUNT) == 1:
        hold_values(index)
        return build_dense(ctl, index, rows)
    groups = zeroed(ctl, rows * 4)
    if groups == 0:
        return False
    if not assign_groups(ctl, index, groups, rows):
        release(ctl, groups, rows * 4)
        return False
    if not lay_out(ctl, index, rows):
        release(ctl, groups, rows * 4)
        return False
    place_rows(index, groups, rows)
    release(ctl, groups, rows * 4)
    return True


@kernel
def hold_values(index):
    """Lets an empty index hold the values of the column it is wanted for, if they take 4 bytes."""
    if load_i64(index, IX_WANTED) != 0 and fits_values(index, load_i64(index, IX_WANTED)):
        store_i64(index, IX_VALUES, load_i64(index, IX_WANTED))


@kernel
def fits_values(index, column):
    """Whether the values of a column, plus one, take 4 bytes."""
    place = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + (column - 1) * COL_SIZE * 8
    return load_i64(place, COL_WIDTH) == 4


@kernel
def may_insert(index, row):
    """Whether an index can take a row as it is: one of values takes none that needs 8 bytes or makes it one by hash."""
    column = load_i64(index, IX_VALUES)
    if column == 0:
        return True
    if not fits_values(index, column):
        return False
    value = key_of(index, 0, row)
    return 0 <= value - load_i64(index, IX_LOW) < load_i64(index, IX_GROUPS) or fits_dense(index, value)


@kernel
def clear_index(ctl, index):
    """Empties an index: one of row numbers, and dense."""
    release(ctl, load_i64(index, IX_SLABS), load_i64(index, IX_GROUP_CAPACITY) * IXS_SIZE * 4)
    release(ctl, load_i64(index, IX_SLOTS), load_i64(index, IX_SLOT_COUNT) * 4)
    release(ctl, load_i64(index, IX_POOL), load_i64(index, IX_POOL_CAPACITY) * 4)
    for field in (IX_LOW, IX_GROUPS, IX_GROUP_CAPACITY, IX_SLABS, IX_SLOTS, IX_SLOT_COUNT, IX_USED, IX_FREE_GROUP, IX_VALUES):
        store_i64(index, field, 0)
    for field in (IX_POOL, IX_POOL_SIZE, IX_POOL_CAPACITY):
        store_i64(index, field, 0)
    store_i64(index, IX_DENSE, 1)
    for size in range(FREE_SIZES):
        store_i64(load_i64(index, IX_FREE), size, 0)


@kernel
def lay_out(ctl, index, rows):
    """Gives each group a slab for as many rows as it counts, and counts anew; `rows` are all of them. False with CTL_ERROR
    set."""
    start = load_i64(index, IX_POOL_SIZE)
    room = load_i64(index, IX_POOL_CAPACITY)
    if start + rows > room:
        pool = resize(ctl, load_i64(index, IX_POOL), room * 4, (start + rows) * 4)
        if pool == 0:
            return False
        store_i64(index, IX_POOL, pool)
        store_i64(index, IX_POOL_CAPACITY, start + rows)
    for group in range(load_i64(index, IX_GROUPS)):
        slab = slab_at(index, group)
        count = load_i32(slab, IXS_COUNT)
        if count > 0:
            free_slab(index, load_i32(slab, IXS_START), load_i32(slab, IXS_CAPACITY))
            store_i32(slab, IXS_START, start)
            store_i32(slab, IXS_CAPACITY, count)
            store_i32(slab, IXS_COUNT, 0)
            start += count
    store_i64(index, IX_POOL_SIZE, start)
    return True


@kernel
def build_runs(ctl, index, collection):
    """`build_index` of a dense index by the column that the collection's base is sorted by; false with CTL_ERROR set."""
    keys = load_i64(collection, CO_BASE_KEYS)
    offsets = load_i64(collection, CO_BASE_OFFSETS)
    if not grow_groups(ctl, index, keys):
        return False
    store_i64(index, IX_LOW, load_i64(collection, CO_BASE_LOW))
    store_i64(index, IX_GROUPS, keys)
    used = 0
    for group in range(keys):
        first = load_i32(offsets, group)
        count = load_i32(offsets, group + 1) - first
        slab = slab_at(index, group)
        store_i32(slab, IXS_START, first)
        store_i32(slab, IXS_COUNT, count)
        store_i32(slab, IXS_CAPACITY, 0)
        used += 1 if count > 0 else 0
    store_i64(index, IX_USED, used)
    return True


@kernel
def build_dense(ctl, index, rows):
    """`build_index` of a dense index by one column whose groups are there: a counting sort. False with CTL_ERROR set."""
    column = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + load_i64(load_i64(index, IX_KEYS), 0) * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    slabs = load_i64(index, IX_SLABS) - load_i64(index, IX_LOW) * (IXS_SIZE * 4)
    used = 0
    for row in range(rows):
        if row + 2 * AHEAD < rows:
            prefetch(slabs + load_cell(data, width, row + 2 * AHEAD) * (IXS_SIZE * 4))
        slab = slabs + load_cell(data, width, row) * (IXS_SIZE * 4)
        count = load_i32(slab, IXS_COUNT)
        used += 1 if count == 0 else 0
        store_i32(slab, IXS_COUNT, count + 1)
    if not lay_out(ctl, index, rows):
        return False
    store_i64(index, IX_USED, used)
    pool = load_i64(index, IX_POOL)
    for row in range(rows):
        if row + 2 * AHEAD < rows:
            prefetch(slabs + load_cell(data, width, row + 2 * AHEAD) * (IXS_SIZE * 4))
            slab = slabs + load_cell(data, width, row + AHEAD) * (IXS_SIZE * 4)
            prefetch(pool + (load_i32(slab, IXS_START) + load_i32(slab, IXS_COUNT)) * 4)
        slab = slabs + load_cell(data, width, row) * (IXS_SIZE * 4)
        count = load_i32(slab, IXS_COUNT)
        store_i32(pool, load_i32(slab, IXS_START) + count, item_of_row(index, row))
        store_i32(slab, IXS_COUNT, count + 1)
    return True


@kernel
def choose_dense(ctl, index, rows):
    """Lets an empty index be dense if its one key column allows it for all rows; false with CTL_ERROR set."""
    if load_i64(index, IX_DENSE) == 0:
        return True
    low = key_of(index, 0, 0)
    high = low
    for row in range(rows):
        value = key_of(index, 0, row)
        low = min(low, value)
        high = max(high, value)
    store_i64(index, IX_GROUPS, 0)
    if low < -(1 << 40) or high > 1 << 40 or high - low >= rows * SPREAD:
        return to_hash(ctl, index)
    if not grow_groups(ctl, index, high - low + 1):
        return False
    store_i64(index, IX_LOW, low)
    store_i64(index, IX_GROUPS, high - low + 1)
    return True


@kernel
def assign_groups(ctl, index, groups, rows):
    """groups[row] and the groups' sizes. A new group by hash needs its first row in its slab, to be found by. An index by hash
    stays one: the numbers of groups that rows have already would mean others."""
    for row in range(rows):
        group = group_of(ctl, index, row) if load_i64(index, IX_DENSE) != 0 else hash_group(ctl, index, row)
        if group < 0:
            return False
        slab = slab_at(index, group)
        count = load_i32(slab, IXS_COUNT)
        if count == 0:
            store_i64(index, IX_USED, load_i64(index, IX_USED) + 1)
            if load_i64(index, IX_DENSE) == 0:
                if load_i32(slab, IXS_CAPACITY) == 0 and not extend_slab(ctl, index, slab):
                    return False
                store_i32(load_i64(index, IX_POOL), load_i32(slab, IXS_START), row)
        store_i32(slab, IXS_COUNT, count + 1)
        store_i32(groups, row, group)
    return True


@kernel
def place_rows(index, groups, rows):
    """Puts the rows into their groups' slabs."""
    pool = load_i64(index, IX_POOL)
    slabs = load_i64(index, IX_SLABS)
    for row in range(rows):
        if row + AHEAD < rows:
            prefetch(slabs + load_i32(groups, row + AHEAD) * (IXS_SIZE * 4))
        slab = slabs + load_i32(groups, row) * (IXS_SIZE * 4)
        count = load_i32(slab, IXS_COUNT)
        store_i32(pool, load_i32(slab, IXS_START) + count, row)
        store_i32(slab, IXS_COUNT, count + 1)
