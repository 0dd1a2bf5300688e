"""Results of counts, sums and means without rows of their own.

Where nobody looks for rows of a result, it is its groups: the group's number stands for the row, its words give the value. An
entry of its log is what a round made of a group: two changes, or one where a group begins or ends.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, store_i32, store_i64
from dlog.engine.kernels.incremental.reduce.sums import sum_at, sum_value
from dlog.engine.kernels.incremental.store.histories import get_bit
from dlog.engine.kernels.incremental.store.lists import list_push, push_change
from dlog.engine.kernels.layout import (
    CHANGE_BEFORE,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CHANGE_VALUE,
    CO_ALIVE,
    CO_DOOMED,
    CO_FRESH,
    CO_GROUPED,
    CO_LOG,
    CO_SUM_WORDS,
    GROUP_HAD,
    GROUP_HAS,
    GROUP_NUMBER,
    RD_GROUPS,
    RD_MISSING,
    RD_OP,
    RD_RESULT,
    REL_ROWS,
    SUM_COUNT,
)


@kernel
def announce_group(ctl, reduction, group, time, had, before):
    """Notes what became of a group that had (or not) a value before a round; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    result = load_i64(reduction, RD_RESULT)
    place = sum_at(groups, group)
    has = load_i64(place, SUM_COUNT) > 0
    after = 0
    if has:
        after = sum_value(load_i64(reduction, RD_OP), place)
    else:
        if load_i64(place, SUM_COUNT) == 0:
            for word in range(load_i64(groups, CO_SUM_WORDS)):
                store_i64(place, word, 0)
        if not list_push(ctl, load_i64(groups, CO_DOOMED), group):
            return False
    if had == has and before == after:
        return True
    missing = load_i64(reduction, RD_MISSING)
    if missing != 0 and had != has and not push_change(ctl, missing, group, time, 1 if had else -1, 0):
        return False
    if load_i64(result, CO_FRESH) != 0:
        return True
    return push_change(ctl, load_i64(result, CO_LOG), group_word(group, had, has), time, before, after)


@kernel
def group_word(group, had, has):
    """What an entry of a grouped log begins with: the group, whether it had a value, and whether it has one."""
    return group | (GROUP_HAD if had else 0) | (GROUP_HAS if has else 0)


@kernel
def split_entries(entries, n, sign, rows, times, diffs, values):
    """Writes the changes of n entries of a grouped log, at most 2n; returns how many."""
    count = 0
    for i in range(n):
        entry = entries + i * (CHANGE_SIZE * 8)
        word = load_i64(entry, CHANGE_ROW)
        time = load_i64(entry, CHANGE_TIME)
        store_i64(rows, count, word & GROUP_NUMBER)
        store_i64(times, count, time)
        store_i64(diffs, count, -sign)
        store_i64(values, count, load_i64(entry, CHANGE_BEFORE))
        # What is not a change is overwritten by the next one.
        count += 1 if word & GROUP_HAD != 0 else 0
        store_i64(rows, count, word & GROUP_NUMBER)
        store_i64(times, count, time)
        store_i64(diffs, count, sign)
        store_i64(values, count, load_i64(entry, CHANGE_VALUE))
        count += 1 if word & GROUP_HAS != 0 else 0
    return count


@kernel
def has_value(groups, group):
    """Whether a group has a result."""
    return get_bit(load_i64(groups, CO_ALIVE), group) != 0 and load_i64(sum_at(groups, group), SUM_COUNT) > 0


@kernel
def fresh_groups(reduction, first, last, rows, values):
    """The groups of [first, last) that have a result, and their values; returns how many."""
    groups = load_i64(reduction, RD_GROUPS)
    n = 0
    for group in range(first, last):
        if has_value(groups, group):
            store_i64(rows, n, group)
            store_i64(values, n, sum_value(load_i64(reduction, RD_OP), sum_at(groups, group)))
            n += 1
    return n


@entry()
def copy_groups(result, numbers, values):
    """Writes the numbers (int32) of all groups that have a result and their values; returns how many."""
    reduction = load_i64(result, CO_GROUPED)
    groups = load_i64(reduction, RD_GROUPS)
    count = 0
    for group in range(load_i64(groups, REL_ROWS)):
        if has_value(groups, group):
            store_i32(numbers, count, group)
            store_i64(values, count, sum_value(load_i64(reduction, RD_OP), sum_at(groups, group)))
            count += 1
    return count
