"""Equal updates taken together in one pass, by a hash table: in the order in which they come first."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import behind, mix
from dlog.engine.kernels.trace.layers import load_value
from dlog.engine.kernels.trace_structs import LayerHeader, VariedFields


@kernel
def _vary(updates: LayerHeader, varied: VariedFields, limit):
    """Finds the fields that vary; returns how many there are, and whether there are no more than `limit` words for all."""
    count, words, dense = 0, 1, True
    for f in range(updates.arity + updates.depth):
        low = high = load_value(updates, f, 0)
        for row in range(1, updates.rows):
            value = load_value(updates, f, row)
            low, high = min(low, value), max(high, value)
        if low < high:
            field = varied[count]
            field.field = f
            field.low = low
            field.stride = words
            count += 1
            if np.uint64(high) - np.uint64(low) >= np.uint64(limit // words):
                dense = False
            if dense:
                words *= high - low + 1
    return count, dense


@kernel
def _dense_slot(updates: LayerHeader, row, varied: VariedFields, fields):
    slot = 0
    for k in range(fields):
        slot += (load_value(updates, varied[k].field, row) - varied[k].low) * varied[k].stride
    return slot


@kernel
def _hashed_slot(updates: LayerHeader, row, varied: VariedFields, fields, slots: Numbers, count, firsts: Words):
    """The slot of the group that a row is of, at the same time, or the empty one where it is the first of another."""
    hashed = 0
    for k in range(fields):
        hashed = mix(hashed, load_value(updates, varied[k].field, row))
    slot = home(hashed, count)
    while slots[slot] != 0:
        other, equal = firsts[slots[slot] - 1], True
        for k in range(fields):
            if load_value(updates, varied[k].field, other) != load_value(updates, varied[k].field, row):
                equal = False
                break
        if equal:
            return slot
        slot = 0 if slot + 1 == count else slot + 1
    return slot


@kernel
def _sum_equal(
    updates: LayerHeader,
    weights: WordColumns,
    components,
    varied: VariedFields,
    slots: Numbers,
    count,
    firsts: Words,
    sums: Words,
):
    """Writes the first of each group of updates with equal rows and times, and of each group the sum over it of each
    component's weight times the diff; returns how many groups there are. There are `count` slots, more than updates, all 0."""
    rows = updates.rows
    groups, diff = 0, updates.arity + updates.depth
    fields, dense = _vary(updates, varied, count)
    for row in range(rows):
        if dense:
            slot = _dense_slot(updates, row, varied, fields)
        else:
            slot = _hashed_slot(updates, row, varied, fields, slots, count, firsts)
        if slots[slot] == 0:
            for c in range(components):
                sums[groups * components + c] = 0
            firsts[groups] = row
            groups += 1
            slots[slot] = groups
        at, times = (slots[slot] - 1) * components, load_value(updates, diff, row)
        for c in range(components):
            sums[at + c] += weights[c][row] * times
    return groups


@kernel
def _parts_of(scratch: Words, rows):
    """Where in the scratch the first rows of groups are, and their sums."""
    firsts = behind(scratch, rows + 1)
    return firsts, behind(firsts, rows)


@entry()
def write_equal_sums(updates: LayerHeader, components, scratch: Words, room, parts: Words):
    """Writes each sum that is not 0 as an update of the row with two columns behind, the component and 0; groups in the order
    of their first ones. Each field of `parts` has as much room as there are such sums."""
    arity, at = updates.arity, 0
    firsts, sums = _parts_of(scratch, updates.rows)
    for group in range(scratch[0]):
        row = firsts[group]
        for c in range(components):
            total = sums[group * components + c]
            if total != 0:
                for f in range(arity):
                    parts[f * room + at] = load_value(updates, f, row)
                parts[arity * room + at] = c
                parts[(arity + 1) * room + at] = 0
                for f in range(arity, arity + updates.depth):
                    parts[(f + 2) * room + at] = load_value(updates, f, row)
                parts[(arity + updates.depth + 2) * room + at] = total
                at += 1


@entry()
def sum_equal_updates(updates: LayerHeader, weights: WordColumns, components, scratch: Words, room, parts: Words):
    """Sums for each group of updates with equal rows and times each component's weight times the diff. Returns how many sums
    are not 0, and writes them (`write_equal_sums`) where there is room for so many. `weights` have a column for each component;
    updates are described as a layer is, in no order. `scratch` has (components + 2) words an update, one, and a `Varied` for
    each column and coordinate."""
    rows, count = updates.rows, 0
    for word in range(rows + 1):
        scratch[word] = 0
    firsts, sums = _parts_of(scratch, rows)
    varied = VariedFields(behind(sums, components * rows).address)
    groups = _sum_equal(updates, weights, components, varied, Numbers(scratch.address), 2 * rows + 1, firsts, sums)
    for k in range(groups * components):
        count += 1 if sums[k] != 0 else 0
    scratch[0] = groups
    if count <= room:
        write_equal_sums(updates, components, scratch, count, parts)
    return count
