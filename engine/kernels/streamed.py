"""Contributions to counts, sums and means whose results have no rows of their own (grouped.py).

Those of one path come by round, and change the groups as they come: nothing is kept between the path and the groups. Those of
several paths are sorted first. A round whose last contribution may still come is open: the groups it has touched are noted with
what they were before it.
"""

from __future__ import annotations

from dlog.engine.kernels.grouped import announce_group
from dlog.engine.kernels.histories import get_bit
from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.layout import (
    BLOCK,
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_SIZE,
    CHANGE_TIME,
    CHANGE_VALUE,
    CO_ALIVE,
    CO_DOOMED,
    CO_FRESH,
    CO_LOG,
    CO_STAMPS,
    CO_SUM_WORDS,
    CO_SUMS,
    CO_TOUCHED,
    CTL_SCRATCH,
    LIST_COUNT,
    LIST_DATA,
    RD_DERIVED,
    RD_GROUPS,
    RD_MISSING,
    RD_OP,
    RD_OPEN,
    RD_RESULT,
    RD_WORK,
    RED_COUNT,
    REL_ROWS,
    SUM_COUNT,
    WORK_TICK,
)
from dlog.engine.kernels.lists import change_at, list_push, list_room
from dlog.engine.kernels.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.sums import add_to_sum, sum_at, sum_value

TOUCHED_WORDS = 3
"""What is noted of a group in an open round: its number, its members and its value before."""
FEW = 8
"""Contributions of a round that are compared with each other."""


@kernel
def stream_block(ctl, reduction, rows, times, diffs, values, n):
    """A block's contributions, `diffs` times `values` at `times` to groups `rows`; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    if n > 1:
        sums = load_i64(groups, CO_SUMS)
        size = load_i64(groups, CO_SUM_WORDS) * 8
        for i in range(n):
            prefetch(sums + load_i64(rows, i) * size)
    if load_i64(load_i64(reduction, RD_RESULT), CO_FRESH) != 0 and load_i64(reduction, RD_MISSING) == 0:
        # All groups with members count as changes (`log_fresh`).
        op = load_i64(reduction, RD_OP)
        for i in range(n):
            add_to_sum(op, sum_at(groups, load_i64(rows, i)), load_i64(values, i), load_i64(diffs, i))
        return True
    first = 0
    while first < n:
        time = load_i64(times, first)
        opened = load_i64(reduction, RD_OPEN)
        if opened != time and opened != 0 and not close_round(ctl, reduction):
            return False
        if opened != time and load_i64(reduction, RD_OP) == RED_COUNT and load_i64(reduction, RD_MISSING) == 0:
            counted = count_rounds(ctl, reduction, rows, times, diffs, first, n)
            if counted < 0:
                return False
            if counted > first:
                first = counted
                continue
        last = end_of_round(times, first, n)
        if opened == time or last == n or last - first > FEW:
            done = extend_round(ctl, reduction, rows, time, diffs, values, first, last)
        else:
            done = whole_round(ctl, reduction, rows, time, diffs, values, first, last)
        if not done:
            return False
        first = last
    return True


@kernel
def end_of_round(times, first, n):
    """Where contributions of the time of the one at `first` end."""
    last = first + 1
    while last < n and load_i64(times, last) == load_i64(times, first):
        last += 1
    return last


@kernel
def count_rounds(ctl, reduction, rows, times, diffs, first, n):
    """`whole_round` of a count that nobody misses, for all rounds with few contributions from `first` on; returns where one
    begins that is not whole or has many, -1 with CTL_ERROR set."""
    log = load_i64(load_i64(reduction, RD_RESULT), CO_LOG)
    if not list_room(ctl, log, 2 * (n - first) + 1):
        return -1
    groups = load_i64(reduction, RD_GROUPS)
    sums = load_i64(groups, CO_SUMS)
    words = load_i64(groups, CO_SUM_WORDS)
    start = load_i64(log, LIST_DATA)
    change = start + load_i64(log, LIST_COUNT) * (CHANGE_SIZE * 8)
    at = first
    while at < n:
        last = end_of_round(times, at, n)
        if last == n or last - at > FEW:
            break
        time = load_i64(times, at)
        several = last - at > 1
        for i in range(at, last):
            group = load_i64(rows, i)
            if several and is_among(rows, at, i, group):
                continue
            before = load_i64(sums, group * words)
            after = before + load_i64(diffs, i)
            for other in range(i + 1, last):
                after += load_i64(diffs, other) if load_i64(rows, other) == group else 0
            store_i64(sums, group * words, after)
            if after <= 0 and not list_push(ctl, load_i64(groups, CO_DOOMED), group):
                return -1
            if after != before:
                # One that is not a change is overwritten by the next.
                put_change(change, group, time, -1, before)
                change += CHANGE_SIZE * 8 if before > 0 else 0
                put_change(change, group, time, 1, after)
                change += CHANGE_SIZE * 8 if after > 0 else 0
        at = last
    store_i64(log, LIST_COUNT, (change - start) // (CHANGE_SIZE * 8))
    return at


@kernel
def put_change(change, row, time, diff, value):
    store_i64(change, CHANGE_ROW, row)
    store_i64(change, CHANGE_TIME, time)
    store_i64(change, CHANGE_DIFF, diff)
    store_i64(change, CHANGE_VALUE, value)


@kernel
def flush_grouped(ctl, reduction):
    """All contributions of several paths, in the order of their rounds; false with CTL_ERROR set."""
    derived = load_i64(reduction, RD_DERIVED)
    rows = load_i64(ctl, CTL_SCRATCH)
    times = rows + BLOCK * 8
    diffs = times + BLOCK * 8
    values = diffs + BLOCK * 8
    for first in range(0, load_i64(derived, LIST_COUNT), BLOCK):
        n = min(BLOCK, load_i64(derived, LIST_COUNT) - first)
        for i in range(n):
            change = change_at(derived, first + i)
            store_i64(rows, i, load_i64(change, CHANGE_ROW))
            store_i64(times, i, load_i64(change, CHANGE_TIME))
            store_i64(diffs, i, load_i64(change, CHANGE_DIFF))
            store_i64(values, i, load_i64(change, CHANGE_VALUE))
        if not stream_block(ctl, reduction, rows, times, diffs, values, n):
            return False
    return end_stream(ctl, reduction)


@kernel
def whole_round(ctl, reduction, rows, time, diffs, values, first, last):
    """All of a round's few contributions; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    op = load_i64(reduction, RD_OP)
    for i in range(first, last):
        group = load_i64(rows, i)
        if i > first and is_among(rows, first, i, group):
            continue
        place = sum_at(groups, group)
        had = load_i64(place, SUM_COUNT) > 0
        before = sum_value(op, place) if had else 0
        add_to_sum(op, place, load_i64(values, i), load_i64(diffs, i))
        for other in range(i + 1, last):
            if load_i64(rows, other) == group:
                add_to_sum(op, place, load_i64(values, other), load_i64(diffs, other))
        if not announce_group(ctl, reduction, group, time, had, before):
            return False
    return True


@kernel
def is_among(rows, first, last, wanted):
    for i in range(first, last):
        if load_i64(rows, i) == wanted:
            return True
    return False


@kernel
def extend_round(ctl, reduction, rows, time, diffs, values, first, last):
    """More contributions of the open round, which is opened if there is none; false with CTL_ERROR set."""
    groups = load_i64(reduction, RD_GROUPS)
    op = load_i64(reduction, RD_OP)
    work = load_i64(reduction, RD_WORK)
    stamps = load_i64(groups, CO_STAMPS)
    touched = load_i64(groups, CO_TOUCHED)
    if load_i64(reduction, RD_OPEN) != time:
        store_i64(reduction, RD_OPEN, time)
        store_i64(touched, LIST_COUNT, 0)
        store_i64(work, WORK_TICK, load_i64(work, WORK_TICK) + 1)
    tick = load_i64(work, WORK_TICK)
    for i in range(first, last):
        group = load_i64(rows, i)
        place = sum_at(groups, group)
        if load_i32(stamps, group) != tick:
            store_i32(stamps, group, tick)
            members = load_i64(place, SUM_COUNT)
            before = sum_value(op, place) if members > 0 else 0
            noted = list_push(ctl, touched, group) and list_push(ctl, touched, members) and list_push(ctl, touched, before)
            if not noted:
                return False
        add_to_sum(op, place, load_i64(values, i), load_i64(diffs, i))
    return True


@kernel
def close_round(ctl, reduction):
    """What became of the groups that the open round touched; false with CTL_ERROR set."""
    time = load_i64(reduction, RD_OPEN)
    touched = load_i64(load_i64(reduction, RD_GROUPS), CO_TOUCHED)
    store_i64(reduction, RD_OPEN, 0)
    for i in range(0, load_i64(touched, LIST_COUNT), TOUCHED_WORDS):
        item = load_i64(touched, LIST_DATA) + i * 8
        if not announce_group(ctl, reduction, load_i64(item, 0), time, load_i64(item, 1) > 0, load_i64(item, 2)):
            return False
    store_i64(touched, LIST_COUNT, 0)
    return True


@kernel
def end_stream(ctl, reduction):
    """Ends the batch's contributions; false with CTL_ERROR set."""
    if load_i64(load_i64(reduction, RD_RESULT), CO_FRESH) == 0 or load_i64(reduction, RD_MISSING) != 0:
        return load_i64(reduction, RD_OPEN) == 0 or close_round(ctl, reduction)
    groups = load_i64(reduction, RD_GROUPS)
    alive = load_i64(groups, CO_ALIVE)
    for group in range(load_i64(groups, REL_ROWS)):
        empty = get_bit(alive, group) != 0 and load_i64(sum_at(groups, group), SUM_COUNT) == 0
        if empty and not list_push(ctl, load_i64(groups, CO_DOOMED), group):
            return False
    return True
