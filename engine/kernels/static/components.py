"""Connected components: union-find over dense keys, and the best value of each component for a lattice relation.

`parents` holds, for every possible key, that of its parent in a tree of keys (int32), a root's being itself; the least key of a
component is its root. Paths are halved on the way (Tarjan and van Leeuwen, 1984).
"""

from __future__ import annotations

from dlog.engine.kernels.combine import rank
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, load_u8, store_i32, store_i64, store_u8
from dlog.engine.kernels.layout import (
    COL_DATA,
    COL_LOW,
    COL_RANGE,
    COL_WIDTH,
    REL_KEYS,
    REL_MERGE,
    REL_ROWS,
    REL_SLOTS,
    REL_VALUE,
)
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.storage import load_cell, reserve, store_cell


@entry()
def start_alone(parents, keys):
    """Every key is a component of its own."""
    for key in range(keys):
        store_i32(parents, key, key)


@entry()
def mark_keys(marks, level, relation, other, number):
    """Raises the marks (bytes) of keys that are at `level` and stand in column `number` of another relation."""
    key = key_column(relation)
    low, keys = load_i64(key, COL_LOW), load_i64(key, COL_RANGE)
    column = column_of(other, number)
    data, width = load_i64(column, COL_DATA), load_i64(column, COL_WIDTH)
    for row in range(load_i64(other, REL_ROWS)):
        code = load_cell(data, width, row) - low
        if 0 <= code < keys and load_u8(marks, code) == level:
            store_u8(marks, code, level + 1)


@kernel
def key_column(relation):
    return column_of(relation, load_i64(load_i64(relation, REL_KEYS), 0))


@kernel
def value_column(relation):
    return column_of(relation, load_i64(relation, REL_VALUE))


@kernel
def find_root(parents, key):
    parent = load_i32(parents, key)
    while parent != key:
        above = load_i32(parents, parent)
        store_i32(parents, key, above)
        key = above
        parent = load_i32(parents, key)
    return key


@entry()
def unite(relation, parents, marks, level, edges, left, right, first, last):
    """Unites the ends of the edges [first, last), columns `left` and `right` of a relation, whose marks are both at `level`."""
    key = key_column(relation)
    low, keys = load_i64(key, COL_LOW), load_i64(key, COL_RANGE)
    one, two = column_of(edges, left), column_of(edges, right)
    ones, one_width = load_i64(one, COL_DATA), load_i64(one, COL_WIDTH)
    twos, two_width = load_i64(two, COL_DATA), load_i64(two, COL_WIDTH)
    for row in range(first, last):
        a = load_cell(ones, one_width, row) - low
        b = load_cell(twos, two_width, row) - low
        if a < 0 or a >= keys or b < 0 or b >= keys:
            continue
        if level > 0 and (load_u8(marks, a) != level or load_u8(marks, b) != level):
            continue
        a = find_root(parents, a)
        b = find_root(parents, b)
        if a < b:
            store_i32(parents, b, a)
        elif b < a:
            store_i32(parents, a, b)


@entry()
def offer(ctl, relation, marks, level, edges, left, right, first, last):
    """Where only one end of an edge may get values, it gets the other's, which is final. False when out of memory."""
    key = key_column(relation)
    low, keys = load_i64(key, COL_LOW), load_i64(key, COL_RANGE)
    one, two = column_of(edges, left), column_of(edges, right)
    ones, one_width = load_i64(one, COL_DATA), load_i64(one, COL_WIDTH)
    twos, two_width = load_i64(two, COL_DATA), load_i64(two, COL_WIDTH)
    for row in range(first, last):
        a = load_cell(ones, one_width, row) - low
        b = load_cell(twos, two_width, row) - low
        if a < 0 or a >= keys or b < 0 or b >= keys or (load_u8(marks, a) == level) == (load_u8(marks, b) == level):
            continue
        if load_u8(marks, a) != level:
            a, b = b, a
        source = load_i32(load_i64(relation, REL_SLOTS), b) - 1
        if source >= 0 and not give(ctl, relation, a, value_at(relation, source)):
            return False
    return True


@kernel
def value_at(relation, row):
    column = value_column(relation)
    return load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)


@kernel
def give(ctl, relation, code, value):
    """Merges a value into the row of a key, which is made if there is none. False with CTL_ERROR set when out of memory."""
    row = load_i32(load_i64(relation, REL_SLOTS), code) - 1
    merge = load_i64(relation, REL_MERGE)
    if row < 0:
        if not reserve(ctl, relation, 1):
            return False
        row = load_i64(relation, REL_ROWS)
        store_i64(relation, REL_ROWS, row + 1)
        store_i32(load_i64(relation, REL_SLOTS), code, row + 1)
        key = key_column(relation)
        store_cell(load_i64(key, COL_DATA), load_i64(key, COL_WIDTH), row, code + load_i64(key, COL_LOW))
    elif rank(merge, value) >= rank(merge, value_at(relation, row)):
        return True
    column = value_column(relation)
    store_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row, value)
    return True


@entry()
def choose_best(relation, parents, best):
    """best[root] (int32, zero before) = the row with its component's best value, plus one."""
    key = key_column(relation)
    low, data, width = load_i64(key, COL_LOW), load_i64(key, COL_DATA), load_i64(key, COL_WIDTH)
    merge = load_i64(relation, REL_MERGE)
    for row in range(load_i64(relation, REL_ROWS)):
        root = find_root(parents, load_cell(data, width, row) - low)
        known = load_i32(best, root) - 1
        if known < 0 or rank(merge, value_at(relation, row)) < rank(merge, value_at(relation, known)):
            store_i32(best, root, row + 1)


@entry()
def spread(ctl, relation, parents, best, first, last):
    """Gives the keys [first, last) of components with a best value that value. False when out of memory."""
    for code in range(first, last):
        row = load_i32(best, find_root(parents, code)) - 1
        if row >= 0 and not give(ctl, relation, code, value_at(relation, row)):
            return False
    return True
