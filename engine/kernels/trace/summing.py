"""Equal updates taken together in one pass, by a hash table: in the order in which they come first."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import mix
from dlog.engine.kernels.trace.layers import load_value
from dlog.engine.kernels.trace_structs import LayerHeader


@kernel
def _group_of(updates: LayerHeader, row, slots: Numbers, count, firsts: Words, groups):
    """The number of the group that a row is of, at the same time; `groups` where it is the first one of another."""
    fields, hashed = updates.arity + updates.depth, 0
    for f in range(fields):
        hashed = mix(hashed, load_value(updates, f, row))
    slot = home(hashed, count)
    while slots[slot] != 0:
        other = firsts[slots[slot] - 1]
        equal = True
        for f in range(fields):
            if load_value(updates, f, other) != load_value(updates, f, row):
                equal = False
                break
        if equal:
            return slots[slot] - 1
        slot = 0 if slot + 1 == count else slot + 1
    slots[slot] = groups + 1
    return groups


@entry()
def sum_equal_updates(updates: LayerHeader, weights: Words, components, slots: Numbers, count, firsts: Words, sums: Words):
    """Writes the first of each group of updates with equal rows and times, and the sum over it of each component's weight times
    the diff; returns how many groups there are. `weights` and `sums` have as many words for each component as there are
    updates, and so many has `firsts`. `updates` are described as a layer is; in no order. There are `count` slots, more than
    updates, all 0."""
    rows = updates.rows
    groups, diff = 0, updates.arity + updates.depth
    for row in range(rows):
        group = _group_of(updates, row, slots, count, firsts, groups)
        times = load_value(updates, diff, row)
        if group == groups:
            firsts[group] = row
            groups += 1
            for c in range(components):
                sums[c * rows + group] = weights[c * rows + row] * times
        else:
            for c in range(components):
                sums[c * rows + group] += weights[c * rows + row] * times
    return groups
