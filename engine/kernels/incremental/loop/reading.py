"""Reads the changes of a collection as columns when a batch is over."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.store.histories import copy_present
from dlog.engine.kernels.incremental.store.implied import cell_at, implied_key
from dlog.engine.kernels.incremental.store.pair_columns import unpack_column
from dlog.engine.kernels.layout import BLOCK, GROUP_HAD, GROUP_HAS, GROUP_NUMBER, IMPLIED
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Log, Reduction
from dlog.engine.kernels.row_structs import Change, ChangeArray
from dlog.engine.kernels.static.storage import behind, load_cell

MAX_COMPARED_CHANGES = 8
"""Changes of a round that are compared with each other."""


@entry()
def copy_changes(collection: Collection, first, columns: WordColumns, rounds: Words, diffs: Words):
    """Writes the log's changes: columns of values, rounds, counted from `first` on, and
    diffs; returns how many. The log of a result that is its groups takes room for two an entry, and has data; so has that of
    pairs."""
    log = collection.log
    if not log.data:
        return copy_fresh(collection, first, columns, rounds, diffs)
    count = log.count
    grouped = collection.grouped
    written = 0
    for start in range(0, count, BLOCK):
        entries = ChangeArray(log.data[start])
        n = min(BLOCK, count - start)
        if grouped:
            written += copy_groups_block(collection, grouped, first, columns, rounds, diffs, entries, n, written)
        else:
            copy_block(collection, first, columns, rounds, diffs, entries, n, start)
            written += n
    return written


@kernel
def copy_fresh(collection: Collection, first, columns: WordColumns, rounds: Words, diffs: Words):
    """`copy_changes` of a fresh collection: all its rows have come."""
    rows = Numbers(diffs.address)
    count = copy_present(collection, 9223372036854775807, rows)
    for c in range(collection.arity):
        target = columns[c]
        column = collection.columns[c]
        for i in range(count):
            target[i] = cell_at(column, rows[i])
    for i in range(count):
        rounds[i] = first
        diffs[i] = 1
    return count


@kernel
def copy_block(
    collection: Collection, first, columns: WordColumns, rounds: Words, diffs: Words, changes: ChangeArray, n, start
):
    """`copy_changes` of n changes; the first of them is number `start`."""
    for i in range(n):
        change = changes[i]
        rounds[start + i] = (change.time >> 32) - 1 + first
        diffs[start + i] = change.diff
    for c in range(collection.arity):
        target = behind(columns[c], start)
        if collection.packed != 0:
            unpack_column(Words(changes.address), c, n, target, Change.size >> 3)
        else:
            copy_cells(collection, c, changes, n, target)


@kernel
def copy_cells(collection: Collection, number, changes: ChangeArray, n, target: Words):
    """Writes the values of a column in the rows of n changes."""
    column = collection.columns[number]
    data = column.data
    width = column.width
    if width == IMPLIED:
        for i in range(n):
            target[i] = implied_key(collection, changes[i].row)
        return
    for i in range(n):
        target[i] = load_cell(data, width, changes[i].row)


@kernel
def copy_groups_block(
    collection: Collection,
    reduction: Reduction,
    first,
    columns: WordColumns,
    rounds: Words,
    diffs: Words,
    entries: ChangeArray,
    n,
    start,
):
    """`copy_changes` of n entries of a grouped log; the first of their changes is number `start`. Returns how many."""
    count = split_times(first, behind(rounds, start), behind(diffs, start), entries, n)
    place = reduction.value
    groups = reduction.groups
    for c in range(collection.arity):
        target = behind(columns[c], start)
        if c == place:
            split_values(entries, n, target)
        else:
            split_keys(groups, c if c < place else c - 1, entries, n, target)
    return count


@kernel
def split_times(first, rounds: Words, diffs: Words, entries: ChangeArray, n):
    """Writes the rounds and diffs of the changes of n entries; returns how many."""
    count = 0
    for i in range(n):
        entry = entries[i]
        word = entry.row
        number = (entry.time >> 32) - 1 + first
        rounds[count] = number
        diffs[count] = -1
        count += 1 if word & GROUP_HAD != 0 else 0
        rounds[count] = number
        diffs[count] = 1
        count += 1 if word & GROUP_HAS != 0 else 0
    return count


@kernel
def split_values(entries: ChangeArray, n, target: Words):
    """Writes the values of the changes of n entries."""
    count = 0
    for i in range(n):
        entry = entries[i]
        word = entry.row
        target[count] = entry.diff
        count += 1 if word & GROUP_HAD != 0 else 0
        target[count] = entry.value
        count += 1 if word & GROUP_HAS != 0 else 0


@kernel
def split_keys(groups: Collection, number, entries: ChangeArray, n, target: Words):
    """Writes a key of the groups of the changes of n entries."""
    column = groups.columns[number]
    data = column.data
    width = column.width
    count = 0
    for i in range(n):
        word = entries[i].row
        key = load_cell(data, width, word & GROUP_NUMBER)
        target[count] = key
        count += 1 if word & GROUP_HAD != 0 else 0
        target[count] = key
        count += 1 if word & GROUP_HAS != 0 else 0


@entry()
def may_repeat(log: Log):
    """Whether a row may have changed twice in one round, as far as a short look tells: not where rows come in order."""
    count = log.count
    first = 0
    ascending = True
    for i in range(1, count):
        change = log.data[i]
        if change.time != log.data[first].time:
            first = i
            ascending = True
            continue
        ascending = ascending and change.row > log.data[i - 1].row
        if ascending:
            continue
        if i - first >= MAX_COMPARED_CHANGES:
            return True
        for other in range(first, i):
            if log.data[other].row == change.row:
                return True
    return False
