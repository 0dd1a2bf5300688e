"""Rows by key outside of dataflows: what upserts replace, and rows that come and go beside.

The collection has one index, and no rounds: it stays fresh, no row has a history, and each is in the index at once. The rows of
a long group leave it when they are many (removals.py), at the latest before a number is used again.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.inputs.loading import load_columns
from dlog.engine.kernels.incremental.inputs.renewal import renew
from dlog.engine.kernels.incremental.store.collections import add_values, remove_row, trim_rows
from dlog.engine.kernels.incremental.store.groups import row_at, slab_at, slab_first
from dlog.engine.kernels.incremental.store.implied import cell_at, imply_key
from dlog.engine.kernels.incremental.store.indexes import find_group, index_insert
from dlog.engine.kernels.incremental.store.lists import list_empty, list_room
from dlog.engine.kernels.incremental.store.removals import leave_groups
from dlog.engine.kernels.incremental.store.slots import find_values, has_values, hash_values
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.round_structs import Collection, Control, Index
from dlog.engine.kernels.row_structs import List
from dlog.engine.kernels.static.storage import behind, scratch_block

_VALUES, _KEY, _OTHER = 2, 3, 4
"""The scratch blocks with a row that comes or goes, its key, and another row with that. Those before are for what is called."""


@entry()
def load_rows(ctl: Control, collection: Collection, columns: WordColumns, count):
    """Loads an empty collection from columns, whose rows may repeat; false with ctl.error set."""
    collection.fresh = 1
    done = load_columns(ctl, collection, columns, count)
    collection.log.count = 0
    collection.indexed = 0
    return done and trim_rows(ctl, collection) and imply_key(ctl, collection)


@entry()
def follow_changes(ctl: Control, index: Index, columns: Words, count):
    """Has rows come (a diff above 0) or go, one after the other: columns of values and one of diffs, `count` words each. False
    with ctl.error set."""
    if not renew(ctl, index.collection):
        return False
    values = scratch_block(ctl, _VALUES)
    for i in range(count):
        for c in range(index.collection.arity):
            values[c] = columns[c * count + i]
        coming = columns[index.collection.arity * count + i] > 0
        done = put_values(ctl, index, values) if coming else drop_values(ctl, index, values)
        if not done:
            return False
    return leave_groups(ctl, index)


@entry()
def replace_rows(ctl: Control, index: Index, columns: Words, count, changes: List):
    """Has rows come in the place of those with their keys, one after the other: columns of `count` words each. `changes` gets
    what that changes: the values and the diff of each row that goes or comes, also where it is there. False with ctl.error
    set."""
    if not renew(ctl, index.collection):
        return False
    list_empty(ctl, changes)
    values = scratch_block(ctl, _VALUES)
    key = scratch_block(ctl, _KEY)
    for i in range(count):
        for c in range(index.collection.arity):
            values[c] = columns[c * count + i]
        for k in range(index.key_count):
            key[k] = values[index.keys[k]]
        if not replace_row(ctl, index, values, key, changes):
            return False
    return True


@kernel
def replace_row(ctl: Control, index: Index, values: Words, key: Words, changes: List):
    """`replace_rows` of one row, which has this key."""
    arity = index.collection.arity
    first = changes.count
    if not list_others(ctl, index, values, key, changes):
        return False
    for i in range(first, changes.count):
        if not drop_values(ctl, index, behind(changes.data, i * (arity + 1))):
            return False
    return leave_groups(ctl, index) and put_values(ctl, index, values) and list_row(ctl, index, values, 1, changes)


@kernel
def list_others(ctl: Control, index: Index, values: Words, key: Words, changes: List):
    """Lists the other rows with the key of a row as ones that go; false with ctl.error set."""
    collection = index.collection
    group = find_group(index, key)
    if group < 0:
        return True
    slab = slab_at(index, group)
    first = slab_first(slab)
    other = scratch_block(ctl, _OTHER)
    for at in range(first, first + slab.count):
        row = row_at(index.pool, at)
        if not has_values(collection, row, values):
            for c in range(collection.arity):
                other[c] = cell_at(collection.columns[c], row)
            if not list_row(ctl, index, other, -1, changes):
                return False
    return True


@kernel
def list_row(ctl: Control, index: Index, values: Words, diff, changes: List):
    """Lists a row that comes or goes; false with ctl.error set."""
    if not list_room(ctl, changes, 1):
        return False
    arity = index.collection.arity
    change = behind(changes.data, changes.count * (arity + 1))
    for c in range(arity):
        change[c] = values[c]
    change[arity] = diff
    changes.count += 1
    return True


@kernel
def put_values(ctl: Control, index: Index, values: Words):
    """A row comes, unless it is there; false with ctl.error set."""
    collection = index.collection
    hashed = hash_values(values, collection.arity)
    if find_values(collection, values, hashed) >= 0:
        return True
    # Its number may be that of one which has yet to leave a long group.
    if not leave_groups(ctl, index):
        return False
    row = add_values(ctl, collection, values, hashed)
    return row >= 0 and index_insert(ctl, index, row)


@kernel
def drop_values(ctl: Control, index: Index, values: Words):
    """A row goes, if it is there; false with ctl.error set."""
    collection = index.collection
    row = find_values(collection, values, hash_values(values, collection.arity))
    return row < 0 or remove_row(ctl, collection, row)
