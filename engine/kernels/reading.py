"""What is read of a collection when a batch is over: its changes, as columns."""

from __future__ import annotations

from dlog.engine.kernels.implied import implied_key
from dlog.engine.kernels.jit import entry, kernel
from dlog.engine.kernels.layout import (
    BLOCK,
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
    IMPLIED,
    LIST_COUNT,
    RD_GROUPS,
    RD_VALUE,
    REL_ARITY,
    REL_COLUMNS,
)
from dlog.engine.kernels.lists import change_at
from dlog.engine.kernels.memory import load_i64, store_i64
from dlog.engine.kernels.pairs import unpack_column
from dlog.engine.kernels.storage import load_cell

_FEW = 8
"""Changes of a round that are compared with each other."""


@entry()
def copy_changes(collection, first, columns, rounds, diffs):
    """Writes the log's changes: columns of values (the addresses of which are words), rounds, counted from `first` on, and
    diffs. The log has data."""
    count = load_i64(load_i64(collection, CO_LOG), LIST_COUNT)
    for start in range(0, count, BLOCK):
        copy_block(collection, first, columns, rounds, diffs, start, min(start + BLOCK, count))


@kernel
def copy_block(collection, first, columns, rounds, diffs, start, end):
    """`copy_changes` of changes [start, end)."""
    log = load_i64(collection, CO_LOG)
    for i in range(start, end):
        change = change_at(log, i)
        store_i64(rounds, i, (load_i64(change, CHANGE_TIME) >> 32) - 1 + first)
        store_i64(diffs, i, load_i64(change, CHANGE_DIFF))
    reduction = load_i64(collection, CO_GROUPED)
    for c in range(load_i64(collection, REL_ARITY)):
        target = load_i64(columns, c)
        if load_i64(collection, CO_PACKED) != 0:
            words = change_at(log, start) + CHANGE_ROW * 8
            unpack_column(words, c, end - start, target + start * 8, CHANGE_SIZE)
            continue
        if reduction == 0:
            copy_cells(log, collection, c, target, start, end)
            continue
        place = load_i64(reduction, RD_VALUE)
        if c != place:
            copy_cells(log, load_i64(reduction, RD_GROUPS), c if c < place else c - 1, target, start, end)
            continue
        for i in range(start, end):
            store_i64(target, i, load_i64(change_at(log, i), CHANGE_VALUE))


@kernel
def copy_cells(log, collection, number, target, start, end):
    """Writes the values of a column in the rows of changes [start, end)."""
    column = load_i64(collection, REL_COLUMNS) + number * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    if width == IMPLIED:
        for i in range(start, end):
            store_i64(target, i, implied_key(collection, load_i64(change_at(log, i), CHANGE_ROW)))
        return
    for i in range(start, end):
        store_i64(target, i, load_cell(data, width, load_i64(change_at(log, i), CHANGE_ROW)))


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
