"""The rows of a reduction's result: one per group at any time."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.incremental.loop.changes import announce
from dlog.engine.kernels.incremental.reduce.candidate import candidate_at, value_at
from dlog.engine.kernels.incremental.reduce.group_links import current_of, set_current
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.collections import add_values, cell, find_or_add
from dlog.engine.kernels.incremental.store.lists import push_change
from dlog.engine.kernels.incremental.store.slots import has_values, hash_values
from dlog.engine.kernels.layout import BLOCK
from dlog.engine.kernels.machine_structs import Words
from dlog.engine.kernels.round_structs import Control, Reduction


@kernel
def result_values(ctl: Control, reduction: Reduction, group, value) -> Words:
    """The result's row of a group with a value, in the worker's third scratch block: address of its words."""
    buffer = Words(ctl.scratch.address + 2 * BLOCK * 8)
    groups = reduction.groups
    keys = reduction.keys
    place = reduction.value
    for k in range(keys):
        buffer[k if k < place else k + 1] = cell(groups, k, group)
    buffer[place] = value
    return buffer


@kernel
def result_row(ctl: Control, reduction: Reduction, group, value):
    """The result's row of a group with a value, made if there is none; -1 with ctl.error set."""
    current = current_row(reduction, group, value)
    return current if current >= 0 else other_row(ctl, reduction, result_values(ctl, reduction, group, value))


@kernel
def current_row(reduction: Reduction, group, value):
    """The row of the group's present result, or -1 if that does not have a value."""
    result = reduction.result
    row = current_of(reduction.groups, group) - 1
    return row if row >= 0 and cell(result, reduction.value, row) == value else -1


@kernel
def other_row(ctl: Control, reduction: Reduction, values: Words):
    """The result's row with these values, which are no group's present result, made if there is none; -1 with ctl.error
    set."""
    result = reduction.result
    if result.unkeyed != 0:
        return add_values(ctl, result, values, 0)
    return find_or_add(ctl, result, values, hash_values(values, reduction.keys + 1))


@kernel
def candidate_result(ctl: Control, reduction: Reduction, group, candidate):
    """The result's row with a candidate's value, made if there is none; -1 with ctl.error set. Where it is not the group's
    present one, the candidate knows the one it had, which may have gone and be another by now."""
    candidates = reduction.candidates
    place = candidate_at(candidates, candidate)
    value = value_at(candidates, place)
    row = current_row(reduction, group, value)
    if row < 0:
        result = reduction.result
        values = result_values(ctl, reduction, group, value)
        row = place.row - 1
        alive = 0 <= row < result.rows and get_bit(result.alive, row) != 0
        if not alive or not has_values(result, row, values):
            row = other_row(ctl, reduction, values)
            place.row = row + 1
    return row


@kernel
def replace_result(ctl: Control, reduction: Reduction, group, row, time):
    """Makes `row` (-1: none) the group's result from `time` on; false with ctl.error set."""
    groups = reduction.groups
    result = reduction.result
    before = current_of(groups, group) - 1
    if before == row:
        return True
    set_current(groups, group, row + 1)
    missing = reduction.missing
    if before >= 0 and not announce(ctl, result, before, time, -1):
        return False
    if row >= 0 and not announce(ctl, result, row, time, 1):
        return False
    if not missing:
        return True
    if before < 0:
        return push_change(ctl, missing, row, time, -1, 0)
    if row < 0:
        return push_change(ctl, missing, before, time, 1, 0)
    return True
