"""Paths of one look-up over few changes, row by row.

In small rounds most runs of a recursive scope's paths have a change or two: going through blocks, each instruction would cost
more than what it does. Here a row is the first of its block, and each instruction is run on it alone. Only paths of two levels,
whose instructions are all in compiled code, have PATH_FEW set (lower_rounds).
"""

from __future__ import annotations

from dlog.engine.kernels.arithmetic import Arithmetic
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i64
from dlog.engine.kernels.incremental.loop.activation import touch_reduced
from dlog.engine.kernels.incremental.reduce.candidates import candidate_row, warm_candidates
from dlog.engine.kernels.incremental.reduce.derivations import derive_candidate
from dlog.engine.kernels.incremental.steps.derive import derive, warm_results
from dlog.engine.kernels.incremental.steps.finding import scratch_block
from dlog.engine.kernels.incremental.store.direct import are_many, find_direct, has_place, prefetch_direct
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.histories import entry_at, first_entry, get_bit, has_marked, presence, settled_time
from dlog.engine.kernels.incremental.store.implied import cell_at
from dlog.engine.kernels.incremental.store.lists import change_at
from dlog.engine.kernels.layout import (
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_TIME,
    CO_DIRECT_COUNT,
    CO_GROUPED,
    CO_INNER,
    CO_OUTER,
    CO_PACKED,
    CO_SCOPE,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    CTL_BUDGET,
    CTL_ERROR_PATH,
    CTL_REGISTERS,
    CTL_RUN_PATH,
    CTL_WORK,
    ENTRY_DIFF,
    ENTRY_NEXT,
    ENTRY_TIME,
    FEW_SHARED,
    FEW_VALUE,
    HI_BASE,
    HI_BITS,
    IX_COLLECTION,
    IX_DENSE,
    IX_GROUPS,
    IX_KEY_COUNT,
    IX_LOW,
    IX_POOL,
    IXS_COUNT,
    LIST_DATA,
    OP_ARITHMETIC,
    OP_DERIVE,
    OP_INDEX,
    OP_NEXT,
    OP_REDUCE,
    PATH_CODE,
    PATH_FEW,
    PATH_KEY,
    PATH_LIST,
    RD_CANDIDATES,
    RD_GROUPS,
    REGISTER,
    REL_COLUMNS,
)
from dlog.engine.kernels.machine import step
from dlog.engine.kernels.static.storage import load_cell

FEW = 64
"""Changes up to which a path goes through them row by row."""
SHORT = 256
"""Rows of a group up to which they are gone through row by row."""
SEVERAL = 4
"""Rows of a group from which on what they lead to is asked for first."""
_ITERATION = 0xFFFFFFFF


@kernel
def run_few(path, ctl, first, last):
    """Runs a path over its seed's changes [first, last). Returns the first one that is left, for blocks: `last` if none is; -1
    with CTL_ERROR set."""
    changes = load_i64(path, PATH_LIST)
    upper = load_i64(load_i64(path, PATH_CODE), 0)
    many = last - first > FEW or load_i64(ctl, CTL_WORK) > load_i64(ctl, CTL_BUDGET)
    if load_i64(path, PATH_FEW) == 0 or many:
        return first
    seed = load_i64(upper, 2)
    if load_i64(changes, LIST_DATA) == 0 or load_i64(seed, CO_GROUPED) != 0 or load_i64(seed, CO_PACKED) != 0:
        return first
    store_i64(ctl, CTL_RUN_PATH, path)
    lower = load_i64(load_i64(path, PATH_CODE), 1)
    registers = load_i64(ctl, CTL_REGISTERS)
    for at in range(first, last):
        passed = take_change(ctl, registers, upper, change_at(changes, at))
        if passed > 0:
            group = load_i64(value_at(registers, load_i64(lower, 3)), 0)
            if group >= 0:
                slab = slab_at(load_i64(lower, 2), group)
                if load_i32(slab, IXS_COUNT) > SHORT:
                    return at
                way = load_i64(path, PATH_FEW)
                if way == FEW_VALUE:
                    passed = join_values(ctl, registers, lower, slab, load_i64(path, PATH_KEY))
                else:
                    passed = join_slab(ctl, registers, lower, slab, way == FEW_SHARED)
        if passed < 0:
            store_i64(ctl, CTL_ERROR_PATH, path)
            return -1
    return last


@kernel
def value_at(registers, number):
    """Address of the row's value in a register."""
    return registers + number * (REGISTER * 8)


@kernel
def take_change(ctl, registers, code, change):
    """The path's first level for a change: 1 if it passes, 0 if not, -1 with CTL_ERROR set."""
    time = load_i64(change, CHANGE_TIME)
    diff = load_i64(change, CHANGE_DIFF)
    row = load_i64(change, CHANGE_ROW)
    store_i64(value_at(registers, load_i64(code, 5)), 0, time)
    if load_i64(code, 6) >= 0:
        store_i64(value_at(registers, load_i64(code, 6)), 0, time & _ITERATION)
    store_i64(value_at(registers, load_i64(code, 7)), 0, -diff if load_i64(code, 4) != 0 else diff)
    columns = load_i64(load_i64(code, 2), REL_COLUMNS)
    take_columns(registers, columns, code + 72, load_i64(code, 8), row)
    pc = code + load_i64(code, 1) * 8
    while load_i64(pc, 0) != OP_NEXT:
        passed = step_one(ctl, registers, pc)
        if passed <= 0:
            return passed
        pc += load_i64(pc, 1) * 8
    return 1


@kernel
def take_columns(registers, columns, pairs, count, row):
    """Brings columns of a row to registers: `count` (column, register) pairs."""
    for c in range(count):
        column = columns + load_i64(pairs, c * 2) * COL_SIZE * 8
        value = cell_at(column, row)
        store_i64(value_at(registers, load_i64(pairs, c * 2 + 1)), 0, value)


@kernel
def step_one(ctl, registers, pc):
    """Runs an instruction on the row: 1 if it is kept, 0 if not, -1 with CTL_ERROR set."""
    op = load_i64(pc, 0)
    if op == OP_ARITHMETIC and load_i64(pc, 2) == Arithmetic.ADD:
        left = load_i64(value_at(registers, load_i64(pc, 3)), 0)
        right = load_i64(value_at(registers, load_i64(pc, 4)), 0)
        store_i64(value_at(registers, load_i64(pc, 5)), 0, left + right)
        return 1
    if op == OP_INDEX:
        index = load_i64(pc, 2)
        if load_i64(index, IX_DENSE) != 0 and load_i64(index, IX_KEY_COUNT) == 1:
            group = load_i64(value_at(registers, load_i64(pc, 4)), 0) - load_i64(index, IX_LOW)
            known = 0 <= group < load_i64(index, IX_GROUPS)
            store_i64(value_at(registers, load_i64(pc, 3)), 0, group if known else -1)
            return 1
    return step(ctl, pc, 1)


@kernel
def carry(registers, code):
    """Carries over what the path's second level takes from the first."""
    for c in range(load_i64(code, 11)):
        value = load_i64(value_at(registers, load_i64(code, 13 + c * 2)), 0)
        store_i64(value_at(registers, load_i64(code, 14 + c * 2)), 0, value)


@kernel
def join_slab(ctl, registers, code, slab, shared):
    """The path's second level for the rows of a group (see `lookups.rows_of`), which may share what is carried over: 1, or -1
    with CTL_ERROR set."""
    carry(registers, code)
    index = load_i64(code, 2)
    collection = load_i64(index, IX_COLLECTION)
    columns = load_i64(collection, REL_COLUMNS)
    pool = load_i64(index, IX_POOL)
    limit = load_i64(value_at(registers, load_i64(code, 5)), 0) + load_i64(code, 4)
    inner = load_i64(code, 6) != 0
    history = load_i64(collection, CO_INNER if inner else CO_OUTER)
    bits = load_i64(history, HI_BITS)
    marked = has_marked(history)
    plain = load_i64(history, HI_BASE) < limit
    start = slab_first(slab)
    count = load_i32(slab, IXS_COUNT)
    store_i64(ctl, CTL_WORK, load_i64(ctl, CTL_WORK) + count + 8)
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
def join_values(ctl, registers, code, slab, key):
    """`join_slab` where each row contributes a value that is carried over to the lattice's group by one of its columns."""
    carry(registers, code)
    sink = code + load_i64(code, 1) * 8
    reduction = load_i64(sink, 2)
    groups = load_i64(reduction, RD_GROUPS)
    iteration = load_i64(value_at(registers, load_i64(sink, 4)), 0) + load_i64(sink, 6)
    diff = load_i64(value_at(registers, load_i64(sink, 5)), 0)
    value = load_i64(value_at(registers, load_i64(sink, 7)), 0)
    index = load_i64(code, 2)
    collection = load_i64(index, IX_COLLECTION)
    columns = load_i64(collection, REL_COLUMNS)
    column = columns + key * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    pool = load_i64(index, IX_POOL)
    limit = load_i64(value_at(registers, load_i64(code, 5)), 0) + load_i64(code, 4)
    history = load_i64(collection, CO_OUTER)
    bits = load_i64(history, HI_BITS)
    marked = has_marked(history)
    plain = load_i64(history, HI_BASE) < limit
    start = slab_first(slab)
    count = load_i32(slab, IXS_COUNT)
    store_i64(ctl, CTL_WORK, load_i64(ctl, CTL_WORK) + count + 8)
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
def warm_values(ctl, reduction, pool, start, count, data, width, value):
    """Asks for what contributing a value to the groups by a column of a slab's rows will touch."""
    groups = load_i64(reduction, RD_GROUPS)
    rows = scratch_block(ctl, 1)
    values = scratch_block(ctl, 3)
    for i in range(count):
        key = load_cell(data, width, row_at(pool, start + i))
        store_i64(rows, i, key)
        if has_place(groups, key):
            prefetch_direct(groups, key)
    known = 0
    for i in range(count):
        group = find_direct(groups, load_i64(rows, i))
        store_i64(rows, known, group)
        store_i64(values, known, value)
        known += 1 if group >= 0 else 0
    warm_candidates(reduction, values, known, rows)
    warm_results(reduction, known, rows)


@kernel
def contribute(ctl, reduction, group, value, iteration, diff):
    """Adds derivations of a value in a lattice's group; false with CTL_ERROR set."""
    row = candidate_row(ctl, reduction, group, value)
    return row >= 0 and derive_candidate(ctl, reduction, group, row, iteration, diff)


@kernel
def join_entries(ctl, registers, code, columns, history, row, limit):
    """`join_row` for each entry before a limit of a row of the own scope; false with CTL_ERROR set."""
    if get_bit(load_i64(history, HI_BITS), row) == 0:
        return join_entry(ctl, registers, code, columns, row, settled_time(history, row), 1, limit)
    at = first_entry(history, row)
    while at != 0:
        entry = entry_at(history, at)
        at = load_i64(entry, ENTRY_NEXT)
        if not join_entry(ctl, registers, code, columns, row, load_i64(entry, ENTRY_TIME), load_i64(entry, ENTRY_DIFF), limit):
            return False
    return True


@kernel
def join_entry(ctl, registers, code, columns, row, time, diff, limit):
    if time >= limit:
        return True
    iteration = load_i64(value_at(registers, load_i64(code, 7)), 0)
    product = load_i64(value_at(registers, load_i64(code, 8)), 0) * diff
    store_i64(value_at(registers, load_i64(code, 9)), 0, max(iteration, time & _ITERATION))
    store_i64(value_at(registers, load_i64(code, 10)), 0, product)
    return join_row(ctl, registers, code, columns, row)


@kernel
def join_row(ctl, registers, code, columns, row):
    """All that the path's second level does with a row; false with CTL_ERROR set."""
    take_columns(registers, columns, code + 104 + load_i64(code, 11) * 16, load_i64(code, 12), row)
    pc = code + load_i64(code, 1) * 8
    while load_i64(pc, 0) < OP_DERIVE:
        passed = step_one(ctl, registers, pc)
        if passed <= 0:
            return passed == 0
        pc += load_i64(pc, 1) * 8
    return derive_one(ctl, registers, pc)


@kernel
def derive_one(ctl, registers, pc):
    """Runs a sink on the row; false with CTL_ERROR set."""
    reduction = load_i64(pc, 2)
    if load_i64(pc, 0) != OP_REDUCE or load_i64(reduction, RD_CANDIDATES) == 0:
        return derive(ctl, pc, 1)
    groups = load_i64(reduction, RD_GROUPS)
    if load_i64(load_i64(reduction, RD_CANDIDATES), CO_SCOPE) == 0 or load_i64(groups, CO_DIRECT_COUNT) == 0:
        return derive(ctl, pc, 1)
    group = find_direct(groups, load_i64(value_at(registers, load_i64(pc, 8)), 0))
    if group < 0:
        return derive(ctl, pc, 1)
    iteration = load_i64(pc, 6)
    if load_i64(pc, 4) >= 0:
        iteration += load_i64(value_at(registers, load_i64(pc, 4)), 0)
    value = load_i64(value_at(registers, load_i64(pc, 7)), 0)
    touch_reduced(ctl, reduction)
    return contribute(ctl, reduction, group, value, iteration, load_i64(value_at(registers, load_i64(pc, 5)), 0))
