"""Results of counts, sums and means without rows of their own.

Where nobody looks for rows of a result, it is its groups: the group's number stands for the row, its words give the value. A
change of such a result is a change of the group, with the value that comes or goes.
"""

from __future__ import annotations

from dlog.engine.kernels.histories import get_bit
from dlog.engine.kernels.jit import entry, kernel
from dlog.engine.kernels.layout import (
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_TIME,
    CHANGE_VALUE,
    CO_ALIVE,
    CO_DOOMED,
    CO_FRESH,
    CO_GROUPED,
    CO_LOG,
    CO_STAMPS,
    CO_SUM_WORDS,
    CO_TOUCHED,
    LIST_COUNT,
    LIST_DATA,
    RD_GROUPS,
    RD_MISSING,
    RD_OP,
    RD_RESULT,
    REL_ROWS,
    SUM_COUNT,
)
from dlog.engine.kernels.lists import change_at, list_push, push_change
from dlog.engine.kernels.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.sums import add_to_sum, sum_at, sum_value

_TOUCHED_WORDS = 3


@kernel
def change_groups(ctl, reduction, derived, first, last, tick):
    """The changes [first, last) of one round; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    time = load_i64(change_at(derived, first), CHANGE_TIME)
    if last == first + 1:
        change = change_at(derived, first)
        group = load_i64(change, CHANGE_ROW)
        place = sum_at(groups, group)
        members = load_i64(place, SUM_COUNT)
        before = sum_value(load_i64(reduction, RD_OP), place) if members > 0 else 0
        add_to_sum(load_i64(reduction, RD_OP), place, load_i64(change, CHANGE_VALUE), load_i64(change, CHANGE_DIFF))
        return announce_group(ctl, reduction, group, time, members > 0, before)
    stamps = load_i64(groups, CO_STAMPS)
    touched = load_i64(groups, CO_TOUCHED)
    store_i64(touched, LIST_COUNT, 0)
    for i in range(first, last):
        change = change_at(derived, i)
        group = load_i64(change, CHANGE_ROW)
        place = sum_at(groups, group)
        if load_i32(stamps, group) != tick:
            store_i32(stamps, group, tick)
            members = load_i64(place, SUM_COUNT)
            before = sum_value(load_i64(reduction, RD_OP), place) if members > 0 else 0
            noted = list_push(ctl, touched, group) and list_push(ctl, touched, members) and list_push(ctl, touched, before)
            if not noted:
                return False
        add_to_sum(load_i64(reduction, RD_OP), place, load_i64(change, CHANGE_VALUE), load_i64(change, CHANGE_DIFF))
    for i in range(0, load_i64(touched, LIST_COUNT), _TOUCHED_WORDS):
        item = load_i64(touched, LIST_DATA) + i * 8
        had = load_i64(item, 1) > 0
        if not announce_group(ctl, reduction, load_i64(item, 0), time, had, load_i64(item, 2)):
            return False
    return True


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
    log = load_i64(result, CO_LOG)
    if had and not push_change(ctl, log, group, time, -1, before):
        return False
    return not has or push_change(ctl, log, group, time, 1, after)


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
