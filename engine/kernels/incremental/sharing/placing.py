"""A table of slots that grows at once, by workers: each divides some of the rows by their hashes (see divisions.py for its
room), then each has the places of some divisions for itself, as in claims.py.

The word of a divided row has its tag, too, and of its half of a hash what its division does not say: columns are read once, in
the order of the rows.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, Shared, Status
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.sharing.claims import division_of, limit_of
from dlog.engine.kernels.incremental.sharing.loads import share_divisions
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.divisions import DIVISION_BITS, DIVISIONS, begin_words, first_word, room_of
from dlog.engine.kernels.incremental.store.homes import home_of
from dlog.engine.kernels.incremental.store.lists import list_push, list_room
from dlog.engine.kernels.incremental.store.slot_room import begin_slots, keep_last_free, place_rows, put_row
from dlog.engine.kernels.incremental.store.slots import enter_slot, hash_row, slots_of
from dlog.engine.kernels.layout import DERIVED_ROW_WORDS, TAG_FREE, TAG_ROW
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, clear_words

ROWS_AHEAD = 16
_ROW_BITS, _TAG_BITS = 31, 7
_REST_BITS = 32 - DIVISION_BITS
"""Bits of half a hash behind those of its division."""


@kernel
def begin_placing(ctl: Control, share: Share, count):
    """Has workers place all rows of the collection in a table with so many homes; false, and all as it was, where there is no
    memory for it."""
    if not begin_slots(ctl, share.collection, count):
        ctl.error = Error.NONE
        return False
    share.kind = Shared.HASH
    return True


@kernel
def hash_part(ctl: Control, share: Share, part, parts):
    """Divides a part of the rows. Where there is no memory for that the status says so: one worker places all."""
    own = ctl.share
    collection = share.collection
    first = collection.rows * part // parts
    last = collection.rows * (part + 1) // parts
    own.derived_rows.count = 0
    own.status = Status.DONE
    if not list_room(ctl, own.derived_rows, room_of(last - first) // DERIVED_ROW_WORDS + 1):
        ctl.error = Error.NONE
        own.status = Status.YIELD
        return True
    room = Words(own.derived_rows.data.address)
    words = behind(room, DIVISIONS)
    clear_words(room, DIVISIONS)
    for row in range(first, last):
        if get_bit(collection.alive, row) != 0:
            room[division_of(hash_row(collection, row))] += 1
    begin_words(room)
    for row in range(first, last):
        if get_bit(collection.alive, row) != 0:
            hashed = hash_row(collection, row)
            division = division_of(hashed)
            at = room[division]
            room[division] = at + 1
            words[at] = word_of(hashed, row)
    return True


@kernel
def word_of(hashed, row):
    rest = (hashed >> 32) & ((1 << _REST_BITS) - 1)
    tag = hashed & ((1 << _TAG_BITS) - 1)
    return (((rest << _TAG_BITS) | tag) << _ROW_BITS) | row


@kernel
def hash_of_word(division, word):
    """The hash of a divided row, as far as its home and its tag come from it."""
    rest = word >> (_ROW_BITS + _TAG_BITS)
    return (((division << _REST_BITS) | rest) << 32) | ((word >> _ROW_BITS) & (TAG_ROW - 1))


@kernel
def end_hashes(ctl: Control, share: Share):
    """After workers have divided the rows: they place them, unless one must (DONE)."""
    for part in range(share.part_count):
        share.rooms[part] = share.parts[part].derived_rows.data.address
        if share.parts[part].status != Status.DONE:
            return Status.DONE if place_rows(ctl, share.collection) else Status.FAILED
    share_divisions(share)
    share.kind = Shared.PLACE
    return Status.BULK


@kernel
def place_part(ctl: Control, share: Share, parts):
    """Places the rows of a part's divisions before the homes of the next part; false with ctl.error set."""
    own = ctl.share
    collection = share.collection
    own.left.count = 0
    limit = limit_of(own, collection)
    for division in range(own.first, own.behind):
        for other in range(parts):
            if not place_division(ctl, collection, own, division, Words(share.rooms[other]), limit):
                return False
    return True


@kernel
def place_division(ctl: Control, collection: Collection, own: Share, division, room: Words, limit):
    """`place_part` of what one worker has divided of a division."""
    last = first_word(room, division + 1)
    for i in range(first_word(room, division), last):
        if i + ROWS_AHEAD < last:
            prefetch(collection.tags.address + home_of_word(collection, division, room[i + ROWS_AHEAD]))
        hashed = hash_of_word(division, room[i])
        at = home_of_word(collection, division, room[i])
        while at < limit and collection.tags[at] != TAG_FREE:
            at += 1
        row = room[i] & ((1 << _ROW_BITS) - 1)
        if at < limit:
            enter_slot(collection, at, hashed, row)
        elif not list_push(ctl, own.left, row):
            return False
    return True


@kernel
def home_of_word(collection: Collection, division, word):
    return home_of(slots_of(collection), (hash_of_word(division, word) >> 32) & 0xFFFFFFFF)


@kernel
def end_placing(ctl: Control, share: Share):
    """Places the rows that parts have left; false with ctl.error set."""
    collection = share.collection
    for part in range(share.part_count):
        own = share.parts[part]
        if not keep_last_free(ctl, collection, own.left.count):
            return False
        for i in range(own.left.count):
            put_row(collection, hash_row(collection, own.left.data[i]), own.left.data[i])
        own.left.count = 0
        own.derived_rows.count = 0
    collection.used_slots = collection.live
    return True
