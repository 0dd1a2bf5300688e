"""Paths of one look-up over few changes, row by row.

In small rounds most runs of a recursive scope's paths have a change or two: going through blocks, each instruction would cost
more than what it does. Here a row is the first of its block, and each instruction is run on it alone. Only paths of two levels,
whose instructions are all in compiled code, have `few` set (lower_rounds).
"""

from __future__ import annotations

from dlog.engine.kernels.activation import touch_reduced
from dlog.engine.kernels.candidates import candidate_row, warm_candidates
from dlog.engine.kernels.derivations import derive_candidate
from dlog.engine.kernels.derive import derive, warm_results
from dlog.engine.kernels.direct import are_many, find_direct, has_place, prefetch_direct
from dlog.engine.kernels.finding import scratch_block
from dlog.engine.kernels.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.histories import entry_at, first_entry, get_bit, has_marked, presence, settled_time
from dlog.engine.kernels.implied import cell_at
from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    AR_ADD,
    FEW_SHARED,
    FEW_VALUE,
    OP_ARITHMETIC,
    OP_DERIVE,
    OP_INDEX,
    OP_NEXT,
    OP_REDUCE,
    REGISTER,
)
from dlog.engine.kernels.machine import step
from dlog.engine.kernels.machine_structs import Column, Control, Numbers, Path, Relation, Words
from dlog.engine.kernels.memory import load_i64
from dlog.engine.kernels.round_structs import Change, Collection, History, Index, Reduction, Slab
from dlog.engine.kernels.storage import load_cell
from dlog.engine.kernels.structs import Array

FEW = 64
"""Changes up to which a path goes through them row by row."""
SHORT = 256
"""Rows of a group up to which they are gone through row by row."""
SEVERAL = 4
"""Rows of a group from which on what they lead to is asked for first."""
_ITERATION = 0xFFFFFFFF


@kernel
def run_few(path: Path, ctl: Control, first, last):
    """Runs a path over its seed's changes [first, last). Returns the first one that is left, for blocks: `last` if none is; -1
    with ctl.error set."""
    changes = path.list
    upper = path.code[0]
    many = last - first > FEW or ctl.work > ctl.budget
    if path.few == 0 or many:
        return first
    seed = Collection(load_i64(upper, 2))
    if not changes.data or seed.grouped or seed.packed != 0:
        return first
    ctl.run_path = path
    lower = path.code[1]
    registers = ctl.registers
    for at in range(first, last):
        passed = take_change(ctl, registers, upper, changes.data[at])
        if passed > 0:
            group = value_at(registers, load_i64(lower, 3))[0]
            if group >= 0:
                slab = slab_at(Index(load_i64(lower, 2)), group)
                if slab.count > SHORT:
                    return at
                way = path.few
                if way == FEW_VALUE:
                    passed = join_values(ctl, registers, lower, slab, path.key)
                else:
                    passed = join_slab(ctl, registers, lower, slab, way == FEW_SHARED)
        if passed < 0:
            ctl.error_path = path.address
            return -1
    return last


@kernel
def value_at(registers, number) -> Words:
    """Address of the row's value in a register."""
    return Words(registers + number * (REGISTER * 8))


@kernel
def take_change(ctl: Control, registers, code, change: Change):
    """The path's first level for a change: 1 if it passes, 0 if not, -1 with ctl.error set."""
    time = change.time
    diff = change.diff
    row = change.row
    value_at(registers, load_i64(code, 5))[0] = time
    if load_i64(code, 6) >= 0:
        value_at(registers, load_i64(code, 6))[0] = time & _ITERATION
    value_at(registers, load_i64(code, 7))[0] = -diff if load_i64(code, 4) != 0 else diff
    columns = Relation(load_i64(code, 2)).columns
    take_columns(registers, columns, code + 72, load_i64(code, 8), row)
    pc = code + load_i64(code, 1) * 8
    while load_i64(pc, 0) != OP_NEXT:
        passed = step_one(ctl, registers, pc)
        if passed <= 0:
            return passed
        pc += load_i64(pc, 1) * 8
    return 1


@kernel
def take_columns(registers, columns: Array[Column], pairs, count, row):
    """Brings columns of a row to registers: `count` (column, register) pairs."""
    for c in range(count):
        column = columns[load_i64(pairs, c * 2)]
        value = cell_at(column, row)
        value_at(registers, load_i64(pairs, c * 2 + 1))[0] = value


@kernel
def step_one(ctl: Control, registers, pc):
    """Runs an instruction on the row: 1 if it is kept, 0 if not, -1 with ctl.error set."""
    op = load_i64(pc, 0)
    if op == OP_ARITHMETIC and load_i64(pc, 2) == AR_ADD:
        left = value_at(registers, load_i64(pc, 3))[0]
        right = value_at(registers, load_i64(pc, 4))[0]
        value_at(registers, load_i64(pc, 5))[0] = left + right
        return 1
    if op == OP_INDEX:
        index = Index(load_i64(pc, 2))
        if index.dense != 0 and index.key_count == 1:
            group = value_at(registers, load_i64(pc, 4))[0] - index.low
            known = 0 <= group < index.groups
            value_at(registers, load_i64(pc, 3))[0] = group if known else -1
            return 1
    return step(ctl, pc, 1)


@kernel
def carry(registers, code):
    """Carries over what the path's second level takes from the first."""
    for c in range(load_i64(code, 11)):
        value = value_at(registers, load_i64(code, 13 + c * 2))[0]
        value_at(registers, load_i64(code, 14 + c * 2))[0] = value


@kernel
def join_slab(ctl: Control, registers, code, slab: Slab, shared):
    """The path's second level for the rows of a group (see `lookups.rows_of`), which may share what is carried over: 1, or -1
    with ctl.error set."""
    carry(registers, code)
    index = Index(load_i64(code, 2))
    collection = index.collection
    columns = collection.columns
    pool = index.pool
    limit = value_at(registers, load_i64(code, 5))[0] + load_i64(code, 4)
    inner = load_i64(code, 6) != 0
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
            carry(registers, code)
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
def join_values(ctl: Control, registers, code, slab: Slab, key):
    """`join_slab` where each row contributes a value that is carried over to the lattice's group by one of its columns."""
    carry(registers, code)
    sink = code + load_i64(code, 1) * 8
    reduction = Reduction(load_i64(sink, 2))
    groups = reduction.groups
    iteration = value_at(registers, load_i64(sink, 4))[0] + load_i64(sink, 6)
    diff = value_at(registers, load_i64(sink, 5))[0]
    value = value_at(registers, load_i64(sink, 7))[0]
    index = Index(load_i64(code, 2))
    collection = index.collection
    columns = collection.columns
    column = columns[key]
    data = column.data
    width = column.width
    pool = index.pool
    limit = value_at(registers, load_i64(code, 5))[0] + load_i64(code, 4)
    history = collection.outer
    bits = history.bits
    marked = has_marked(history)
    plain = history.base < limit
    start = slab_first(slab)
    count = slab.count
    ctl.work = ctl.work + count + 8
    if count > 0:
        touch_reduced(ctl, reduction)
    if count >= SEVERAL and are_many(groups):
        warm_values(ctl, reduction, pool, start, count, data, width, value)
    for at in range(start, start + count):
        row = row_at(pool, at)
        if plain if not marked or get_bit(bits, row) == 0 else presence(history, row, limit) > 0:
            group = find_direct(groups, load_cell(data, width, row))
            if group >= 0:
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
    warm_candidates(reduction, values, known, rows)
    warm_results(reduction, known, rows)


@kernel
def contribute(ctl: Control, reduction: Reduction, group, value, iteration, diff):
    """Adds derivations of a value in a lattice's group; false with ctl.error set."""
    row = candidate_row(ctl, reduction, group, value)
    return row >= 0 and derive_candidate(ctl, reduction, group, row, iteration, diff)


@kernel
def join_entries(ctl: Control, registers, code, columns: Array[Column], history: History, row, limit):
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
def join_entry(ctl: Control, registers, code, columns: Array[Column], row, time, diff, limit):
    if time >= limit:
        return True
    iteration = value_at(registers, load_i64(code, 7))[0]
    product = value_at(registers, load_i64(code, 8))[0] * diff
    value_at(registers, load_i64(code, 9))[0] = max(iteration, time & _ITERATION)
    value_at(registers, load_i64(code, 10))[0] = product
    return join_row(ctl, registers, code, columns, row)


@kernel
def join_row(ctl: Control, registers, code, columns: Array[Column], row):
    """All that the path's second level does with a row; false with ctl.error set."""
    take_columns(registers, columns, code + 104 + load_i64(code, 11) * 16, load_i64(code, 12), row)
    pc = code + load_i64(code, 1) * 8
    while load_i64(pc, 0) < OP_DERIVE:
        passed = step_one(ctl, registers, pc)
        if passed <= 0:
            return passed == 0
        pc += load_i64(pc, 1) * 8
    return derive_one(ctl, registers, pc)


@kernel
def derive_one(ctl: Control, registers, pc):
    """Runs a sink on the row; false with ctl.error set."""
    reduction = Reduction(load_i64(pc, 2))
    if load_i64(pc, 0) != OP_REDUCE or not reduction.candidates:
        return derive(ctl, pc, 1)
    groups = reduction.groups
    if not reduction.candidates.scope or groups.direct_count == 0:
        return derive(ctl, pc, 1)
    group = find_direct(groups, value_at(registers, load_i64(pc, 8))[0])
    if group < 0:
        return derive(ctl, pc, 1)
    iteration = load_i64(pc, 6)
    if load_i64(pc, 4) >= 0:
        iteration += value_at(registers, load_i64(pc, 4))[0]
    value = value_at(registers, load_i64(pc, 7))[0]
    touch_reduced(ctl, reduction)
    return contribute(ctl, reduction, group, value, iteration, value_at(registers, load_i64(pc, 5))[0])
