"""Rows derived at rounds and iterations (partial model) become changes.

The change of a row's presence at iteration i is

    ([new(<=i) > 0] - [new(<i) > 0]) - ([old(<=i) > 0] - [old(<i) > 0])

of its counts of derivations (the derivative of distinct in two dimensions: McSherry et al., Differential Dataflow; Budiu et
al., DBSP). Derivations may have weights, and a row a bound in the place of 0 (`bound`).
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.supports import (
    begin_chains,
    chain_of,
    gather_bucket,
    may_hold,
    schedule,
    support_at,
    warm_chain,
)
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.histories import add_entry
from dlog.engine.kernels.incremental.store.lists import list_empty, push_change
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Scope
from dlog.engine.kernels.static.storage import behind, scratch_block

TOO_LARGE = -2
ROWS_AHEAD = 24
"""Rows between one of which the iterations are asked for and one that is looked at."""


@kernel
def begin_rows(ctl: Control, collection: Collection, rows: Words, n, iteration):
    """Before n rows of a block are looked at, each with `warm_row`: asks for the derivations of the first up to those of an
    iteration or behind it, and for the iterations from which on they are there; of one row that is looked at at once for
    nothing."""
    chains = scratch_block(ctl, 5)
    if n > 1:
        for i in range(n):
            chains[i] = chain_of(rows[i], iteration)
        for i in range(min(n, ROWS_AHEAD)):
            prefetch(collection.inner.iters.address + rows[i] * 4)
        begin_chains(collection, chains, n)


@inlined
def warm_row(ctl: Control, collection: Collection, rows: Words, at, n):
    """While a row is looked at, asks for what is looked at of rows behind it."""
    if at + ROWS_AHEAD < n:
        prefetch(collection.inner.iters.address + rows[at + ROWS_AHEAD] * 4)
    warm_chain(collection, scratch_block(ctl, 5), at, n)


@kernel
def process_distinct(ctl: Control, scope: Scope, collection: Collection, iteration, time):
    """The rows of a bucket become changes of this iteration; false with ctl.error set."""
    if iteration >= collection.derivation.bucket_count:
        return True
    count = gather_bucket(ctl, scope, collection, iteration)
    data = collection.derivation.buckets[iteration].data
    for first in range(0, count, BLOCK):
        n = min(BLOCK, count - first)
        rows = behind(data, first)
        begin_rows(ctl, collection, rows, n, iteration + 1)
        for i in range(n):
            warm_row(ctl, collection, rows, i, n)
            if not evaluate_row(ctl, collection, rows[i], iteration, time):
                return False
    list_empty(ctl, collection.derivation.buckets[iteration])
    return count >= 0


@kernel
def evaluate_row(ctl: Control, collection: Collection, row, iteration, time):
    """The change of a row's presence at an iteration; it is looked at again where its history goes on differently."""
    out, later = change_at(ctl, collection, row, iteration)
    if later == TOO_LARGE or (later >= 0 and not schedule(ctl, collection, later, row)):
        return False
    if out == 0:
        return True
    # Where nobody looks the row up before the round is over, settling.py notes it.
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
