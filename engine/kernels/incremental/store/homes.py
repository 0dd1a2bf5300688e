"""Homes: where an open table looks for an entry first, and how it grows by instalments.

The home of a hash of 32 bits among so many is the hash times their number, over 2**32: homes are in the order of hashes. A run
of taken places never goes on at the beginning; there are places behind the last home, of which the last one is always free.

So a table grows where it is. When it is to have more homes it gets the room at once; entries move from the last ones on, some
whenever others come. Those with hashes from `edge` on have moved, all others are still where `old` homes put them: a search
compares its hash with the edge, and looks in one part. Each part ends with a free place: before `edge` moves down to a place
behind a free one, everything from there on is taken out, and then put where its new home is. New homes are never below old
ones, so the parts do not overlap; entries that come into the lower one use the places up to where the upper one begins. A table
that gets as many homes as it had is only rid of what was removed from it.

(Growing in steps is linear hashing's idea; that homes in the order of hashes let a table grow in its place is an old one too.)
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_u8
from dlog.engine.kernels.machine_structs import Homes, Numbers, Words

ALL = 1 << 32
"""The edge when nothing has moved yet."""
MAX_HOMES_GROWN_AT_ONCE = 1 << 13
"""Homes up to which a table grows at once."""
PLACES_BEHIND = 1 << 10
"""Places behind the last home of a large table, at first."""


@kernel
def home_of(homes: Homes, hashed):
    """Where the search for a hash begins."""
    count = homes.count if hashed >= homes.edge else homes.old
    return (hashed * count) >> 32


@kernel
def room_for(count):
    """Places of a new table with so many homes."""
    return count + min((count >> 3) + 2, PLACES_BEHIND)


@kernel
def set_homes(homes: Homes, count, room):
    """Notes that a table has so many homes, and does not grow."""
    homes.count = count
    homes.old = 0
    homes.edge = 0
    homes.room = room
    homes.sure = 0


@kernel
def is_taken(places, width, at):
    """Whether a place of so many bytes (1, 4 or 8) has something in it."""
    if width == 8:
        return Words(places)[at] != 0
    return Numbers(places)[at] != 0 if width == 4 else load_u8(places, at) != 0


@kernel
def end_of_run(places, width, at):
    """The first free place from one on."""
    while is_taken(places, width, at):
        at += 1
    return at


@kernel
def homes_from(homes: Homes, places, width, count):
    """How many homes, at least `count`, a table that does not grow may have: if more, all its entries are below the last."""
    old = homes.count
    return count if count <= old else max(count, end_of_run(places, width, old - 1) + 2)


@kernel
def begin_growing(homes: Homes, count, room):
    """Has a table that does not grow, and has room for it, grow from now on; `count` is of `homes_from`."""
    old = homes.count
    homes.old = old
    homes.count = count
    homes.edge = ALL
    homes.room = room
    homes.sure = room - count if count > old else 0  # there is nothing in the last home then, and nobody looks there yet


@kernel
def still_fits(homes: Homes, places, width, extra):
    """Whether so many more entries leave the last place of the part that has not moved free, wherever they go: they may fill
    the places from its last run up to the first new home."""
    edge = homes.edge
    old = homes.old
    count = homes.count
    if edge == 0 or old == count:
        return True
    return end_of_run(places, width, ((edge * old) >> 32) - 1) + extra < (edge * count) >> 32


@kernel
def missing_room(homes: Homes, places, width, extra):
    """How many places a table lacks for so many more entries to leave the last one free, wherever they go. An entry makes the
    last run one longer at most: where there was room for many, it is not looked at for every one."""
    if extra <= homes.sure:
        homes.sure -= extra
        return 0
    free = homes.room - end_of_run(places, width, homes.count - 1) - 1
    homes.sure = max(free - extra, 0)
    return max(extra - free, 0)


@kernel
def first_to_move(homes: Homes, places, width, fuel):
    """Where the next instalment of a table that grows begins: at least so many places below the edge, behind a free one."""
    at = ((homes.edge * homes.old) >> 32) - fuel
    while at > 0 and is_taken(places, width, at - 1):
        at -= 1
    return max(at, 0)


@kernel
def last_to_move(homes: Homes, places, width):
    """Where the next instalment ends."""
    return end_of_run(places, width, ((homes.edge * homes.old) >> 32) - 1)


@kernel
def move_edge(homes: Homes, first):
    """Notes that everything from a place on has been taken out: the edge is the least hash with its old home there or behind,
    first * 2**32 / old rounded up."""
    old = homes.old
    homes.edge = ((first << 32) + old - 1) // old
