"""Look-ups over rounds: the instructions that leave some of a block's rows, or give them a value, by what a collection has at a
view (joins.py).
"""

from __future__ import annotations

from dlog.engine.kernels.block import compact
from dlog.engine.kernels.codes import Operation
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.incremental.steps.finding import find_block
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.histories import presence
from dlog.engine.kernels.incremental.store.indexes import GROUPS_AHEAD, begin_groups, find_index_groups, warm_group, warm_groups
from dlog.engine.kernels.instructions import Delay, FindIndexGroup, HasAny, HasRow, Instruction, Present, ValueOf
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Index
from dlog.engine.kernels.row_structs import History
from dlog.engine.kernels.static.storage import behind, register, scratch_block

SPACING = 256
"""Iterations between values of different numbers of bits that enter a minimum, a power of two."""


@kernel
def keep_rows(ctl: Control, live: Words, count, kept, n):
    """Compacts the live registers to the chosen rows (scratch 0), unless all were chosen."""
    if 0 < kept < n:
        compact(ctl, live, count, scratch_block(ctl, 0), kept)
    return kept


@kernel
def step_lookup(ctl: Control, pc: Instruction, n):
    """Runs one look-up instruction on a block of n rows; returns the rows left."""
    op = pc.operation
    if op == Operation.INDEX:
        sought = FindIndexGroup(pc)
        find_index_groups(sought.index, ctl, sought.keys, n, scratch_block(ctl, 2), register(ctl, sought.group))
        return n
    if op == Operation.ROW:
        return step_row(ctl, HasRow(pc), n)
    if op == Operation.PRESENT:
        return step_present(ctl, Present(pc), n)
    if op == Operation.DELAY:
        late = Delay(pc)
        delay_values(register(ctl, late.value), register(ctl, late.iteration), late.ordered, late.advance, n)
        return n
    if op == Operation.ANY:
        wanted = HasAny(pc)
        index = wanted.index
        groups = register(ctl, wanted.group)
        kept = 0
        for i in range(n):
            if i + 2 * GROUPS_AHEAD < n:
                warm_group(index, groups[i + 2 * GROUPS_AHEAD])
            group = groups[i]
            scratch_block(ctl, 0)[kept] = i
            if group >= 0 and slab_at(index, group).count > 0:
                kept += 1
        return keep_rows(ctl, wanted.registers, wanted.live, kept, n)
    return step_value(ctl, ValueOf(pc), n)


@kernel
def delay_values(values: Words, iterations: Words, ordered, advance, n):
    """Has values enter a minimum no earlier than is their turn, so that most are the least of their groups when they do, and no
    greater one has to be taken back. The sink adds `advance`."""
    for i in range(n):
        value = values[i]
        if ordered != 0:
            iterations[i] = max(iterations[i], iteration_in_order(value) - advance)
        else:
            iterations[i] = iteration_apart(value)


@kernel
def iteration_apart(value):
    """When a value enters: values of as many bits together, those of fewer bits earlier, by more iterations than most graphs
    are wide. Negative numbers, and unsigned ones with their bits, enter at once."""
    return bit_length(value) * SPACING if value > 0 else 0


@kernel
def iteration_in_order(value):
    """When a value enters: small values one after the other, greater ones with those that share their first nine bits."""
    if value < 2 * SPACING:
        return max(value, 0)
    shift = bit_length(value) - bit_length(SPACING)
    return shift * SPACING + (value >> shift)


@kernel
def step_row(ctl: Control, pc: HasRow, n):
    """Keeps rows whose key is a row of the collection, and its number."""
    count = pc.live
    target = register(ctl, pc.row)
    find_block(ctl, pc.collection, behind(pc.registers, count), n, target, False)
    chosen = scratch_block(ctl, 0)
    kept = 0
    for i in range(n):
        chosen[kept] = i
        kept += 1 if target[i] >= 0 else 0
    return keep_rows(ctl, pc.registers, count, kept, n)


@kernel
def step_present(ctl: Control, pc: Present, n):
    """Keeps rows whose key is (not) present; rows that the instruction's own proposer chose are kept unasked."""
    wanted = pc.is_positive
    neu = pc.neu
    times = register(ctl, pc.time)
    own = pc.proposer
    choice = register(ctl, pc.choice)
    count = pc.live
    history = pc.collection.outer
    rows = scratch_block(ctl, 1)
    find_block(ctl, pc.collection, behind(pc.registers, count), n, rows, False)
    chosen = scratch_block(ctl, 0)
    kept = 0
    for i in range(n):
        row = rows[i]
        here = 0
        if row >= 0 and presence(history, row, times[i] + neu) > 0:
            here = 1
        chosen[kept] = i
        if here == wanted or (own >= 0 and choice[i] == own):
            kept += 1
    return keep_rows(ctl, pc.registers, count, kept, n)


@kernel
def step_value(ctl: Control, pc: ValueOf, n):
    """The value of the one row of the group that is present, or the default, or the row is dropped."""
    index = pc.index
    groups = register(ctl, pc.group)
    neu = pc.neu
    times = register(ctl, pc.time)
    column = pc.column
    target = register(ctl, pc.target)
    collection = index.collection
    history = collection.outer
    kept = 0
    begin_groups(index, groups, n)
    for i in range(n):
        warm_groups(index, groups, i, n)
        row = present_row(index, history, groups[i], times[i] + neu)
        value = pc.default
        if row >= 0:
            value = cell(collection, column, row)
        target[i] = value
        scratch_block(ctl, 0)[kept] = i
        if row >= 0 or pc.has_default != 0:
            kept += 1
    return keep_rows(ctl, pc.registers, pc.live, kept, n)


@kernel
def present_row(index: Index, history: History, group, limit):
    """The first row of a group that is present before `limit`, or -1."""
    if group < 0:
        return -1
    slab = slab_at(index, group)
    start = slab_first(slab)
    for at in range(start, start + max(slab.count, 0)):
        row = row_at(index.pool, at)
        if presence(history, row, limit) > 0:
            return row
    return -1
