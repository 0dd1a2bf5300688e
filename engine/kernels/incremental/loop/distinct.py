"""Rows derived at rounds and iterations (partial model) become changes.

The change of a row's presence at iteration i is

    ([new(<=i) > 0] - [new(<i) > 0]) - ([old(<=i) > 0] - [old(<i) > 0])

of its counts of derivations (the derivative of distinct in two dimensions: McSherry et al., Differential Dataflow; Budiu et
al., DBSP). Derivations may have weights, and a row a bound in the place of 0 (CO_BOUND).
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.incremental.loop.changes import announce, doom, log_fresh
from dlog.engine.kernels.incremental.loop.supports import bucket_at, gather_bucket, may_hold, schedule, support_at
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.histories import (
    add_entry,
    chain_entry,
    close_item,
    drop_entries,
    get_bit,
    item_of,
    open_item,
)
from dlog.engine.kernels.incremental.store.lists import list_empty, pool_give, push_change
from dlog.engine.kernels.layout import (
    CO_BOUND,
    CO_BUCKET_COUNT,
    CO_ENTRIES,
    CO_INNER,
    CO_INNER_LOG,
    CO_SUPPORT,
    CO_TOUCHED,
    HI_BITS,
    HI_ITERS,
    LIST_COUNT,
    LIST_DATA,
    SUPPORT_AT,
    SUPPORT_NEW,
    SUPPORT_OLD,
)


@kernel
def process_distinct(ctl, scope, collection, iteration, time):
    """The rows of a bucket become changes of this iteration; false with CTL_ERROR set."""
    if iteration >= load_i64(collection, CO_BUCKET_COUNT):
        return True
    rows = gather_bucket(ctl, scope, collection, iteration)
    data = load_i64(bucket_at(collection, iteration), LIST_DATA)
    for i in range(rows):
        if not evaluate_row(ctl, collection, load_i64(data, i), iteration, time):
            return False
    list_empty(ctl, bucket_at(collection, iteration))
    return rows >= 0


@kernel
def evaluate_row(ctl, collection, row, iteration, time):
    """The change of a row's presence at an iteration; it is looked at again where its history goes on differently."""
    bound = bound_of(collection, row)
    old_before = 0
    new_before = 0
    old_after = 0
    new_after = 0
    at = load_i32(load_i64(collection, CO_SUPPORT), row)
    later = -1
    while at != 0:
        entry = support_at(collection, at)
        word = load_i64(entry, SUPPORT_AT)
        place = word & 0xFFFFFFFF
        if place > iteration:
            later = place
            break
        old_after += load_i64(entry, SUPPORT_OLD)
        new_after += load_i64(entry, SUPPORT_NEW)
        if not may_hold(ctl, new_after):
            return False
        if place < iteration:
            old_before = old_after
            new_before = new_after
        at = word >> 32
    now = (1 if new_after > bound else 0) - (1 if old_after > bound else 0)
    # Above a bound of 0 no more matters than whether there are any; above others how many there are matters later, too.
    differs = now != 0 if load_i64(collection, CO_BOUND) == 0 else new_after != old_after
    if differs and later >= 0 and not schedule(ctl, collection, later, row):
        return False
    out = now - (1 if new_before > bound else 0) + (1 if old_before > bound else 0)
    if out == 0:
        return True
    if not add_entry(ctl, load_i64(collection, CO_INNER), row, time, out):
        return False
    return push_change(ctl, load_i64(collection, CO_INNER_LOG), row, time, out, 0)


@kernel
def bound_of(collection, row):
    """What the count of a row's derivations must exceed."""
    column = load_i64(collection, CO_BOUND)
    return 0 if column == 0 else cell(collection, column - 1, row)


@kernel
def end_distinct(ctl, collection, time):
    """Ends a round: counts settle, rows keep when they are present, and net changes go out; false with CTL_ERROR set."""
    touched = load_i64(collection, CO_TOUCHED)
    for i in range(load_i64(touched, LIST_COUNT)):
        if not end_row(ctl, collection, load_i64(load_i64(touched, LIST_DATA), i), time):
            return False
    list_empty(ctl, touched)
    log_fresh(collection)
    return True


@kernel
def end_row(ctl, collection, row, time):
    """`end_distinct` of one row."""
    inner = load_i64(collection, CO_INNER)
    drop_inner(inner, row)
    heads = load_i64(collection, CO_SUPPORT)
    pool = load_i64(collection, CO_ENTRIES)
    bound = bound_of(collection, row)
    before = 0
    old = 0
    new = 0
    flips = 0
    only = 0
    at = load_i32(heads, row)
    while at != 0:
        entry = support_at(collection, at)
        word = load_i64(entry, SUPPORT_AT)
        count = load_i64(entry, SUPPORT_NEW)
        was = new > bound
        old += load_i64(entry, SUPPORT_OLD)
        new += count
        if not may_hold(ctl, new):
            return False
        if was != (new > bound):
            flips += 1
            if flips == 1:
                only = word & 0xFFFFFFFF
            elif not add_flip(ctl, inner, row, flips, only, word & 0xFFFFFFFF):
                return False
        store_i64(entry, SUPPORT_OLD, count)
        if count != 0:
            before = at
        else:
            if before == 0:
                store_i32(heads, row, word >> 32)
            else:
                previous = support_at(collection, before)
                store_i64(previous, SUPPORT_AT, (load_i64(previous, SUPPORT_AT) & 0xFFFFFFFF) | (word >> 32 << 32))
            pool_give(pool, at - 1)
        at = word >> 32
    if flips == 1 and not settle_inner(inner, row, only):
        return False
    if flips == 0 and not absent_inner(ctl, inner, row):
        return False
    if (old > bound) != (new > bound) and not announce(ctl, collection, row, time, 1 if new > bound else -1):
        return False
    return new > bound or doom(ctl, collection, row)


@kernel
def drop_inner(history, row):
    """Frees a row's entries, if it has any; its item stays."""
    if get_bit(load_i64(history, HI_BITS), row) != 0:
        drop_entries(history, item_of(history, row))


@kernel
def add_flip(ctl, history, row, flips, first, iteration):
    """Writes the second and later changes of a row's presence along its iterations; false with CTL_ERROR set."""
    if flips == 2:
        if get_bit(load_i64(history, HI_BITS), row) == 0 and open_item(ctl, history, row) == 0:
            return False
        if not chain_entry(ctl, history, item_of(history, row), first, 1):
            return False
    return chain_entry(ctl, history, item_of(history, row), iteration, -1 if flips % 2 == 0 else 1)


@kernel
def settle_inner(history, row, iteration):
    """The row is present from an iteration on: it needs no item."""
    if get_bit(load_i64(history, HI_BITS), row) != 0:
        close_item(history, row)
    store_i32(load_i64(history, HI_ITERS), row, iteration)
    return True


@kernel
def absent_inner(ctl, history, row):
    """The row is present at no iteration: an item without entries."""
    return get_bit(load_i64(history, HI_BITS), row) != 0 or open_item(ctl, history, row) != 0
