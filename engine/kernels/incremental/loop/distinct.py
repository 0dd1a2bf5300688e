"""Rows derived at rounds and iterations (partial model) become changes.

The change of a row's presence at iteration i is

    ([new(<=i) > 0] - [new(<i) > 0]) - ([old(<=i) > 0] - [old(<i) > 0])

of its counts of derivations (the derivative of distinct in two dimensions: McSherry et al., Differential Dataflow; Budiu et
al., DBSP). Derivations may have weights, and a row a bound in the place of 0 (`bound`).
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.changes import announce, doom, log_fresh
from dlog.engine.kernels.incremental.loop.supports import (
    chain_of,
    gather_bucket,
    may_hold,
    schedule,
    support_at,
    warm_chains,
)
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.histories import add_entry, chain_entry, close_item, drop_entries, item_of, open_item
from dlog.engine.kernels.incremental.store.lists import list_empty, pool_give, push_change
from dlog.engine.kernels.layout import NEVER
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Scope
from dlog.engine.kernels.row_structs import History
from dlog.engine.kernels.static.storage import behind, scratch_block

TOO_LARGE = -2
STEP = 64
"""Rows whose derivations are asked for together."""


@kernel
def warm_rows(ctl: Control, collection: Collection, rows: Words, n, iteration):
    """Asks for the derivations of rows up to an iteration, and for the iterations from which on they are there."""
    iterations = collection.inner.iters
    chains = scratch_block(ctl, 5)
    for i in range(n):
        prefetch(iterations.address + rows[i] * 4)
        chains[i] = chain_of(rows[i], iteration)
    warm_chains(collection, chains, n)


@kernel
def process_distinct(ctl: Control, scope: Scope, collection: Collection, iteration, time):
    """The rows of a bucket become changes of this iteration; false with ctl.error set."""
    if iteration >= collection.derivation.bucket_count:
        return True
    rows = gather_bucket(ctl, scope, collection, iteration)
    data = collection.derivation.buckets[iteration].data
    for i in range(rows):
        if i % STEP == 0:
            warm_rows(ctl, collection, behind(data, i), min(STEP, rows - i), iteration)
        if not evaluate_row(ctl, collection, data[i], iteration, time):
            return False
    list_empty(ctl, collection.derivation.buckets[iteration])
    return rows >= 0


@kernel
def evaluate_row(ctl: Control, collection: Collection, row, iteration, time):
    """The change of a row's presence at an iteration; it is looked at again where its history goes on differently."""
    out, later = change_at(ctl, collection, row, iteration)
    if later == TOO_LARGE or (later >= 0 and not schedule(ctl, collection, later, row)):
        return False
    if out == 0:
        return True
    # Where nobody looks the row up before the round is over, `end_row` notes it.
    if collection.read_between_rounds == 0 and not add_entry(ctl, collection.inner, row, time, out):
        return False
    return push_change(ctl, collection.inner_log, row, time, out, 0)


@inlined
def change_at(ctl: Control, collection: Collection, row, iteration):
    """The change of a row's presence at an iteration, and the iteration where it is to be looked at again: -1 if nowhere,
    TOO_LARGE with ctl.error set. Writes nothing."""
    bound = bound_of(collection, row)
    old_before = 0
    new_before = 0
    old_after = 0
    new_after = 0
    at = collection.derivation.support[row]
    later = -1
    while at != 0:
        entry = support_at(collection, at)
        word = entry.at
        place = word & 0xFFFFFFFF
        if place > iteration:
            later = place
            break
        old_after += entry.old
        new_after += entry.new
        if not may_hold(ctl, new_after):
            return 0, TOO_LARGE
        if place < iteration:
            old_before = old_after
            new_before = new_after
        at = word >> 32
    now = (1 if new_after > bound else 0) - (1 if old_after > bound else 0)
    # Above a bound of 0 no more matters than whether there are any; above others how many there are matters later, too.
    differs = now != 0 if collection.derivation.bound == 0 else new_after != old_after
    out = now - (1 if new_before > bound else 0) + (1 if old_before > bound else 0)
    return out, later if differs else -1


@kernel
def bound_of(collection: Collection, row):
    """What the count of a row's derivations must exceed."""
    column = collection.derivation.bound
    return 0 if column == 0 else cell(collection, column - 1, row)


@kernel
def end_distinct(ctl: Control, collection: Collection, time):
    """Ends a round: counts settle, rows keep when they are present, and net changes go out; false with ctl.error set."""
    touched = collection.touched
    data = touched.data
    count = touched.count
    for i in range(count):
        if i % STEP == 0:
            warm_rows(ctl, collection, behind(data, i), min(STEP, count - i), NEVER)
        if not end_row(ctl, collection, data[i], time):
            return False
    list_empty(ctl, touched)
    log_fresh(collection)
    return True


@inlined
def end_row(ctl: Control, collection: Collection, row, time):
    """`end_distinct` of one row."""
    inner = collection.inner
    drop_inner(inner, row)
    heads = collection.derivation.support
    pool = collection.derivation.entries
    bound = bound_of(collection, row)
    before = 0
    old = 0
    new = 0
    flips = 0
    only = 0
    at = heads[row]
    while at != 0:
        entry = support_at(collection, at)
        word = entry.at
        count = entry.new
        was = new > bound
        old += entry.old
        new += count
        if not may_hold(ctl, new):
            return False
        if was != (new > bound):
            flips += 1
            if flips == 1:
                only = word & 0xFFFFFFFF
            elif not add_flip(ctl, inner, row, flips, only, word & 0xFFFFFFFF):
                return False
        entry.old = count
        if count != 0:
            before = at
        else:
            if before == 0:
                heads[row] = word >> 32
            else:
                previous = support_at(collection, before)
                previous.at = (previous.at & 0xFFFFFFFF) | (word >> 32 << 32)
            pool_give(pool, at - 1)
        at = word >> 32
    if flips == 1 and not settle_inner(inner, row, only):
        return False
    if flips == 0 and not absent_inner(ctl, collection, row):
        return False
    if (old > bound) != (new > bound) and not announce(ctl, collection, row, time, 1 if new > bound else -1):
        return False
    return new > bound or doom(ctl, collection, row)


@kernel
def drop_inner(history: History, row):
    """Frees a row's entries, if it has any; its item stays."""
    if get_bit(history.bits, row) != 0:
        drop_entries(history, item_of(history, row))


@kernel
def add_flip(ctl: Control, history: History, row, flips, first, iteration):
    """Writes the second and later changes of a row's presence along its iterations; false with ctl.error set."""
    if flips == 2:
        if get_bit(history.bits, row) == 0 and not open_item(ctl, history, row):
            return False
        if not chain_entry(ctl, history, item_of(history, row), first, 1):
            return False
    return chain_entry(ctl, history, item_of(history, row), iteration, -1 if flips % 2 == 0 else 1)


@kernel
def settle_inner(history: History, row, iteration):
    """The row is present from an iteration on: it needs no item."""
    if get_bit(history.bits, row) != 0:
        close_item(history, row)
    history.iters[row] = iteration
    return True


@kernel
def absent_inner(ctl: Control, collection: Collection, row):
    """The row is present at no iteration: an item without entries, or, where no entries are made, no iteration. False with
    ctl.error set."""
    inner = collection.inner
    if collection.read_between_rounds != 0:
        return settle_inner(inner, row, NEVER)
    return get_bit(inner.bits, row) != 0 or open_item(ctl, inner, row).address != 0
