"""Which rows are a part's, and what is noted of a step before its parts run."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
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
def begin_notes(ctl: Control, own: Share, places) -> Words:
    """Before a part notes something of its rows among so many places, in a list of its own, as in one list parts would wait for
    each other's cache lines. A bit for each place says whether there is a note. Returns the bits; null with ctl.error set."""
    size = (places + 63) >> 6
    bits = own.values
    if not list_room(ctl, bits, size):
        return Words(0)
    clear_words(bits.data, size)
    return bits.data


@kernel
def begin_taking(share: Share, places) -> Words:
    """Before notes are taken in the order of places (`take_next`): returns a bit for each place of which a part has noted
    something."""
    bits = share.parts[0].values.data
    share.parts[0].taken = 0
    for part in range(1, share.part_count):
        own = share.parts[part]
        own.taken = 0
        for word in range((places + 63) >> 6):
            bits[word] |= own.values.data[word]
    return bits


@kernel
def part_with(share: Share, row) -> Share:
    """What the part uses to which a row belongs."""
    return share.parts[part_of(row, share.part_count)]


@kernel
def take_next(own: Share):
    """The number of a part's note that is next."""
    at = own.taken
    own.taken = at + 1
    return at


@kernel
def forget_notes(share: Share):
    """After all that parts have noted has been taken."""
    for part in range(share.part_count):
        share.parts[part].items.count = 0
