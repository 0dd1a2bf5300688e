"""A collection's part in a batch of rounds: how it begins, and what is left of the changes when the batch is over."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i64
from dlog.engine.kernels.incremental.loop.changes import with_rows
from dlog.engine.kernels.incremental.store.base import drop_base
from dlog.engine.kernels.incremental.store.collections import leave_base, remove_row, trim_rows
from dlog.engine.kernels.incremental.store.histories import (
    clear_bit,
    close_item,
    drop_entries,
    forget_items,
    get_bit,
    item_of,
    presence,
)
from dlog.engine.kernels.incremental.store.implied import imply_key
from dlog.engine.kernels.incremental.store.indexes import warm_group, warm_slab
from dlog.engine.kernels.incremental.store.lists import change_at, list_again, list_empty, list_free, list_push
from dlog.engine.kernels.incremental.store.pairs import drop_pairs
from dlog.engine.kernels.incremental.store.removals import leave_groups
from dlog.engine.kernels.layout import (
    CHANGE_ROW,
    CHANGE_SIZE,
    CO_ALIVE,
    CO_BEGUN,
    CO_BORN,
    CO_COUNTS,
    CO_DOOMED,
    CO_FREE_COUNT,
    CO_FRESH,
    CO_GROUPED,
    CO_INDEX_COUNT,
    CO_INDEXED,
    CO_INDEXES,
    CO_INNER,
    CO_INNER_LOG,
    CO_LIVE,
    CO_LOG,
    CO_OLD,
    CO_OUTER,
    CO_PACKED,
    CO_PAIRS,
    CO_QUIET,
    CO_REDUCTION,
    CO_SUPPORT,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    HI_BASE,
    HI_BITS,
    HI_ITEMS,
    HI_ITERS,
    ITEM_HEAD,
    ITEM_ROW,
    ITEM_SIZE,
    LIST_COUNT,
    LIST_DATA,
    NEVER,
    RD_MISSING,
    REL_ARITY,
    REL_COLUMNS,
    REL_ROWS,
    ROUND,
)

STRIDE = 8
"""Rows between two stages of what is asked for of rows that are removed."""


@kernel
def begin(ctl, collection, rounds):
    """Begins a batch of so many rounds, with an empty log; a collection without rows is fresh if there is one round."""
    live = load_i64(with_rows(collection), CO_LIVE)
    store_i64(collection, CO_BEGUN, 1)
    store_i64(collection, CO_OLD, live)
    if live == 0 and rounds == 1:
        # Row numbers begin anew: all rows are those of this batch.
        store_i64(collection, REL_ROWS, 0)
        store_i64(collection, CO_FREE_COUNT, 0)
        drop_base(ctl, collection)
        drop_pairs(ctl, collection)
        list_free(ctl, load_i64(collection, CO_LOG))
        store_i64(collection, CO_FRESH, 1)
        store_i64(load_i64(collection, CO_OUTER), HI_BASE, ROUND)
        inner = load_i64(collection, CO_INNER)
        if inner != 0:
            store_i64(inner, HI_BASE, ROUND)
    store_i64(collection, CO_PACKED, 1 if load_i64(collection, CO_PAIRS) != 0 else 0)


@kernel
def rows_before(collection):
    """How many rows there were before the batch."""
    return load_i64(collection, CO_OLD) if load_i64(collection, CO_BEGUN) != 0 else load_i64(with_rows(collection), CO_LIVE)


@entry()
def forget_changes(ctl, collection):
    """Empties the log of a batch that is over."""
    list_again(ctl, load_i64(collection, CO_LOG))


@entry()
def settle(ctl, collection):
    """Ends a batch: rounds are forgotten, absent rows removed; false with CTL_ERROR set. The change log stays."""
    outer = load_i64(collection, CO_OUTER)
    inner = load_i64(collection, CO_INNER)
    doomed = load_i64(collection, CO_DOOMED)
    born = load_i64(collection, CO_BORN)
    if load_i64(collection, CO_GROUPED) != 0 or load_i64(collection, CO_PACKED) != 0:
        done = True
    elif load_i64(collection, CO_QUIET) != 0:
        done = settle_quiet(ctl, collection, doomed, 1)
        if inner == 0:
            # Rows of a recursive scope are doomed whenever a round leaves them without derivations.
            done = done and settle_quiet(ctl, collection, load_i64(collection, CO_LOG), CHANGE_SIZE)
            done = done and settle_quiet(ctl, collection, born, 1)
    elif inner == 0:
        done = settle_all(ctl, collection)
    else:
        done = settle_some(ctl, collection)
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        done = done and leave_groups(ctl, load_i64(indexes, i))
    if not done:
        return False
    list_again(ctl, doomed)
    list_again(ctl, born)
    reduction = load_i64(collection, CO_REDUCTION)
    if reduction != 0 and load_i64(reduction, RD_MISSING) != 0:
        list_empty(ctl, load_i64(reduction, RD_MISSING))
    store_i64(collection, CO_BEGUN, 0)
    store_i64(collection, CO_INDEXED, 0)
    store_i64(outer, HI_BASE, 0)
    if inner != 0:
        store_i64(inner, HI_BASE, 0)
        list_empty(ctl, load_i64(collection, CO_INNER_LOG))
    if load_i64(collection, CO_FRESH) != 0:
        store_i64(collection, CO_FRESH, 0)
        return trim_rows(ctl, collection) and imply_key(ctl, collection)
    return leave_base(ctl, collection)


@kernel
def settle_all(ctl, collection):
    """`settle` of a collection without an inner history: no item outlives the batch; false with CTL_ERROR set."""
    outer = load_i64(collection, CO_OUTER)
    bits = load_i64(outer, HI_BITS)
    items = load_i64(outer, HI_ITEMS)
    for i in range(load_i64(items, LIST_COUNT)):
        if i + 3 * STRIDE < load_i64(items, LIST_COUNT):
            warm_removal(collection, load_i64(items, LIST_DATA) + i * (ITEM_SIZE * 8))
        row = load_i64(load_i64(items, LIST_DATA), i * ITEM_SIZE + ITEM_ROW)
        here = presence(outer, row, 9223372036854775807) > 0
        if not here and not remove_row(ctl, collection, row):
            return False
    for i in range(load_i64(items, LIST_COUNT)):
        clear_bit(bits, load_i64(load_i64(items, LIST_DATA), i * ITEM_SIZE + ITEM_ROW))
    forget_items(ctl, outer)
    return True


@kernel
def settle_some(ctl, collection):
    """`settle` of a collection of a recursive scope, where items may stay; false with CTL_ERROR set."""
    log = load_i64(collection, CO_LOG)
    outer = load_i64(collection, CO_OUTER)
    doomed = load_i64(collection, CO_DOOMED)
    if load_i64(collection, CO_FRESH) != 0:
        items = load_i64(outer, HI_ITEMS)
        for i in range(load_i64(items, LIST_COUNT)):
            if not list_push(ctl, doomed, load_i64(load_i64(items, LIST_DATA), i * ITEM_SIZE + ITEM_ROW)):
                return False
    else:
        for i in range(load_i64(log, LIST_COUNT)):
            if not settle_row(ctl, collection, load_i64(change_at(log, i), CHANGE_ROW)):
                return False
        born = load_i64(collection, CO_BORN)
        for i in range(load_i64(born, LIST_COUNT)):
            if not settle_row(ctl, collection, load_i64(load_i64(born, LIST_DATA), i)):
                return False
    for i in range(load_i64(doomed, LIST_COUNT)):
        if not settle_row(ctl, collection, load_i64(load_i64(doomed, LIST_DATA), i)):
            return False
    return True


@kernel
def settle_row(ctl, collection, row):
    """What is left of a row after a batch; false with CTL_ERROR set."""
    if get_bit(load_i64(collection, CO_ALIVE), row) == 0:
        return True
    outer = load_i64(collection, CO_OUTER)
    if get_bit(load_i64(outer, HI_BITS), row) == 0:
        return True
    here = presence(outer, row, 9223372036854775807) > 0
    drop_entries(outer, item_of(outer, row))
    if here:
        close_item(outer, row)
        return True
    if is_needed(collection, row):
        return True
    close_item(outer, row)
    inner = load_i64(collection, CO_INNER)
    if inner != 0 and get_bit(load_i64(inner, HI_BITS), row) != 0:
        close_item(inner, row)
    return remove_row(ctl, collection, row)


@kernel
def settle_quiet(ctl, collection, rows, words):
    """Removes the absent ones of rows listed as the first of so many words, unless something keeps them; false with CTL_ERROR
    set."""
    bits = load_i64(load_i64(collection, CO_OUTER), HI_BITS)
    inner = load_i64(collection, CO_INNER)
    data = load_i64(rows, LIST_DATA)
    if data == 0:
        return True
    for i in range(load_i64(rows, LIST_COUNT)):
        row = load_i64(data, i * words)
        if get_bit(bits, row) != 0 and get_bit(load_i64(collection, CO_ALIVE), row) != 0:
            if inner != 0:
                if is_needed(collection, row):
                    continue
                if get_bit(load_i64(inner, HI_BITS), row) != 0:
                    close_item(inner, row)
            clear_bit(bits, row)
            if not remove_row(ctl, collection, row):
                return False
    return True


@kernel
def is_needed(collection, row):
    """Whether something besides its presence keeps a row: derivations, or iterations at which it is present."""
    support = load_i64(collection, CO_SUPPORT)
    if support != 0 and load_i32(support, row) != 0:
        return True
    counts = load_i64(collection, CO_COUNTS)
    if counts != 0 and load_i64(counts, row) != 0:
        return True
    inner = load_i64(collection, CO_INNER)
    if inner == 0:
        return False
    if get_bit(load_i64(inner, HI_BITS), row) == 0:
        return load_i32(load_i64(inner, HI_ITERS), row) != NEVER
    return load_i64(item_of(inner, row), ITEM_HEAD) != 0


@kernel
def warm_removal(collection, item):
    """Asks for what removing the rows of later items will touch: first their values, then their groups, then their slabs."""
    columns = load_i64(collection, REL_COLUMNS)
    far = load_i64(item, 3 * STRIDE * ITEM_SIZE + ITEM_ROW)
    for c in range(load_i64(collection, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        prefetch(load_i64(column, COL_DATA) + far * load_i64(column, COL_WIDTH))
    indexes = load_i64(collection, CO_INDEXES)
    for i in range(load_i64(collection, CO_INDEX_COUNT)):
        warm_group(load_i64(indexes, i), load_i64(item, 2 * STRIDE * ITEM_SIZE + ITEM_ROW))
        warm_slab(load_i64(indexes, i), load_i64(item, STRIDE * ITEM_SIZE + ITEM_ROW))
