"""Changes from outside: rows that come and go in the rounds of a batch."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64
from dlog.engine.kernels.incremental.loop.changes import announce, log_fresh
from dlog.engine.kernels.incremental.store.base import search_base
from dlog.engine.kernels.incremental.store.collections import add_values, enter_indexes, new_row, reserve_rows
from dlog.engine.kernels.incremental.store.histories import get_bit, is_here, put_bit
from dlog.engine.kernels.incremental.store.pairs import apply_pairs, can_be_pairs, drop_pairs, first_of, second_of
from dlog.engine.kernels.incremental.store.slot_room import resize_slots
from dlog.engine.kernels.incremental.store.slots import find_slotted, has_values, search_ahead, slots_for, warm_others
from dlog.engine.kernels.layout import (
    BLOCK,
    CO_ALIVE,
    CO_BASE_ROWS,
    CO_FREE_COUNT,
    CO_LIVE,
    CO_PACKED,
    CO_PAIR_ROOM,
    CO_PAIRABLE,
    CO_PAIRS,
    CTL_SCRATCH,
    REL_ARITY,
    REL_ROWS,
    ROUND,
)
from dlog.engine.kernels.static.storage import mix

AHEAD = 32
"""Rows whose slots are asked for before they are looked at."""


@kernel
def apply_input(ctl, collection, updates, count):
    """Applies changes from outside: `count` times arity values, a diff and a round of the batch (from 0), as words, by round.
    False with CTL_ERROR set."""
    width = load_i64(collection, REL_ARITY) + 2
    columns = load_i64(ctl, CTL_SCRATCH) + 5 * BLOCK * 8
    for c in range(width):
        store_i64(columns, c, updates + c * 8)
    return apply_columns(ctl, collection, columns, width, 0, count)


@kernel
def apply_columns(ctl, collection, columns, step, start, count):
    """Applies changes from outside, by round: columns of values, one of diffs and one of rounds, the batch's first one being
    `start`. Value c of row r is word r * step at the address that is word c of `columns`.

    What is present is not inserted again, what is absent not removed. False with CTL_ERROR set."""
    if may_be_pairs(collection):
        if can_be_pairs(columns, step, count):
            return apply_pairs(ctl, collection, columns, step, start, count)
        if load_i64(collection, CO_PAIRS) != 0 and not make_rows(ctl, collection, load_i64(ctl, CTL_SCRATCH)):
            return False
        store_i64(collection, CO_PACKED, 0)
    arity = load_i64(collection, REL_ARITY)
    diffs = load_i64(columns, arity)
    rounds = load_i64(columns, arity + 1)
    values = load_i64(ctl, CTL_SCRATCH)
    hashes = values + BLOCK * 8
    places = hashes + BLOCK * 8
    for first in range(0, count, AHEAD):
        size = min(AHEAD, count - first)
        based = load_i64(collection, CO_BASE_ROWS) != 0
        search_rows(collection, columns, step, first, size, places, hashes, values)
        for i in range(size):
            diff = load_i64(diffs, (first + i) * step)
            time = (load_i64(rounds, (first + i) * step) - start + 1) * ROUND
            for c in range(arity):
                store_i64(values, c, load_i64(load_i64(columns, c), (first + i) * step))
            row = load_i64(places, i)
            if row >= 0 and based:
                row = row if get_bit(load_i64(collection, CO_ALIVE), row) != 0 else -1
            elif row < 0 or not has_values(collection, row, values):
                row = find_slotted(collection, values, load_i64(hashes, i))
            there = row >= 0 and is_here(collection, row)
            if there == (diff > 0):
                continue
            if row < 0:
                row = add_values(ctl, collection, values, load_i64(hashes, i))
            if row < 0 or not announce(ctl, collection, row, time, diff):
                return False
    log_fresh(collection)
    return enter_indexes(ctl, collection)


@kernel
def search_rows(collection, columns, step, first, n, places, hashes, buffer):
    """places[i] = the base row, dead or alive, with the values of row first + i of columns or, of a collection without a base,
    what `search_ahead` tells; and the hashes of their values."""
    if load_i64(collection, CO_BASE_ROWS) != 0:
        search_base(collection, columns, step, first, n, places, buffer)
        warm_others(collection, columns, step, first, n, places, hashes)
        return
    arity = load_i64(collection, REL_ARITY)
    for i in range(n):
        hashed = 0
        for c in range(arity):
            hashed = mix(hashed, load_i64(load_i64(columns, c), (first + i) * step))
        store_i64(hashes, i, hashed)
    search_ahead(collection, hashes, n, True, places)


@kernel
def may_be_pairs(collection):
    """Whether rows of an input may go where pairs are: it has no others."""
    if load_i64(collection, CO_PAIRABLE) == 0:
        return False
    return load_i64(collection, CO_PAIRS) != 0 or load_i64(collection, REL_ROWS) == 0


@kernel
def make_rows(ctl, collection, values):
    """Makes ordinary rows of pairs, with room for two words at `values`; false with CTL_ERROR set. A log of words stays one."""
    live = load_i64(collection, CO_LIVE)
    if not reserve_rows(ctl, collection, max((live + 63) & ~63, 64)):
        return False
    store_i64(collection, REL_ROWS, 0)
    store_i64(collection, CO_FREE_COUNT, 0)
    if not resize_slots(ctl, collection, slots_for(live)):
        return False
    pairs = load_i64(collection, CO_PAIRS)
    for at in range(load_i64(collection, CO_PAIR_ROOM)):
        word = load_i64(pairs, at)
        if word != 0:
            store_i64(values, 0, first_of(word))
            store_i64(values, 1, second_of(word))
            row = new_row(ctl, collection, values, mix(mix(0, first_of(word)), second_of(word)))
            if row < 0:
                return False
            put_bit(load_i64(collection, CO_ALIVE), row)
    drop_pairs(ctl, collection)
    return True
