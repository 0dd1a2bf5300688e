"""Pairs of a fresh input that workers divide, each some of the rows, and enter, each some of the divisions.

Pairs for which there is no place before the next worker's homes are left to the one that goes on: only they may come to lie in
another order than with one worker."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.divisions import DIVISION_BITS, DIVISIONS, first_word, room_of
from dlog.engine.kernels.incremental.store.lists import list_push, list_room
from dlog.engine.kernels.incremental.store.pair_loading import divide_pairs, end_pairs, enter_last, enter_pairs
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share


@kernel
def divide_pairs_part(ctl: Control, share: Share, part, parts):
    """Divides a part of the rows; false with ctl.error set."""
    items = ctl.share.items
    first = share.count * part // parts
    end = share.count * (part + 1) // parts
    if not list_room(ctl, items, (room_of(end - first) + 1) >> 1):
        return False
    room = Words(items.data.address)
    share.rooms[part] = room.address
    divide_pairs(share.columns, first, end, True, room)
    return True


@kernel
def enter_part(ctl: Control, share: Share, part, parts):
    """Enters a part of the divisions, each in the order of the rows; false with ctl.error set."""
    collection = share.collection
    own = ctl.share
    first = DIVISIONS * part // parts
    last = DIVISIONS * (part + 1) // parts
    limit = collection.pair_homes.room - 1
    if last < DIVISIONS:
        limit = ((last << (32 - DIVISION_BITS)) * collection.pair_homes.count) >> 32
    own.values.count = 0
    own.rows = 0
    for division in range(first, last):
        for other in range(parts):
            if not enter_some(ctl, own, collection, Words(share.rooms[other]), division, limit):
                return False
    return True


@kernel
def enter_some(ctl: Control, own: Share, collection: Collection, room: Words, division, limit):
    """Enters the pairs of a division that a worker has divided, and notes those that find no place; false with ctl.error
    set."""
    at = first_word(room, division)
    end = first_word(room, division + 1)
    while at < end:
        at, entered = enter_pairs(collection, room, at, end, limit)
        own.rows += entered
        if at < end:
            if not list_push(ctl, own.values, room[at]):
                return False
            at += 1
    return True


@kernel
def enter_left(ctl: Control, share: Share, collection: Collection):
    """Enters the pairs that parts have left; false with ctl.error set."""
    live = 0
    for part in range(share.part_count):
        own = share.parts[part]
        live += own.rows
        for i in range(own.values.count):
            at, entered = enter_pairs(collection, own.values.data, i, i + 1, collection.pair_homes.room - 1)
            live += entered
            if at == i:
                if not enter_last(ctl, collection, own.values.data[i]):
                    return False
                live += 1
        own.values.count = 0
    end_pairs(collection, live)
    return True
