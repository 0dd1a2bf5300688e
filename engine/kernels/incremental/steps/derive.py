"""Sinks of paths over rounds: a block's rows become derivations of rows, at their times, or contributions to reductions
(contributions.py)."""

from __future__ import annotations

from dlog.engine.kernels.codes import Gathers, Operation
from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.activation import touch_derived
from dlog.engine.kernels.incremental.loop.gathering import ITEM_WORDS, ROW_UNKNOWN, gather_supports
from dlog.engine.kernels.incremental.loop.supports import add_support, begin_chains, chain_of, warm_chain
from dlog.engine.kernels.incremental.sharing.claims import note_values
from dlog.engine.kernels.incremental.steps.alike import push_together
from dlog.engine.kernels.incremental.steps.contributions import reduce_block
from dlog.engine.kernels.incremental.steps.finding import find_block
from dlog.engine.kernels.incremental.store.lists import list_room
from dlog.engine.kernels.instructions import Derive, Instruction, Reduce
from dlog.engine.kernels.layout import DERIVED_ROW_WORDS
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Share
from dlog.engine.kernels.static.storage import behind, register, scratch_block


@kernel
def support_block(ctl: Control, collection: Collection, pc: Derive, rows: Words, n):
    """Adds derivations of the rows, at the iterations and with the diffs of the sink's registers; false with ctl.error set."""
    diffs = register(ctl, pc.diff)
    advance = pc.advance
    chains = scratch_block(ctl, 5)
    if n > 1:
        for i in range(n):
            iteration = advance
            if pc.iteration >= 0:
                iteration += register(ctl, pc.iteration)[i]
            chains[i] = chain_of(rows[i], iteration)
        begin_chains(collection, chains, n)
    for i in range(n):
        warm_chain(collection, chains, i, n)
        iteration = advance
        if pc.iteration >= 0:
            iteration += register(ctl, pc.iteration)[i]
        if not add_support(ctl, collection, rows[i], iteration, diffs[i]):
            return False
    return True


@kernel
def gather_block(ctl: Control, collection: Collection, pc: Derive, rows: Words, n):
    """Notes what `support_block` adds; false with ctl.error set."""
    iterations = register(ctl, pc.iteration) if pc.iteration >= 0 else Words(0)
    return gather_supports(ctl, ctl.share, collection, rows, iterations, pc.advance, register(ctl, pc.diff), n)


@kernel
def note_block(ctl: Control, share: Share, pc: Derive, rows: Words, n):
    """Notes a block's derivations, and the values of rows that are not there yet (-1), for `take_noted`
    (sharing/derivations.py); false with ctl.error set."""
    collection = pc.collection
    if collection.scope:
        first = share.items.count * ITEM_WORDS
        return note_unknown(ctl, share, pc, rows, n, first, ITEM_WORDS) and gather_block(ctl, collection, pc, rows, n)
    noted = share.derived_rows
    first = noted.count * DERIVED_ROW_WORDS
    if not list_room(ctl, noted, n) or not note_unknown(ctl, share, pc, rows, n, first, DERIVED_ROW_WORDS):
        return False
    diffs = register(ctl, pc.diff)
    times = register(ctl, pc.time)
    found = behind(noted.data, first)
    for i in range(n):
        found[i * DERIVED_ROW_WORDS] = rows[i]
        found[i * DERIVED_ROW_WORDS + 1] = diffs[i]
        found[i * DERIVED_ROW_WORDS + 2] = times[i]
    noted.count += n
    return True


@kernel
def note_unknown(ctl: Control, share: Share, pc: Derive, rows: Words, n, first, step):
    """Notes the values of rows that are not there yet (-1, which becomes ROW_UNKNOWN), and where a block's derivations have the
    row: so many words apart from `first` on. False with ctl.error set."""
    arity = pc.collection.arity
    if not list_room(ctl, share.values, n * (arity + 1)):
        return False
    noted = behind(share.values.data, share.values.count)
    at = 0
    for i in range(n):
        if rows[i] < 0:
            rows[i] = ROW_UNKNOWN
            noted[at] = first + i * step
            for c in range(arity):
                noted[at + 1 + c] = register(ctl, pc.values[c])[i]
            at += arity + 1
    share.values.count += at
    return True


@kernel
def derive_block(ctl: Control, pc: Derive, n):
    """Notes the derivations of a block's rows; false with ctl.error set."""
    collection = pc.collection
    rows = scratch_block(ctl, 1)
    share = ctl.share
    if share and share.gathers == Gathers.VALUES:
        return note_values(ctl, share, pc, n)
    if share and share.gathers == Gathers.ROWS:
        return find_block(ctl, collection, pc.values, n, rows, False) and note_block(ctl, share, pc, rows, n)
    touch_derived(ctl, collection)
    if not find_block(ctl, collection, pc.values, n, rows, True):
        return False
    if collection.scope:
        if share and share.gathers == Gathers.SUPPORTS:
            return gather_block(ctl, collection, pc, rows, n)
        return support_block(ctl, collection, pc, rows, n)
    diffs = register(ctl, pc.diff)
    if collection.fresh != 0:
        counts = collection.derivation.counts
        for i in range(n):
            row = rows[i]
            counts[row] += diffs[i]
        return True
    return push_together(ctl, collection.derivation.derived, Combine.COUNT, rows, register(ctl, pc.time), diffs, diffs, n)


@kernel
def derive(ctl: Control, pc: Instruction, n):
    """Runs a sink over rounds; false with ctl.error set."""
    if pc.operation == Operation.DERIVE:
        return derive_block(ctl, Derive(pc), n)
    return reduce_block(ctl, Reduce(pc), n)
