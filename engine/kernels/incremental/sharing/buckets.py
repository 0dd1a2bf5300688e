"""Rows that an iteration has touched: workers find out which of them change."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.distinct import TOO_LARGE, change_at, warm_rows
from dlog.engine.kernels.incremental.loop.supports import schedule
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
from dlog.engine.kernels.incremental.store.histories import add_entry, warm_history
from dlog.engine.kernels.incremental.store.lists import list_empty, list_push, list_room, push_change
from dlog.engine.kernels.layout import NEVER
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, scratch_block

_FIRST, _HAS_ENTRY, _FLAGS = 1, 2, 2
"""Of a bucket's row: it was not touched in this round before; its history needs nothing more. The bits below its change."""


@kernel
def begin_bucket(ctl: Control, share: Share, collection: Collection, iteration, time):
    """Before workers look at the rows of a bucket."""
    begin_step(ctl, share, Shared.BUCKET, collection)
    share.iteration = iteration
    share.time = time


@kernel
def evaluate_part(ctl: Control, share: Share, part, parts):
    """Notes of its rows of the bucket those of which something comes: where they are to be looked at again, and their change.
    False with ctl.error set."""
    collection = share.collection
    bucket = collection.derivation.buckets[share.iteration]
    notes = share.notes[part]
    if not begin_notes(ctl, notes, bucket.count):
        return False
    items = notes.items
    bits = notes.bits.data
    own = scratch_block(ctl, 0)
    rows = scratch_block(ctl, 1)
    stamps = collection.stamps
    at = 0
    while at < bucket.count:
        n, at = own_rows(bucket.data, 1, at, bucket.count, part, parts, own)
        if not list_room(ctl, items, n):
            return False
        for i in range(n):
            rows[i] = bucket.data[own[i]]
            prefetch(stamps.address + rows[i] * 4)
        warm_rows(ctl, collection, rows, n, share.iteration)
        for i in range(n):
            noted = evaluate_shared(ctl, share, rows[i], behind(items.data, 2 * items.count))
            if noted < 0:
                return False
            if noted > 0:
                items.count += 1
                put_bit(bits, own[i])
    return True


@kernel
def evaluate_shared(ctl: Control, share: Share, row, found: Words):
    """`evaluate_part` of a row: 1 if something comes of it, which is noted; 0 if not, or -1 with ctl.error set."""
    collection = share.collection
    scope = collection.scope
    stamp = collection.stamps[row]
    if stamp == scope.tick:
        return 0
    collection.stamps[row] = scope.tick
    out, later = change_at(ctl, collection, row, share.iteration)
    if later == TOO_LARGE:
        return -1
    flags = out << _FLAGS
    if stamp < scope.round_tick:
        flags |= _FIRST
    inner = collection.inner
    if collection.read_between_rounds != 0:
        flags |= _HAS_ENTRY if out != 0 else 0
    elif out == 1 and share.time >= inner.base and get_bit(inner.bits, row) == 0 and inner.iters[row] == NEVER:
        inner.iters[row] = share.time - inner.base
        flags |= _HAS_ENTRY
    found[0] = row | ((later + 1) << 32)
    found[1] = flags
    return 1 if flags != 0 or later >= 0 else 0


@kernel
def end_bucket(ctl: Control, share: Share):
    """Makes changes of what workers have found out about a bucket's rows; false with ctl.error set."""
    share.kind = Shared.NONE
    collection = share.collection
    bucket = collection.derivation.buckets[share.iteration]
    bits = begin_taking(share, bucket.count)
    place = next_bit(bits, 0, bucket.count)
    while place < bucket.count:
        notes = notes_with(share, bucket.data[place])
        at = take_next(notes)
        if at + NOTES_AHEAD < notes.items.count:
            warm_change(collection, behind(notes.items.data, 2 * (at + NOTES_AHEAD)))
        found = behind(notes.items.data, 2 * at)
        if not change_row(ctl, share, found[0] & ROW, (found[0] >> 32) - 1, found[1]):
            return False
        place = next_bit(bits, place + 1, bucket.count)
    list_empty(ctl, bucket)
    return True


@kernel
def warm_change(collection: Collection, found: Words):
    """Asks for the history of a row that changes, unless a worker has noted it there."""
    if found[1] >> _FLAGS != 0 and found[1] & _HAS_ENTRY == 0:
        warm_history(collection.inner, found[0] & ROW)


@kernel
def change_row(ctl: Control, share: Share, row, later, flags):
    collection = share.collection
    if flags & _FIRST != 0 and not list_push(ctl, collection.touched, row):
        return False
    if later >= 0 and not schedule(ctl, collection, later, row):
        return False
    out = flags >> _FLAGS
    if out == 0:
        return True
    if flags & _HAS_ENTRY == 0 and not add_entry(ctl, collection.inner, row, share.time, out):
        return False
    return push_change(ctl, collection.inner_log, row, share.time, out, 0)
