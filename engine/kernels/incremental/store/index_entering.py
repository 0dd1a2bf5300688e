"""Rows that have been made enter the indexes of their collection: one index after the other, or several workers one each."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.index_building import build_index, clear_index, may_insert
from dlog.engine.kernels.incremental.store.indexes import index_insert, warm_index, warming_steps
from dlog.engine.kernels.round_structs import Collection, Control, Index

ROWS_AHEAD = 8
"""Rows between two stages of what is asked for of rows that enter."""
LEAST_SHARED = 8192
"""Rows from which on workers add them to indexes together."""


@kernel
def enter_indexes(ctl: Control, collection: Collection):
    """Adds the rows made since the last call to the indexes; false with ctl.error set. Never while a path runs: it may stand in
    a slab."""
    for i in range(collection.index_count):
        if not enter_index(ctl, collection, i):
            return False
    end_entering(collection)
    return True


@kernel
def made_rows(collection: Collection):
    """How many rows have been made, in a fresh collection or in the batch."""
    return collection.rows if collection.fresh != 0 else collection.new_rows.count


@entry()
def end_entering(collection: Collection):
    """All indexes have the rows that have been made."""
    collection.indexed = made_rows(collection)


@entry()
def entering_parts(collection: Collection):
    """How many indexes workers may add rows to at once, each to one (`enter_index`): 0 if one has to (`enter_indexes`)."""
    few = made_rows(collection) - collection.indexed < LEAST_SHARED
    return 0 if few or collection.fresh != 0 or collection.index_count == 1 else collection.index_count


@entry()
def enter_index(ctl: Control, collection: Collection, number):
    """`enter_indexes` of one; false with ctl.error set."""
    index = collection.indexes[number]
    fresh = collection.fresh != 0
    first = collection.indexed
    last = made_rows(collection)
    if fresh and first == 0:
        return build_index(ctl, index, last)
    rows = collection.new_rows.data
    for at in range(first, last):
        for step in range(0 if fresh else warming_steps(index), 0, -1):
            if at + step * ROWS_AHEAD < last:
                warm_index(index, rows[at + step * ROWS_AHEAD], step)
        row = at if fresh else rows[at]
        if not may_insert(index, row):
            return hold_rows(ctl, collection, index)
        if not index_insert(ctl, index, row):
            return False
    return True


@kernel
def hold_rows(ctl: Control, collection: Collection, index: Index):
    """Makes an index of values one of row numbers, with all rows that have been made. False with ctl.error set."""
    clear_index(ctl, index)
    for row in range(collection.rows):
        if get_bit(collection.alive, row) != 0 and not index_insert(ctl, index, row):
            return False
    return True
