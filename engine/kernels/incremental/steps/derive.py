"""Sinks of paths over rounds: a block's rows become derivations of rows, or contributions to reductions, at their times."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i64
from dlog.engine.kernels.incremental.loop.activation import touch_derived, touch_reduced
from dlog.engine.kernels.incremental.loop.supports import add_support, support_at
from dlog.engine.kernels.incremental.reduce.candidates import candidate_row, warm_candidates
from dlog.engine.kernels.incremental.reduce.derivations import derive_candidate
from dlog.engine.kernels.incremental.reduce.group_links import current_of
from dlog.engine.kernels.incremental.reduce.streamed import stream_block
from dlog.engine.kernels.incremental.steps.finding import find_block, scratch_block
from dlog.engine.kernels.incremental.store.lists import push_change
from dlog.engine.kernels.layout import (
    CO_COUNTS,
    CO_DERIVED,
    CO_FRESH,
    CO_INNER,
    CO_SCOPE,
    CO_STAMPS,
    CO_SUPPORT,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    HI_ITERS,
    OP_DERIVE,
    RD_CANDIDATES,
    RD_DERIVED,
    RD_GROUPS,
    RD_RESULT,
    RD_STREAMED,
    RD_VALUE,
    REL_COLUMNS,
)
from dlog.engine.kernels.static.storage import register

FEW = 8
"""Rows of a block up to which nothing is asked for ahead."""


@kernel
def support_block(ctl, collection, pc, rows, n):
    """Adds derivations of the rows, at the iterations and with the diffs of the sink's registers; false with CTL_ERROR set."""
    diffs = register(ctl, load_i64(pc, 5))
    advance = load_i64(pc, 6)
    iterations = load_i64(pc, 4)
    heads = load_i64(collection, CO_SUPPORT)
    if n > 1:
        for i in range(n):
            prefetch(heads + load_i64(rows, i) * 4)
        for i in range(n):
            number = load_i32(heads, load_i64(rows, i))
            if number > 0:
                prefetch(support_at(collection, number))
    for i in range(n):
        iteration = advance
        if iterations >= 0:
            iteration += load_i64(register(ctl, iterations), i)
        if not add_support(ctl, collection, load_i64(rows, i), iteration, load_i64(diffs, i)):
            return False
    return True


@kernel
def derive_block(ctl, pc, n):
    """[OP_DERIVE, length, collection, T, I or -1, D, advance, column registers ...]; false with CTL_ERROR set."""
    collection = load_i64(pc, 2)
    rows = scratch_block(ctl, 1)
    touch_derived(ctl, collection)
    if not find_block(ctl, collection, pc + 56, n, rows, True):
        return False
    if load_i64(collection, CO_SCOPE) != 0:
        return support_block(ctl, collection, pc, rows, n)
    diffs = register(ctl, load_i64(pc, 5))
    if load_i64(collection, CO_FRESH) != 0:
        counts = load_i64(collection, CO_COUNTS)
        for i in range(n):
            row = load_i64(rows, i)
            store_i64(counts, row, load_i64(counts, row) + load_i64(diffs, i))
        return True
    times = register(ctl, load_i64(pc, 3))
    derived = load_i64(collection, CO_DERIVED)
    for i in range(n):
        if not push_change(ctl, derived, load_i64(rows, i), load_i64(times, i), load_i64(diffs, i), 0):
            return False
    return True


@kernel
def reduce_block(ctl, pc, n):
    """[OP_REDUCE, length, reduction, T, I or -1, D, advance, value register, key registers ...]; false with CTL_ERROR set."""
    reduction = load_i64(pc, 2)
    values = register(ctl, load_i64(pc, 7))
    candidates = load_i64(reduction, RD_CANDIDATES)
    rows = scratch_block(ctl, 1)
    touch_reduced(ctl, reduction)
    if not find_block(ctl, load_i64(reduction, RD_GROUPS), pc + 64, n, rows, True):
        return False
    if candidates != 0:
        if load_i64(candidates, CO_SCOPE) != 0:
            return lattice_block(ctl, reduction, pc, values, n, rows)
        if not candidate_block(ctl, reduction, values, n, rows):
            return False
    times = register(ctl, load_i64(pc, 3))
    diffs = register(ctl, load_i64(pc, 5))
    if load_i64(reduction, RD_STREAMED) != 0:
        return stream_block(ctl, reduction, rows, times, diffs, values, n)
    derived = load_i64(reduction, RD_DERIVED)
    for i in range(n):
        if not push_change(ctl, derived, load_i64(rows, i), load_i64(times, i), load_i64(diffs, i), load_i64(values, i)):
            return False
    return True


@kernel
def candidate_block(ctl, reduction, values, n, rows):
    """rows[i] becomes the candidate of group rows[i] with values[i]; false with CTL_ERROR set."""
    if n > FEW:
        warm_candidates(reduction, values, n, rows)
    for i in range(n):
        row = candidate_row(ctl, reduction, load_i64(rows, i), load_i64(values, i))
        if row < 0:
            return False
        store_i64(rows, i, row)
    return True


@kernel
def lattice_block(ctl, reduction, pc, values, n, rows):
    """Adds derivations of values[i] in groups rows[i], at the iterations and with the diffs of the sink's registers; false with
    CTL_ERROR set."""
    if n > FEW:
        warm_candidates(reduction, values, n, rows)
        warm_results(reduction, n, rows)
    diffs = register(ctl, load_i64(pc, 5))
    advance = load_i64(pc, 6)
    iterations = load_i64(pc, 4)
    for i in range(n):
        group = load_i64(rows, i)
        row = candidate_row(ctl, reduction, group, load_i64(values, i))
        if row < 0:
            return False
        iteration = advance
        if iterations >= 0:
            iteration += load_i64(register(ctl, iterations), i)
        if not derive_candidate(ctl, reduction, group, row, iteration, load_i64(diffs, i)):
            return False
    return True


@kernel
def warm_results(reduction, n, rows):
    """Asks for the results of groups, which say whether what is derived matters (outdone.py); after `warm_candidates`."""
    groups = load_i64(reduction, RD_GROUPS)
    result = load_i64(reduction, RD_RESULT)
    if load_i64(result, CO_FRESH) == 0:
        stamps = load_i64(groups, CO_STAMPS)
        for i in range(n):
            prefetch(stamps + load_i64(rows, i) * 4)
    iterations = load_i64(load_i64(result, CO_INNER), HI_ITERS)
    column = load_i64(result, REL_COLUMNS) + load_i64(reduction, RD_VALUE) * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    for i in range(n):
        row = current_of(groups, load_i64(rows, i)) - 1
        prefetch(iterations + row * 4)
        prefetch(data + row * width)


@kernel
def derive(ctl, pc, n):
    """Runs a sink over rounds; false with CTL_ERROR set."""
    if load_i64(pc, 0) == OP_DERIVE:
        return derive_block(ctl, pc, n)
    return reduce_block(ctl, pc, n)
