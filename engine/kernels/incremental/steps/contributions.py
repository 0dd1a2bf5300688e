"""Sinks of paths over rounds that contribute to reductions: a block's rows, at their times."""

from __future__ import annotations

from dlog.engine.kernels.codes import Operation
from dlog.engine.kernels.combine import Combine, joined
from dlog.engine.kernels.core.jit import inlined, kernel
from dlog.engine.kernels.core.memory import prefetch
from dlog.engine.kernels.incremental.loop.activation import touch_reduced
from dlog.engine.kernels.incremental.reduce.best import count_block
from dlog.engine.kernels.incremental.reduce.candidates import begin_lists, candidate_row, warm_list
from dlog.engine.kernels.incremental.reduce.derivations import derive_candidate
from dlog.engine.kernels.incremental.reduce.group_links import current_of
from dlog.engine.kernels.incremental.reduce.streamed import stream_block
from dlog.engine.kernels.incremental.reduce.sums import is_additive, total_of
from dlog.engine.kernels.incremental.reduce.tallies import tally_block
from dlog.engine.kernels.incremental.steps.alike import MAX_KINDS, find_kinds, first_of_kinds, kinds_of, push_together
from dlog.engine.kernels.incremental.steps.finding import find_block
from dlog.engine.kernels.incremental.store.collections import find_or_add
from dlog.engine.kernels.incremental.store.lists import push_change
from dlog.engine.kernels.incremental.store.slots import hash_values
from dlog.engine.kernels.instructions import Reduce
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Reduction
from dlog.engine.kernels.static.storage import behind, register, scratch_block

RESULTS_AHEAD = 8
"""Rows between those of whose groups one thing is asked for, and another one."""
MAX_UNPREFETCHED_ROWS = 8
"""Rows of a block up to which nothing is asked for ahead."""


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
    if not candidates and is_additive(reduction.op):
        kinds = find_kinds(ctl, pc.keys, reduction.groups.arity, n, pc.operation == Operation.REDUCE_AND)
        if kinds > 0 and is_of_one_round(register(ctl, pc.time), n):
            return reduce_kinds(ctl, pc, rows, kinds, n)
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
def is_of_one_round(times: Words, n):
    different = 0
    for i in range(n):
        different |= times[i] ^ times[0]
    return different == 0


@kernel
def reduce_kinds(ctl: Control, pc: Reduce, rows: Words, kinds, n):
    """`reduce_block` of rows of a few kinds (alike.py), all of one round: a contribution for each of these."""
    reduction = pc.reduction
    groups = reduction.groups
    diffs = scratch_block(ctl, 3)
    totals = behind(diffs, MAX_KINDS)
    add_up_kinds(ctl, reduction.op, register(ctl, pc.value), register(ctl, pc.diff), diffs, totals, kinds, n)
    buffer = scratch_block(ctl, 2)
    firsts = first_of_kinds(ctl)
    for kind in range(kinds):
        for c in range(groups.arity):
            buffer[c] = register(ctl, pc.keys[c])[firsts[kind]]
        rows[kind] = find_or_add(ctl, groups, buffer, hash_values(buffer, groups.arity))
        if rows[kind] < 0:
            return False
    times = register(ctl, pc.time)
    if reduction.streamed != 0:
        return stream_block(ctl, reduction, rows, times, diffs, totals, kinds)
    for kind in range(kinds):
        if not push_change(ctl, reduction.derived, rows[kind], times[0], diffs[kind], totals[kind]):
            return False
    return True


@kernel
def add_up_kinds(ctl: Control, op, values: Words, diffs: Words, found: Words, totals: Words, kinds, n):
    """How many members the rows of each kind are, and what they contribute together."""
    numbers = kinds_of(ctl)
    for kind in range(kinds):
        found[kind] = 0
        totals[kind] = 0
    for i in range(n):
        found[numbers[i]] += diffs[i]
    if op != Combine.COUNT:
        for i in range(n):
            totals[numbers[i]] = joined(op, totals[numbers[i]], values[i], diffs[i])


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
