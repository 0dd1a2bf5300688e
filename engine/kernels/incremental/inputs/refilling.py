"""Refilling: places of a base (base.py) whose rows have gone are given to rows with keys nearby that came later.

A step takes a stretch of the base, some keys one after the other. Those of their rows that are not of the base, as far as there
are dead places, are put among those that are, in order; where there are too many dead places, some stay, with their values.
The stretch keeps its places, so nothing else moves, and a step takes the same time however many rows there are. Row numbers
change, so it is done before the first change of a batch. Nothing is written (refilled.py) before it is certain that all can be
(refill_plan.py).

A stretch with few dead places takes as long as one with many, so none is taken while hardly any are dead.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.inputs.refill_plan import plan_stretch
from dlog.engine.kernels.incremental.inputs.refilled import write_stretch
from dlog.engine.kernels.incremental.store.bits import count_bits
from dlog.engine.kernels.incremental.store.collections import room_to_free
from dlog.engine.kernels.incremental.store.groups import slab_at
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Control, Index
from dlog.engine.kernels.row_structs import OtherRow, OtherRows, RowRun, RowRuns, Stretch, StretchKey, StretchKeys
from dlog.engine.kernels.static.storage import behind, clear_words, release, resize

STRETCH_PLACES = 4096
"""Places of a stretch, or up to twice as many; a key that has more is left alone. As many rows come to a short one as go only
by and large: of 1,024 places an eightieth is dead for that alone."""


@kernel
def refill(ctl: Control, collection: Collection, number, share):
    """Takes a step for as many rows that have gone as are one in `share` of a stretch; false with ctl.error set. `number` is of
    `home_index`."""
    base = collection.base
    base.refilled = max(base.refilled, base.removed - collection.live // share)
    while (base.removed - base.refilled) * share >= STRETCH_PLACES:
        base.refilled += STRETCH_PLACES // share
        if not refill_stretch(ctl, collection, number):
            return False
    return True


@kernel
def home_index(collection: Collection):
    """The index by the base's column that tells the rows of a key; -1 where there is none, or another has all in one group."""
    found = -1
    for i in range(collection.index_count):
        index = collection.indexes[i]
        if index.key_count == 0:
            return -1
        if index.key_count == 1 and index.keys[0] == collection.base.key and index.dense != 0:
            found = i
    return found


@kernel
def refill_stretch(ctl: Control, collection: Collection, number):
    """Puts the next stretch in order, if that is of use; false with ctl.error set."""
    base = collection.base
    offsets = base.offsets
    first = base.next if base.next < base.keys else 0
    last = stretch_end(offsets, first, base.keys)
    base.next = last
    start = offsets[first]
    places = offsets[last] - start
    if places == 0 or places > 2 * STRETCH_PLACES:
        return True
    living = count_bits(collection.alive, start, offsets[last])
    home = collection.indexes[number]
    coming = min(places - living, count_rows(home, base.low + first, last - first) - living)
    if coming == 0:
        return True
    return fill_places(ctl, collection, number, first, last, places - living, coming)


@kernel
def fill_places(ctl: Control, collection: Collection, number, first, last, dead, coming):
    """Gives places of some keys to rows from behind the base, as many as come; false with ctl.error set. Nothing is done where
    memory lacks or it takes too long."""
    start = collection.base.offsets[first]
    places = collection.base.offsets[last] - start
    runs = 1 + 2 * (dead + coming)  # each dead or coming row ends one, and may be one
    arrays = (last - first) * StretchKey.size + runs * RowRun.size + coming * OtherRow.size
    size = Stretch.size + arrays + places * collection.index_count * 8
    if ctl.account.bytes + size > ctl.limit:
        return True
    if not room_to_free(ctl, collection, coming):
        return False
    stretch = Stretch(resize(ctl, 0, 0, size))
    if not stretch:
        return False
    clear_words(Words(stretch.address), Stretch.size >> 3)
    stretch.first = first
    stretch.last = last
    stretch.start = start
    stretch.places = places
    stretch.staying = dead - coming
    stretch.incoming = coming
    stretch.keys = StretchKeys(stretch.address + Stretch.size)
    stretch.runs = RowRuns(stretch.keys.address + (last - first) * StretchKey.size)
    stretch.others = OtherRows(stretch.runs.address + runs * RowRun.size)
    stretch.values = Words(stretch.others.address + coming * OtherRow.size)
    stretch.spots = behind(stretch.values, places)
    if plan_stretch(ctl, collection, number, stretch):
        write_stretch(collection, number, stretch)
    release(ctl, stretch.address, size)
    return True


@kernel
def stretch_end(offsets: Numbers, first, keys):
    """The key behind a stretch: of one key, or of as many as have no more places than it is to have twice."""
    last = first + 1
    while last < keys and last - first < 2 * STRETCH_PLACES and offsets[last] - offsets[first] < STRETCH_PLACES:
        if offsets[last + 1] - offsets[first] > 2 * STRETCH_PLACES:
            break
        last += 1
    return last


@kernel
def count_rows(home: Index, low, keys):
    """Rows with keys from one on."""
    count = 0
    for key in range(low, low + keys):
        if 0 <= key - home.low < home.groups:
            count += slab_at(home, key - home.low).count
    return count
