"""Connected components: union-find over dense keys, and the best value of each component for a lattice relation.

`parents` holds, for every possible key, that of its parent in a tree of keys (int32), a root's being itself; the least key of a
component is its root. Paths are halved on the way (Tarjan and van Leeuwen, 1984).
"""

from __future__ import annotations

from dlog.engine.kernels.combine import rank
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_u8, store_u8
from dlog.engine.kernels.machine_structs import Column, Numbers, Relation
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.arrange import column_of
from dlog.engine.kernels.static.storage import load_cell, reserve, store_cell


@entry()
def start_alone(parents: Numbers, keys):
    """Every key is a component of its own."""
    for key in range(keys):
        parents[key] = key


@entry()
def mark_keys(marks, level, relation: Relation, other: Relation, number):
    """Raises the marks (bytes) of keys that are at `level` and stand in column `number` of another relation."""
    key = key_column(relation)
    low, keys = key.low, key.range
    column = column_of(other, number)
    data, width = column.data, column.width
    for row in range(other.rows):
        code = load_cell(data, width, row) - low
        if 0 <= code < keys and load_u8(marks, code) == level:
            store_u8(marks, code, level + 1)


@kernel
def key_column(relation: Relation) -> Column:
    return column_of(relation, relation.keys[0])


@kernel
def value_column(relation: Relation) -> Column:
    return column_of(relation, relation.value)


@kernel
def find_root(parents: Numbers, key):
    parent = parents[key]
    while parent != key:
        above = parents[parent]
        parents[key] = above
        key = above
        parent = parents[key]
    return key


@entry()
def unite(relation: Relation, parents: Numbers, marks, level, edges: Relation, left, right, first, last):
    """Unites the ends of the edges [first, last), columns `left` and `right` of a relation, whose marks are both at `level`."""
    key = key_column(relation)
    low, keys = key.low, key.range
    one, two = column_of(edges, left), column_of(edges, right)
    ones, one_width = one.data, one.width
    twos, two_width = two.data, two.width
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
            parents[b] = a
        elif b < a:
            parents[a] = b


@entry()
def offer(ctl: Control, relation: Relation, marks, level, edges: Relation, left, right, first, last):
    """Where only one end of an edge may get values, it gets the other's, which is final. False when out of memory."""
    key = key_column(relation)
    low, keys = key.low, key.range
    one, two = column_of(edges, left), column_of(edges, right)
    ones, one_width = one.data, one.width
    twos, two_width = two.data, two.width
    for row in range(first, last):
        a = load_cell(ones, one_width, row) - low
        b = load_cell(twos, two_width, row) - low
        if a < 0 or a >= keys or b < 0 or b >= keys or (load_u8(marks, a) == level) == (load_u8(marks, b) == level):
            continue
        if load_u8(marks, a) != level:
            a, b = b, a
        source = Numbers(relation.slots)[b] - 1
        if source >= 0 and not give(ctl, relation, a, value_at(relation, source)):
            return False
    return True


@kernel
def value_at(relation: Relation, row):
    column = value_column(relation)
    return load_cell(column.data, column.width, row)


@kernel
def give(ctl: Control, relation: Relation, code, value):
    """Merges a value into the row of a key, which is made if there is none. False with ctl.error set when out of memory."""
    row = Numbers(relation.slots)[code] - 1
    merge = relation.merge
    if row < 0:
        if not reserve(ctl, relation, 1):
            return False
        row = relation.rows
        relation.rows = row + 1
        Numbers(relation.slots)[code] = row + 1
        key = key_column(relation)
        store_cell(key.data, key.width, row, code + key.low)
    elif rank(merge, value) >= rank(merge, value_at(relation, row)):
        return True
    column = value_column(relation)
    store_cell(column.data, column.width, row, value)
    return True


@entry()
def choose_best(relation: Relation, parents: Numbers, best: Numbers):
    """best[root] (int32, zero before) = the row with its component's best value, plus one."""
    key = key_column(relation)
    low, data, width = key.low, key.data, key.width
    merge = relation.merge
    for row in range(relation.rows):
        root = find_root(parents, load_cell(data, width, row) - low)
        known = best[root] - 1
        if known < 0 or rank(merge, value_at(relation, row)) < rank(merge, value_at(relation, known)):
            best[root] = row + 1


@entry()
def spread(ctl: Control, relation: Relation, parents: Numbers, best: Numbers, first, last):
    """Gives the keys [first, last) of components with a best value that value. False when out of memory."""
    for code in range(first, last):
        row = best[find_root(parents, code)] - 1
        if row >= 0 and not give(ctl, relation, code, value_at(relation, row)):
            return False
    return True
