"""Sinks of paths over rounds: a block's rows become derivations of rows, or contributions to reductions, at their times."""

from __future__ import annotations

from dlog.engine.kernels.codes import Gathers, Operation
from dlog.engine.kernels.combine import Combine, joined
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.activation import touch_derived, touch_reduced
from dlog.engine.kernels.incremental.loop.gathering import ITEM_WORDS, ROW_UNKNOWN, gather_supports
from dlog.engine.kernels.incremental.loop.supports import add_support, begin_chains, chain_of, warm_chain
from dlog.engine.kernels.incremental.reduce.best import count_block
from dlog.engine.kernels.incremental.reduce.candidates import begin_lists, candidate_row, warm_list
from dlog.engine.kernels.incremental.reduce.derivations import derive_candidate
from dlog.engine.kernels.incremental.reduce.group_links import current_of
from dlog.engine.kernels.incremental.reduce.streamed import stream_block
from dlog.engine.kernels.incremental.reduce.sums import is_additive, total_of
from dlog.engine.kernels.incremental.reduce.tallies import tally_block
from dlog.engine.kernels.incremental.sharing.claims import note_values
from dlog.engine.kernels.incremental.steps.finding import KNOWN, SAMPLED, find_block, forget_known
from dlog.engine.kernels.incremental.store.lists import list_room, push_change
from dlog.engine.kernels.instructions import Derive, Instruction, Reduce
from dlog.engine.kernels.layout import DERIVED_ROW_WORDS
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction, Share
from dlog.engine.kernels.row_structs import Changes
from dlog.engine.kernels.static.storage import behind, register, scratch_block

RESULTS_AHEAD = 8
"""Rows between those of whose groups one thing is asked for, and another one."""
MAX_UNPREFETCHED_ROWS = 8
"""Rows of a block up to which nothing is asked for ahead."""


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
def push_together(ctl: Control, derived: Changes, op, rows: Words, times: Words, diffs: Words, values: Words, n):
    """Notes derivations of rows at rounds, or contributions to groups: those of one row at one round as one, in a block where
    most can be. Values are added up as `op` says, which counts nothing but diffs where it is COUNT. False with ctl.error
    set."""
    if not list_room(ctl, derived, n):
        return False
    known = scratch_block(ctl, 4)
    joins = n >= SAMPLED
    if joins:
        forget_known(known)
    met = 0
    for i in range(n):
        row = rows[i]
        value = 0 if op == Combine.COUNT else values[i]
        if joins:
            number = known[row & (KNOWN - 1)]
            if number >= 0 and derived.data[number].row == row and derived.data[number].time == times[i]:
                change = derived.data[number]
                change.diff += diffs[i]
                change.value = joined(op, change.value, value, 1)
                met += 1
                continue
            known[row & (KNOWN - 1)] = derived.count
            joins = i < SAMPLED or met * 2 > i
        push_change(ctl, derived, row, times[i], diffs[i], value)
    return True


@kernel
def reduce_block(ctl: Control, pc: Reduce, n):
    """Notes the contributions of a block's rows; false with ctl.error set."""
    reduction = pc.reduction
    if ctl.tally and ctl.tally.reduction == reduction:
        return tally_block(ctl, pc, n)
    values = register(ctl, pc.value)
    candidates = reduction.candidates
    rows = scratch_block(ctl, 1)
    touch_reduced(ctl, reduction)
    if not find_block(ctl, reduction.groups, pc.keys, n, rows, True):
        return False
    if candidates:
        if candidates.scope:
            return lattice_block(ctl, reduction, pc, values, n, rows)
        if not candidate_block(ctl, reduction, values, n, rows):
            return False
    times = register(ctl, pc.time)
    diffs = register(ctl, pc.diff)
    if candidates and reduction.result.fresh != 0:
        return count_block(ctl, reduction, rows, diffs, n)
    totals = values if candidates else total_block(ctl, reduction.op, values, diffs, n)
    if reduction.streamed != 0:
        return stream_block(ctl, reduction, rows, times, diffs, totals, n)
    derived = reduction.derived
    if not candidates and is_additive(reduction.op):
        return push_together(ctl, derived, reduction.op, rows, times, diffs, totals, n)
    for i in range(n):
        if not push_change(ctl, derived, rows[i], times[i], diffs[i], totals[i]):
            return False
    return True


@kernel
def total_block(ctl: Control, op, values: Words, diffs: Words, n) -> Words:
    """The values of a block's contributions as groups take them (`total_of`)."""
    if op == Combine.COUNT or not is_additive(op):
        return values
    totals = scratch_block(ctl, 3)
    for i in range(n):
        totals[i] = total_of(op, values[i], diffs[i])
    return totals


@kernel
def candidate_block(ctl: Control, reduction: Reduction, values: Words, n, rows: Words):
    """rows[i] becomes the candidate of group rows[i] with values[i]; false with ctl.error set."""
    ahead = n if n > MAX_UNPREFETCHED_ROWS else 0
    begin_lists(ctl, reduction, values, ahead, rows)
    for i in range(n):
        warm_list(ctl, reduction, values, i, ahead, rows)
        row = candidate_row(ctl, reduction, rows[i], values[i])
        if row < 0:
            return False
        rows[i] = row
    return True


@kernel
def lattice_block(ctl: Control, reduction: Reduction, pc: Reduce, values: Words, n, rows: Words):
    """Adds derivations of values[i] in groups rows[i], at the iterations and with the diffs of the sink's registers; false with
    ctl.error set."""
    ahead = n if n > MAX_UNPREFETCHED_ROWS else 0
    begin_lists(ctl, reduction, values, ahead, rows)
    begin_results(reduction, ahead, rows)
    diffs = register(ctl, pc.diff)
    advance = pc.advance
    iterations = pc.iteration
    for i in range(n):
        warm_list(ctl, reduction, values, i, ahead, rows)
        warm_results(reduction, i, ahead, rows)
        group = rows[i]
        row = candidate_row(ctl, reduction, group, values[i])
        if row < 0:
            return False
        iteration = advance
        if iterations >= 0:
            iteration += register(ctl, iterations)[i]
        if not derive_candidate(ctl, reduction, group, row, iteration, diffs[i]):
            return False
    return True


@kernel
def begin_results(reduction: Reduction, n, rows: Words):
    """Before n groups rows[i] are contributed to, each with `warm_results`: asks for the results of the first; after
    `begin_lists`."""
    for i in range(min(n, 2 * RESULTS_AHEAD)):
        warm_stamp(reduction, rows[i])
    for i in range(min(n, RESULTS_AHEAD)):
        warm_result(reduction, rows[i])


@inlined
def warm_results(reduction: Reduction, at, n, rows: Words):
    """While a group is contributed to, asks for the results of groups behind it, which say whether what is derived matters
    (dominance.py)."""
    if at + 2 * RESULTS_AHEAD < n:
        warm_stamp(reduction, rows[at + 2 * RESULTS_AHEAD])
    if at + RESULTS_AHEAD < n:
        warm_result(reduction, rows[at + RESULTS_AHEAD])


@inlined
def warm_stamp(reduction: Reduction, group):
    """Asks for when a group was touched, where that matters."""
    if reduction.result.fresh == 0:
        prefetch(reduction.groups.stamps.address + group * 4)


@inlined
def warm_result(reduction: Reduction, group):
    """Asks for the value of a group's result, and for the iteration from which on it is there; the group's links are."""
    result = reduction.result
    column = result.columns[reduction.value]
    row = current_of(reduction.groups, group) - 1
    prefetch(result.inner.iters.address + row * 4)
    prefetch(column.data + row * column.width)


@kernel
def derive(ctl: Control, pc: Instruction, n):
    """Runs a sink over rounds; false with ctl.error set."""
    if pc.operation == Operation.DERIVE:
        return derive_block(ctl, Derive(pc), n)
    return reduce_block(ctl, Reduce(pc), n)
