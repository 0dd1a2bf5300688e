"""Instructions of paths over rounds: seeds of changes, and look-ups in collections at a view.

A block's rows carry three registers besides their variables: T, the time of the change that seeded them; I, the latest
iteration of what they met (partial model only); D, the product of the diffs. A view is `neu` (1) or `alt` (0): entries before
T + 1 or before T. A path's seed meets what comes before it in the rule at `neu` and what comes behind it at `alt`: of changes
that come at one time a combination is found once, by the path of the last of them (half-joins, as in differential dataflow's
dogsdogsdogs; ir/nodes.py, "Over rounds").

Look-ups in a collection of the own recursive scope (`inner`) read its inner history and meet every entry of a row; all others
ask whether the row is present.
"""

from __future__ import annotations

from dlog.engine.kernels.block import compact, gather
from dlog.engine.kernels.codes import Operation
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import bit_length
from dlog.engine.kernels.generate import copy_carried
from dlog.engine.kernels.incremental.reduce.grouped import fresh_groups, split_entries
from dlog.engine.kernels.incremental.steps.finding import find_block
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
from dlog.engine.kernels.instructions import (
    Binds,
    EntriesOf,
    FindIndexGroup,
    HasAny,
    HasRow,
    Instruction,
    Once,
    Present,
    RowsOf,
    ScanChanges,
    Stagger,
    ValueOf,
)
from dlog.engine.kernels.layout import BLOCK, IMPLIED, ROUND
from dlog.engine.kernels.machine_structs import Column, Level, Words
from dlog.engine.kernels.round_structs import Collection, Control, Index, Reduction
from dlog.engine.kernels.row_structs import ChangeArray, History
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.storage import behind, register, scratch_block

_ITERATION = 0xFFFFFFFF
SPACING = 256
"""Iterations between values of different numbers of bits that enter a minimum, a power of two."""


@kernel
def scan_changes(ctl: Control, code: ScanChanges, level: Level):
    """The list's part in use."""
    at = level.at
    end = level.end
    n = min(BLOCK, end - at)
    if n <= 0:
        return 0
    collection = code.collection
    sign = -1 if code.negated != 0 else 1
    times = register(ctl, code.time)
    diffs = register(ctl, code.diff)
    rows = scratch_block(ctl, 0)
    changes = code.changes
    data = changes.data
    grouped = collection.grouped
    packed = collection.packed != 0
    values = scratch_block(ctl, 1)
    if not data:
        n = 0
        while n == 0 and at < end:
            if grouped:
                n = fresh_groups(grouped, at, min(at + BLOCK, end), rows, values)
            elif packed:
                n = fresh_pairs(collection, at, min(at + BLOCK, end), rows)
            else:
                n = fresh_rows(collection, at, min(at + BLOCK, end), rows)
            at += BLOCK
        level.at = min(at, end)
        for i in range(n):
            times[i] = ROUND
            diffs[i] = sign
    elif grouped and changes == collection.log:
        entries = min(n, BLOCK // 2)
        level.at = at + entries
        n = split_entries(ChangeArray(data[at]), entries, sign, rows, times, diffs, values)
    else:
        level.at = at + n
        for i in range(n):
            change = data[at + i]
            rows[i] = change.row
            times[i] = change.time
            diffs[i] = change.diff * sign
            values[i] = change.value
    if code.iteration >= 0:
        iterations = register(ctl, code.iteration)
        for i in range(n):
            iterations[i] = times[i] & _ITERATION
    for c in range(code.bound):
        number = code.binds[c].column
        target = register(ctl, code.binds[c].target)
        if packed:
            unpack_column(rows, number, n, target, 1)
        elif not grouped:
            take_cells(column_of(collection, number), rows, n, target)
        else:
            grouped_column(grouped, number, rows, values, n, target)
    return n


@kernel
def take_cells(column: Column, rows: Words, n, target: Words):
    """target[i] = the cell of a collection's column at rows[i]."""
    if column.width == IMPLIED:
        gather_keys(column, rows, n, target)
    else:
        gather(column, rows, n, target)


@kernel
def grouped_column(reduction: Reduction, number, rows: Words, values: Words, n, target: Words):
    """A column of changes of a result without rows of its own: a key of their groups, or their values."""
    place = reduction.value
    if number == place:
        for i in range(n):
            target[i] = values[i]
    else:
        gather(column_of(reduction.groups, number if number < place else number - 1), rows, n, target)


@kernel
def fresh_rows(collection: Collection, first, last, rows: Words):
    """The rows of [first, last) of a fresh collection that are present; returns how many."""
    n = 0
    for row in range(first, last):
        rows[n] = row
        if is_here(collection, row):
            n += 1
    return n


@kernel
def once(ctl: Control, code: Once, level: Level):
    """One row, at the first round."""
    if level.at >= level.end:
        return 0
    level.at = 1
    register(ctl, code.time)[0] = ROUND
    if code.iteration >= 0:
        register(ctl, code.iteration)[0] = 0
    register(ctl, code.diff)[0] = 1
    return 1


# ------------------------------------------------------------------------------------------------------------------ rows


@kernel
def rows_of(ctl: Control, code: RowsOf, level: Level):
    """The next block of rows of the groups."""
    n = inner_rows(ctl, code, level) if code.inner != 0 else outer_rows(ctl, code, level)
    if n > 0:
        collection = code.index.collection
        carried = code.carried
        copy_carried(ctl, code.moves, carried, scratch_block(ctl, 0), n)
        binds = Binds(code.moves[carried])
        for c in range(code.bound):
            target = register(ctl, binds[c].target)
            take_cells(column_of(collection, binds[c].column), scratch_block(ctl, 1), n, target)
    return n


@kernel
def outer_rows(ctl: Control, code: RowsOf, level: Level):
    """Walks the groups' rows that are present at the view; source rows go to scratch 0, row numbers to scratch 1."""
    index = code.index
    groups = register(ctl, code.group)
    neu = code.neu
    times = register(ctl, code.time)
    history = index.collection.outer
    bits = history.bits
    base = history.base
    marked = has_marked(history)
    pool = index.pool
    source = scratch_block(ctl, 0)
    found = scratch_block(ctl, 1)
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    n = 0
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            group = groups[row]
            if group >= 0:
                slab = slab_at(index, group)
                at = slab_first(slab)
                end = at + max(slab.count, 0)
            continue
        limit = times[row] + neu
        last = min(end, at + BLOCK - n)
        # Each row is written, and then counted if it is present: a branch that nobody could guess would cost more. One without
        # its bit is there since the history's base.
        plain = 1 if base < limit else 0
        while at < last:
            number = row_at(pool, at)
            source[n] = row
            found[n] = number
            if not marked or get_bit(bits, number) == 0:
                n += plain
            elif presence(history, number, limit) > 0:
                n += 1
            at += 1
    level.row = row
    level.at = at
    level.end = end
    return n


@kernel
def inner_rows(ctl: Control, code: RowsOf, level: Level):
    """As `outer_rows` for the scope's own collections: one match per entry, with its iteration and diff."""
    index = code.index
    groups = register(ctl, code.group)
    neu = code.neu
    times = register(ctl, code.time)
    iterations = register(ctl, code.iteration)
    diffs = register(ctl, code.diff)
    latest = register(ctl, code.latest)
    products = register(ctl, code.product)
    history = index.collection.inner
    bits = history.bits
    pool = index.pool
    source = scratch_block(ctl, 0)
    found = scratch_block(ctl, 1)
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    # The entry, plus one, at which to go on with the row at `at`; 0: nothing of that row has been looked at.
    extra = level.extra
    n = 0
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            group = groups[row]
            if group >= 0:
                slab = slab_at(index, group)
                at = slab_first(slab)
                end = at + max(slab.count, 0)
            continue
        number = row_at(pool, at)
        limit = times[row] + neu
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
            time = entry.time
            diff = entry.diff
            extra = entry.next
            if extra == 0:
                at += 1
        if time < limit:
            source[n] = row
            found[n] = number
            latest[n] = max(iterations[row], time & _ITERATION)
            products[n] = diffs[row] * diff
            n += 1
    level.row = row
    level.at = at
    level.end = end
    level.extra = extra
    return n


@kernel
def entries_of(ctl: Control, code: EntriesOf, level: Level):
    """The inner entries of each block row's row of the collection."""
    history = code.collection.inner
    numbers = register(ctl, code.row)
    neu = code.neu
    times = register(ctl, code.time)
    iterations = register(ctl, code.iteration)
    diffs = register(ctl, code.diff)
    latest = register(ctl, code.latest)
    products = register(ctl, code.product)
    source = scratch_block(ctl, 0)
    rows = level.rows
    row = max(level.row, 0)
    extra = level.extra  # as in `inner_rows`
    n = 0
    while n < BLOCK and row < rows:
        number = numbers[row]
        limit = times[row] + neu
        current = row
        if extra == 0 and get_bit(history.bits, number) == 0:
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
            time = entry.time
            diff = entry.diff
            extra = entry.next
            if extra == 0:
                row += 1
        if time < limit:
            source[n] = current
            latest[n] = max(iterations[current], time & _ITERATION)
            products[n] = diffs[current] * diff
            n += 1
    level.row = row
    level.extra = extra
    if n > 0:
        copy_carried(ctl, code.moves, code.carried, source, n)
    return n


# ----------------------------------------------------------------------------------------------------------------- steps


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
    if op == Operation.STAGGER:
        late = Stagger(pc)
        stagger(register(ctl, late.value), register(ctl, late.iteration), late.ordered, late.advance, n)
        return n
    if op == Operation.ANY:
        wanted = HasAny(pc)
        index = wanted.index
        groups = register(ctl, wanted.group)
        kept = 0
        for i in range(n):
            group = groups[i]
            scratch_block(ctl, 0)[kept] = i
            if group >= 0 and slab_at(index, group).count > 0:
                kept += 1
        return keep_rows(ctl, wanted.registers, wanted.live, kept, n)
    return step_value(ctl, ValueOf(pc), n)


@kernel
def stagger(values: Words, iterations: Words, ordered, advance, n):
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
    wanted = pc.wanted
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
    for i in range(n):
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
