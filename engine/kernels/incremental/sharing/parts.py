"""Which rows are a part's, what is noted of a step before its parts run, and what parts note of their rows."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Notes, Share
from dlog.engine.kernels.static.storage import clear_words

NOTES_AHEAD = 12
"""Notes of a part that are taken before one whose row is asked for."""
ROW = 0x7FFFFFFF
"""Bits of a word that are the number of a row."""


@kernel
def part_of(row, parts):
    """To which part a row belongs. Its neighbours belong there, too: parts share no cache line, nor a word of bits."""
    return ((((row >> 9) * 40503) & 0xFFFF) * parts) >> 16


@kernel
def own_rows(rows: Words, step, first, last, part, parts, own: Words):
    """Lists the places of a part's rows among the first places, a block at most, of [first, last), whose rows are so many
    words apart. Returns how many there are, and the first place that has not been looked at."""
    n = 0
    end = min(last, first + BLOCK)
    for at in range(first, end):
        # No branch: which part a row belongs to cannot be foretold.
        own[n] = at
        n += 1 if part_of(rows[at * step] & ROW, parts) == part else 0
    return n, end


@kernel
def begin_step(ctl: Control, share: Share, kind, collection: Collection):
    share.kind = kind
    share.collection = collection
    share.path = ctl.run_path


@kernel
def begin_notes(ctl: Control, notes: Notes, places):
    """Before a part notes something of its rows among so many places, with a bit for each place of which it has; false with
    ctl.error set. Notes are the part's own: in one list parts would wait for each other's cache lines."""
    size = (places + 63) >> 6
    notes.items.count = 0
    notes.bits.count = 0
    if not list_room(ctl, notes.bits, size):
        return False
    clear_words(notes.bits.data, size)
    return True


@kernel
def begin_taking(share: Share, places) -> Words:
    """Before notes are taken in the order of places (`take_next`): returns a bit for each place of which a part has noted
    something."""
    bits = share.notes[0].bits.data
    share.notes[0].taken = 0
    for part in range(1, share.part_count):
        notes = share.notes[part]
        notes.taken = 0
        for word in range((places + 63) >> 6):
            bits[word] |= notes.bits.data[word]
    return bits


@kernel
def notes_with(share: Share, row) -> Notes:
    """What the part has noted to which a row belongs."""
    return share.notes[part_of(row, share.part_count)]


@kernel
def take_next(notes: Notes):
    """The number of the note that is next."""
    at = notes.taken
    notes.taken = at + 1
    return at
