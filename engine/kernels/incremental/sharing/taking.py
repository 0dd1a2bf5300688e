"""What parts have noted of the rows of a step is written by workers: each takes the notes of a stretch of places.

Parts have counted, for each stretch, what they have noted of places before it. So whoever takes a stretch knows where its
changes belong in the log, and writes them there as if one worker had gone through all rows. What is more than that is left to
the one that goes on.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Shared, Status
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.incremental.loop.settling import DIFF, LEFT, LISTED, LOGGED, ROW, show_row
from dlog.engine.kernels.incremental.sharing.loads import end_indexes
from dlog.engine.kernels.incremental.sharing.parts import bits_at, mark_at, part_of, stretch_start
from dlog.engine.kernels.incremental.store.lists import list_push, list_room
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Log, Share
from dlog.engine.kernels.row_structs import List
from dlog.engine.kernels.static.storage import behind, scratch_block


@kernel
def begin_taking(ctl: Control):
    """After parts have noted something of a step, if this was one, or have built an index. Returns a `Status`: BULK where
    workers, the same ones, are to take it or go on, DONE where one has, as it is little, or FAILED with ctl.error set."""
    share = ctl.share
    if share.kind == Shared.BUCKET:
        share.kind = Shared.BUCKET_NOTES
    elif share.kind == Shared.ROUND:
        share.kind = Shared.ROUND_NOTES
    elif Shared.DIVIDE_INDEX <= share.kind <= Shared.FILL_INDEX:
        return end_indexes(ctl, share)
    else:
        return Status.DONE
    parts = share.part_count
    total = 0
    for part in range(parts):
        share.notes[part].left.count = 0
        total += share.notes[part].items.count
    if not list_room(ctl, log_of(share), count_marked(share, 1)) or not list_room(ctl, list_of(share), count_marked(share, 2)):
        return Status.FAILED
    if total >= share.least:
        return Status.BULK
    for part in range(parts):
        if not take_part(ctl, share, part, parts):
            return Status.FAILED
    return Status.DONE


@kernel
def count_marked(share: Share, word):
    """How many notes there are, or logged or listed ones of them."""
    total = 0
    for part in range(share.part_count):
        total += mark_at(share.notes[part], share.part_count)[word]
    return total


@kernel
def rows_of(share: Share) -> List:
    """The rows of the step, by place."""
    if share.kind == Shared.BUCKET_NOTES:
        return List(share.collection.derivation.buckets[share.iteration].address)
    return share.collection.touched


@kernel
def log_of(share: Share) -> Log:
    return share.collection.inner_log if share.kind == Shared.BUCKET_NOTES else share.collection.log


@kernel
def list_of(share: Share) -> List:
    return share.collection.touched if share.kind == Shared.BUCKET_NOTES else share.collection.maybe_dead


@kernel
def take_part(ctl: Control, share: Share, part, parts):
    """Takes the notes of the stretch of places that has the part's number, whichever parts they are of, and shows the part's
    own rows; false with ctl.error set."""
    places = rows_of(share).count
    first = stretch_start(places, part, parts)
    last = stretch_start(places, part + 1, parts)
    log = log_of(share)
    listed = list_of(share)
    change = log.count
    at = listed.count
    taken = scratch_block(ctl, 0)
    for other in range(parts):
        mark = mark_at(share.notes[other], part)
        taken[other] = mark[0]
        change += mark[1]
        at += mark[2]
    rows = rows_of(share).data
    left = share.notes[part].left
    for word in range(first >> 6, (last + 63) >> 6):
        bits = bits_at(share, word)
        while bits != 0:
            place = (word << 6) + bit_length(bits & -bits) - 1
            bits &= bits - 1
            note = take_note(share, taken, part_of(rows[place], parts))
            flags = note[1]
            if flags & LOGGED != 0:
                write_change(log, change, note[0] & ROW, share.time, flags >> DIFF)
                change += 1
            if flags & LISTED != 0:
                listed.data[at] = note[0] & ROW
                at += 1
            if flags & LEFT != 0 and not (list_push(ctl, left, note[0]) and list_push(ctl, left, flags)):
                return False
    show_own(share, part)
    return True


@kernel
def take_note(share: Share, taken: Words, part) -> Words:
    """The next note of a part."""
    at = taken[part]
    taken[part] = at + 1
    return behind(share.notes[part].items.data, 2 * at)


@kernel
def write_change(log: Log, number, row, time, diff):
    change = log.data[number]
    change.row = row
    change.time = time
    change.diff = diff
    change.value = 0


@kernel
def show_own(share: Share, part):
    """Notes which of a part's rows are present after a round: no other part writes to their words of bits."""
    if share.kind == Shared.ROUND_NOTES and share.collection.no_readers != 0:
        items = share.notes[part].items
        for number in range(items.count):
            note = behind(items.data, 2 * number)
            show_row(share.collection, note[0] & ROW, note[1])


@kernel
def end_taking(share: Share):
    """After all notes have been taken: what is written is there."""
    log_of(share).count += count_marked(share, 1)
    list_of(share).count += count_marked(share, 2)
    share.kind = Shared.NONE
