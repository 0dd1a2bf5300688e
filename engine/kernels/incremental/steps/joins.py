"""Joins over rounds: the instructions that make rows, of the changes that seed a path and of what a collection has at a view.

A block's rows carry three registers besides their variables: T, the time of the change that seeded them; I, the latest
iteration of what they met (partial model only); D, the product of the diffs. A view is `neu` (1) or `alt` (0): entries before
T + 1 or before T. A path's seed meets what comes before it in the rule at `neu` and what comes behind it at `alt`: of changes
that come at one time a combination is found once, by the path of the last of them (half-joins, as in differential dataflow's
dogsdogsdogs; ir/nodes.py, "Over rounds").

Joins with a collection of the own recursive scope (`inner`) read its inner history and meet every entry of a row; all others
ask whether the row is present.
"""

from __future__ import annotations

from dlog.engine.kernels.block import gather
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.reduce.grouped import fresh_groups, split_entries
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.histories import entry_at, first_entry, has_marked, is_here, presence, settled_time
from dlog.engine.kernels.incremental.store.implied import gather_keys
from dlog.engine.kernels.incremental.store.indexes import begin_groups, warm_groups
from dlog.engine.kernels.incremental.store.pair_columns import unpack_column
from dlog.engine.kernels.incremental.store.pairs import fresh_pairs
from dlog.engine.kernels.instructions import Binds, EntriesOf, Once, RowsOf, ScanChanges
from dlog.engine.kernels.layout import BLOCK, IMPLIED, ROUND
from dlog.engine.kernels.machine_structs import Column, Level, Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction
from dlog.engine.kernels.row_structs import ChangeArray
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.joins import copy_carried
from dlog.engine.kernels.static.storage import register, scratch_block

_ITERATION = 0xFFFFFFFF


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
    """The rows of [first, last) that are present; returns how many."""
    alive = collection.alive
    n = 0
    for row in range(first, last):
        rows[n] = row
        if get_bit(alive, row) != 0 and is_here(collection, row):
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
    if row < 0:
        begin_groups(index, groups, rows)
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            warm_groups(index, groups, row, rows)
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
    if row < 0:
        begin_groups(index, groups, rows)
    while n < BLOCK:
        if at >= end:
            row += 1
            if row >= rows:
                break
            warm_groups(index, groups, row, rows)
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
