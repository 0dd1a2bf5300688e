"""Reads the changes of a collection as columns when a batch is over."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64
from dlog.engine.kernels.incremental.store.implied import implied_key
from dlog.engine.kernels.incremental.store.lists import change_at
from dlog.engine.kernels.incremental.store.pairs import unpack_column
from dlog.engine.kernels.layout import (
    BLOCK,
    CHANGE_BEFORE,
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CHANGE_VALUE,
    CO_GROUPED,
    CO_LOG,
    CO_PACKED,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    GROUP_HAD,
    GROUP_HAS,
    GROUP_NUMBER,
    IMPLIED,
    LIST_COUNT,
    LIST_DATA,
    RD_GROUPS,
    RD_VALUE,
    REL_ARITY,
    REL_COLUMNS,
)
from dlog.engine.kernels.static.storage import load_cell

_FEW = 8
"""Changes of a round that are compared with each other."""


@entry()
def copy_changes(collection, first, columns, rounds, diffs):
    """Writes the log's changes: columns of values (the addresses of which are words), rounds, counted from `first` on, and
    diffs; returns how many. The log has data. The log of a result that is its groups takes room for two an entry."""
    log = load_i64(collection, CO_LOG)
    count = load_i64(log, LIST_COUNT)
    grouped = load_i64(collection, CO_GROUPED)
    written = 0
    for start in range(0, count, BLOCK):
        entries = load_i64(log, LIST_DATA) + start * (CHANGE_SIZE * 8)
        n = min(BLOCK, count - start)
        if grouped != 0:
            written += copy_groups_block(collection, grouped, first, columns, rounds, diffs, entries, n, written)
        else:
            copy_block(collection, first, columns, rounds, diffs, entries, n, start)
            written += n
    return written


@kernel
def copy_block(collection, first, columns, rounds, diffs, changes, n, start):
    """`copy_changes` of n changes; the first of them is number `start`."""
    for i in range(n):
        change = changes + i * (CHANGE_SIZE * 8)
        store_i64(rounds, start + i, (load_i64(change, CHANGE_TIME) >> 32) - 1 + first)
        store_i64(diffs, start + i, load_i64(change, CHANGE_DIFF))
    for c in range(load_i64(collection, REL_ARITY)):
        target = load_i64(columns, c) + start * 8
        if load_i64(collection, CO_PACKED) != 0:
            unpack_column(changes + CHANGE_ROW * 8, c, n, target, CHANGE_SIZE)
        else:
            copy_cells(collection, c, changes, n, target)


@kernel
def copy_cells(collection, number, changes, n, target):
    """Writes the values of a column in the rows of n changes."""
    column = load_i64(collection, REL_COLUMNS) + number * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    words = changes + CHANGE_ROW * 8
    if width == IMPLIED:
        for i in range(n):
            store_i64(target, i, implied_key(collection, load_i64(words, i * CHANGE_SIZE)))
        return
    for i in range(n):
        store_i64(target, i, load_cell(data, width, load_i64(words, i * CHANGE_SIZE)))


@kernel
def copy_groups_block(collection, reduction, first, columns, rounds, diffs, entries, n, start):
    """`copy_changes` of n entries of a grouped log; the first of their changes is number `start`. Returns how many."""
    count = split_times(first, rounds + start * 8, diffs + start * 8, entries, n)
    place = load_i64(reduction, RD_VALUE)
    groups = load_i64(reduction, RD_GROUPS)
    for c in range(load_i64(collection, REL_ARITY)):
        target = load_i64(columns, c) + start * 8
        if c == place:
            split_values(entries, n, target)
        else:
            split_keys(groups, c if c < place else c - 1, entries, n, target)
    return count


@kernel
def split_times(first, rounds, diffs, entries, n):
    """Writes the rounds and diffs of the changes of n entries; returns how many."""
    count = 0
    for i in range(n):
        entry = entries + i * (CHANGE_SIZE * 8)
        word = load_i64(entry, CHANGE_ROW)
        number = (load_i64(entry, CHANGE_TIME) >> 32) - 1 + first
        store_i64(rounds, count, number)
        store_i64(diffs, count, -1)
        count += 1 if word & GROUP_HAD != 0 else 0
        store_i64(rounds, count, number)
        store_i64(diffs, count, 1)
        count += 1 if word & GROUP_HAS != 0 else 0
    return count


@kernel
def split_values(entries, n, target):
    """Writes the values of the changes of n entries."""
    count = 0
    for i in range(n):
        entry = entries + i * (CHANGE_SIZE * 8)
        word = load_i64(entry, CHANGE_ROW)
        store_i64(target, count, load_i64(entry, CHANGE_BEFORE))
        count += 1 if word & GROUP_HAD != 0 else 0
        store_i64(target, count, load_i64(entry, CHANGE_VALUE))
        count += 1 if word & GROUP_HAS != 0 else 0


@kernel
def split_keys(groups, number, entries, n, target):
    """Writes a key of the groups of the changes of n entries."""
    column = load_i64(groups, REL_COLUMNS) + number * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    count = 0
    for i in range(n):
        word = load_i64(entries, i * CHANGE_SIZE + CHANGE_ROW)
        key = load_cell(data, width, word & GROUP_NUMBER)
        store_i64(target, count, key)
        count += 1 if word & GROUP_HAD != 0 else 0
        store_i64(target, count, key)
        count += 1 if word & GROUP_HAS != 0 else 0


@entry()
def may_repeat(log):
    """Whether a row may have changed twice in one round, as far as a short look tells."""
    count = load_i64(log, LIST_COUNT)
    first = 0
    for i in range(1, count):
        change = change_at(log, i)
        if load_i64(change, CHANGE_TIME) != load_i64(change_at(log, first), CHANGE_TIME):
            first = i
            continue
        if i - first >= _FEW:
            return True
        for other in range(first, i):
            if load_i64(change_at(log, other), CHANGE_ROW) == load_i64(change, CHANGE_ROW):
                return True
    return False
