"""Which rows are a part's, and what is noted of a step before its parts run."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share

ROW = 0x7FFFFFFF
"""Bits of a word that are the number of a row."""


@kernel
def part_of(row, parts):
    """To which part a row belongs. Its neighbours belong there, too: parts share no cache line, nor a word of bits."""
    return ((((row >> 9) * 40503) & 0xFFFF) * parts) >> 16


@kernel
def own_rows(rows: Words, step, first, last, part, parts, own: Words):
    """Lists, up to a block, the places of a part's rows among places [first, last) of rows that are so many words apart.
    Returns how many there are, and the first place that has not been looked at."""
    n = 0
    at = first
    while at < last and n < BLOCK:
        if part_of(rows[at * step] & ROW, parts) == part:
            own[n] = at
            n += 1
        at += 1
    return n, at


@kernel
def begin_step(ctl: Control, share: Share, kind, collection: Collection):
    share.kind = kind
    share.collection = collection
    share.path = ctl.run_path
