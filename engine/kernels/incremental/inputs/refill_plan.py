"""The plan for a stretch of a base that is refilled (refilling.py): which rows come, what each place gets, and where the
indexes have these rows."""

from __future__ import annotations

from dlog.engine.kernels.core.blocks import LINE
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.inputs.base_order import compare_rows
from dlog.engine.kernels.incremental.store.base import find_base, place_of_value
from dlog.engine.kernels.incremental.store.bits import count_bits, next_clear_bit
from dlog.engine.kernels.incremental.store.groups import key_of, slab_at
from dlog.engine.kernels.incremental.store.implied import warm_cell
from dlog.engine.kernels.incremental.store.indexes import place_of, warm_index, warm_items, warming_steps
from dlog.engine.kernels.incremental.store.keyed import group_in, slot_with
from dlog.engine.kernels.incremental.store.slots import find_slotted, hash_row, hash_values, warm_slot
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Base, Collection, Control, Index
from dlog.engine.kernels.row_structs import Slab, Stretch, StretchKey
from dlog.engine.kernels.static.storage import behind

KEYS_AHEAD = 64
"""Keys whose groups' places are asked for before they are looked at: most groups are runs, and have none."""
ROWS_AHEAD = 16
"""Rows whose groups are asked for before they are looked at."""
MAX_ITEMS_PER_PLACE = 64
"""Items of an index that are looked at for each place, until a stretch is left as it is: groups there are too long."""


@kernel
def plan_stretch(ctl: Control, collection: Collection, number, stretch: Stretch):
    """Finds what there is to write; false where it takes too long. Nothing is written but the plan."""
    find_others(ctl, collection, collection.indexes[number], stretch)
    list_runs(collection, stretch)
    return find_spots(collection, number, stretch)


# ---------------------------------------------------------------------------------------------------------------- others


@kernel
def find_others(ctl: Control, collection: Collection, home: Index, stretch: Stretch):
    """Finds as many rows of the stretch's keys that are not of the base as are to come, in the base's order."""
    warm_cells(collection, stretch)
    base = collection.base
    n = 0
    for key in range(stretch.first, stretch.last):
        if n == stretch.incoming:
            break
        group = base.low + key - home.low
        if key + KEYS_AHEAD < stretch.last and 0 <= group + KEYS_AHEAD < home.groups:
            slab = slab_at(home, group + KEYS_AHEAD)
            if slab.capacity != 0:
                warm_items(home, slab)
        if 0 <= group < home.groups:
            slab = slab_at(home, group)
            if slab.capacity != 0 or slab.start >= base.rows:  # else a run of the base
                n = list_others(ctl, collection, home, slab, stretch, key, n)
    others = stretch.others
    for i in range(n):
        if home.values != 0:
            values = pair_of(ctl, base, others[i].key, others[i].row)
            others[i].row = find_slotted(collection, values, hash_values(values, 2))
        else:
            warm_slot(collection, hash_row(collection, others[i].row))
        order_other(collection, stretch, i)


@kernel
def warm_cells(collection: Collection, stretch: Stretch):
    """Asks for the values of the first column by which rows of a key are compared."""
    column = collection.columns[1 if collection.base.key == 0 and collection.arity > 1 else 0]
    for at in range(stretch.start * column.width, (stretch.start + stretch.places) * column.width, LINE):
        prefetch(column.data + at)


@kernel
def list_others(ctl: Control, collection: Collection, home: Index, slab: Slab, stretch: Stretch, key, n):
    """Lists items of a key that are not of the base behind n others, until as many as are to come; returns how many there are.
    They are the last of a slab, mostly, so it is read from there."""
    offsets = collection.base.offsets
    left = slab.count - count_bits(collection.alive, offsets[key], offsets[key + 1])
    for i in range(slab.count):
        if left == 0 or n == stretch.incoming:
            break
        item = slab.start
        if slab.capacity != 0:
            item = home.pool[slab.start + slab.count - 1 - i]
        if is_other(ctl, collection, home, key, item):
            stretch.others[n].key = key
            stretch.others[n].row = item
            n += 1
            left -= 1
    return n


@kernel
def is_other(ctl: Control, collection: Collection, home: Index, key, item):
    """Whether an item of a key tells a row that is not of the base. What is read next of such a row is asked for: its values,
    or the slot of one that is told by a value."""
    base = collection.base
    if home.values == 0:
        if item < base.rows:
            return False
        for c in range(collection.arity):
            warm_cell(collection.columns[c], item)
        return True
    values = pair_of(ctl, base, key, item)
    if find_base(collection, values) >= 0:
        return False
    warm_slot(collection, hash_values(values, 2))
    return True


@kernel
def pair_of(ctl: Control, base: Base, key, value):
    """The row of two values with a key of the base."""
    values = ctl.scratch
    values[base.key] = base.low + key
    values[1 - base.key] = value
    return values


@kernel
def order_other(collection: Collection, stretch: Stretch, at):
    """Puts a row that comes among those of its key before it, which are in order."""
    others = stretch.others
    key = others[at].key
    row = others[at].row
    while at > 0 and others[at - 1].key == key and compare_rows(collection, collection.base.key, others[at - 1].row, row) > 0:
        others[at].row = others[at - 1].row
        at -= 1
    others[at].row = row


# ---------------------------------------------------------------------------------------------------------------- places


@kernel
def list_runs(collection: Collection, stretch: Stretch):
    """Lists what the places get, key after key. Most keys have the rows that they had, and are parts of longer runs."""
    offsets = collection.base.offsets
    stretch.next_dead = next_clear_bit(collection.alive, stretch.start, stretch.start + stretch.places)
    stretch.dead_to_keep = stretch.staying
    for key in range(stretch.first, stretch.last):
        place = stretch.keys[key - stretch.first]
        comes = stretch.listed < stretch.incoming and stretch.others[stretch.listed].key == key
        if comes or stretch.next_dead < offsets[key + 1]:
            taken = stretch.listed
            merge_key(collection, stretch, key, place)
            place.incoming = stretch.listed - taken
        else:
            place.dead = 0
            place.incoming = 0
            push_run(stretch, offsets[key], offsets[key + 1] - offsets[key])
        place.end = stretch.placed


@kernel
def merge_key(collection: Collection, stretch: Stretch, key, place: StretchKey):
    """Lists the rows of a key that rows come to or have gone from: by living ones in a row, with those that come between."""
    row = collection.base.offsets[key]
    last = collection.base.offsets[key + 1]
    place.dead = 0
    while row < last:
        living = min(stretch.next_dead, last)
        push_living(collection, stretch, key, row, living)
        row = living
        if row < last:
            if stretch.dead_to_keep > 0:
                push_others(collection, stretch, key, row)
                push_run(stretch, -1 - row, 1)
                stretch.dead_to_keep -= 1
                place.dead += 1
            row += 1
            stretch.next_dead = next_clear_bit(collection.alive, row, stretch.start + stretch.places)
    push_others(collection, stretch, key, -1)


@kernel
def push_living(collection: Collection, stretch: Stretch, key, row, last):
    """Lists the living rows [row, last) of a key, and those that come between them."""
    others = stretch.others
    while row < last and stretch.listed < stretch.incoming and others[stretch.listed].key == key:
        at = first_behind(collection, others[stretch.listed].row, row, last)
        push_run(stretch, row, at - row)
        row = at
        if row < last:
            push_run(stretch, others[stretch.listed].row, 1)
            stretch.listed += 1
    push_run(stretch, row, last - row)


@kernel
def first_behind(collection: Collection, other, row, last):
    """The first of the rows [row, last) of a key that is behind another row; `last` if none is."""
    column = collection.columns[1 if collection.base.key == 0 else 0]
    if collection.arity == 2 and column.width == 4:
        cells = Numbers(column.data)
        return place_of_value(cells, row, last, cells[other])
    while row < last:
        middle = (row + last) >> 1
        if compare_rows(collection, collection.base.key, middle, other) > 0:
            last = middle
        else:
            row = middle + 1
    return last


@kernel
def push_others(collection: Collection, stretch: Stretch, key, row):
    """Lists the rows that come to a key before one of its rows, or all that are left."""
    others = stretch.others
    while stretch.listed < stretch.incoming and others[stretch.listed].key == key:
        other = others[stretch.listed].row
        if row >= 0 and compare_rows(collection, collection.base.key, other, row) > 0:
            break
        push_run(stretch, other, 1)
        stretch.listed += 1


@kernel
def push_run(stretch: Stretch, row, count):
    """Lists rows from one on, perhaps none, or a dead one that stays."""
    if count <= 0:
        return
    stretch.placed += count
    if stretch.run_count > 0:
        last = stretch.runs[stretch.run_count - 1]
        if row >= 0 and last.row >= 0 and last.row + last.count == row:
            last.count += count
            return
    stretch.runs[stretch.run_count].row = row
    stretch.runs[stretch.run_count].count = count
    stretch.run_count += 1


# --------------------------------------------------------------------------------------------------------------- indexes


@kernel
def find_spots(collection: Collection, number, stretch: Stretch):
    """spots[i] = where an index has the row for place i, index after index: a position in its pool, or the complement of the
    group that has only that row. False where this takes too long."""
    places = stretch.places
    scanned = places * MAX_ITEMS_PER_PLACE
    found = stretch.spots
    order = stretch.values
    listed = False
    for k in range(collection.index_count):
        index = collection.indexes[k]
        if k == number or index.values != 0:
            continue
        if not listed:
            list_places(stretch, order)
            listed = True
        for i in range(places):
            for step in range(warming_steps(index), 0, -1):
                if i + step * ROWS_AHEAD < places:
                    warm_index(index, number_of(order[i + step * ROWS_AHEAD]), step)
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
        found = behind(found, places)
    return True


@kernel
def list_places(stretch: Stretch, order: Words):
    """order[i] = the row for place i, or the complement of a dead one's number."""
    n = 0
    for i in range(stretch.run_count):
        run = stretch.runs[i]
        for row in range(run.row, run.row + run.count):
            order[n] = row
            n += 1


@kernel
def number_of(entry):
    return entry if entry >= 0 else -1 - entry


@kernel
def group_with(index: Index, row):
    """The group that has a row."""
    if index.dense != 0:
        return key_of(index, 0, row) - index.low
    return group_in(index.slots[slot_with(index, row)])
