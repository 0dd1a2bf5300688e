"""Arrangements: indexes of relations by key columns.

A *sorted* arrangement is for a relation that does not change in the scope: rows are permuted so that those of one key (a
group) stand together, `offsets[g]..offsets[g+1]`; it costs four bytes per key and nothing per row where the relation itself
is kept in that order. A *growing* one is for a feedback relation: chains.py.

Keys map to groups by arithmetic where the columns' ranges are known and dense enough (`MAP_DENSE`), else by a hash table of
group numbers.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.layout import (
    ARR_CHAINS,
    ARR_GROUP_CAPACITY,
    ARR_GROUP_KEYS,
    ARR_GROUPS,
    ARR_KEY_COUNT,
    ARR_KEYS,
    ARR_KIND,
    ARR_LOWS,
    ARR_MAP,
    ARR_OFFSETS,
    ARR_RANGES,
    ARR_RELATION,
    ARR_SLOT_COUNT,
    ARR_SLOTS,
    ARR_SORTED,
    ARR_STRIDES,
    CHAIN_COUNT,
    CHAIN_SIZE,
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    MAP_DENSE,
    REL_COLUMNS,
)
from dlog.engine.kernels.static.storage import load_cell, mix, register, release, resize, store_cell, zeroed

# --------------------------------------------------------------------------------------------------------------- groups


@kernel
def column_of(relation, number):
    return load_i64(relation, REL_COLUMNS) + number * COL_SIZE * 8


@kernel
def key_cell(arrangement, k, row):
    column = column_of(load_i64(arrangement, ARR_RELATION), load_i64(load_i64(arrangement, ARR_KEYS), k))
    return load_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row)


@kernel
def dense_group(arrangement, row):
    """Group of a row of the relation itself: its values are in range."""
    group = 0
    for k in range(load_i64(arrangement, ARR_KEY_COUNT)):
        low = load_i64(load_i64(arrangement, ARR_LOWS), k)
        group += (key_cell(arrangement, k, row) - low) * load_i64(load_i64(arrangement, ARR_STRIDES), k)
    return group


@kernel
def grow_groups(ctl, arrangement, groups):
    """Room in the hash map for `groups` groups. False with CTL_ERROR set when out of memory."""
    keys = load_i64(arrangement, ARR_KEY_COUNT)
    columns = load_i64(arrangement, ARR_GROUP_KEYS)
    capacity = load_i64(arrangement, ARR_GROUP_CAPACITY)
    if groups > capacity:
        target = max(capacity * 2, 256)
        for k in range(keys):
            moved = resize(ctl, load_i64(columns, k), capacity * 8, target * 8)
            if moved == 0:
                return False
            store_i64(columns, k, moved)
        store_i64(arrangement, ARR_GROUP_CAPACITY, target)
    slots = load_i64(arrangement, ARR_SLOT_COUNT)
    if groups * 4 <= slots * 3:
        return True
    count = max(slots * 2, 512)
    table = zeroed(ctl, count * 4)
    if table == 0:
        return False
    release(ctl, load_i64(arrangement, ARR_SLOTS), slots * 4)
    store_i64(arrangement, ARR_SLOTS, table)
    store_i64(arrangement, ARR_SLOT_COUNT, count)
    mask = count - 1
    for group in range(load_i64(arrangement, ARR_GROUPS)):
        hashed = 0
        for k in range(keys):
            hashed = mix(hashed, load_i64(load_i64(columns, k), group))
        at = (hashed >> 8) & mask
        while load_i32(table, at) != 0:
            at = (at + 1) & mask
        store_i32(table, at, group + 1)
    return True


@kernel
def hash_group(ctl, arrangement, row):
    """Group of a row, made if it is new; -1 with CTL_ERROR set when out of memory."""
    groups = load_i64(arrangement, ARR_GROUPS)
    if not grow_groups(ctl, arrangement, groups + 1):
        return -1
    keys = load_i64(arrangement, ARR_KEY_COUNT)
    columns = load_i64(arrangement, ARR_GROUP_KEYS)
    hashed = 0
    for k in range(keys):
        hashed = mix(hashed, key_cell(arrangement, k, row))
    table = load_i64(arrangement, ARR_SLOTS)
    mask = load_i64(arrangement, ARR_SLOT_COUNT) - 1
    at = (hashed >> 8) & mask
    while True:
        group = load_i32(table, at) - 1
        if group < 0:
            break
        equal = True
        for k in range(keys):
            if load_i64(load_i64(columns, k), group) != key_cell(arrangement, k, row):
                equal = False
        if equal:
            return group
        at = (at + 1) & mask
    for k in range(keys):
        store_i64(load_i64(columns, k), groups, key_cell(arrangement, k, row))
    store_i32(table, at, groups + 1)
    store_i64(arrangement, ARR_GROUPS, groups + 1)
    return groups


@kernel
def find_groups(arrangement, ctl, registers, n, groups):
    """groups[i] = the group of the key in block row i, or -1."""
    keys = load_i64(arrangement, ARR_KEY_COUNT)
    if load_i64(arrangement, ARR_MAP) == MAP_DENSE:
        for i in range(n):
            store_i64(groups, i, 0)
        for k in range(keys):
            low = load_i64(load_i64(arrangement, ARR_LOWS), k)
            span = load_i64(load_i64(arrangement, ARR_RANGES), k)
            stride = load_i64(load_i64(arrangement, ARR_STRIDES), k)
            values = register(ctl, load_i64(registers, k))
            for i in range(n):
                offset = load_i64(values, i) - low
                group = load_i64(groups, i)
                if offset < 0 or offset >= span or group < 0:
                    group = -1
                else:
                    group += offset * stride
                store_i64(groups, i, group)
        return
    count = load_i64(arrangement, ARR_SLOT_COUNT)
    columns = load_i64(arrangement, ARR_GROUP_KEYS)
    table = load_i64(arrangement, ARR_SLOTS)
    for i in range(n):
        found = -1
        if count > 0:
            hashed = 0
            for k in range(keys):
                hashed = mix(hashed, load_i64(register(ctl, load_i64(registers, k)), i))
            at = (hashed >> 8) & (count - 1)
            while True:
                group = load_i32(table, at) - 1
                if group < 0:
                    break
                equal = True
                for k in range(keys):
                    if load_i64(load_i64(columns, k), group) != load_i64(register(ctl, load_i64(registers, k)), i):
                        equal = False
                if equal:
                    found = group
                    break
                at = (at + 1) & (count - 1)
        store_i64(groups, i, found)


@kernel
def chain_of(arrangement, group):
    """Address of the head of a group's chain, of a growing arrangement."""
    return load_i64(arrangement, ARR_CHAINS) + group * (CHAIN_SIZE * 4)


@kernel
def group_size(arrangement, group):
    if group < 0:
        return 0
    if load_i64(arrangement, ARR_KIND) == ARR_SORTED:
        offsets = load_i64(arrangement, ARR_OFFSETS)
        return load_i32(offsets, group + 1) - load_i32(offsets, group)
    return load_i32(chain_of(arrangement, group), CHAIN_COUNT)


# --------------------------------------------------------------------------------------------------------------- sorted


@entry()
def assign_groups(ctl, arrangement, groups, rows):
    """groups[row] (int32) for every row; false with CTL_ERROR set on error."""
    dense = load_i64(arrangement, ARR_MAP) == MAP_DENSE
    for row in range(rows):
        group = dense_group(arrangement, row) if dense else hash_group(ctl, arrangement, row)
        if group < 0:
            return False
        store_i32(groups, row, group)
    return True


@entry()
def ascends_within(groups, data, width, rows):
    """Whether, within each group of rows that stand together, the column ascends."""
    for row in range(1, rows):
        if load_i32(groups, row) == load_i32(groups, row - 1) and load_cell(data, width, row) < load_cell(data, width, row - 1):
            return False
    return True


@entry()
def count_groups(arrangement, groups, low, rows):
    """Offsets of the groups, from groups[row] - low; returns whether these ascend. The offsets are zeroed and have room for one
    group more than there are."""
    offsets = load_i64(arrangement, ARR_OFFSETS)
    ascending = 1
    last = low
    for row in range(rows):
        value = load_i32(groups, row)
        if value < last:
            ascending = 0
        last = value
        at = value - low + 1
        store_i32(offsets, at, load_i32(offsets, at) + 1)
    total = 0
    for group in range(load_i64(arrangement, ARR_GROUPS) + 1):
        total += load_i32(offsets, group)
        store_i32(offsets, group, total)
    return ascending


@entry()
def place_rows(arrangement, groups, low, order, rows, places):
    """places[row] = where the row goes: grouped, stable in `order` (a permutation, or 0 for the rows' own order).

    Advances the offsets while it runs and sets them back at the end.
    """
    offsets = load_i64(arrangement, ARR_OFFSETS)
    if order == 0:
        for row in range(rows):
            group = load_i32(groups, row) - low
            at = load_i32(offsets, group)
            store_i32(offsets, group, at + 1)
            store_i32(places, row, at)
    else:
        for i in range(rows):
            row = load_i32(order, i)
            group = load_i32(groups, row) - low
            at = load_i32(offsets, group)
            store_i32(offsets, group, at + 1)
            store_i32(places, row, at)
    for group in range(load_i64(arrangement, ARR_GROUPS), 0, -1):
        store_i32(offsets, group, load_i32(offsets, group - 1))
    store_i32(offsets, 0, 0)


@entry()
def scatter_column(data, width, places, rows, target):
    """target[places[row]] = data[row]"""
    if width == 4:
        for row in range(rows):
            store_i32(target, load_i32(places, row), load_i32(data, row))
    else:
        for row in range(rows):
            store_i64(target, load_i32(places, row), load_i64(data, row))


@entry()
def sort_pass(data, width, low, shift, source, target, rows, counts):
    """One stable pass of a radix sort by eleven bits of (value - low) >> shift; source 0 is the identity permutation."""
    for d in range(2048):
        store_i64(counts, d, 0)
    for row in range(rows):
        digit = ((load_cell(data, width, row) - low) >> shift) & 2047
        store_i64(counts, digit, load_i64(counts, digit) + 1)
    total = 0
    for d in range(2048):
        count = load_i64(counts, d)
        store_i64(counts, d, total)
        total += count
    for i in range(rows):
        row = i if source == 0 else load_i32(source, i)
        digit = ((load_cell(data, width, row) - low) >> shift) & 2047
        at = load_i64(counts, digit)
        store_i64(counts, digit, at + 1)
        store_i32(target, at, row)


@entry()
def scatter_grouped(offsets, groups, low, data, width, rows, target, last):
    """Places one column by its rows' groups directly; the offsets advance and are set back, `last` is the number of groups."""
    if width == 4:
        for row in range(rows):
            group = load_i32(groups, row) - low
            at = load_i32(offsets, group)
            store_i32(offsets, group, at + 1)
            store_i32(target, at, load_i32(data, row))
    else:
        for row in range(rows):
            group = load_i32(groups, row) - low
            at = load_i32(offsets, group)
            store_i32(offsets, group, at + 1)
            store_i64(target, at, load_i64(data, row))
    for group in range(last, 0, -1):
        store_i32(offsets, group, load_i32(offsets, group - 1))
    store_i32(offsets, 0, 0)


@entry()
def write_keys(offsets, groups, low, width, target):
    """The key column of rows in group order, where group g has the key low + g."""
    for group in range(groups):
        for at in range(load_i32(offsets, group), load_i32(offsets, group + 1)):
            store_cell(target, width, at, low + group)
