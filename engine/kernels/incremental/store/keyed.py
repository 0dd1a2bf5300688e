"""Groups that are found by hash, in an open table (homes.py), and the group of a row, whichever way it is found.

A slot is the number of a group plus one; 0 is a free slot. The first row of a group has its key.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.incremental.store.groups import (
    BULK,
    SPREAD,
    dense_group,
    first_row,
    fits_dense,
    free_group,
    grow_groups,
    hash_key,
    key_of,
    same_key,
    slab_at,
)
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
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    HM_COUNT,
    HM_ROOM,
    IX_COLLECTION,
    IX_DENSE,
    IX_FREE_GROUP,
    IX_GROUP_CAPACITY,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_KEYS,
    IX_LOW,
    IX_POOL,
    IX_SLABS,
    IX_SLOT_COUNT,
    IX_SLOT_EDGE,
    IX_SLOT_ROOM,
    IX_SLOTS,
    IX_USED,
    IXS_CAPACITY,
    IXS_COUNT,
    IXS_SIZE,
    IXS_START,
    REL_COLUMNS,
)
from dlog.engine.kernels.static.storage import lengthen, release, zeroed

RATE = 16
"""Slots of which the groups move, in a table that grows, for each that comes."""
PAUSE = 8
"""Groups that come before some move, so that memory answers for many at once."""
_HALF = 0xFFFFFFFF


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
    if 0 < low <= (high - low) >> 2:
        low = 0  # what comes below the first group moves all others
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
    release(ctl, load_i64(index, IX_SLOTS), load_i64(index, IX_SLOT_ROOM) * 4)
    store_i64(index, IX_SLABS, slabs)
    store_i64(index, IX_SLOTS, 0)
    set_homes(slots_of(index), 0, 0)
    store_i64(index, IX_FREE_GROUP, 0)
    store_i64(index, IX_GROUPS, count)
    store_i64(index, IX_GROUP_CAPACITY, count)
    store_i64(index, IX_LOW, low)
    store_i64(index, IX_DENSE, 1)
    return True


@kernel
def slots_of(index):
    return index + IX_SLOT_COUNT * 8


@kernel
def home_of_group(index, group):
    return home_of(slots_of(index), (hash_key(index, first_row(index, group)) >> 32) & _HALF)


@kernel
def grow_slots(ctl, index, keys):
    """Makes room for so many keys, one more than there are: half of the slots stay free, or less while they grow in number.
    False with CTL_ERROR set."""
    if keys * 2 > load_i64(index, IX_SLOT_COUNT):
        while load_i64(index, IX_SLOT_EDGE) != 0:
            if not move_groups(ctl, index, FEW):
                return False
        count = max(load_i64(index, IX_SLOT_COUNT) * 2, 64)
        while count < keys * 2:
            count *= 2
        at_once = load_i64(index, IX_SLOT_COUNT) < FEW
        if not (renew_slots(ctl, index, count) if at_once else more_slots(ctl, index, count)):
            return False
    elif load_i64(index, IX_SLOT_EDGE) != 0 and keys % PAUSE == 0 and not move_groups(ctl, index, PAUSE * RATE):
        return False
    homes = slots_of(index)
    while not still_fits(homes, load_i64(index, IX_SLOTS), 4, 1):
        if not move_groups(ctl, index, PAUSE * RATE):
            return False
    return keep_last_free(ctl, index, 1)


@kernel
def renew_slots(ctl, index, count):
    """Places all groups in a table with so many homes; false with CTL_ERROR set and all as it was."""
    homes = slots_of(index)
    old = load_i64(index, IX_SLOTS)
    before, room = load_i64(homes, HM_COUNT), load_i64(homes, HM_ROOM)
    table = zeroed(ctl, room_for(count) * 4)
    if table == 0:
        return False
    store_i64(index, IX_SLOTS, table)
    set_homes(homes, count, room_for(count))
    for group in range(load_i64(index, IX_GROUPS)):
        if load_i32(slab_at(index, group), IXS_COUNT) > 0:
            if not keep_last_free(ctl, index, 1):
                release(ctl, load_i64(index, IX_SLOTS), load_i64(homes, HM_ROOM) * 4)
                store_i64(index, IX_SLOTS, old)
                set_homes(homes, before, room)
                return False
            put_group(index, home_of_group(index, group), group)
    release(ctl, old, room * 4)
    return True


@kernel
def more_slots(ctl, index, count):
    """Has a table that does not grow do so, to so many homes; false with CTL_ERROR set."""
    homes = slots_of(index)
    count = homes_from(homes, load_i64(index, IX_SLOTS), 4, count)
    places = load_i64(index, IX_SLOT_ROOM)
    room = max(room_for(count), places)
    if not lengthen(ctl, index, IX_SLOTS, places * 4, room * 4):
        return False
    begin_growing(homes, count, room)
    return True


@kernel
def keep_last_free(ctl, index, extra):
    """Keeps the last slot free when so many groups come; false with CTL_ERROR set."""
    missing = missing_room(slots_of(index), load_i64(index, IX_SLOTS), 4, extra)
    if missing == 0:
        return True
    places = load_i64(index, IX_SLOT_ROOM)
    if not lengthen(ctl, index, IX_SLOTS, places * 4, (places + missing) * 4):
        return False
    store_i64(index, IX_SLOT_ROOM, places + missing)
    return True


@kernel
def move_groups(ctl, index, fuel):
    """Moves the groups in so many slots of a table that grows to their new homes; false with CTL_ERROR set, nothing moved."""
    homes = slots_of(index)
    table = load_i64(index, IX_SLOTS)
    first = first_to_move(homes, table, 4, fuel)
    last = last_to_move(homes, table, 4)
    size = max(last - first, 1) * 16
    groups = zeroed(ctl, size)
    if groups == 0:
        return False
    if not keep_last_free(ctl, index, last - first):
        release(ctl, groups, size)
        return False
    table = load_i64(index, IX_SLOTS)
    n = 0
    for at in range(first, last):
        group = load_i32(table, at) - 1
        store_i32(table, at, 0)
        if group >= 0:
            store_i64(groups, n, group)
            n += 1
            prefetch(slab_at(index, group))
    move_edge(homes, first)
    find_homes(index, groups, n, groups + (last - first) * 8)
    for i in range(n):
        put_group(index, load_i64(groups + (last - first) * 8, i), load_i64(groups, i))
    release(ctl, groups, size)
    return True


@kernel
def find_homes(index, groups, n, found):
    """found[i] = home of a group. All slabs are asked for before any, then all places in the pool, then all keys."""
    pool = load_i64(index, IX_POOL)
    column = load_i64(load_i64(index, IX_COLLECTION), REL_COLUMNS) + load_i64(load_i64(index, IX_KEYS), 0) * COL_SIZE * 8
    for i in range(n):
        slab = slab_at(index, load_i64(groups, i))
        if load_i32(slab, IXS_CAPACITY) != 0:
            prefetch(pool + load_i32(slab, IXS_START) * 4)
    for i in range(n):
        row = first_row(index, load_i64(groups, i))
        prefetch(load_i64(column, COL_DATA) + row * load_i64(column, COL_WIDTH))
    for i in range(n):
        store_i64(found, i, home_of_group(index, load_i64(groups, i)))
        prefetch(load_i64(index, IX_SLOTS) + load_i64(found, i) * 4)


@kernel
def put_group(index, home, group):
    """Enters a group into the first free slot from its home on."""
    table = load_i64(index, IX_SLOTS)
    at = home
    while load_i32(table, at) != 0:
        at += 1
    store_i32(table, at, group + 1)


@kernel
def hash_slot(index, row):
    """The slot of a row's key: where its group is, or the free slot where it would be."""
    table = load_i64(index, IX_SLOTS)
    at = home_of(slots_of(index), (hash_key(index, row) >> 32) & _HALF)
    while True:
        group = load_i32(table, at) - 1
        if group < 0 or same_key(index, first_row(index, group), row):
            return at
        at += 1


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
    at = hole
    while True:
        at += 1
        group = load_i32(table, at) - 1
        if group < 0:
            break
        if home_of_group(index, group) <= hole:
            store_i32(table, hole, group + 1)
            hole = at
    store_i32(table, hole, 0)


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
