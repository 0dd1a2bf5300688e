"""Rows that an iteration has touched: workers find out which of them change."""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.distinct import TOO_LARGE, begin_rows, change_at, warm_row
from dlog.engine.kernels.incremental.loop.settling import DIFF, LEFT, LISTED, LOGGED, ROW
from dlog.engine.kernels.incremental.loop.supports import schedule
from dlog.engine.kernels.incremental.sharing.parts import (
    add_note,
    begin_notes,
    begin_step,
    mark_stretches,
    own_rows,
    stretch_end,
)
from dlog.engine.kernels.incremental.sharing.taking import end_taking
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.histories import add_entry, warm_history
from dlog.engine.kernels.incremental.store.lists import list_empty, list_room
from dlog.engine.kernels.layout import NEVER
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, scratch_block

_NEEDS_ENTRY = 8
"""Of a bucket's row: its change is to be entered in its history."""
STAMPS_AHEAD = 24
"""Rows between one of which the stamp is asked for and one that is looked at."""
LEFT_AHEAD = 12
"""Rows about which something is left that are taken before one whose history is asked for."""


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
    own = scratch_block(ctl, 0)
    rows = scratch_block(ctl, 1)
    stamps = collection.stamps
    at = 0
    while at < bucket.count:
        mark_stretches(notes, at, bucket.count, parts)
        n, at = own_rows(bucket.data, 1, at, stretch_end(notes, bucket.count, parts), part, parts, own)
        if not list_room(ctl, items, n):
            return False
        for i in range(n):
            rows[i] = bucket.data[own[i]]
        begin_rows(ctl, collection, rows, n, share.iteration + 1)
        for i in range(min(n, STAMPS_AHEAD)):
            prefetch(stamps.address + rows[i] * 4)
        for i in range(n):
            warm_row(ctl, collection, rows, i, n)
            if i + STAMPS_AHEAD < n:
                prefetch(stamps.address + rows[i + STAMPS_AHEAD] * 4)
            noted = evaluate_shared(ctl, share, rows[i], behind(items.data, 2 * items.count))
            if noted < 0:
                return False
            if noted > 0:
                add_note(notes, own[i])
    mark_stretches(notes, at, bucket.count, parts)
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
    flags = LEFT if later >= 0 else 0
    if stamp < scope.round_tick:
        flags |= LISTED
    if out != 0:
        flags |= LOGGED | note_change(collection, row, share.time, out)
    found[0] = row | ((later + 1) << 32)
    found[1] = flags | out << DIFF
    return 1 if flags != 0 else 0


@kernel
def note_change(collection: Collection, row, time, diff):
    """Notes a row's change in its history, if that is but an iteration. Returns the flags of what is left."""
    inner = collection.inner
    if collection.read_between_rounds != 0:
        return 0
    if diff == 1 and time >= inner.base and get_bit(inner.bits, row) == 0 and inner.iters[row] == NEVER:
        inner.iters[row] = time - inner.base
        return 0
    return LEFT | _NEEDS_ENTRY


@kernel
def end_bucket(ctl: Control, share: Share):
    """Makes changes of what workers have found out about a bucket's rows. False with ctl.error set."""
    end_taking(share)
    collection = share.collection
    for part in range(share.part_count):
        left = share.notes[part].left
        for at in range(0, left.count, 2):
            ahead = at + 2 * LEFT_AHEAD
            if ahead < left.count and left.data[ahead + 1] & _NEEDS_ENTRY != 0:
                warm_history(collection.inner, left.data[ahead] & ROW)
            if not end_change(ctl, share, behind(left.data, at)):
                return False
    list_empty(ctl, collection.derivation.buckets[share.iteration])
    return True


@kernel
def end_change(ctl: Control, share: Share, note: Words):
    """Does what is left about a bucket's row; false with ctl.error set."""
    collection = share.collection
    row = note[0] & ROW
    later = (note[0] >> 32) - 1
    flags = note[1]
    if later >= 0 and not schedule(ctl, collection, later, row):
        return False
    return flags & _NEEDS_ENTRY == 0 or add_entry(ctl, collection.inner, row, share.time, flags >> DIFF)
