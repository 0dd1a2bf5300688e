"""Tables of sums by key (tallies.py): their ranges of keys, which grow, and what becomes of two of them."""

from __future__ import annotations

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.combine import joined
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.direct import EDGE
from dlog.engine.kernels.incremental.store.lists import list_free
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Reduction, Tally
from dlog.engine.kernels.static.storage import behind, release, zeroed

MANY = 4
"""A table is given up where more than one contribution of so many has no place."""
_FEW = 4096
"""Contributions that may have none."""


@kernel
def open_tally(tally: Tally, reduction: Reduction, most):
    tally.reduction = reduction
    tally.most = most
    tally.seen = 0


@kernel
def close_tally(ctl: Control, tally: Tally):
    """Gives back the memory of a table, and of the contributions that have no place."""
    release(ctl, tally.sums.address, tally.places * tally.words * 8)
    tally.sums = Words(0)
    tally.places = 0
    tally.reduction = Reduction(0)
    list_free(ctl, tally.others)


@kernel
def extend_tally(ctl: Control, tally: Tally, low, high):
    """Gives keys from `low` to `high` places, and as many on the side where they are new as there are half of, unless they are
    too many or there is no memory: then it is as before."""
    places = tally.places
    if places == 0:
        tally.words = tally.reduction.groups.grouping.sum_words
        tally.low = low
    first = min(low, tally.low)
    last = max(high, tally.low + places - 1)
    if low <= -EDGE or high >= EDGE or last - first >= tally.most:
        return
    spare = min(places >> 1, tally.most - (last - first + 1))
    if low < tally.low:
        # Where no key is negative, none is to be expected.
        first = first - spare if low < 0 else max(first - spare, 0)
    elif places != 0:
        last += spare
    size = tally.words * 8
    sums = Words(zeroed(ctl, (last - first + 1) * size))
    if not sums:
        ctl.error = Error.NONE
        tally.most = places
        return
    old = tally.sums
    moved = behind(sums, (tally.low - first) * tally.words)
    for i in range(places * tally.words):
        moved[i] = old[i]
    release(ctl, old.address, places * size)
    tally.sums = sums
    tally.low = first
    tally.places = last - first + 1


@kernel
def add_tally(ctl: Control, lead: Tally, other: Tally):
    """Adds another table to the first one, and empties it, unless they lie too far apart."""
    if other.places == 0:
        return
    if lead.places == 0 or other.low < lead.low or other.low + other.places > lead.low + lead.places:
        extend_tally(ctl, lead, other.low, other.low + other.places - 1)
    first = other.low - lead.low
    if first < 0 or first + other.places > lead.places:
        return
    sums = behind(lead.sums, first * lead.words)
    if lead.words == 1:
        for place in range(other.places):
            sums[place] += other.sums[place]
    else:
        op = lead.reduction.op
        for place in range(other.places):
            sums[2 * place] += other.sums[2 * place]
            sums[2 * place + 1] = joined(op, sums[2 * place + 1], other.sums[2 * place + 1], 1)
    release(ctl, other.sums.address, other.places * other.words * 8)
    other.sums = Words(0)
    other.places = 0


@kernel
def keys_in_use(tally: Tally):
    """The least and the greatest key of a table with members, and how many there are."""
    words = tally.words
    first = 0
    last = -1
    count = 0
    for place in range(tally.places):
        if tally.sums[place * words] != 0:
            if count == 0:
                first = place
            last = place
            count += 1
    return tally.low + first, tally.low + last, count


@kernel
def is_sparse(tally: Tally):
    """Whether too many contributions have no place."""
    return tally.others.count * MANY > tally.seen + _FEW
