"""Runs: an iteration's changes sorted by one column, so that those that agree in it take a path together.

    changes points_to(p, o); join load[1](x, p); insert points_to(x, o)
    becomes
    runs of changes points_to(p, _); join load[1](x, p); sweep points_to(x, o) over the run's o

The steps between run once per run and not once per change, and the sink meets the values of one run in one stretch of its
bitmap. Sorting is worth it only where runs are long: an iteration with few changes, or with short runs, goes as ever.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add, load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.layout import (
    BLOCK,
    COL_DATA,
    COL_LOW,
    COL_RANGE,
    COL_WIDTH,
    CTL_CURSOR,
    CTL_ERROR,
    LEVEL_END,
    REL_ARITY,
    REL_HI,
    REL_LO,
    RUNS_COLUMN,
    RUNS_LEAST,
    RUNS_READY,
    RUNS_RELATION,
    RUNS_WAIT,
)
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.storage import load_cell, register, release, store_cell, zeroed

LENGTH = 4
"""Changes per run, on average, below which runs do not pay."""
SPARSE = 4
"""Possible values per change above which counting them would not pay."""
PATIENCE = 4
"""Iterations after one with short runs that are not even looked at."""


@kernel
def sort_changes(ctl, runs):
    """Sorts the changes of the relation by the runs' column, if that pays; RUNS_READY says whether it did. It does
    not where memory is short: the changes are all there, in any order."""
    relation = load_i64(runs, RUNS_RELATION)
    low = load_i64(relation, REL_LO)
    count = load_i64(relation, REL_HI) - low
    store_i64(runs, RUNS_READY, 0)
    if load_i64(runs, RUNS_WAIT) > 0:
        store_i64(runs, RUNS_WAIT, load_i64(runs, RUNS_WAIT) - 1)
        return
    span = load_i64(column_of(relation, load_i64(runs, RUNS_COLUMN)), COL_RANGE)
    if count < load_i64(runs, RUNS_LEAST) or span > SPARSE * count:
        return
    size = (span + 1) * 4 + count * 8
    room = zeroed(ctl, size)
    if room == 0:
        store_i64(ctl, CTL_ERROR, 0)
        return
    if count_values(runs, room) * LENGTH <= count:
        place_changes(runs, room, room + (span + 1) * 4)
        store_i64(runs, RUNS_READY, 1)
    else:
        store_i64(runs, RUNS_WAIT, PATIENCE)
    release(ctl, room, size)


@kernel
def count_values(runs, offsets):
    """Where the rows of each value will begin, among the changes; returns how many values there are."""
    relation = load_i64(runs, RUNS_RELATION)
    column = column_of(relation, load_i64(runs, RUNS_COLUMN))
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    low = load_i64(column, COL_LOW)
    for row in range(load_i64(relation, REL_LO), load_i64(relation, REL_HI)):
        at = load_cell(data, width, row) - low
        store_i32(offsets, at, load_i32(offsets, at) + 1)
    total = 0
    values = 0
    for at in range(load_i64(column, COL_RANGE)):
        count = load_i32(offsets, at)
        store_i32(offsets, at, total)
        total += count
        values += count > 0
    return values


@kernel
def place_changes(runs, offsets, cells):
    """Permutes the changes. The sorting column is written last: the offsets, which it leads to, advance with each column by the
    rows of the value, and are set back by stepping through the rows again."""
    relation = load_i64(runs, RUNS_RELATION)
    key = load_i64(runs, RUNS_COLUMN)
    arity = load_i64(relation, REL_ARITY)
    for c in range(1, arity):
        place_column(relation, key, (key + c) % arity, offsets, cells)
    place_column(relation, key, key, offsets, cells)


@kernel
def place_column(relation, key, number, offsets, cells):
    first = load_i64(relation, REL_LO)
    count = load_i64(relation, REL_HI) - first
    keys = column_of(relation, key)
    key_data = load_i64(keys, COL_DATA)
    key_width = load_i64(keys, COL_WIDTH)
    low = load_i64(keys, COL_LOW)
    column = column_of(relation, number)
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    for row in range(first, first + count):
        value = load_cell(key_data, key_width, row) - low
        at = load_i32(offsets, value)
        store_i32(offsets, value, at + 1)
        store_i64(cells, at, load_cell(data, width, row))
    for row in range(first, first + count):
        value = load_cell(key_data, key_width, row) - low
        store_i32(offsets, value, load_i32(offsets, value) - 1)
    for i in range(count):
        store_cell(data, width, first + i, load_i64(cells, i))


@kernel
def scan_runs(ctl, code, level):
    """[op, length, relation, register of starts, register of counts, columns, (column, dst)*]: runs among the rows claimed from
    the workers' shared cursor; a run that two claims share is two."""
    end = load_i64(level, LEVEL_END)
    start = atomic_add(load_i64(ctl, CTL_CURSOR), 0, BLOCK)
    end = min(end, start + BLOCK)
    relation = load_i64(code, 2)
    starts = register(ctl, load_i64(code, 3))
    counts = register(ctl, load_i64(code, 4))
    columns = load_i64(code, 5)
    n = 0
    for row in range(start, end):
        fresh = row == start
        for c in range(columns):
            column = column_of(relation, load_i64(code, 6 + c * 2))
            value = load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)
            fresh = fresh or value != load_i64(register(ctl, load_i64(code, 7 + c * 2)), n - 1)
        if fresh:
            store_i64(starts, n, row)
            store_i64(counts, n, 0)
            for c in range(columns):
                column = column_of(relation, load_i64(code, 6 + c * 2))
                value = load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)
                store_i64(register(ctl, load_i64(code, 7 + c * 2)), n, value)
            n += 1
        store_i64(counts, n - 1, load_i64(counts, n - 1) + 1)
    return n
