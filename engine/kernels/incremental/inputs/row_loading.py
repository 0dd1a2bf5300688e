"""Rows of an input, loaded from columns of words in one go.

Rows whose key column has few values for so many rows become a base (base_building.py). Others are found by slots.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.inputs.base_building import MIN_BASE_ROWS, choose_key, load_base
from dlog.engine.kernels.incremental.store.bits import put_bit
from dlog.engine.kernels.incremental.store.collections import cell, put_cell, reserve_rows
from dlog.engine.kernels.incremental.store.slot_room import keep_last_free, resize_slots
from dlog.engine.kernels.incremental.store.slots import enter_slot, slot_of, slots_for, tag_of, warm_slots
from dlog.engine.kernels.layout import BLOCK, TAG_FREE
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import mix


@kernel
def load_rows(ctl: Control, collection: Collection, columns: WordColumns, count, hashes: Words):
    """Makes rows of columns of words, which may repeat, those of an input that has none; its indexes do not get them. `hashes`
    is room for a block. False with ctl.error set."""
    if not reserve_rows(ctl, collection, (count + 63) & ~63):
        return False
    if collection.rows == 0 and count >= MIN_BASE_ROWS:
        key, low, groups = choose_key(collection, columns, count)
        if key >= 0:
            return load_base(ctl, collection, columns, count, key, low, groups)
    return load_slots(ctl, collection, columns, count, hashes)


@kernel
def load_slots(ctl: Control, collection: Collection, columns: WordColumns, count, hashes: Words):
    """`load_rows` of rows that are found by slots; false with ctl.error set."""
    if not resize_slots(ctl, collection, slots_for(count)):
        return False
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        for i in range(size):
            hashes[i] = 0
        for c in range(collection.arity):
            column = columns[c]
            for i in range(size):
                hashes[i] = mix(hashes[i], column[first + i])
        warm_slots(collection, hashes, size)
        if not load_block(ctl, collection, columns, first, size, hashes):
            return False
    return True


@kernel
def load_block(ctl: Control, collection: Collection, columns: WordColumns, first, size, hashes: Words):
    """Appends those of rows [first, first + size) of the columns that an input, fresh and with room, does not have; false with
    ctl.error set."""
    arity = collection.arity
    if not keep_last_free(ctl, collection, size):
        return False
    rows = collection.rows
    start = rows
    for i in range(first, first + size):
        hashed = hashes[i - first]
        at = search_cells(collection, hashed, columns, i)
        if at < 0:
            continue
        enter_slot(collection, at, hashed, rows)
        put_bit(collection.alive, rows)
        collection.rows = rows + 1
        for c in range(arity):
            if not put_cell(ctl, collection, c, rows, columns[c][i]):
                return False
        rows += 1
    collection.live = collection.live + rows - start
    collection.used_slots = collection.used_slots + rows - start
    return True


@kernel
def search_cells(collection: Collection, hashed, columns: WordColumns, i):
    """The free slot for the row at place i of columns of words, -1 if it is there already. No row has ever been removed."""
    table = collection.row_slots
    tags = collection.tags
    wanted = tag_of(hashed)
    at = slot_of(collection, hashed)
    while True:
        tag = tags[at]
        if tag == TAG_FREE:
            return at
        if tag == wanted and same_cells(collection, table[at], columns, i):
            return -1
        at += 1


@kernel
def same_cells(collection: Collection, row, columns: WordColumns, i):
    """Whether a row has the values at place i of columns of words."""
    for c in range(collection.arity):
        if cell(collection, c, row) != columns[c][i]:
            return False
    return True
