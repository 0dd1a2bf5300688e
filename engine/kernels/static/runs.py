"""Runs: an iteration's changes sorted by one column, so that those that agree in it take a path together.

    changes points_to(p, o); join load[1](x, p); insert points_to(x, o)
    becomes
    runs of changes points_to(p, _); join load[1](x, p); sweep points_to(x, o) over the run's o

The steps between run once per run and not once per change, and the sink meets the values of one run in one stretch of its
bitmap. Sorting is worth it only where runs are long: an iteration with few changes, or with short runs, goes as ever.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import atomic_add
from dlog.engine.kernels.instructions import ScanRuns
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Level, Numbers, Relation, Runs, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.storage import load_cell, register, release, store_cell, zeroed

LENGTH = 4
"""Changes per run, on average, below which runs do not pay."""
SPARSE = 4
"""Possible values per change above which counting them would not pay."""
PATIENCE = 4
"""Iterations after one with short runs that are not even looked at."""


@kernel
def sort_changes(ctl: Control, runs: Runs):
    """Sorts the changes of the relation by the runs' column, if that pays; `ready` says whether it did. It does
    not where memory is short: the changes are all there, in any order."""
    relation = runs.relation
    low = relation.lo
    count = relation.hi - low
    runs.ready = 0
    if runs.wait > 0:
        runs.wait -= 1
        return
    span = column_of(relation, runs.column).range
    if count < runs.least or span > SPARSE * count:
        return
    size = (span + 1) * 4 + count * 8
    room = Numbers(zeroed(ctl, size))
    if not room:
        ctl.error = 0
        return
    if count_values(runs, room) * LENGTH <= count:
        place_changes(runs, room, Words(room.address + (span + 1) * 4))
        runs.ready = 1
    else:
        runs.wait = PATIENCE
    release(ctl, room.address, size)


@kernel
def count_values(runs: Runs, offsets: Numbers):
    """Where the rows of each value will begin, among the changes; returns how many values there are."""
    relation = runs.relation
    column = column_of(relation, runs.column)
    data = column.data
    width = column.width
    low = column.low
    for row in range(relation.lo, relation.hi):
        at = load_cell(data, width, row) - low
        offsets[at] += 1
    total = 0
    values = 0
    for at in range(column.range):
        count = offsets[at]
        offsets[at] = total
        total += count
        values += count > 0
    return values


@kernel
def place_changes(runs: Runs, offsets: Numbers, cells: Words):
    """Permutes the changes. The sorting column is written last: the offsets, which it leads to, advance with each column by the
    rows of the value, and are set back by stepping through the rows again."""
    relation = runs.relation
    key = runs.column
    arity = relation.arity
    for c in range(1, arity):
        place_column(relation, key, (key + c) % arity, offsets, cells)
    place_column(relation, key, key, offsets, cells)


@kernel
def place_column(relation: Relation, key, number, offsets: Numbers, cells: Words):
    first = relation.lo
    count = relation.hi - first
    keys = column_of(relation, key)
    key_data = keys.data
    key_width = keys.width
    low = keys.low
    column = column_of(relation, number)
    data = column.data
    width = column.width
    for row in range(first, first + count):
        value = load_cell(key_data, key_width, row) - low
        at = offsets[value]
        offsets[value] = at + 1
        cells[at] = load_cell(data, width, row)
    for row in range(first, first + count):
        value = load_cell(key_data, key_width, row) - low
        offsets[value] -= 1
    for i in range(count):
        store_cell(data, width, first + i, cells[i])


@kernel
def scan_runs(ctl: Control, code: ScanRuns, level: Level):
    """Runs among the rows claimed from the workers' shared cursor; a run that two claims share is two."""
    end = level.end
    start = atomic_add(ctl.cursor, 0, BLOCK)
    end = min(end, start + BLOCK)
    relation = code.relation
    starts = register(ctl, code.starts)
    counts = register(ctl, code.counts)
    columns = code.bound
    n = 0
    for row in range(start, end):
        fresh = row == start
        for c in range(columns):
            column = column_of(relation, code.binds[c].column)
            value = load_cell(column.data, column.width, row)
            fresh = fresh or value != register(ctl, code.binds[c].target)[n - 1]
        if fresh:
            starts[n] = row
            counts[n] = 0
            for c in range(columns):
                column = column_of(relation, code.binds[c].column)
                value = load_cell(column.data, column.width, row)
                register(ctl, code.binds[c].target)[n] = value
            n += 1
        counts[n - 1] += 1
    return n
