"""Changes from outside: rows that come and go in the rounds of a batch."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.inputs.row_blocks import enter_rows
from dlog.engine.kernels.incremental.inputs.row_loading import load_rows
from dlog.engine.kernels.incremental.loop.changes import announce, log_fresh
from dlog.engine.kernels.incremental.store.base import search_base
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import add_values
from dlog.engine.kernels.incremental.store.histories import is_here
from dlog.engine.kernels.incremental.store.implied import warm_cell
from dlog.engine.kernels.incremental.store.pair_columns import list_pairs
from dlog.engine.kernels.incremental.store.pairs import apply_pairs, can_be_pairs, drop_pairs
from dlog.engine.kernels.incremental.store.slots import find_slotted, has_values, search_ahead, warm_others
from dlog.engine.kernels.layout import BLOCK, ROUND
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control
from dlog.engine.kernels.static.storage import behind, mix, release, resize

ROWS_AHEAD = 32
"""Rows whose slots are asked for before they are looked at."""


@kernel
def apply_input(ctl: Control, collection: Collection, updates, count):
    """Applies changes from outside: `count` times arity values, a diff and a round of the batch (from 0), as words, by round.
    Indexes do not have new rows yet. False with ctl.error set."""
    width = collection.arity + 2
    columns = WordColumns(ctl.scratch.address + 5 * BLOCK * 8)
    for c in range(width):
        columns[c] = Words(updates + c * 8)
    return apply_columns(ctl, collection, columns, width, 0, count, Words(0))


@kernel
def apply_columns(ctl: Control, collection: Collection, columns: WordColumns, step, start, count, found: Words):
    """Applies changes from outside, by round: columns of values, one of diffs and one of rounds, the batch's first one being
    `start`. Value c of row r is columns[c][r * step]. `found` has the rows of the base that have been sought, or is null.

    What is present is not inserted again, what is absent not removed. Indexes do not have new rows yet. False with ctl.error
    set."""
    if may_be_pairs(collection):
        if can_be_pairs(columns, step, count):
            return apply_pairs(ctl, collection, columns, step, start, count)
        if collection.pairs and not make_rows(ctl, collection):
            return False
        collection.packed = 0
    if collection.arity > 1:
        changes = WordColumns(columns.address + collection.arity * 8)
        done = enter_rows(ctl, collection, columns, step, changes, start, count, found, behind(ctl.scratch, BLOCK))
    else:
        done = apply_narrow(ctl, collection, columns, step, start, count)
    if not done:
        return False
    log_fresh(collection)
    return True


@kernel
def apply_narrow(ctl: Control, collection: Collection, columns: WordColumns, step, start, count):
    """`apply_columns` of rows of one column or none; false with ctl.error set."""
    arity = collection.arity
    diffs = columns[arity]
    rounds = columns[arity + 1]
    values = ctl.scratch
    hashes = behind(values, BLOCK)
    places = behind(hashes, BLOCK)
    for first in range(0, count, ROWS_AHEAD):
        size = min(ROWS_AHEAD, count - first)
        based = collection.base.rows != 0
        search_rows(collection, columns, step, first, size, places, hashes, values)
        for i in range(size):
            diff = diffs[(first + i) * step]
            time = (rounds[(first + i) * step] - start + 1) * ROUND
            for c in range(arity):
                values[c] = columns[c][(first + i) * step]
            row = places[i]
            if row >= 0 and based:
                row = row if get_bit(collection.alive, row) != 0 else -1
            elif row < 0 or not has_values(collection, row, values):
                row = find_slotted(collection, values, hashes[i])
            there = row >= 0 and is_here(collection, row)
            if there == (diff > 0):
                continue
            if row < 0:
                row = add_values(ctl, collection, values, hashes[i])
            if row < 0 or not announce(ctl, collection, row, time, diff):
                return False
    return True


@kernel
def search_rows(collection: Collection, columns: WordColumns, step, first, n, places: Words, hashes: Words, buffer: Words):
    """places[i] = the base row, dead or alive, with the values of row first + i of columns or, of a collection without a base,
    what `search_ahead` tells; and the hashes of their values."""
    if collection.base.rows != 0:
        search_base(collection, columns, step, first, n, places, buffer)
        warm_others(collection, columns, step, first, n, places, hashes)
        return
    arity = collection.arity
    for i in range(n):
        hashed = 0
        for c in range(arity):
            hashed = mix(hashed, columns[c][(first + i) * step])
        hashes[i] = hashed
    search_ahead(collection, hashes, n, True, places)
    for i in range(n):
        if arity != 0 and places[i] >= 0:
            warm_cell(collection.columns[0], places[i])


@kernel
def may_be_pairs(collection: Collection):
    """Whether rows of an input may go where pairs are: it has no others."""
    if collection.pairable == 0:
        return False
    return collection.pairs.address != 0 or collection.rows == 0


@kernel
def make_rows(ctl: Control, collection: Collection):
    """Makes ordinary rows of pairs; false with ctl.error set. A log of words stays one."""
    live = collection.live
    size = (2 * live + 2 + BLOCK) * 8
    values = Words(resize(ctl, 0, 0, size))
    if not values:
        return False
    columns = WordColumns(behind(values, 2 * live).address)
    columns[0] = values
    columns[1] = behind(values, live)
    list_pairs(collection, 0, collection.pair_homes.room, columns, 0)
    collection.rows = 0
    collection.live = 0
    collection.free_count = 0
    done = load_rows(ctl, collection, columns, live, behind(values, 2 * live + 2))
    release(ctl, values.address, size)
    if not done:
        collection.rows = 0
        collection.live = live
        return False
    drop_pairs(ctl, collection)
    return True
