"""Refilling: places of a base (base.py) whose rows have gone are given to rows with keys nearby that came later.

A step takes a stretch of the base, some keys one after the other. Those of their rows that are found by slots, as far as there
are dead places, are put among those of the base, in order; where there are too many dead places, some stay, with their values.
The stretch keeps its places, so nothing else moves, and a step takes the same time however many rows there are. Row numbers
change, so it is done before the first change of a batch. Nothing is written before it is certain that all can be.

A stretch with few dead places takes as long as one with many, so none is taken while hardly any are dead.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.store.base import find_base
from dlog.engine.kernels.incremental.store.base_building import compare_rows
from dlog.engine.kernels.incremental.store.collections import room_to_free
from dlog.engine.kernels.incremental.store.groups import key_of, slab_at
from dlog.engine.kernels.incremental.store.histories import count_bits, get_bit
from dlog.engine.kernels.incremental.store.indexes import place_of, warm_group, warm_slab
from dlog.engine.kernels.incremental.store.keyed import hash_slot
from dlog.engine.kernels.incremental.store.refilled import (
    OTHER_WORDS,
    free_others,
    number_of,
    write_cells,
    write_home,
    write_keys_of,
    write_living,
    write_spots,
)
from dlog.engine.kernels.incremental.store.slots import find_slotted, hash_values, warm_slot
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Base, Collection, Control, Index
from dlog.engine.kernels.row_structs import Slab
from dlog.engine.kernels.static.storage import behind, release, zeroed

STRETCH_PLACES = 4096
"""Places of a stretch, or up to twice as many; a key that has more is left alone. As many rows come to a short one as go only
by and large: of 1,024 places an eightieth is dead for that alone."""
ROWS_AHEAD = 16
MAX_ITEMS_PER_PLACE = 64
"""Items of an index that are looked at for each place, until a stretch is left as it is: groups there are too long."""


@kernel
def refill(ctl: Control, collection: Collection, share):
    """Takes a step for as many rows that have gone as are one in `share` of a stretch, but for those that went before one in
    twice `share` of the base was dead; false with ctl.error set."""
    number = home_index(collection)
    if number < 0:
        return True
    base = collection.base
    if base.dead * share * 2 < base.rows:
        base.refilled = base.removed
        return True
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
    return fill_places(ctl, collection, number, first, last, places - living - coming, coming)


@kernel
def fill_places(ctl: Control, collection: Collection, number, first, last, staying, coming):
    """Gives all places of some keys but so many dead ones to rows, of which some come from behind the base; false with
    ctl.error set. Nothing is done where memory lacks or it takes too long."""
    base = collection.base
    start = base.offsets[first]
    places = base.offsets[last] - start
    size = (places * (2 + collection.index_count) + last - first + 1 + coming * OTHER_WORDS) * 8
    if ctl.account.bytes + size > ctl.limit:
        return True
    if not room_to_free(ctl, collection, coming):
        return False
    order = Words(zeroed(ctl, size))
    if not order:
        return False
    ends = behind(order, places)
    spots = behind(ends, last - first + 1)
    home = collection.indexes[number]
    others = behind(spots, places * (collection.index_count + 1))
    find_others(ctl, collection, home, first, last, coming, others)
    list_rows(collection, first, last, staying, others, coming, order, ends)
    if find_spots(collection, number, order, places, spots):
        write_spots(collection, number, order, places, spots, start)
        for i in range(last - first):
            write_home(home, base.low + first + i, order, ends[i], ends[i + 1], start, base.rows)
        write_cells(collection, order, places, behind(spots, places * collection.index_count), start)
        write_living(collection, order, places, staying, start)
        free_others(collection, others, coming)
        write_keys_of(collection, first, last, ends, start)
        base.dead -= coming
    release(ctl, order.address, size)
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


# ------------------------------------------------------------------------------------------------------------------ plan


@kernel
def list_rows(collection: Collection, first, last, staying, others: Words, coming, order: Words, ends: Words):
    """order[i] = the row for place i, or the complement of a dead one's number; those of key first + i end at ends[i + 1]."""
    base = collection.base
    alive = collection.alive
    n = 0
    k = 0
    for group in range(first, last):
        begin = n
        for row in range(base.offsets[group], base.offsets[group + 1]):
            if get_bit(alive, row) != 0:
                order[n] = row
                n += 1
            elif staying > 0:
                order[n] = -1 - row
                n += 1
                staying -= 1
        while k < coming and others[k * OTHER_WORDS] == group:
            insert_row(collection, order, begin, n, others[k * OTHER_WORDS + 1])
            n += 1
            k += 1
        ends[group - first + 1] = n


@kernel
def find_others(ctl: Control, collection: Collection, home: Index, first, last, coming, others: Words):
    """Finds so many rows of the keys from one on that are not of the base: others[OTHER_WORDS * i] is the i-th one's key,
    others[OTHER_WORDS * i + 1] the row."""
    base = collection.base
    n = 0
    for group in range(first, last):
        at = base.low + group - home.low
        if n < coming and 0 <= at < home.groups:
            n = list_others(ctl, collection, home, slab_at(home, at), group, coming, others, n)
    if home.values != 0:
        for i in range(n):
            values = pair_of(ctl, base, others[i * OTHER_WORDS], others[i * OTHER_WORDS + 1])
            others[i * OTHER_WORDS + 1] = find_slotted(collection, values, hash_values(values, 2))


@kernel
def list_others(ctl: Control, collection: Collection, home: Index, slab: Slab, group, coming, others: Words, n):
    """Lists items of a key that are not of the base behind n others, until there are `coming`; returns how many there are. They
    are the last of a slab, mostly, so it is read from there. Slots of rows that are given by values are asked for."""
    base = collection.base
    start = base.offsets[group]
    left = slab.count - count_bits(collection.alive, start, base.offsets[group + 1])
    for i in range(slab.count):
        if left == 0 or n == coming:
            break
        item = slab.start
        if slab.capacity != 0:
            item = home.pool[slab.start + slab.count - 1 - i]
        if is_other(ctl, collection, home, group, item):
            others[n * OTHER_WORDS] = group
            others[n * OTHER_WORDS + 1] = item
            n += 1
            left -= 1
    return n


@kernel
def is_other(ctl: Control, collection: Collection, home: Index, group, item):
    """Whether an item of a key tells a row that is not of the base. The slot of one that it tells by a value is asked for."""
    base = collection.base
    if home.values == 0:
        return item >= base.rows
    values = pair_of(ctl, base, group, item)
    if find_base(collection, values) >= 0:
        return False
    warm_slot(collection, hash_values(values, 2))
    return True


@kernel
def pair_of(ctl: Control, base: Base, group, value):
    """The row of two values with the key of a group of the base."""
    values = ctl.scratch
    values[base.key] = base.low + group
    values[1 - base.key] = value
    return values


@kernel
def insert_row(collection: Collection, order: Words, begin, n, row):
    """Puts a row among those of its key, which are in order."""
    at = n
    while at > begin and compare_rows(collection, collection.base.key, number_of(order[at - 1]), row) > 0:
        order[at] = order[at - 1]
        at -= 1
    order[at] = row


@kernel
def find_spots(collection: Collection, number, order: Words, places, spots: Words):
    """spots[i] = where an index has the row for place i, index after index: a position in its pool, or the complement of the
    group that has only that row. False where this takes too long."""
    scanned = places * MAX_ITEMS_PER_PLACE
    for k in range(collection.index_count):
        index = collection.indexes[k]
        found = behind(spots, k * places)
        if k != number and index.values == 0:
            for i in range(places):
                if i + 2 * ROWS_AHEAD < places:
                    warm_group(index, number_of(order[i + 2 * ROWS_AHEAD]))
                    warm_slab(index, number_of(order[i + ROWS_AHEAD]))
                if order[i] >= 0:
                    group = group_with(index, order[i])
                    slab = slab_at(index, group)
                    if slab.capacity == 0:
                        found[i] = -1 - group
                    else:
                        found[i] = place_of(index.pool, slab.start, slab.count, order[i])
                        scanned -= found[i] - slab.start
                        if scanned < 0:
                            return False
    return True


@kernel
def group_with(index: Index, row):
    """The group that has a row."""
    if index.dense != 0:
        return key_of(index, 0, row) - index.low
    return index.slots[hash_slot(index, row)] - 1
