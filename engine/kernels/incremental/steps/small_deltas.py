"""Paths of one look-up, or none, over few changes, row by row.

In small rounds most runs of a recursive scope's paths have a change or two: going through blocks, each instruction would cost
more than what it does. Here a row is the first of its block, and each instruction is run on it alone. Only paths of one level
or two, whose instructions are all in compiled code, have `few` set (lower_rounds).
"""

from __future__ import annotations

from dlog.engine.kernels.arithmetic import Arithmetic
from dlog.engine.kernels.codes import Few, Operation
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.structs import Array
from dlog.engine.kernels.incremental.loop.activation import touch_reduced
from dlog.engine.kernels.incremental.reduce.candidates import begin_lists, candidate_row
from dlog.engine.kernels.incremental.reduce.derivations import derive_candidate
from dlog.engine.kernels.incremental.steps.contributions import begin_results
from dlog.engine.kernels.incremental.steps.derive import derive
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.direct import are_many, find_direct, has_place, prefetch_direct
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.histories import entry_at, first_entry, has_marked, presence, settled_time
from dlog.engine.kernels.incremental.store.implied import cell_at
from dlog.engine.kernels.instructions import Binds, Compute, FindIndexGroup, Instruction, Reduce, RowsOf, ScanChanges
from dlog.engine.kernels.layout import REGISTER
from dlog.engine.kernels.machine import step
from dlog.engine.kernels.machine_structs import Column, Numbers, Words
from dlog.engine.kernels.round_structs import Control, Path, Reduction
from dlog.engine.kernels.row_structs import Change, History, Slab
from dlog.engine.kernels.static.storage import load_cell, scratch_block

MAX_CHANGES = 64
"""Changes up to which a path goes through them row by row."""
MAX_GROUP_ROWS = 256
"""Rows of a group up to which they are gone through row by row."""
MIN_PREFETCHED_ROWS = 4
"""Rows of a group from which on what they lead to is asked for first."""
_ITERATION = 0xFFFFFFFF


@kernel
def run_few(path: Path, ctl: Control, first, last):
    """Runs a path over its seed's changes [first, last). Returns the first one that is left, for blocks: `last` if none is; -1
    with ctl.error set."""
    changes = path.list
    upper = ScanChanges(path.code[0])
    many = last - first > MAX_CHANGES or ctl.work > ctl.budget
    if path.few == Few.NOT or many:
        return first
    seed = upper.collection
    if not changes.data or seed.grouped or seed.packed != 0:
        return first
    ctl.run_path = path
    registers = ctl.registers
    if path.few == Few.ALONE:
        return last if run_alone(path, ctl, registers, upper, first, last) else -1
    lower = RowsOf(path.code[1])
    for at in range(first, last):
        passed = take_change(ctl, registers, upper, changes.data[at])
        if passed > 0:
            group = value_at(registers, lower.group)[0]
            if group >= 0:
                slab = slab_at(lower.index, group)
                if slab.count > MAX_GROUP_ROWS:
                    return at  # nothing has come of this change yet: blocks begin with it
                way = path.few
                if way == Few.VALUE:
                    passed = join_values(ctl, registers, lower, slab, path.key)
                else:
                    passed = join_slab(ctl, registers, lower, slab, way == Few.SHARED)
        if passed < 0:
            ctl.error_path = path.address
            return -1
    return last


@kernel
def run_alone(path: Path, ctl: Control, registers, code: ScanChanges, first, last):
    """Runs a path of one level over its seed's changes [first, last); false with ctl.error set."""
    changes = path.list
    ctl.work = ctl.work + (last - first) * 8
    for at in range(first, last):
        bring_change(registers, code, changes.data[at])
        if not finish_row(ctl, registers, following(code)):
            ctl.error_path = path.address
            return False
    return True


@kernel
def value_at(registers, number) -> Words:
    """Address of the row's value in a register."""
    return Words(registers + number * (REGISTER * 8))


@kernel
def take_change(ctl: Control, registers, code: ScanChanges, change: Change):
    """The first of two levels for a change: 1 if it passes, 0 if not, -1 with ctl.error set."""
    bring_change(registers, code, change)
    pc = following(code)
    while pc.operation != Operation.NEXT:
        passed = step_one(ctl, registers, pc)
        if passed <= 0:
            return passed
        pc = following(pc)
    return 1


@kernel
def bring_change(registers, code: ScanChanges, change: Change):
    """Brings a change to registers: its row's values, time and diff."""
    time = change.time
    diff = change.diff
    value_at(registers, code.time)[0] = time
    if code.iteration >= 0:
        value_at(registers, code.iteration)[0] = time & _ITERATION
    value_at(registers, code.diff)[0] = -diff if code.negated != 0 else diff
    take_columns(registers, code.collection.columns, code.binds, code.bound, change.row)


@kernel
def take_columns(registers, columns: Array[Column], binds: Binds, count, row):
    """Brings columns of a row to registers: as many as `count`."""
    for c in range(count):
        column = columns[binds[c].column]
        value = cell_at(column, row)
        value_at(registers, binds[c].target)[0] = value


@kernel
def following(pc: Instruction) -> Instruction:
    return Instruction(pc.address + pc.length * 8)


@kernel
def step_one(ctl: Control, registers, pc: Instruction):
    """Runs an instruction on the row: 1 if it is kept, 0 if not, -1 with ctl.error set."""
    op = pc.operation
    if op == Operation.ARITHMETIC and Compute(pc).function == Arithmetic.ADD:
        left = value_at(registers, Compute(pc).left)[0]
        right = value_at(registers, Compute(pc).right)[0]
        value_at(registers, Compute(pc).target)[0] = left + right
        return 1
    if op == Operation.INDEX:
        sought = FindIndexGroup(pc)
        index = sought.index
        if index.dense != 0 and index.key_count == 1:
            group = value_at(registers, sought.keys[0])[0] - index.low
            known = 0 <= group < index.groups
            value_at(registers, sought.group)[0] = group if known else -1
            return 1
    return step(ctl, pc, 1)


@kernel
def carry(registers, code: RowsOf):
    """Carries over what the path's second level takes from the first."""
    for c in range(code.carried):
        value = value_at(registers, code.moves[c].source)[0]
        value_at(registers, code.moves[c].target)[0] = value


@kernel
def join_slab(ctl: Control, registers, code: RowsOf, slab: Slab, shared):
    """The path's second level for the rows of a group (see `joins.rows_of`), which may share what is carried over: 1, or -1
    with ctl.error set."""
    carry(registers, code)
    index = code.index
    collection = index.collection
    columns = collection.columns
    pool = index.pool
    limit = value_at(registers, code.time)[0] + code.neu  # of what is seen (joins.py)
    inner = code.inner != 0
    history = collection.inner if inner else collection.outer
    bits = history.bits
    marked = has_marked(history)
    plain = history.base < limit
    start = slab_first(slab)
    count = slab.count
    ctl.work = ctl.work + count + 8
    for at in range(start, start + count):
        row = row_at(pool, at)
        if not shared:
            carry(registers, code)  # again: the row before may have changed what was carried over
        if inner:
            done = join_entries(ctl, registers, code, columns, history, row, limit)
        elif plain if not marked or get_bit(bits, row) == 0 else presence(history, row, limit) > 0:
            done = join_row(ctl, registers, code, columns, row)
        else:
            done = True
        if not done:
            return -1
    return 1


@kernel
def join_values(ctl: Control, registers, code: RowsOf, slab: Slab, key):
    """`join_slab` where each row contributes a value that is carried over to the lattice's group by one of its columns."""
    carry(registers, code)
    sink = Reduce(following(code))
    reduction = sink.reduction
    groups = reduction.groups
    iteration = value_at(registers, sink.iteration)[0] + sink.advance
    diff = value_at(registers, sink.diff)[0]
    value = value_at(registers, sink.value)[0]
    index = code.index
    collection = index.collection
    columns = collection.columns
    column = columns[key]
    data = column.data
    width = column.width
    pool = index.pool
    limit = value_at(registers, code.time)[0] + code.neu
    history = collection.outer
    bits = history.bits
    marked = has_marked(history)
    plain = history.base < limit
    start = slab_first(slab)
    count = slab.count
    ctl.work = ctl.work + count + 8
    if count > 0:
        touch_reduced(ctl, reduction)
    if count >= MIN_PREFETCHED_ROWS and are_many(groups):
        warm_values(ctl, reduction, pool, start, count, data, width, value)
    for at in range(start, start + count):
        row = row_at(pool, at)
        if plain if not marked or get_bit(bits, row) == 0 else presence(history, row, limit) > 0:
            group = find_direct(groups, load_cell(data, width, row))
            if group >= 0:  # else the group is to be made, which the sink does
                done = contribute(ctl, reduction, group, value, iteration, diff)
            else:
                done = join_row(ctl, registers, code, columns, row)
            if not done:
                return -1
    return 1


@kernel
def warm_values(ctl: Control, reduction: Reduction, pool: Numbers, start, count, data, width, value):
    """Asks for what contributing a value to the groups by a column of a slab's rows will touch."""
    groups = reduction.groups
    rows = scratch_block(ctl, 1)
    values = scratch_block(ctl, 3)
    for i in range(count):
        key = load_cell(data, width, row_at(pool, start + i))
        rows[i] = key
        if has_place(groups, key):
            prefetch_direct(groups, key)
    known = 0
    for i in range(count):
        group = find_direct(groups, rows[i])
        rows[known] = group
        values[known] = value
        known += 1 if group >= 0 else 0
    begin_lists(ctl, reduction, values, known, rows)
    begin_results(reduction, known, rows)


@kernel
def contribute(ctl: Control, reduction: Reduction, group, value, iteration, diff):
    """Adds derivations of a value in a lattice's group; false with ctl.error set."""
    row = candidate_row(ctl, reduction, group, value)
    return row >= 0 and derive_candidate(ctl, reduction, group, row, iteration, diff)


@kernel
def join_entries(ctl: Control, registers, code: RowsOf, columns: Array[Column], history: History, row, limit):
    """`join_row` for each entry before a limit of a row of the own scope; false with ctl.error set."""
    if get_bit(history.bits, row) == 0:
        return join_entry(ctl, registers, code, columns, row, settled_time(history, row), 1, limit)
    at = first_entry(history, row)
    while at != 0:
        entry = entry_at(history, at)
        at = entry.next
        if not join_entry(ctl, registers, code, columns, row, entry.time, entry.diff, limit):
            return False
    return True


@kernel
def join_entry(ctl: Control, registers, code: RowsOf, columns: Array[Column], row, time, diff, limit):
    if time >= limit:
        return True
    iteration = value_at(registers, code.iteration)[0]
    product = value_at(registers, code.diff)[0] * diff
    value_at(registers, code.latest)[0] = max(iteration, time & _ITERATION)
    value_at(registers, code.product)[0] = product
    return join_row(ctl, registers, code, columns, row)


@kernel
def join_row(ctl: Control, registers, code: RowsOf, columns: Array[Column], row):
    """All that the path's second level does with a row; false with ctl.error set."""
    take_columns(registers, columns, Binds(code.moves[code.carried]), code.bound, row)
    return finish_row(ctl, registers, following(code))


@kernel
def finish_row(ctl: Control, registers, pc: Instruction):
    """Runs the last level's instructions on the row, the sinks included; false with ctl.error set."""
    while True:
        while pc.operation < Operation.DERIVE:
            passed = step_one(ctl, registers, pc)
            if passed <= 0:
                return passed == 0
            pc = following(pc)
        if not derive_one(ctl, registers, Reduce(pc)):
            return False
        if pc.operation != Operation.REDUCE_AND:
            return True
        pc = following(pc)


@kernel
def derive_one(ctl: Control, registers, pc: Reduce):
    """Runs a sink on the row; false with ctl.error set."""
    reduction = pc.reduction
    if pc.operation != Operation.REDUCE or not reduction.candidates:
        return derive(ctl, pc, 1)
    groups = reduction.groups
    if not reduction.candidates.scope or groups.direct.count == 0:
        return derive(ctl, pc, 1)
    group = find_direct(groups, value_at(registers, pc.keys[0])[0])
    if group < 0:
        return derive(ctl, pc, 1)
    iteration = pc.advance
    if pc.iteration >= 0:
        iteration += value_at(registers, pc.iteration)[0]
    value = value_at(registers, pc.value)[0]
    touch_reduced(ctl, reduction)
    return contribute(ctl, reduction, group, value, iteration, value_at(registers, pc.diff)[0])
