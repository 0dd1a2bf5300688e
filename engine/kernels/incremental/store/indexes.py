"""Indexes: arrangements of a collection by key columns, kept while its rows come and go.

A group (groups.py) is a slab of row numbers. The groups of a collection's base (base.py) by its own column are runs: rows with
consecutive numbers, which take no place in the pool until one in the middle goes or another one comes. So are those of one row.

A dense index of a binary relation that only proposes values (proposals.py) may hold these, of 4 bytes each, in the place of
row numbers (`values`): who wants a group's values then finds them side by side.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.densifying import copy_again, group_of
from dlog.engine.kernels.incremental.store.groups import free_group, item_of_row, key_of, slab_at, slab_first
from dlog.engine.kernels.incremental.store.keyed import (
    find_hashed,
    group_in,
    half_of,
    home_of_half,
    remove_key,
    slot_with,
    value_slot,
    warm_row_key,
)
from dlog.engine.kernels.incremental.store.lists import push_change
from dlog.engine.kernels.layout import RUN
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.row_structs import Slab
from dlog.engine.kernels.static.storage import grown, mix, register, resize

ROWS_COMPARED_TOGETHER = 64
"""Rows of a slab that are compared together."""
LONG_GROUP_ROWS = 1024
"""Rows of a group from which on it is not searched for each row that leaves it."""
GROUPS_AHEAD = 12
"""Rows of a block between one of which the group's slab is asked for, one of which the items are, and one that is looked at."""
MIN_SHRINKING_ITEMS = 6
"""Items of a slab from which on it gives way to a smaller one."""
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
def extend_slab(ctl: Control, index: Index, slab: Slab):
    """Gives a full slab a quarter more, or a run a place in the pool with little to spare: most change once or twice. False
    with ctl.error set."""
    count = slab.count
    return move_slab(ctl, index, slab, count + 1 + (count >> 2 if slab.capacity > 0 else 0))


@kernel
def move_slab(ctl: Control, index: Index, slab: Slab, items):
    """Gives the rows of a slab another place in the pool, with room for so many; false with ctl.error set."""
    size = size_for(items)
    start = take_place(ctl, index, size)
    if start < 0:
        return False
    first = slab_first(slab)
    capacity = slab.capacity
    pool = index.pool
    for i in range(slab.count):
        if capacity == 0:
            pool[start + i] = item_of_row(index, first - RUN + i)
        else:
            pool[start + i] = pool[first + i]
    free_slab(index, first, capacity)
    slab.start = start
    slab.capacity = room_of(size)
    return True


@kernel
def take_place(ctl: Control, index: Index, size):
    """A place in the pool for a slab of a size; -1 with ctl.error set. Freed ones of each size are kept in lists threaded
    through their first item."""
    lists = index.free
    start = lists[size] - 1
    if start >= 0:
        following = index.pool[start]
        lists[size] = following
        if following > 0:
            prefetch(index.pool.address + (following - 1) * 4)
        return start
    start = index.pool_size
    end = start + room_of(size)
    room = index.pool_capacity
    if end > room:
        wanted = max(grown(room), end, 64)
        pool = Numbers(resize(ctl, index.pool.address, room * 4, wanted * 4))
        if not pool:
            return -1
        index.pool = pool
        index.pool_capacity = wanted
    index.pool_size = end
    return start


@kernel
def shorten_slab(ctl: Control, index: Index, slab: Slab):
    """Gives back the place of a slab in the pool that its rows need half of at most: for a smaller one or, where one row is
    left, for none. False with ctl.error set."""
    count = slab.count
    capacity = slab.capacity
    if count == 1 and capacity > 0 and index.values == 0:
        start = slab.start
        slab.start = index.pool[start]
        slab.capacity = 0
        free_slab(index, start, capacity)
    elif capacity >= MIN_SHRINKING_ITEMS and count * 2 <= capacity:
        return move_slab(ctl, index, slab, count + (count >> 3))
    return True


@kernel
def free_slab(index: Index, start, capacity):
    """Keeps a slab for reuse, in the list of the largest size that it holds."""
    if capacity > 0:
        size = size_for(capacity + 1) - 1
        lists = index.free
        index.pool[start] = lists[size]
        lists[size] = start + 1


@kernel
def index_insert(ctl: Control, index: Index, row):
    """Adds a row; false with ctl.error set."""
    group = group_of(ctl, index, row)
    if group < 0 or not put_row(ctl, index, group, row):
        return False
    copy_again(index, group, row)
    return True


@kernel
def put_row(ctl: Control, index: Index, group, row):
    """Adds a row to its group; false with ctl.error set."""
    slab = slab_at(index, group)
    count = slab.count
    if count == 0:
        index.used += 1
        if index.values == 0:
            slab.start = row
            slab.count = 1
            return True
    if count >= slab.capacity and not extend_slab(ctl, index, slab):
        return False
    index.pool[slab.start + count] = item_of_row(index, row)
    slab.count = count + 1
    return True


@kernel
def index_remove(ctl: Control, index: Index, row):
    """Takes a row out, of a long group when the batch is settled (removals.py); false with ctl.error set. The last of its group
    takes its place."""
    dense = index.dense != 0
    slot = 0
    if not dense:
        slot = slot_with(index, row)
        group = group_in(index.slots[slot])
    elif index.key_count > 0:
        group = key_of(index, 0, row) - index.low
    else:
        group = 0
    return leave_group(ctl, index, group, slot, row)


@kernel
def leave_group(ctl: Control, index: Index, group, slot, row):
    """`index_remove` of a row whose group is known; `slot` is where an index by hash has that."""
    if slab_at(index, group).count > LONG_GROUP_ROWS:
        return push_change(ctl, index.leaving_rows, row, group, 0, 0)
    done = take_row(ctl, index, group, slot, row)
    copy_again(index, group, row)
    return done


@kernel
def take_row(ctl: Control, index: Index, group, slot, row):
    """Takes a row out of its group; `slot` is where an index by hash has that. False with ctl.error set."""
    slab = slab_at(index, group)
    last = slab.count - 1
    if slab.capacity == 0 and last > 0:
        return shorten_run(slab, row) or break_run(ctl, index, slab, row)
    start = slab.start
    pool = index.pool
    at = place_of(pool, start, last + 1, item_of_row(index, row)) if last > 0 else start
    if last == 0:
        drop_group(index, group, slot)
    else:
        pool[at] = pool[start + last]
        slab.count = last
        return shorten_slab(ctl, index, slab)
    return True


@kernel
def drop_group(index: Index, group, slot):
    """Gives up the group of a key of which the last row goes; `slot` is where an index by hash has it."""
    slab = slab_at(index, group)
    dense = index.dense != 0
    if not dense:
        remove_key(index, slot)
    free_slab(index, slab.start, slab.capacity)
    slab.capacity = 0
    slab.count = 0
    index.used -= 1
    if not dense:
        free_group(index, group)


@kernel
def place_of(pool: Numbers, start, count, item):
    """Where an item is among `count` from `start` on, of which it is one. Many are asked together, without a branch."""
    at = start
    end = start + count
    while at + ROWS_COMPARED_TOGETHER <= end:
        hits = 0
        for i in range(ROWS_COMPARED_TOGETHER):
            hits += 1 if pool[at + i] == item else 0
        if hits != 0:
            break
        at += ROWS_COMPARED_TOGETHER
    while pool[at] != item:
        at += 1
    return at


@kernel
def shorten_run(slab: Slab, row):
    """Takes the first or the last row off a run; false if the row is in its middle."""
    start = slab.start
    count = slab.count
    if row == start:
        slab.start = start + 1
    elif row != start + count - 1:
        return False
    slab.count = count - 1
    return True


@kernel
def break_run(ctl: Control, index: Index, slab: Slab, row):
    """Gives a run without a row in its middle a place in the pool; false with ctl.error set."""
    first = slab.start
    count = slab.count
    size = size_for(count - 1)
    start = take_place(ctl, index, size)
    if start < 0:
        return False
    at = start
    for member in range(first, first + count):
        if member != row:
            index.pool[at] = item_of_row(index, member)
            at += 1
    slab.start = start
    slab.count = count - 1
    slab.capacity = room_of(size)
    return True


# ---------------------------------------------------------------------------------------------------------------- lookup


@kernel
def find_group(index: Index, values: Words):
    """Group of a key (one word per key column), or -1."""
    if index.dense != 0:
        group = 0
        if index.key_count > 0:
            group = values[0] - index.low
        return group if 0 <= group < index.groups else -1
    if not index.slots:
        return -1
    hashed = 0
    for k in range(index.key_count):
        hashed = mix(hashed, values[k])
    half = half_of(hashed)
    return group_in(index.slots[value_slot(index, values, half, home_of_half(index, half))])


@kernel
def known_group(index: Index, row):
    """The group of a row in a dense index of one key; -1 in others, or if there is none yet."""
    if index.dense != 0 and index.key_count == 1:
        group = key_of(index, 0, row) - index.low
        if 0 <= group < index.groups:
            return group
    return -1


@kernel
def warm_group(index: Index, group):
    """Asks for the slab of a group; -1: none."""
    if group >= 0:
        prefetch(slab_at(index, group).address)


@kernel
def warm_slab(index: Index, group):
    """Asks for the items of a `known_group`, of which the slab is there (`warm_group`), where they are read when a row comes or
    goes."""
    if group >= 0:
        slab = slab_at(index, group)
        if slab.capacity != 0 or index.values != 0:
            warm_items(index, slab)


@kernel
def warming_steps(index: Index):
    """In how many steps `warm_index` asks for what is read."""
    return 2 if index.dense != 0 else 4


@kernel
def warm_index(index: Index, row, step):
    """One step of what is asked for of a row before it comes to an index, or goes; the last one is 1."""
    if index.dense == 0:
        warm_row_key(index, row, step)
    elif step == 2:
        warm_group(index, known_group(index, row))
    else:
        warm_slab(index, known_group(index, row))


@kernel
def warm_items(index: Index, slab: Slab):
    """Asks for the first and the last items of a slab; of a run, for the values in the column that is not its key."""
    if index.key_count == 0:
        return
    if slab.capacity != 0:
        first = index.pool.address + slab.start * 4
        last = first + (slab.count - 1) * 4
    else:
        collection = index.collection
        column = collection.columns[1 if index.keys[0] == 0 and collection.arity > 1 else 0]
        first = column.data + slab.start * column.width
        last = first + (slab.count - 1) * column.width
    prefetch(first)
    prefetch(last)


@kernel
def begin_groups(index: Index, groups: Words, rows):
    """Before a block's rows are looked at, each with `warm_groups`: asks for the items of the first. Their slabs have been
    asked for (`find_index_groups`)."""
    if rows > 1:
        for row in range(min(rows, GROUPS_AHEAD)):
            warm_listed(index, groups[row])


@kernel
def warm_groups(index: Index, groups: Words, row, rows):
    """While a block's row is looked at: asks for the slab of the group 2 * GROUPS_AHEAD rows behind it, and for the items of
    the one GROUPS_AHEAD behind."""
    if row + 2 * GROUPS_AHEAD < rows:
        warm_group(index, groups[row + 2 * GROUPS_AHEAD])
    if row + GROUPS_AHEAD < rows:
        warm_listed(index, groups[row + GROUPS_AHEAD])


@kernel
def warm_listed(index: Index, group):
    """Asks for the items of a group, -1 for none, of which the slab is there."""
    if group >= 0:
        warm_items(index, slab_at(index, group))


@kernel
def find_index_groups(index: Index, ctl: Control, registers: Words, n, buffer: Words, groups: Words):
    """groups[i] = group of the key in block row i, or -1; the slabs of the first are asked for. `buffer` has room for a key."""
    keys = index.key_count
    if index.dense != 0 and keys == 1:
        low = index.low
        count = index.groups
        values = register(ctl, registers[0])
        for i in range(n):
            group = values[i] - low
            groups[i] = group if 0 <= group < count else -1
        for i in range(min(n, 2 * GROUPS_AHEAD)):
            warm_group(index, groups[i])
        return
    if index.dense == 0:
        find_hashed(index, ctl, registers, n, buffer, groups)
    else:
        for i in range(n):
            groups[i] = find_group(index, buffer)
