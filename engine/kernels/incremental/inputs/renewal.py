"""Renewal of an input that much has come to and gone from: its rows become a base (base.py) again, as if they were loaded now.

A row that came later takes several times the memory of one of the base, and one of the base that went leaves its place behind.
When these are many for the rows that there are, and as many have gone, all rows are put in order again and indexes are built
anew. So memory stays near that of loading what is there, and what it costs is spread over the rows that went. Rows that only
come never cause it. Row numbers change, so it is done before the first change of a batch: no log has any, nor has a history.

That takes the longer the more rows there are. A base of many is refilled instead (refilling.py), some at a time, as rows go,
once that gives back a good part of all memory, and renewed only where it does not help: where rows with other keys come than
go, or fewer. A base of few is left, also where many more rows have come since: its rows become ordinary ones, as all that come
later are.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.inputs.base_building import (
    MIN_BASE_ROWS,
    choose_key,
    load_base,
    survey,
)
from dlog.engine.kernels.incremental.inputs.refilling import home_index, refill
from dlog.engine.kernels.incremental.store.base import drop_base
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import bytes_per_row, free_number, trim_rows
from dlog.engine.kernels.incremental.store.direct import drop_direct
from dlog.engine.kernels.incremental.store.divisions import room_of
from dlog.engine.kernels.incremental.store.implied import imply_key, is_implied, write_keys
from dlog.engine.kernels.incremental.store.index_building import build_index, clear_index
from dlog.engine.kernels.incremental.store.slot_room import drop_slots, resize_slots
from dlog.engine.kernels.incremental.store.slots import more_slots, slotted
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import load_cell, release, zeroed

MIN_RENEWED_ROWS = 1 << 17
"""Rows below which a base is left once half of it is dead, and nothing is put in order again: all rows are some megabytes, and
putting 50,000 in order, and looking them up in a base, took a tenth of the time of the rounds that had changed them (the bench
`rounds`, `least_general` with an edge replaced)."""
MIN_REFILLED_ROWS = 1 << 18
"""Rows from which a base is refilled."""
SHARE_OF_MANY = 8
"""Of so many rows one has gone, and one is none of the base or is dead there, when a collection that is refilled is worn."""
SHARE_OF_FEW = 2
"""The same of fewer rows, whose memory counts for less than the time of renewals."""
REFILLED_PER_REMOVAL = 8
"""Places of a base that are refilled for each row that goes."""
REFILLED_IF_IMPLIED = 56
"""The same where rows have but one index, and are runs of it while nothing comes or goes: one that comes has its whole group
take places in the pool."""
WASTED_SHARE = 8
"""Nothing is refilled while one byte in so many of all memory would be given back, and rows are not worn: it took an eighth of
the time of the rounds that had changed them (the bench `rounds`, `bfs-1m` with 100,000 changes a call)."""
OUTGROWN = 4
"""A base of few is left when there are more than so many times its rows beside it: each one that comes is looked for in it
first, in vain."""
SLOT_BYTES = 9
"""Bytes of a slot at most, and of a key: a number, a tag and half a hash."""


@kernel
def share_of(collection: Collection):
    """Of how many rows one is to have gone before something is done."""
    if collection.live < MIN_REFILLED_ROWS:
        return SHARE_OF_FEW
    # Others weigh the more the less a row of the base takes.
    return SHARE_OF_MANY * 2 if is_implied(collection) else SHARE_OF_MANY


@kernel
def is_worn(collection: Collection, share):
    """Whether a collection's memory has suffered by rows that came and went."""
    return min(collection.base.removed, collection.base.dead + slotted(collection)) * share >= collection.live


@kernel
def is_wasteful(ctl: Control, collection: Collection, home):
    """Whether rows that are none of the base, and the groups that they are in, take a good part of all memory. Those of the
    index by the base's column, `home`, would take nothing in a base."""
    slots = slotted(collection) * (SLOT_BYTES + bytes_per_row(collection))
    return (slots + collection.indexes[home].pool_size * 4) * WASTED_SHARE >= ctl.account.bytes


@kernel
def is_refilled(ctl: Control, collection: Collection, home, places):
    """Whether a base of many rows is to be refilled, so many places for each row that goes: where memory has suffered, and
    enough places are dead that a stretch has some."""
    if collection.base.dead * places * 2 < collection.base.rows:
        return False
    return is_worn(collection, share_of(collection)) or is_wasteful(ctl, collection, home)


@kernel
def renew(ctl: Control, collection: Collection):
    """Renews a collection if it is worn and there is memory for that, not where this batch has changed it already. One of many
    rows is refilled before, and renewed only when it is worn twice as much. False with ctl.error set."""
    if collection.pairs or collection.log.count != 0 or collection.live < MIN_BASE_ROWS:
        return True
    if collection.live < MIN_RENEWED_ROWS:
        return leave_base(ctl, collection)
    share = share_of(collection)
    home = home_index(collection) if collection.live >= MIN_REFILLED_ROWS and collection.base.rows != 0 else -1
    if home >= 0:
        places = REFILLED_IF_IMPLIED if is_implied(collection) else REFILLED_PER_REMOVAL
        if not is_refilled(ctl, collection, home, places):
            collection.base.refilled = collection.base.removed
        elif not refill(ctl, collection, home, places):
            return False
        share >>= 1
    if not is_worn(collection, share):
        return True
    size = collection.live * collection.arity * 8
    if ctl.account.bytes + size + room_of(collection.live) * 8 > ctl.limit:
        return True
    collection.base.removed = 0
    collection.base.refilled = 0
    if not write_keys(ctl, collection):
        return False
    words = Words(zeroed(ctl, size))
    if not words:
        return False
    columns = WordColumns(ctl.scratch.address + 5 * BLOCK * 8)
    take_rows(collection, words, columns)
    survey(columns, collection.arity, 0, collection.live, ctl.scratch)
    key, low, groups = choose_key(collection, columns, ctl.scratch, collection.live)
    done = rebase(ctl, collection, columns, key, low, groups) if key >= 0 else leave_base(ctl, collection)
    release(ctl, words.address, size)
    return done


@kernel
def take_rows(collection: Collection, words: Words, columns: WordColumns):
    """Writes the values of all living rows, column after column."""
    live = collection.live
    alive = collection.alive
    for c in range(collection.arity):
        target = Words(words.address + c * live * 8)
        columns[c] = target
        column = collection.columns[c]
        data = column.data
        width = column.width
        n = 0
        for row in range(collection.rows):
            if get_bit(alive, row) != 0:
                target[n] = load_cell(data, width, row)
                n += 1


@kernel
def rebase(ctl: Control, collection: Collection, columns: WordColumns, key, low, groups):
    """Makes all rows of a collection, which are in these columns, a base (`load_base`); false with ctl.error set."""
    live = collection.live
    before = collection.rows
    drop_base(ctl, collection)
    drop_direct(ctl, collection)
    drop_slots(ctl, collection)
    if not load_base(ctl, collection, columns, ctl.scratch, live, key, low, groups):
        return False
    for word in range(((live + 63) >> 6), ((before + 63) >> 6)):
        collection.alive[word] = 0
    clear_behind(collection.alive, live)
    release(ctl, collection.free.address, collection.free_capacity * 4)
    collection.free = Numbers(0)
    collection.free_capacity = 0
    indexes = collection.indexes
    for i in range(collection.index_count):
        clear_index(ctl, indexes[i])
        if not build_index(ctl, indexes[i], live):
            return False
    return trim_rows(ctl, collection) and imply_key(ctl, collection)


@kernel
def clear_behind(bits: Words, first):
    """Clears the bits from one on in its word."""
    if first & 63:
        bits[first >> 6] &= (1 << (first & 63)) - 1


@kernel
def leave_base(ctl: Control, collection: Collection):
    """Makes rows of a base that is mostly dead, or few of all rows, ordinary ones, if there is memory for that; false with
    ctl.error set."""
    rows = collection.base.rows
    live = collection.live
    size = (more_slots(live) + collection.capacity) * SLOT_BYTES
    is_left = collection.base.dead * 2 > rows or slotted(collection) > rows * OUTGROWN
    if rows == 0 or not is_left or ctl.account.bytes + size > ctl.limit:
        return True
    if not write_keys(ctl, collection):
        return False
    drop_base(ctl, collection)
    alive = collection.alive
    for row in range(rows):
        if get_bit(alive, row) == 0 and not free_number(ctl, collection, row):
            return False
    return resize_slots(ctl, collection, more_slots(slotted(collection)))
