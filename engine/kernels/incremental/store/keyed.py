"""Groups that are found by hash, in an open table (homes.py).

A slot is the number of a group plus one and, above that, half of the hash of its key; 0 is a free slot. The first row of a
group has its key: it is read where the hash agrees, and groups move by their hashes.
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
from dlog.engine.kernels.incremental.store.implied import warm_cell
from dlog.engine.kernels.machine_structs import Homes, Words
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.static.pages import may_move
from dlog.engine.kernels.static.storage import lengthen, mix, register, release, zeroed

SLOTS_MOVED_PER_GROUP = 16
"""Slots of which the groups move, in a table that grows, for each that comes."""
GROUPS_PER_MOVE = 8
"""Groups that come before some move, so that memory answers for many at once."""
WORDS_AHEAD = 16
"""Groups between one of which the home is asked for and one that is entered."""
KEYS_AHEAD = 8
"""Rows of a block between two steps of what is asked for of their keys."""
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
def half_of(hashed):
    """The half of a hash that says where its home is, and that its slot has."""
    return (hashed >> 32) & _HALF


@kernel
def group_in(word):
    """The group in a slot with this word, -1 in a free one."""
    return (word & _HALF) - 1


@kernel
def home_of_half(index: Index, half):
    return home_of(slots_of(index), half)


@kernel
def are_full(index: Index, keys):
    """Whether so many keys are too many for the slots: a quarter of them stays free."""
    return keys * 4 > index.slot_homes.count * 3


@kernel
def grow_slots(ctl: Control, index: Index, keys):
    """Makes room for so many keys, one more than there are: a quarter of the slots stays free, or less while they grow in
    number. False with ctl.error set."""
    fuel = GROUPS_PER_MOVE * SLOTS_MOVED_PER_GROUP
    is_due = index.slot_homes.edge != 0 and keys % GROUPS_PER_MOVE == 0
    # One that is about to become dense makes do.
    if are_full(index, keys) and (not index.next_dense.slabs or keys * 8 > index.slot_homes.count * 7):
        while index.slot_homes.edge != 0:
            if not move_groups(ctl, index, MAX_HOMES_GROWN_AT_ONCE):
                return False
        count = max(index.slot_homes.count * 2, 64)
        while count * 3 < keys * 4:
            count *= 2
        at_once = index.slot_homes.count < MAX_HOMES_GROWN_AT_ONCE
        if not (renew_slots(ctl, index, count) if at_once else more_slots(ctl, index, count)):
            return False
    elif is_due and may_move(ctl, GROUPS_PER_MOVE) and not move_groups(ctl, index, fuel):
        return False
    homes = slots_of(index)
    while not still_fits(homes, index.slots.address, 8, 1):
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
    table = zeroed(ctl, room_for(count) * 8)
    if table == 0:
        return False
    index.slots = Words(table)
    set_homes(homes, count, room_for(count))
    forget_range(index)
    for group in range(index.groups):
        if slab_at(index, group).count > 0:
            if not keep_last_free(ctl, index, 1):
                release(ctl, index.slots.address, homes.room * 8)
                index.slots = old
                index.least, index.most = least, most
                set_homes(homes, before, room)
                return False
            row = first_row(index, group)
            note_key(index, row)
            put_word(index, slot_word(hash_key(index, row), group))
    release(ctl, old.address, room * 8)
    return True


@kernel
def more_slots(ctl: Control, index: Index, count):
    """Has a table that does not grow do so, to so many homes; false with ctl.error set."""
    homes = slots_of(index)
    count = homes_from(homes, index.slots.address, 8, count)
    places = index.slot_homes.room
    room = max(room_for(count), places)
    if not lengthen(ctl, index.ref.slots, places * 8, room * 8):
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
    missing = missing_room(slots_of(index), index.slots.address, 8, extra)
    if missing == 0:
        return True
    places = index.slot_homes.room
    if not lengthen(ctl, index.ref.slots, places * 8, (places + missing) * 8):
        return False
    index.slot_homes.room = places + missing
    return True


@kernel
def move_groups(ctl: Control, index: Index, fuel):
    """Moves the groups in so many slots of a table that grows to their new homes; false with ctl.error set, nothing moved."""
    homes = slots_of(index)
    table = index.slots
    first = first_to_move(homes, table.address, 8, fuel)
    last = last_to_move(homes, table.address, 8)
    size = max(last - first, 1) * 8
    words = Words(zeroed(ctl, size))
    if not words:
        return False
    if not keep_last_free(ctl, index, last - first):
        release(ctl, words.address, size)
        return False
    table = index.slots
    n = 0
    for at in range(first, last):
        word = table[at]
        table[at] = 0
        words[n] = word
        n += 1 if word != 0 else 0
    move_edge(homes, first)
    note_keys(index, words, n)
    for i in range(n):
        if i + WORDS_AHEAD < n:
            prefetch(table.address + home_of_half(index, half_of(words[i + WORDS_AHEAD])) * 8)
        put_word(index, words[i])
    release(ctl, words.address, size)
    return True


@kernel
def note_keys(index: Index, words: Words, n):
    """Notes the keys of groups in slots with these words. All slabs are asked for before any, then all places in the pool, then
    all keys."""
    if index.key_count != 1:
        return
    pool = index.pool
    column = index.collection.columns[index.keys[0]]
    for i in range(n):
        prefetch(slab_at(index, group_in(words[i])).address)
    for i in range(n):
        slab = slab_at(index, group_in(words[i]))
        if slab.capacity != 0:
            prefetch(pool.address + slab.start * 4)
    for i in range(n):
        warm_cell(column, first_row(index, group_in(words[i])))
    for i in range(n):
        note_key(index, first_row(index, group_in(words[i])))


@kernel
def slot_word(hashed, group):
    return (half_of(hashed) << 32) | (group + 1)


@kernel
def put_word(index: Index, word):
    """Enters a group into the first free slot from its home on."""
    table = index.slots
    at = home_of_half(index, half_of(word))
    while table[at] != 0:
        at += 1
    table[at] = word


@kernel
def seek_slot(index: Index, half, at):
    """The first slot from one on that is free or has half of a hash."""
    table = index.slots
    while table[at] != 0 and half_of(table[at]) != half:
        at += 1
    return at


@kernel
def hash_slot(index: Index, row, hashed):
    """The slot of a row's key, which has this hash: where its group is, or the free slot where it would be."""
    half = half_of(hashed)
    at = seek_slot(index, half, home_of_half(index, half))
    while index.slots[at] != 0 and not same_key(index, first_row(index, group_in(index.slots[at])), row):
        at = seek_slot(index, half, at + 1)
    return at


@kernel
def slot_with(index: Index, row):
    """`hash_slot` of a row of which nobody has the hash."""
    return hash_slot(index, row, hash_key(index, row))


@kernel
def value_slot(index: Index, values: Words, half, at):
    """The first slot from one on that is free or of the group with a key (one word per key column), of which half of the hash
    is this."""
    at = seek_slot(index, half, at)
    while index.slots[at] != 0 and not has_key(index, group_in(index.slots[at]), values):
        at = seek_slot(index, half, at + 1)
    return at


@kernel
def has_key(index: Index, group, values: Words):
    row = first_row(index, group)
    for k in range(index.key_count):
        if key_of(index, k, row) != values[k]:
            return False
    return True


@kernel
def hash_group(ctl: Control, index: Index, row):
    """Group of a row's key, made if it is new; -1 with ctl.error set."""
    if not grow_slots(ctl, index, index.used + 1):
        return -1
    hashed = hash_key(index, row)
    slot = hash_slot(index, row, hashed)
    group = group_in(index.slots[slot])
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
    index.slots[slot] = slot_word(hashed, group)
    note_key(index, row)
    return group


@kernel
def remove_key(index: Index, hole):
    """Empties a slot; later groups of its run move up."""
    table = index.slots
    at = hole
    while True:
        at += 1
        word = table[at]
        if word == 0:
            break
        if home_of_half(index, half_of(word)) <= hole:
            table[hole] = word
            hole = at
    table[hole] = 0


# ----------------------------------------------------------------------------------------------------------------- blocks


@kernel
def find_hashed(index: Index, ctl: Control, registers: Words, n, buffer: Words, groups: Words):
    """groups[i] = group of the key in block row i, or -1. `buffer` has room for a key. What a key leads to is asked for some
    rows before it is looked for, step by step: its home, the slab of the group there, the first row, the key of that."""
    if not index.slots:
        for i in range(n):
            groups[i] = -1
        return
    hash_keys(index, ctl, registers, n, groups)
    if n > 1:
        for step in range(4, 0, -1):
            for i in range(min(n, step * KEYS_AHEAD)):
                warm_sought(index, groups, i, step)
    for i in range(n):
        for step in range(4, 0, -1):
            if i + step * KEYS_AHEAD < n:
                warm_sought(index, groups, i + step * KEYS_AHEAD, step)
        for k in range(index.key_count):
            buffer[k] = register(ctl, registers[k])[i]
        half = groups[i] & _HALF
        groups[i] = group_in(index.slots[value_slot(index, buffer, half, home_of_half(index, half) + (groups[i] >> 32))])


@kernel
def hash_keys(index: Index, ctl: Control, registers: Words, n, hashes: Words):
    """hashes[i] = half of the hash of the key in block row i."""
    for i in range(n):
        hashes[i] = 0
    for k in range(index.key_count):
        values = register(ctl, registers[k])
        for i in range(n):
            hashes[i] = mix(hashes[i], values[i])
    for i in range(n):
        hashes[i] = half_of(hashes[i])


@kernel
def warm_sought(index: Index, sought: Words, i, step):
    """One step of what is asked for of a key, half of whose hash is sought[i]. The second notes, above that, how far behind its
    home its slot is."""
    half = sought[i] & _HALF
    home = home_of_half(index, half)
    if step == 4:
        prefetch(index.slots.address + home * 8)
        return
    if step == 3:
        sought[i] = half | ((seek_slot(index, half, home) - home) << 32)
    warm_group_of(index, group_in(index.slots[home + (sought[i] >> 32)]), step)


@kernel
def warm_group_of(index: Index, group, step):
    """A step, the third or one of the last two, of what is asked for of a group: its slab; its first row, or the key of that;
    that key."""
    if group < 0:
        return
    slab = slab_at(index, group)
    if step == 3:
        prefetch(slab.address)
    elif slab.capacity != 0 and step == 2:
        prefetch(index.pool.address + slab.start * 4)
    elif slab.capacity == 0 or step == 1:
        for k in range(index.key_count):
            warm_cell(index.collection.columns[index.keys[k]], first_row(index, group))


@kernel
def warm_row_key(index: Index, row, step):
    """One step, of four, of what is asked for of a row's key before its group is looked for."""
    if not index.slots:
        return
    half = half_of(hash_key(index, row))
    home = home_of_half(index, half)
    if step == 4:
        prefetch(index.slots.address + home * 8)
    else:
        warm_group_of(index, group_in(index.slots[seek_slot(index, half, home)]), step)
