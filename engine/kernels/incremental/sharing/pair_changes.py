"""Changes of pairs that workers apply, each those whose homes are in its stretch of the table.

Each goes through all changes, in their order, and notes by place which of its own have changed something: the log then has them
in that order, as if one worker had applied them. A change whose run of taken places goes on behind the stretch is left to the
one that goes on, and so are those that come later and have their homes there or behind, as they may be of the same pair. What
a worker does meanwhile takes nothing out of such a run, which would go on behind the stretch as well.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.incremental.sharing.parts import begin_notes, bits_at, whole_words
from dlog.engine.kernels.incremental.store.bits import next_bit, put_bit
from dlog.engine.kernels.incremental.store.homes import home_of
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.incremental.store.pairs import (
    PAIRS_AHEAD,
    STEP,
    pack,
    pack_block,
    place_of,
    put_pair,
    room_for_pairs,
    take_pair,
    warm_home,
)
from dlog.engine.kernels.layout import BLOCK, ROUND
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.row_structs import Change, ChangeArray
from dlog.engine.kernels.static.storage import behind

_LEFT = -1
"""What becomes of a change that is left; others change nothing (0) or something (1)."""


@kernel
def room_for_changes(ctl: Control, share: Share):
    """Makes room for what workers note, bits of what has changed something, and behind these of what is left, and for what
    comes of it: no change is made for which there is none. False with ctl.error set."""
    collection = share.collection
    coming = 0
    for at in range(share.count):
        coming += 1 if share.columns[2][at] > 0 else 0
    for part in range(share.workers):
        if not begin_notes(ctl, share.notes[part], 2 * whole_words(share.count)):
            return False
    return room_for_pairs(ctl, collection, coming) and list_room(ctl, collection.log, share.count)


@kernel
def change_part(ctl: Control, share: Share, part, parts):
    """Applies the changes of a part's stretch."""
    collection = share.collection
    first = first_place(collection, part, parts)
    limit = first_place(collection, part + 1, parts)
    open_end = limit
    for start in range(0, share.count, STEP):
        n = min(STEP, share.count - start)
        pack_block(ctl, collection, share.columns, 1, start, n)
        open_end = change_block(ctl, share, share.notes[part].bits.data, start, n, first, limit, open_end)
    return True


@kernel
def first_place(collection: Collection, part, parts):
    """Where the stretch of a part begins: all have about as many homes, of the first and the last part the table's end."""
    if part == 0:
        return 0
    return collection.pair_homes.room if part == parts else home_of(collection.pair_homes, (part << 32) // parts)


@kernel
def change_block(ctl: Control, share: Share, bits: Words, start, n, first, limit, open_end):
    """Applies those of changes [start, start + n) whose homes are in [first, limit), but for those from `open_end` on, which
    are left. Returns from where on they are now."""
    words = ctl.scratch
    homes = behind(words, BLOCK)
    own = behind(homes, BLOCK)
    table = share.collection.pairs
    diffs = behind(share.columns[2], start)
    count = 0
    for i in range(n):
        own[count] = i
        count += 1 if first <= homes[i] < limit else 0
    for k in range(min(PAIRS_AHEAD, count)):
        warm_home(table, homes[own[k]])
    for k in range(count):
        if k + PAIRS_AHEAD < count:
            warm_home(table, homes[own[k + PAIRS_AHEAD]])
        i = own[k]
        found = _LEFT
        if homes[i] < open_end:
            found = change_before(share.collection, words[i], homes[i], diffs[i], limit)
        if found == _LEFT:
            open_end = min(open_end, homes[i])
            put_bit(bits, whole_words(share.count) + start + i)
        elif found != 0:
            put_bit(bits, start + i)
    return open_end


@kernel
def change_before(collection: Collection, word, home, diff, limit):
    """Enters or removes a pair before a limit. Returns whether that changes something, or _LEFT, and nothing has been done,
    where what is looked at goes on there."""
    table = collection.pairs
    at = home
    while at < limit and table[at] != 0 and table[at] != word:
        at += 1
    if at == limit:
        return _LEFT
    if diff > 0:
        if table[at] == word:
            return 0
        table[at] = word
        return 1
    if table[at] == 0:
        return 0
    end = at
    while end < limit and table[end] != 0:
        end += 1
    if end == limit:
        return _LEFT
    homes = collection.pair_homes
    return 1 if take_pair(table, homes.count, homes.old, homes.edge, word, at) else 0


@kernel
def end_changes(share: Share):
    """Applies what is left, and notes all changes in the log."""
    collection = share.collection
    size = whole_words(share.count)
    for part in range(share.part_count):
        bits = share.notes[part].bits.data
        at = next_bit(bits, size, 2 * size)
        while at < 2 * size:
            if change_left(collection, share, at - size):
                put_bit(bits, at - size)
            at = next_bit(bits, at + 1, 2 * size)
    log_changes(share, collection)
    collection.packed = 1


@kernel
def change_left(collection: Collection, share: Share, at):
    """Applies a change that has been left; whether that changes something."""
    columns = share.columns
    homes = collection.pair_homes
    word = pack(columns[0][at], columns[1][at])
    home = place_of(word, homes.count, homes.old, homes.edge)
    if columns[2][at] > 0:
        return put_pair(collection.pairs, word, home)
    return take_pair(collection.pairs, homes.count, homes.old, homes.edge, word, home)


@kernel
def log_changes(share: Share, collection: Collection):
    """Appends the changes that have been noted to the log, in their order; there is room."""
    columns = share.columns
    log = collection.log
    start = log.count
    changes = ChangeArray(log.data.address + start * Change.size)
    made = 0
    for number in range(whole_words(share.count) >> 6):
        bits = bits_at(share, number)
        while bits != 0:
            at = (number << 6) + bit_length(bits & -bits) - 1
            bits &= bits - 1
            change = changes[made]
            change.row = pack(columns[0][at], columns[1][at])
            change.time = (columns[3][at] - share.time + 1) * ROUND
            change.diff = 1 if columns[2][at] > 0 else -1
            change.value = 0
            collection.live += change.diff
            made += 1
    log.count = start + made
