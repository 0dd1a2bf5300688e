"""Which rows are a part's, what is noted of a step before its parts run, and what parts note of their rows."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.settling import LISTED, LOGGED, ROW
from dlog.engine.kernels.incremental.store.bits import put_bit
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Notes, Share
from dlog.engine.kernels.static.storage import behind, clear_words

NEIGHBOUR_BITS = 9
NEIGHBOURS = 1 << NEIGHBOUR_BITS
"""Rows, one after the other, that belong to one part."""
NOTHING, SEVERAL = -1, -2
"""In the place of an iteration: that there is none, and that there are several."""
LEAST_LISTED = 64
"""Rows of a block for which others are looked at again."""
MARK = 3
"""Words that a part notes of each stretch of places."""


@kernel
def part_of(row, parts):
    """To which part a row belongs. Its neighbours belong there, too: parts share no cache line, nor a word of bits."""
    return ((((row >> NEIGHBOUR_BITS) * 40503) & 0xFFFF) * parts) >> 16


@kernel
def own_rows(rows: Words, step, first, last, part, parts, own: Words):
    """Lists the places of a part's rows in [first, last), whose rows are so many words apart, until they are about a block, as
    pipelines of what is asked for ahead begin with each. Returns how many there are, and the first place that has not been
    looked at."""
    n = 0
    at = first
    while at < last and n <= BLOCK - LEAST_LISTED:
        end = min(last, at + BLOCK - n)
        for place in range(at, end):
            # No branch: which part a row belongs to cannot be foretold.
            own[n] = place
            n += 1 if part_of(rows[place * step] & ROW, parts) == part else 0
        at = end
    return n, at


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
    notes.logged = 0
    notes.listed = 0
    notes.iteration = NOTHING
    notes.stretch = 0
    if not list_room(ctl, notes.bits, size):
        return False
    clear_words(notes.bits.data, size)
    return True


@kernel
def add_note(notes: Notes, place):
    """Adds the note of a place that has been written behind the others."""
    flags = notes.items.data[2 * notes.items.count + 1]
    notes.items.count += 1
    notes.logged += 1 if flags & LOGGED != 0 else 0
    notes.listed += 1 if flags & LISTED != 0 else 0
    put_bit(notes.bits.data, place)


@kernel
def stretch_start(places, number, parts):
    """The first place of the stretch of this number, of as many as there are parts; each has whole blocks (`own_rows`)."""
    return places if number == parts else (places * number // parts) & ~(BLOCK - 1)


@kernel
def stretch_end(notes: Notes, places, parts):
    """Where the stretch ends whose beginning has been noted."""
    return stretch_start(places, notes.stretch, parts)


@kernel
def mark_stretches(notes: Notes, place, places, parts):
    """Notes, before a place that begins a block, where the notes of a stretch begin, if one does there; after the last place
    where all end."""
    while notes.stretch <= parts and stretch_start(places, notes.stretch, parts) <= place:
        mark = mark_at(notes, notes.stretch)
        mark[0] = notes.items.count
        mark[1] = notes.logged
        mark[2] = notes.listed
        notes.stretch += 1


@kernel
def mark_at(notes: Notes, stretch) -> Words:
    return behind(notes.marks, stretch * MARK)


@kernel
def whole_words(places):
    """As many places as there are in the words of their bits."""
    return (places + 63) & ~63


@kernel
def bits_at(share: Share, word):
    """A word of bits of places, of which some part has noted something."""
    found = 0
    for part in range(share.part_count):
        found |= share.notes[part].bits.data[word]
    return found
