"""Bringing rows from outside into inputs; an empty one is loaded from columns in one go.

Rows whose key column has few values for so many rows become a base (base_building.py). Others are found by slots.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.base_building import MIN_BASE_ROWS, choose_key, load_base
from dlog.engine.kernels.incremental.inputs.input_changes import apply_columns, apply_input, make_rows, may_be_pairs
from dlog.engine.kernels.incremental.inputs.renewal import renew
from dlog.engine.kernels.incremental.store.bits import put_bit
from dlog.engine.kernels.incremental.store.collections import cell, enter_indexes, put_cell, reserve_rows
from dlog.engine.kernels.incremental.store.pairs import can_be_pairs, load_pairs
from dlog.engine.kernels.incremental.store.slot_room import keep_last_free, resize_slots
from dlog.engine.kernels.incremental.store.slots import enter_slot, slot_of, slots_for, tag_of, warm_slots
from dlog.engine.kernels.layout import BLOCK, TAG_FREE
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import mix

_UNLIMITED = 4611686018427387904


@kernel
def load_columns(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Loads a fresh input from columns of words: rows to insert at the first round, which may repeat. False with ctl.error
    set."""
    if may_be_pairs(collection) and can_be_pairs(columns, 1, count):
        return load_pairs(ctl, collection, columns, count)
    if not reserve_rows(ctl, collection, (count + 63) & ~63):
        return False
    key = -1
    if collection.rows == 0 and count >= MIN_BASE_ROWS:
        key = choose_key(collection, columns, count)
    done = load_base(ctl, collection, columns, count, key) if key >= 0 else load_slots(ctl, collection, columns, count)
    if not done:
        return False
    collection.log.count = collection.rows
    return enter_indexes(ctl, collection)


# ----------------------------------------------------------------------------------------------------------------- slots


@kernel
def load_slots(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Appends rows of columns of words to an input with room for them, and gives them slots; false with ctl.error set."""
    if not resize_slots(ctl, collection, slots_for(count)):
        return False
    hashes = ctl.scratch
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


# ---------------------------------------------------------------------------------------------------------------- either


@entry()
def bring_in(ctl: Control, collection: Collection, updates, columns: WordColumns, count):
    """Applies changes from outside (`apply_input`) or, where `updates` is 0, loads columns. False with ctl.error set."""
    if updates != 0 and not renew(ctl, collection):
        return False
    limit = without_limit(ctl)
    by_row = updates != 0
    done = apply_input(ctl, collection, updates, count) if by_row else load_columns(ctl, collection, columns, count)
    return within_limit(ctl, limit, done)


@entry()
def bring_changes(ctl: Control, collection: Collection, columns: WordColumns, start, count):
    """Applies changes from outside, as columns (`apply_columns`), the batch's first round being `start`. False with ctl.error
    set."""
    if not renew(ctl, collection):
        return False
    limit = without_limit(ctl)
    return within_limit(ctl, limit, apply_columns(ctl, collection, columns, 1, start, count))


@entry()
def unpack_pairs(ctl: Control, collection: Collection, values: Words):
    """Makes ordinary rows of the pairs of an input, between batches, with room for two words. False with ctl.error set."""
    limit = without_limit(ctl)
    return within_limit(ctl, limit, make_rows(ctl, collection, values))


@kernel
def without_limit(ctl: Control):
    """Lifts the limit of memory, and returns it.

    There is no way back from half of an input, so the limit of memory is asked afterwards."""
    limit = ctl.limit
    ctl.limit = _UNLIMITED
    return limit


@kernel
def within_limit(ctl: Control, limit, done):
    """Sets the limit of memory again; whether what was done has been, and is within it, else ctl.error is set."""
    ctl.limit = limit
    if done and ctl.account.bytes > limit:
        ctl.error = Error.MEMORY
        return False
    return done
