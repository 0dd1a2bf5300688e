"""Rows that a round has touched: workers settle their derivations."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.changes import log_fresh
from dlog.engine.kernels.incremental.loop.distinct import begin_rows, warm_row
from dlog.engine.kernels.incremental.loop.settling import end_left, settle_derivations, warm_left
from dlog.engine.kernels.incremental.sharing.parts import (
    add_note,
    begin_notes,
    begin_step,
    mark_stretches,
    own_rows,
    stretch_end,
)
from dlog.engine.kernels.incremental.sharing.taking import end_taking
from dlog.engine.kernels.incremental.store.lists import list_empty, list_room
from dlog.engine.kernels.incremental.store.stocks import clear_stocks, return_stocked
from dlog.engine.kernels.layout import NEVER, STOCK
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, scratch_block

LEFT_AHEAD = 12
"""Rows about which something is left that are taken before one whose history is asked for."""


@kernel
def begin_settling(ctl: Control, share: Share, collection: Collection):
    """Before workers settle the rows that a round has touched."""
    begin_step(ctl, share, Shared.ROUND, collection)
    share.time = collection.scope.round
    clear_stocks(share)


@kernel
def settle_part(ctl: Control, share: Share, part, parts):
    """Settles the derivations of its touched rows, and notes what is left to be done of some; false with ctl.error set."""
    collection = share.collection
    touched = collection.touched
    notes = share.notes[part]
    if not begin_notes(ctl, notes, touched.count):
        return False
    items = notes.items
    stock = behind(share.stocks, part * STOCK)
    own = scratch_block(ctl, 0)
    rows = scratch_block(ctl, 1)
    at = 0
    while at < touched.count:
        mark_stretches(notes, at, touched.count, parts)
        n, at = own_rows(touched.data, 1, at, stretch_end(notes, touched.count, parts), part, parts, own)
        if not list_room(ctl, items, n):
            return False
        for i in range(n):
            rows[i] = touched.data[own[i]]
        begin_rows(ctl, collection, rows, n, NEVER)
        for i in range(n):
            warm_row(ctl, collection, rows, i, n)
            found = settle_derivations(ctl, collection, rows[i], behind(items.data, 2 * items.count), stock)
            if found < 0:
                return False
            if found > 0:
                add_note(notes, own[i])
    mark_stretches(notes, at, touched.count, parts)
    return True


@kernel
def end_settling(ctl: Control, share: Share):
    """Does what workers have left of the rows that a round has touched. False with ctl.error set."""
    end_taking(share)
    collection = share.collection
    for part in range(share.part_count):
        left = share.notes[part].left
        for at in range(0, left.count, 2):
            if at + 2 * LEFT_AHEAD < left.count:
                warm_left(collection, behind(left.data, at + 2 * LEFT_AHEAD))
            if not end_left(ctl, collection, behind(left.data, at), share.time):
                return False
    return_stocked(share, collection.derivation.entries)
    list_empty(ctl, collection.touched)
    log_fresh(collection)
    return True
