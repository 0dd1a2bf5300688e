"""Rows that a round has touched: workers settle their derivations."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.changes import announce, doom, log_fresh
from dlog.engine.kernels.incremental.loop.distinct import (
    absent_inner,
    bound_of,
    drop_inner,
    end_row,
    settle_inner,
    warm_rows,
)
from dlog.engine.kernels.incremental.loop.supports import support_at
from dlog.engine.kernels.incremental.sharing.parts import (
    NOTES_AHEAD,
    ROW,
    begin_notes,
    begin_step,
    begin_taking,
    notes_with,
    own_rows,
    take_next,
)
from dlog.engine.kernels.incremental.store.bits import get_bit, next_bit, put_bit
from dlog.engine.kernels.incremental.store.histories import warm_history
from dlog.engine.kernels.incremental.store.lists import list_empty, list_room
from dlog.engine.kernels.incremental.store.stocks import clear_stocks, give_stocked, return_stocked
from dlog.engine.kernels.layout import NEVER, STOCK, SUM_MOST
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, scratch_block

_WHOLE, _HISTORY, _OLD, _NEW = 1, 2, 4, 8
"""Of a row that a round has touched: nothing is done yet; its history is left; it was present before; it is after the round."""


@kernel
def begin_settling(ctl: Control, share: Share, collection: Collection):
    """Before workers settle the rows that a round has touched."""
    begin_step(ctl, share, Shared.ROUND, collection)
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
    bits = notes.bits.data
    stock = behind(share.stocks, part * STOCK)
    own = scratch_block(ctl, 0)
    rows = scratch_block(ctl, 1)
    at = 0
    while at < touched.count:
        n, at = own_rows(touched.data, 1, at, touched.count, part, parts, own)
        if not list_room(ctl, items, n):
            return False
        for i in range(n):
            rows[i] = touched.data[own[i]]
        warm_rows(ctl, collection, rows, n, NEVER)
        for i in range(n):
            if settle_shared(collection, rows[i], behind(items.data, 2 * items.count), stock):
                items.count += 1
                put_bit(bits, own[i])
    return True


@kernel
def settle_shared(collection: Collection, row, left: Words, stock: Words):
    """`settle_part` of a row: whether something is left to be done. It is noted with the row and the iteration from which on it
    is present, plus one."""
    bound = bound_of(collection, row)
    old = 0
    new = 0
    flips = 0
    only = -1
    large = False
    at = collection.derivation.support[row]
    while at != 0:
        entry = support_at(collection, at)
        word = entry.at
        was = new > bound
        old += entry.old
        new += entry.new
        large = large or not -SUM_MOST <= new <= SUM_MOST
        if was != (new > bound):
            flips += 1
            only = word & 0xFFFFFFFF
        at = word >> 32
    left[0] = row
    left[1] = _WHOLE
    if large or flips > 1:
        return True
    settle_supports(collection, row, stock)
    inner = collection.inner
    plain = get_bit(inner.bits, row) == 0 and (flips == 1 or collection.read_between_rounds != 0)
    if plain:
        inner.iters[row] = only if flips == 1 else NEVER
    seen = collection.fresh == 0 or get_bit(collection.outer.bits, row) != 0
    left[0] = row | ((only + 1) << 32)
    left[1] = (0 if plain else _HISTORY) | (_OLD if old > bound else 0) | (_NEW if new > bound else 0)
    return not plain or new <= bound or (old <= bound and seen)


@kernel
def settle_supports(collection: Collection, row, stock: Words):
    """What derivations a row has is what it had before; entries without any are freed."""
    heads = collection.derivation.support
    before = 0
    at = heads[row]
    while at != 0:
        entry = support_at(collection, at)
        following = entry.at >> 32
        entry.old = entry.new
        if entry.new != 0:
            before = at
        else:
            if before == 0:
                heads[row] = following
            else:
                previous = support_at(collection, before)
                previous.at = (previous.at & 0xFFFFFFFF) | (following << 32)
            give_stocked(stock, collection.derivation.entries, at - 1)
        at = following


@kernel
def end_settling(ctl: Control, share: Share):
    """Does what workers have left of the rows that a round has touched; false with ctl.error set."""
    share.kind = Shared.NONE
    collection = share.collection
    touched = collection.touched
    bits = begin_taking(share, touched.count)
    place = next_bit(bits, 0, touched.count)
    while place < touched.count:
        notes = notes_with(share, touched.data[place])
        at = take_next(notes)
        if at + NOTES_AHEAD < notes.items.count:
            warm_left(collection, behind(notes.items.data, 2 * (at + NOTES_AHEAD)))
        left = behind(notes.items.data, 2 * at)
        if not end_left(ctl, collection, left[0] & ROW, (left[0] >> 32) - 1, left[1]):
            return False
        place = next_bit(bits, place + 1, touched.count)
    return_stocked(share, collection.derivation.entries)
    list_empty(ctl, touched)
    log_fresh(collection)
    return True


@kernel
def warm_left(collection: Collection, left: Words):
    """Asks for the history of a row of which something is left to be done."""
    row = left[0] & ROW
    if left[1] & (_HISTORY | _WHOLE) != 0:
        warm_history(collection.inner, row)
    prefetch(collection.outer.bits.address + (row >> 6) * 8)


@kernel
def end_left(ctl: Control, collection: Collection, row, only, flags):
    """Does what a worker has left of a row that is present from an iteration on, or at none (-1); false with ctl.error set."""
    time = collection.scope.round
    if flags & _WHOLE != 0:
        return end_row(ctl, collection, row, time)
    if flags & _HISTORY != 0:
        inner = collection.inner
        drop_inner(inner, row)
        done = settle_inner(inner, row, only) if only >= 0 else absent_inner(ctl, collection, row)
        if not done:
            return False
    was = flags & _OLD != 0
    here = flags & _NEW != 0
    if was != here and not announce(ctl, collection, row, time, 1 if here else -1):
        return False
    return here or doom(ctl, collection, row)
