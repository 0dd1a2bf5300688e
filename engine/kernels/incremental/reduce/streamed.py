"""Contributions to counts, sums and means whose results have no rows of their own (grouped.py).

Those of one path come by round, and change the groups as they come: nothing is kept between the path and the groups. Those of
several paths are sorted first. A round whose last contribution may still come is open: the groups it has touched are noted with
what they were before it.
"""

from __future__ import annotations

from dlog.engine.kernels.combine import Combine
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.incremental.reduce.grouped import announce_group, group_word
from dlog.engine.kernels.incremental.reduce.sums import add_to_sum, sum_at, sum_value
from dlog.engine.kernels.incremental.store.histories import get_bit
from dlog.engine.kernels.incremental.store.lists import change_at, list_push, list_room
from dlog.engine.kernels.layout import (
    BLOCK,
    CHANGE_BEFORE,
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
    CTL_ERROR,
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
    REL_ROWS,
    SUM_COUNT,
    WORK_TICK,
)

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
        if opened != time and load_i64(reduction, RD_OP) == Combine.COUNT and load_i64(reduction, RD_MISSING) == 0:
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
    begins that is not whole or has many, -1 with CTL_ERROR set. Most rounds have one or two."""
    log = load_i64(load_i64(reduction, RD_RESULT), CO_LOG)
    if not list_room(ctl, log, n - first + 1):
        return -1
    groups = load_i64(reduction, RD_GROUPS)
    sums = load_i64(groups, CO_SUMS)
    start = load_i64(log, LIST_DATA)
    entry = start + load_i64(log, LIST_COUNT) * (CHANGE_SIZE * 8)
    at = first
    while at + 1 < n:
        time = load_i64(times, at)
        group = load_i64(rows, at)
        diff = load_i64(diffs, at)
        if load_i64(times, at + 1) != time:
            last = at + 1
            entry = count_group(ctl, groups, sums, group, time, diff, entry)
        elif at + 2 < n and load_i64(times, at + 2) != time:
            last = at + 2
            other = load_i64(rows, at + 1)
            if other == group:
                diff += load_i64(diffs, at + 1)
            else:
                entry = count_group(ctl, groups, sums, other, time, load_i64(diffs, at + 1), entry)
            entry = count_group(ctl, groups, sums, group, time, diff, entry)
        else:
            last = end_of_round(times, at, n)
            if last == n or last - at > FEW:
                break
            entry = count_few(ctl, groups, sums, rows, time, diffs, at, last, entry)
        at = last
    if load_i64(ctl, CTL_ERROR) != 0:
        return -1
    store_i64(log, LIST_COUNT, (entry - start) // (CHANGE_SIZE * 8))
    return at


@kernel
def count_few(ctl, groups, sums, rows, time, diffs, first, last, entry):
    """Writes the entries of a round with few contributions; returns where the next one goes."""
    for i in range(first, last):
        group = load_i64(rows, i)
        if is_among(rows, first, i, group):
            continue
        diff = load_i64(diffs, i)
        for other in range(i + 1, last):
            diff += load_i64(diffs, other) if load_i64(rows, other) == group else 0
        entry = count_group(ctl, groups, sums, group, time, diff, entry)
    return entry


@kernel
def count_group(ctl, groups, sums, group, time, diff, entry):
    """Writes the log's entry of a group that gets so many members (its one word in `sums`); returns where the next one goes.
    CTL_ERROR says whether memory did not suffice."""
    before = load_i64(sums, group)
    after = before + diff
    store_i64(sums, group, after)
    if after <= 0:
        list_push(ctl, load_i64(groups, CO_DOOMED), group)
    store_i64(entry, CHANGE_ROW, group_word(group, before > 0, after > 0))
    store_i64(entry, CHANGE_TIME, time)
    store_i64(entry, CHANGE_BEFORE, before)
    store_i64(entry, CHANGE_VALUE, after)
    # One that changes nothing is overwritten by the next.
    return entry + (CHANGE_SIZE * 8 if diff != 0 and (before > 0 or after > 0) else 0)


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
