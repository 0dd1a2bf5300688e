"""Arrangements: indexes of relations by key columns.

A *sorted* arrangement is for a relation that does not change in the scope: rows are permuted so that those of one key (a
group) stand together, `offsets[g]..offsets[g+1]`; it costs four bytes per key and nothing per row where the relation itself
is kept in that order. A *growing* one is for a feedback relation: chains.py.

Keys map to groups by arithmetic where the columns' ranges are known and dense enough (`KeyMap`), else by a hash table of
group numbers.
"""

from __future__ import annotations

from dlog.engine.kernels.codes import ArrangementKind, KeyMap
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Arrangement, Chain, Column, Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.storage import load_cell, mix, register, release, resize, store_cell, zeroed

# --------------------------------------------------------------------------------------------------------------- groups


@kernel
def column_of(relation: Relation, number) -> Column:
    return relation.columns[number]


@kernel
def key_cell(arrangement: Arrangement, k, row):
    column = column_of(arrangement.relation, arrangement.keys[k])
    return load_cell(column.data, column.width, row)


@kernel
def dense_group(arrangement: Arrangement, row):
    """Group of a row of the relation itself: its values are in range."""
    group = 0
    for k in range(arrangement.key_count):
        low = arrangement.lows[k]
        group += (key_cell(arrangement, k, row) - low) * arrangement.strides[k]
    return group


@kernel
def grow_groups(ctl: Control, arrangement: Arrangement, groups):
    """Room in the hash map for `groups` groups. False with ctl.error set when out of memory."""
    keys = arrangement.key_count
    columns = arrangement.group_keys
    capacity = arrangement.group_capacity
    if groups > capacity:
        target = max(capacity * 2, 256)
        for k in range(keys):
            moved = resize(ctl, columns[k].address, capacity * 8, target * 8)
            if moved == 0:
                return False
            columns[k] = Words(moved)
        arrangement.group_capacity = target
    slots = arrangement.slot_count
    if groups * 4 <= slots * 3:
        return True
    count = max(slots * 2, 512)
    table = Numbers(zeroed(ctl, count * 4))
    if not table:
        return False
    release(ctl, arrangement.slots.address, slots * 4)
    arrangement.slots = table
    arrangement.slot_count = count
    mask = count - 1
    for group in range(arrangement.groups):
        hashed = 0
        for k in range(keys):
            hashed = mix(hashed, columns[k][group])
        at = (hashed >> 8) & mask
        while table[at] != 0:
            at = (at + 1) & mask
        table[at] = group + 1
    return True


@kernel
def hash_group(ctl: Control, arrangement: Arrangement, row):
    """Group of a row, made if it is new; -1 with ctl.error set when out of memory."""
    groups = arrangement.groups
    if not grow_groups(ctl, arrangement, groups + 1):
        return -1
    keys = arrangement.key_count
    columns = arrangement.group_keys
    hashed = 0
    for k in range(keys):
        hashed = mix(hashed, key_cell(arrangement, k, row))
    table = arrangement.slots
    mask = arrangement.slot_count - 1
    at = (hashed >> 8) & mask
    while True:
        group = table[at] - 1
        if group < 0:
            break
        equal = True
        for k in range(keys):
            if columns[k][group] != key_cell(arrangement, k, row):
                equal = False
        if equal:
            return group
        at = (at + 1) & mask
    for k in range(keys):
        columns[k][groups] = key_cell(arrangement, k, row)
    table[at] = groups + 1
    arrangement.groups = groups + 1
    return groups


@kernel
def find_groups(arrangement: Arrangement, ctl: Control, registers: Words, n, groups: Words):
    """groups[i] = the group of the key in block row i, or -1."""
    keys = arrangement.key_count
    if arrangement.map == KeyMap.DENSE:
        for i in range(n):
            groups[i] = 0
        for k in range(keys):
            low = arrangement.lows[k]
            span = arrangement.ranges[k]
            stride = arrangement.strides[k]
            values = register(ctl, registers[k])
            for i in range(n):
                offset = values[i] - low
                group = groups[i]
                if offset < 0 or offset >= span or group < 0:
                    group = -1
                else:
                    group += offset * stride
                groups[i] = group
        return
    count = arrangement.slot_count
    columns = arrangement.group_keys
    table = arrangement.slots
    for i in range(n):
        found = -1
        if count > 0:
            hashed = 0
            for k in range(keys):
                hashed = mix(hashed, register(ctl, registers[k])[i])
            at = (hashed >> 8) & (count - 1)
            while True:
                group = table[at] - 1
                if group < 0:
                    break
                equal = True
                for k in range(keys):
                    if columns[k][group] != register(ctl, registers[k])[i]:
                        equal = False
                if equal:
                    found = group
                    break
                at = (at + 1) & (count - 1)
        groups[i] = found


@kernel
def chain_of(arrangement: Arrangement, group) -> Chain:
    """Address of the head of a group's chain, of a growing arrangement."""
    return arrangement.chains[group]


@kernel
def group_size(arrangement: Arrangement, group):
    if group < 0:
        return 0
    if arrangement.kind == ArrangementKind.SORTED:
        offsets = arrangement.offsets
        return offsets[group + 1] - offsets[group]
    return chain_of(arrangement, group).count


# --------------------------------------------------------------------------------------------------------------- sorted


@entry()
def assign_groups(ctl: Control, arrangement: Arrangement, groups: Numbers, rows):
    """groups[row] (int32) for every row; false with ctl.error set on error."""
    dense = arrangement.map == KeyMap.DENSE
    for row in range(rows):
        group = dense_group(arrangement, row) if dense else hash_group(ctl, arrangement, row)
        if group < 0:
            return False
        groups[row] = group
    return True


@entry()
def ascends_within(groups: Numbers, data, width, rows):
    """Whether, within each group of rows that stand together, the column ascends."""
    for row in range(1, rows):
        if groups[row] == groups[row - 1] and load_cell(data, width, row) < load_cell(data, width, row - 1):
            return False
    return True


@entry()
def count_groups(arrangement: Arrangement, groups: Numbers, low, rows):
    """Offsets of the groups, from groups[row] - low; returns whether these ascend. The offsets are zeroed and have room for one
    group more than there are."""
    offsets = arrangement.offsets
    ascending = 1
    last = low
    for row in range(rows):
        value = groups[row]
        if value < last:
            ascending = 0
        last = value
        at = value - low + 1
        offsets[at] += 1
    total = 0
    for group in range(arrangement.groups + 1):
        total += offsets[group]
        offsets[group] = total
    return ascending


@entry()
def place_rows(arrangement: Arrangement, groups: Numbers, low, order: Numbers, rows, places: Numbers):
    """places[row] = where the row goes: grouped, stable in `order` (a permutation, or 0 for the rows' own order).

    Advances the offsets while it runs and sets them back at the end.
    """
    offsets = arrangement.offsets
    if not order:
        for row in range(rows):
            group = groups[row] - low
            at = offsets[group]
            offsets[group] = at + 1
            places[row] = at
    else:
        for i in range(rows):
            row = order[i]
            group = groups[row] - low
            at = offsets[group]
            offsets[group] = at + 1
            places[row] = at
    for group in range(arrangement.groups, 0, -1):
        offsets[group] = offsets[group - 1]
    offsets[0] = 0


@entry()
def scatter_column(data, width, places: Numbers, rows, target):
    """target[places[row]] = data[row]"""
    if width == 4:
        for row in range(rows):
            Numbers(target)[places[row]] = Numbers(data)[row]
    else:
        for row in range(rows):
            Words(target)[places[row]] = Words(data)[row]


@entry()
def sort_pass(data, width, low, shift, source: Numbers, target: Numbers, rows, counts: Words):
    """One stable pass of a radix sort by eleven bits of (value - low) >> shift; source 0 is the identity permutation."""
    for d in range(2048):
        counts[d] = 0
    for row in range(rows):
        digit = ((load_cell(data, width, row) - low) >> shift) & 2047
        counts[digit] += 1
    total = 0
    for d in range(2048):
        count = counts[d]
        counts[d] = total
        total += count
    for i in range(rows):
        row = i if not source else source[i]
        digit = ((load_cell(data, width, row) - low) >> shift) & 2047
        at = counts[digit]
        counts[digit] = at + 1
        target[at] = row


@entry()
def scatter_grouped(offsets: Numbers, groups: Numbers, low, data, width, rows, target, last):
    """Places one column by its rows' groups directly; the offsets advance and are set back, `last` is the number of groups."""
    if width == 4:
        for row in range(rows):
            group = groups[row] - low
            at = offsets[group]
            offsets[group] = at + 1
            Numbers(target)[at] = Numbers(data)[row]
    else:
        for row in range(rows):
            group = groups[row] - low
            at = offsets[group]
            offsets[group] = at + 1
            Words(target)[at] = Words(data)[row]
    for group in range(last, 0, -1):
        offsets[group] = offsets[group - 1]
    offsets[0] = 0


@entry()
def write_keys(offsets: Numbers, groups, low, width, target):
    """The key column of rows in group order, where group g has the key low + g."""
    for group in range(groups):
        for at in range(offsets[group], offsets[group + 1]):
            store_cell(target, width, at, low + group)
