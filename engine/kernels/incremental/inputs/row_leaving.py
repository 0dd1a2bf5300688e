"""Rows of a base that go in a batch's first round, most of which are there: a block of them at once."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.inputs.row_writing import room_for_notes
from dlog.engine.kernels.incremental.store.bits import get_bit, put_bit
from dlog.engine.kernels.incremental.store.histories import GONE, make_shared
from dlog.engine.kernels.incremental.store.history_items import open_items, warm_item
from dlog.engine.kernels.layout import ROUND
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.row_structs import Change, ChangeArray

AHEAD = 16
"""Rows between one of which is asked for what tells whether it is present, and one that is looked at."""


@kernel
def warm_presence(collection: Collection, row):
    """Asks for what tells whether a row is present, and for what a change of that is noted in."""
    prefetch(collection.alive.address + (row >> 6) * 8)
    warm_item(collection.outer, row)


@kernel
def may_leave(collection: Collection, changes: WordColumns, step, start, first, n, places: Words):
    """Whether changes [first, first + n) are of rows of the base, in `places`, that go in the batch's first round, and nothing
    has been noted of those that are there."""
    if changes.address == 0 or collection.fresh != 0 or collection.no_readers != 0 or collection.outer.base != 0:
        return False
    diffs = changes[0]
    rounds = changes[1]
    for i in range(n):
        if places[i] < 0 or diffs[(first + i) * step] > 0 or rounds[(first + i) * step] != start:
            return False
    alive = collection.alive
    bits = collection.outer.bits
    for i in range(min(AHEAD, n)):
        warm_presence(collection, places[i])
    for i in range(n):
        if i + AHEAD < n:
            warm_presence(collection, places[i + AHEAD])
        if get_bit(alive, places[i]) & get_bit(bits, places[i]) != 0:
            return False
    return True


@kernel
def leave_block(ctl: Control, collection: Collection, n, places: Words, rows: Words):
    """Notes that n rows of the base go (`may_leave`), each once, if it is there; false with ctl.error set. There is room for as
    many words in `rows`."""
    if not room_for_notes(ctl, collection, n):
        return False
    alive = collection.alive
    outer = collection.outer
    gone = 0
    for i in range(n):
        row = places[i]
        if get_bit(alive, row) != 0 and get_bit(outer.bits, row) == 0:
            put_bit(outer.bits, row)
            rows[gone] = row
            gone += 1
    make_shared(ctl, outer)
    open_items(outer, rows, gone, GONE)
    log = collection.log
    logged = ChangeArray(log.data.address + log.count * Change.size)
    for i in range(gone):
        change = logged[i]
        change.row = rows[i]
        change.time = ROUND
        change.diff = -1
        change.value = 0
    log.count += gone
    return True
