"""Which rows are a part's, and what is noted of a step before its parts run."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share

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
def begin_taking(share: Share):
    """Before what parts have noted of rows, each of its own, is taken in the order of all rows. Parts note in
    lists of their own: in one list they would wait for each other's cache lines."""
    for part in range(share.part_count):
        share.parts[part].taken = 0


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
