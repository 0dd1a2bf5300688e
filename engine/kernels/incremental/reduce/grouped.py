"""Results of counts, sums and means without rows of their own.

Where nobody looks for rows of a result, it is its groups: the group's number stands for the row, its words give the value. An
entry of its log is what a round made of a group: two changes, or one where a group begins or ends.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.reduce.sums import sum_at, sum_value
from dlog.engine.kernels.incremental.store.bits import get_bit
from dlog.engine.kernels.incremental.store.lists import list_push, push_change
from dlog.engine.kernels.layout import GROUP_HAD, GROUP_HAS, GROUP_NUMBER
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.round_structs import Collection, Control, Reduction
from dlog.engine.kernels.row_structs import ChangeArray
from dlog.engine.kernels.static.storage import clear_words


@kernel
def announce_group(ctl: Control, reduction: Reduction, group, time, had, before):
    """Notes what became of a group that had (or not) a value before a round; false with ctl.error set."""
    groups = reduction.groups
    result = reduction.result
    place = sum_at(groups, group)
    has = place.count > 0
    after = 0
    if has:
        after = sum_value(reduction.op, place)
    else:
        if place.count == 0:
            clear_words(Words(place.address), groups.grouping.sum_words)
        if not list_push(ctl, groups.maybe_dead, group):
            return False
    if had == has and before == after:
        return True
    missing = reduction.missing
    if missing and had != has and not push_change(ctl, missing, group, time, 1 if had else -1, 0):
        return False
    if result.fresh != 0:
        return True
    return push_change(ctl, result.log, group_word(group, had, has), time, before, after)


@kernel
def group_word(group, had, has):
    """What an entry of a grouped log begins with: the group, whether it had a value, and whether it has one."""
    return group | (GROUP_HAD if had else 0) | (GROUP_HAS if has else 0)


@kernel
def split_entries(entries: ChangeArray, n, sign, rows: Words, times: Words, diffs: Words, values: Words):
    """Writes the changes of n entries of a grouped log, at most 2n; returns how many."""
    count = 0
    for i in range(n):
        entry = entries[i]
        word = entry.row
        time = entry.time
        rows[count] = word & GROUP_NUMBER
        times[count] = time
        diffs[count] = -sign
        values[count] = entry.diff
        # What is not a change is overwritten by the next one.
        count += 1 if word & GROUP_HAD != 0 else 0
        rows[count] = word & GROUP_NUMBER
        times[count] = time
        diffs[count] = sign
        values[count] = entry.value
        count += 1 if word & GROUP_HAS != 0 else 0
    return count


@kernel
def has_value(groups: Collection, group):
    """Whether a group has a result."""
    return get_bit(groups.alive, group) != 0 and sum_at(groups, group).count > 0


@kernel
def fresh_groups(reduction: Reduction, first, last, rows: Words, values: Words):
    """The groups of [first, last) that have a result, and their values; returns how many."""
    groups = reduction.groups
    n = 0
    for group in range(first, last):
        if has_value(groups, group):
            rows[n] = group
            values[n] = sum_value(reduction.op, sum_at(groups, group))
            n += 1
    return n


@entry()
def copy_groups(result: Collection, numbers: Numbers, values: Words):
    """Writes the numbers (int32) of all groups that have a result and their values; returns how many."""
    reduction = result.grouped
    groups = reduction.groups
    count = 0
    for group in range(groups.rows):
        if has_value(groups, group):
            numbers[count] = group
            values[count] = sum_value(reduction.op, sum_at(groups, group))
            count += 1
    return count
