"""Groups that are found by hash, in an open table (homes.py).

A slot is the number of a group plus one; 0 is a free slot. The first row of a group has its key.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.store.groups import (
    first_row,
    free_group,
    grow_groups,
    hash_key,
    key_of,
    same_key,
    slab_at,
)
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
from dlog.engine.kernels.machine_structs import Homes, Numbers, Words
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.static.pages import may_move
from dlog.engine.kernels.static.storage import behind, lengthen, release, zeroed

SLOTS_MOVED_PER_GROUP = 16
"""Slots of which the groups move, in a table that grows, for each that comes."""
GROUPS_PER_MOVE = 8
"""Groups that come before some move, so that memory answers for many at once."""
_HALF = 0xFFFFFFFF


@kernel
def to_hash(ctl: Control, index: Index):
    """Turns a dense index into one by hash; false with ctl.error set. Empty groups become free ones."""
    index.dense = 0
    index.free_group = 0
    forget_range(index)
    for group in range(index.groups):
        if slab_at(index, group).count == 0:
            free_group(index, group)
    return grow_slots(ctl, index, index.used + 1)


@kernel
def slots_of(index: Index) -> Homes:
    return index.slot_homes


@kernel
def home_of_group(index: Index, group):
    return home_of(slots_of(index), (hash_key(index, first_row(index, group)) >> 32) & _HALF)


@kernel
def grow_slots(ctl: Control, index: Index, keys):
    """Makes room for so many keys, one more than there are: half of the slots stay free, or less while they grow in number.
    False with ctl.error set."""
    fuel = GROUPS_PER_MOVE * SLOTS_MOVED_PER_GROUP
    is_due = index.slot_homes.edge != 0 and keys % GROUPS_PER_MOVE == 0
    # One that is about to become dense makes do.
    if keys * 2 > index.slot_homes.count and (not index.next_dense.slabs or keys * 8 > index.slot_homes.count * 5):
        while index.slot_homes.edge != 0:
            if not move_groups(ctl, index, MAX_HOMES_GROWN_AT_ONCE):
                return False
        count = max(index.slot_homes.count * 2, 64)
        while count < keys * 2:
            count *= 2
        at_once = index.slot_homes.count < MAX_HOMES_GROWN_AT_ONCE
        if not (renew_slots(ctl, index, count) if at_once else more_slots(ctl, index, count)):
            return False
    elif is_due and may_move(ctl, GROUPS_PER_MOVE) and not move_groups(ctl, index, fuel):
        return False
    homes = slots_of(index)
    while not still_fits(homes, index.slots.address, 4, 1):
        if not move_groups(ctl, index, fuel):
            return False
    return keep_last_free(ctl, index, 1)


@kernel
def renew_slots(ctl: Control, index: Index, count):
    """Places all groups in a table with so many homes; false with ctl.error set and all as it was."""
    homes = slots_of(index)
    old = index.slots
    before, room = homes.count, homes.room
    least, most = index.least, index.most
    table = zeroed(ctl, room_for(count) * 4)
    if table == 0:
        return False
    index.slots = Numbers(table)
    set_homes(homes, count, room_for(count))
    forget_range(index)
    for group in range(index.groups):
        if slab_at(index, group).count > 0:
            if not keep_last_free(ctl, index, 1):
                release(ctl, index.slots.address, homes.room * 4)
                index.slots = old
                index.least, index.most = least, most
                set_homes(homes, before, room)
                return False
            note_key(index, first_row(index, group))
            put_group(index, home_of_group(index, group), group)
    release(ctl, old.address, room * 4)
    return True


@kernel
def more_slots(ctl: Control, index: Index, count):
    """Has a table that does not grow do so, to so many homes; false with ctl.error set."""
    homes = slots_of(index)
    count = homes_from(homes, index.slots.address, 4, count)
    places = index.slot_homes.room
    room = max(room_for(count), places)
    if not lengthen(ctl, index.ref.slots, places * 4, room * 4):
        return False
    begin_growing(homes, count, room)
    forget_range(index)
    return True


@kernel
def forget_range(index: Index):
    """No key is known: those that move, and those that come, are noted from now on. When a table has grown all its keys have
    moved or come."""
    index.least = 1 << 62
    index.most = -(1 << 62)


@kernel
def note_key(index: Index, row):
    """Notes the key of a row, if it is of one column."""
    if index.key_count == 1:
        value = key_of(index, 0, row)
        index.least = min(index.least, value)
        index.most = max(index.most, value)


@kernel
def keep_last_free(ctl: Control, index: Index, extra):
    """Keeps the last slot free when so many groups come; false with ctl.error set."""
    missing = missing_room(slots_of(index), index.slots.address, 4, extra)
    if missing == 0:
        return True
    places = index.slot_homes.room
    if not lengthen(ctl, index.ref.slots, places * 4, (places + missing) * 4):
        return False
    index.slot_homes.room = places + missing
    return True


@kernel
def move_groups(ctl: Control, index: Index, fuel):
    """Moves the groups in so many slots of a table that grows to their new homes; false with ctl.error set, nothing moved."""
    homes = slots_of(index)
    table = index.slots
    first = first_to_move(homes, table.address, 4, fuel)
    last = last_to_move(homes, table.address, 4)
    size = max(last - first, 1) * 16
    groups = Words(zeroed(ctl, size))
    if not groups:
        return False
    if not keep_last_free(ctl, index, last - first):
        release(ctl, groups.address, size)
        return False
    table = index.slots
    n = 0
    for at in range(first, last):
        group = table[at] - 1
        table[at] = 0
        if group >= 0:
            groups[n] = group
            n += 1
            prefetch(slab_at(index, group).address)
    move_edge(homes, first)
    places = behind(groups, last - first)
    find_homes(index, groups, n, places)
    for i in range(n):
        put_group(index, places[i], groups[i])
    release(ctl, groups.address, size)
    return True


@kernel
def find_homes(index: Index, groups: Words, n, found: Words):
    """found[i] = home of a group. All slabs are asked for before any, then all places in the pool, then all keys."""
    pool = index.pool
    column = index.collection.columns[index.keys[0]]
    for i in range(n):
        slab = slab_at(index, groups[i])
        if slab.capacity != 0:
            prefetch(pool.address + slab.start * 4)
    for i in range(n):
        row = first_row(index, groups[i])
        prefetch(column.data + row * column.width)
    for i in range(n):
        note_key(index, first_row(index, groups[i]))
        found[i] = home_of_group(index, groups[i])
        prefetch(index.slots.address + found[i] * 4)


@kernel
def put_group(index: Index, home, group):
    """Enters a group into the first free slot from its home on."""
    table = index.slots
    at = home
    while table[at] != 0:
        at += 1
    table[at] = group + 1


@kernel
def hash_slot(index: Index, row):
    """The slot of a row's key: where its group is, or the free slot where it would be."""
    table = index.slots
    at = home_of(slots_of(index), (hash_key(index, row) >> 32) & _HALF)
    while True:
        group = table[at] - 1
        if group < 0 or same_key(index, first_row(index, group), row):
            return at
        at += 1


@kernel
def hash_group(ctl: Control, index: Index, row):
    """Group of a row's key, made if it is new; -1 with ctl.error set."""
    if not grow_slots(ctl, index, index.used + 1):
        return -1
    slot = hash_slot(index, row)
    group = index.slots[slot] - 1
    if group >= 0:
        return group
    group = index.free_group - 1
    if group >= 0:
        slab = slab_at(index, group)
        index.free_group = -1 - slab.count
        slab.count = 0
    else:
        group = index.groups
        if not grow_groups(ctl, index, group + 1):
            return -1
        index.groups = group + 1
    index.slots[slot] = group + 1
    note_key(index, row)
    return group


@kernel
def remove_key(index: Index, hole):
    """Empties a slot; later groups of its run move up."""
    table = index.slots
    at = hole
    while True:
        at += 1
        group = table[at] - 1
        if group < 0:
            break
        if home_of_group(index, group) <= hole:
            table[hole] = group + 1
            hole = at
    table[hole] = 0
