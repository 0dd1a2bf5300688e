"""Instructions of paths over rounds: seeds of changes, and look-ups in collections at a view.

A block's rows carry three registers besides their variables: T, the time of the change that seeded them; I, the latest
iteration of what they met (partial model only); D, the product of the diffs. A view is `neu` (1) or `alt` (0): entries before
T + 1 or before T. Look-ups in a collection of the own recursive scope (`inner`) read its inner history and meet every entry of
a row; all others ask whether the row is present.
"""

from __future__ import annotations

from dlog.engine.kernels.block import compact, gather
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length, load_i32, load_i64, store_i64
from dlog.engine.kernels.generate import copy_carried
from dlog.engine.kernels.incremental.reduce.grouped import fresh_groups, split_entries
from dlog.engine.kernels.incremental.steps.finding import find_block, scratch_block
from dlog.engine.kernels.incremental.store.collections import cell
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.histories import (
    entry_at,
    first_entry,
    get_bit,
    has_marked,
    is_here,
    presence,
    settled_time,
)
from dlog.engine.kernels.incremental.store.implied import gather_keys
from dlog.engine.kernels.incremental.store.indexes import find_index_groups
from dlog.engine.kernels.incremental.store.pairs import fresh_pairs, unpack_column
from dlog.engine.kernels.layout import (
    BLOCK,
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CHANGE_VALUE,
    CO_GROUPED,
    CO_INNER,
    CO_LOG,
    CO_OUTER,
    CO_PACKED,
    COL_WIDTH,
    ENTRY_DIFF,
    ENTRY_NEXT,
    ENTRY_TIME,
    HI_BASE,
    HI_BITS,
    IMPLIED,
    IX_COLLECTION,
    IX_POOL,
    IXS_COUNT,
    LEVEL_AT,
    LEVEL_END,
    LEVEL_EXTRA,
    LEVEL_ROW,
    LEVEL_ROWS,
    LIST_DATA,
    OP_ANY,
    OP_INDEX,
    OP_PRESENT,
    OP_ROW,
    OP_STAGGER,
    RD_GROUPS,
    RD_VALUE,
    ROUND,
)
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.storage import register

_ITERATION = 0xFFFFFFFF
SPACING = 256
"""Iterations between values of different numbers of bits that enter a minimum, a power of two."""


@kernel
def scan_changes(ctl, code, level):
    """[op, length, collection, list, negated, T, I or -1, D, columns, (column, dst)*]: the list's part in use."""
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    n = min(BLOCK, end - at)
    if n <= 0:
        return 0
    collection = load_i64(code, 2)
    sign = -1 if load_i64(code, 4) != 0 else 1
    times = register(ctl, load_i64(code, 5))
    diffs = register(ctl, load_i64(code, 7))
    rows = scratch_block(ctl, 0)
    changes = load_i64(code, 3)
    data = load_i64(changes, LIST_DATA)
    grouped = load_i64(collection, CO_GROUPED)
    packed = load_i64(collection, CO_PACKED) != 0
    values = scratch_block(ctl, 1)
    if data == 0:
        n = 0
        while n == 0 and at < end:
            if grouped != 0:
                n = fresh_groups(grouped, at, min(at + BLOCK, end), rows, values)
            elif packed:
                n = fresh_pairs(collection, at, min(at + BLOCK, end), rows)
            else:
                n = fresh_rows(collection, at, min(at + BLOCK, end), rows)
            at += BLOCK
        store_i64(level, LEVEL_AT, min(at, end))
        for i in range(n):
            store_i64(times, i, ROUND)
            store_i64(diffs, i, sign)
    elif grouped != 0 and changes == load_i64(collection, CO_LOG):
        entries = min(n, BLOCK // 2)
        store_i64(level, LEVEL_AT, at + entries)
        n = split_entries(data + at * (CHANGE_SIZE * 8), entries, sign, rows, times, diffs, values)
    else:
        store_i64(level, LEVEL_AT, at + n)
        for i in range(n):
            change = data + (at + i) * (CHANGE_SIZE * 8)
            store_i64(rows, i, load_i64(change, CHANGE_ROW))
            store_i64(times, i, load_i64(change, CHANGE_TIME))
            store_i64(diffs, i, load_i64(change, CHANGE_DIFF) * sign)
            store_i64(values, i, load_i64(change, CHANGE_VALUE))
    if load_i64(code, 6) >= 0:
        iterations = register(ctl, load_i64(code, 6))
        for i in range(n):
            store_i64(iterations, i, load_i64(times, i) & _ITERATION)
    for c in range(load_i64(code, 8)):
        number = load_i64(code, 9 + c * 2)
        target = register(ctl, load_i64(code, 10 + c * 2))
        if packed:
            unpack_column(rows, number, n, target, 1)
        elif grouped == 0:
            take_cells(column_of(collection, number), rows, n, target)
        else:
            grouped_column(grouped, number, rows, values, n, target)
    return n


@kernel
def take_cells(column, rows, n, target):
    """target[i] = the cell of a collection's column at rows[i]."""
    if load_i64(column, COL_WIDTH) == IMPLIED:
        gather_keys(column, rows, n, target)
    else:
        gather(column, rows, n, target)


@kernel
def grouped_column(reduction, number, rows, values, n, target):
    """A column of changes of a result without rows of its own: a key of their groups, or their values."""
    place = load_i64(reduction, RD_VALUE)
    if number == place:
        for i in range(n):
            store_i64(target, i, load_i64(values, i))
    else:
        gather(column_of(load_i64(reduction, RD_GROUPS), number if number < place else number - 1), rows, n, target)


@kernel
def fresh_rows(collection, first, last, rows):
    """The rows of [first, last) of a fresh collection that are present; returns how many."""
    n = 0
    for row in range(first, last):
        store_i64(rows, n, row)
        if is_here(collection, row):
            n += 1
    return n


@kernel
def once(ctl, code, level):
    """[op, length, T, I or -1, D]: one row, at the first round."""
    if load_i64(level, LEVEL_AT) >= load_i64(level, LEVEL_END):
        return 0
    store_i64(level, LEVEL_AT, 1)
    store_i64(register(ctl, load_i64(code, 2)), 0, ROUND)
    if load_i64(code, 3) >= 0:
        store_i64(register(ctl, load_i64(code, 3)), 0, 0)
    store_i64(register(ctl, load_i64(code, 4)), 0, 1)
    return 1


# ------------------------------------------------------------------------------------------------------------------ rows


@kernel
def rows_of(ctl, code, level):
    """[op, length, index, group, neu, T, inner, I, D, I dst, D dst, carried, bound, (src, dst)*, (column, dst)*]"""
    n = inner_rows(ctl, code, level) if load_i64(code, 6) != 0 else outer_rows(ctl, code, level)
    if n > 0:
        collection = load_i64(load_i64(code, 2), IX_COLLECTION)
        carried = load_i64(code, 11)
        copy_carried(ctl, code + 104, carried, scratch_block(ctl, 0), n)
        pairs = code + 104 + carried * 16
        for c in range(load_i64(code, 12)):
            target = register(ctl, load_i64(pairs, c * 2 + 1))
            take_cells(column_of(collection, load_i64(pairs, c * 2)), scratch_block(ctl, 1), n, target)
    return n


@kernel
def outer_rows(ctl, code, level):
    """Walks the groups' rows that are present at the view; source rows go to scratch 0, row numbers to scratch 1."""
    index = load_i64(code, 2)
    groups = register(ctl, load_i64(code, 3))
    neu = load_i64(code, 4)
    times = register(ctl, load_i64(code, 5))
    history = load_i64(load_i64(index, IX_COLLECTION), CO_OUTER)
    bits = load_i64(history, HI_BITS)
    base = load_i64(history, HI_BASE)
    marked = has_marked(history)
    pool = load_i64(index, IX_POOL)
    source = scratch_block(ctl, 0)
    found = scratch_block(ctl, 1)
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    n = 0
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            group = load_i64(groups, row)
            if group >= 0:
                slab = slab_at(index, group)
                at = slab_first(slab)
                end = at + max(load_i32(slab, IXS_COUNT), 0)
            continue
        limit = load_i64(times, row) + neu
        last = min(end, at + BLOCK - n)
        plain = 1 if base < limit else 0
        while at < last:
            number = row_at(pool, at)
            store_i64(source, n, row)
            store_i64(found, n, number)
            if not marked or get_bit(bits, number) == 0:
                n += plain
            elif presence(history, number, limit) > 0:
                n += 1
            at += 1
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_AT, at)
    store_i64(level, LEVEL_END, end)
    return n


@kernel
def inner_rows(ctl, code, level):
    """As `outer_rows` for the scope's own collections: one match per entry, with its iteration and diff."""
    index = load_i64(code, 2)
    groups = register(ctl, load_i64(code, 3))
    neu = load_i64(code, 4)
    times = register(ctl, load_i64(code, 5))
    iterations = register(ctl, load_i64(code, 7))
    diffs = register(ctl, load_i64(code, 8))
    latest = register(ctl, load_i64(code, 9))
    products = register(ctl, load_i64(code, 10))
    history = load_i64(load_i64(index, IX_COLLECTION), CO_INNER)
    bits = load_i64(history, HI_BITS)
    pool = load_i64(index, IX_POOL)
    source = scratch_block(ctl, 0)
    found = scratch_block(ctl, 1)
    rows = load_i64(level, LEVEL_ROWS)
    row = load_i64(level, LEVEL_ROW)
    at = load_i64(level, LEVEL_AT)
    end = load_i64(level, LEVEL_END)
    extra = load_i64(level, LEVEL_EXTRA)
    n = 0
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            group = load_i64(groups, row)
            if group >= 0:
                slab = slab_at(index, group)
                at = slab_first(slab)
                end = at + max(load_i32(slab, IXS_COUNT), 0)
            continue
        number = row_at(pool, at)
        limit = load_i64(times, row) + neu
        if extra == 0 and get_bit(bits, number) == 0:
            time = settled_time(history, number)
            diff = 1
            at += 1
        else:
            if extra == 0:
                extra = first_entry(history, number)
            if extra == 0:
                at += 1
                continue
            entry = entry_at(history, extra)
            time = load_i64(entry, ENTRY_TIME)
            diff = load_i64(entry, ENTRY_DIFF)
            extra = load_i64(entry, ENTRY_NEXT)
            if extra == 0:
                at += 1
        if time < limit:
            store_i64(source, n, row)
            store_i64(found, n, number)
            store_i64(latest, n, max(load_i64(iterations, row), time & _ITERATION))
            store_i64(products, n, load_i64(diffs, row) * diff)
            n += 1
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_AT, at)
    store_i64(level, LEVEL_END, end)
    store_i64(level, LEVEL_EXTRA, extra)
    return n


@kernel
def entries_of(ctl, code, level):
    """[op, length, collection, row register, neu, T, I, D, I dst, D dst, carried, (src, dst)*]: the inner entries of each block
    row's row of the collection."""
    history = load_i64(load_i64(code, 2), CO_INNER)
    numbers = register(ctl, load_i64(code, 3))
    neu = load_i64(code, 4)
    times = register(ctl, load_i64(code, 5))
    iterations = register(ctl, load_i64(code, 6))
    diffs = register(ctl, load_i64(code, 7))
    latest = register(ctl, load_i64(code, 8))
    products = register(ctl, load_i64(code, 9))
    source = scratch_block(ctl, 0)
    rows = load_i64(level, LEVEL_ROWS)
    row = max(load_i64(level, LEVEL_ROW), 0)
    extra = load_i64(level, LEVEL_EXTRA)
    n = 0
    while n < BLOCK and row < rows:
        number = load_i64(numbers, row)
        limit = load_i64(times, row) + neu
        current = row
        if extra == 0 and get_bit(load_i64(history, HI_BITS), number) == 0:
            time = settled_time(history, number)
            diff = 1
            row += 1
        else:
            if extra == 0:
                extra = first_entry(history, number)
            if extra == 0:
                row += 1
                continue
            entry = entry_at(history, extra)
            time = load_i64(entry, ENTRY_TIME)
            diff = load_i64(entry, ENTRY_DIFF)
            extra = load_i64(entry, ENTRY_NEXT)
            if extra == 0:
                row += 1
        if time < limit:
            store_i64(source, n, current)
            store_i64(latest, n, max(load_i64(iterations, current), time & _ITERATION))
            store_i64(products, n, load_i64(diffs, current) * diff)
            n += 1
    store_i64(level, LEVEL_ROW, row)
    store_i64(level, LEVEL_EXTRA, extra)
    if n > 0:
        copy_carried(ctl, code + 88, load_i64(code, 10), source, n)
    return n


# ----------------------------------------------------------------------------------------------------------------- steps


@kernel
def keep_rows(ctl, live, count, kept, n):
    """Compacts the live registers to the chosen rows (scratch 0), unless all were chosen."""
    if 0 < kept < n:
        compact(ctl, live, count, scratch_block(ctl, 0), kept)
    return kept


@kernel
def step_lookup(ctl, pc, n):
    """Runs one look-up instruction on a block of n rows; returns the rows left."""
    op = load_i64(pc, 0)
    if op == OP_INDEX:
        # [index, dst, key registers ...]
        find_index_groups(load_i64(pc, 2), ctl, pc + 32, n, scratch_block(ctl, 2), register(ctl, load_i64(pc, 3)))
        return n
    if op == OP_ROW:
        return step_row(ctl, pc, n)
    if op == OP_PRESENT:
        return step_present(ctl, pc, n)
    if op == OP_STAGGER:
        stagger(register(ctl, load_i64(pc, 2)), register(ctl, load_i64(pc, 3)), load_i64(pc, 4), load_i64(pc, 5), n)
        return n
    if op == OP_ANY:
        # [index, group register, live count, live ...]
        index = load_i64(pc, 2)
        groups = register(ctl, load_i64(pc, 3))
        kept = 0
        for i in range(n):
            group = load_i64(groups, i)
            store_i64(scratch_block(ctl, 0), kept, i)
            if group >= 0 and load_i32(slab_at(index, group), IXS_COUNT) > 0:
                kept += 1
        return keep_rows(ctl, pc + 40, load_i64(pc, 4), kept, n)
    return step_value(ctl, pc, n)


@kernel
def stagger(values, iterations, ordered, advance, n):
    """[OP_STAGGER, length, value register, I, ordered, advance]: values enter a minimum no earlier than is their turn; the sink
    adds `advance`."""
    for i in range(n):
        value = load_i64(values, i)
        if ordered != 0:
            store_i64(iterations, i, max(load_i64(iterations, i), iteration_in_order(value) - advance))
        else:
            store_i64(iterations, i, iteration_apart(value))


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
def step_row(ctl, pc, n):
    """[collection, dst, live count, live ..., key registers ...]: keeps rows whose key is a row of the collection, and its
    number."""
    count = load_i64(pc, 4)
    target = register(ctl, load_i64(pc, 3))
    find_block(ctl, load_i64(pc, 2), pc + (5 + count) * 8, n, target, False)
    chosen = scratch_block(ctl, 0)
    kept = 0
    for i in range(n):
        store_i64(chosen, kept, i)
        kept += 1 if load_i64(target, i) >= 0 else 0
    return keep_rows(ctl, pc + 40, count, kept, n)


@kernel
def step_present(ctl, pc, n):
    """[collection, wanted, neu, T, own, choice, live count, live ..., key registers ...]: keeps rows whose key is (not)
    present; rows that proposer `own` chose (register `choice`) are kept unasked."""
    wanted = load_i64(pc, 3)
    neu = load_i64(pc, 4)
    times = register(ctl, load_i64(pc, 5))
    own = load_i64(pc, 6)
    choice = register(ctl, load_i64(pc, 7))
    count = load_i64(pc, 8)
    history = load_i64(load_i64(pc, 2), CO_OUTER)
    rows = scratch_block(ctl, 1)
    find_block(ctl, load_i64(pc, 2), pc + (9 + count) * 8, n, rows, False)
    chosen = scratch_block(ctl, 0)
    kept = 0
    for i in range(n):
        row = load_i64(rows, i)
        here = 0
        if row >= 0 and presence(history, row, load_i64(times, i) + neu) > 0:
            here = 1
        store_i64(chosen, kept, i)
        if here == wanted or (own >= 0 and load_i64(choice, i) == own):
            kept += 1
    return keep_rows(ctl, pc + 72, count, kept, n)


@kernel
def step_value(ctl, pc, n):
    """OP_VALUE: [index, group, neu, T, column, dst, has default, default, live count, live ...]: the value of the one
    row of the group that is present, or the default, or the row is dropped."""
    index = load_i64(pc, 2)
    groups = register(ctl, load_i64(pc, 3))
    neu = load_i64(pc, 4)
    times = register(ctl, load_i64(pc, 5))
    column = load_i64(pc, 6)
    target = register(ctl, load_i64(pc, 7))
    collection = load_i64(index, IX_COLLECTION)
    history = load_i64(collection, CO_OUTER)
    kept = 0
    for i in range(n):
        row = present_row(index, history, load_i64(groups, i), load_i64(times, i) + neu)
        value = load_i64(pc, 9)
        if row >= 0:
            value = cell(collection, column, row)
        store_i64(target, i, value)
        store_i64(scratch_block(ctl, 0), kept, i)
        if row >= 0 or load_i64(pc, 8) != 0:
            kept += 1
    return keep_rows(ctl, pc + 88, load_i64(pc, 10), kept, n)


@kernel
def present_row(index, history, group, limit):
    """The first row of a group that is present before `limit`, or -1."""
    if group < 0:
        return -1
    slab = slab_at(index, group)
    start = slab_first(slab)
    for at in range(start, start + max(load_i32(slab, IXS_COUNT), 0)):
        row = row_at(load_i64(index, IX_POOL), at)
        if presence(history, row, limit) > 0:
            return row
    return -1
