"""Changes of collections: rows become present or absent for the rest of the world; derived rows of the total model.

There rows are derived at rounds, and a row is present where its count of derivations is positive. (Inputs: inputs.py; rows
derived at iterations, too: distinct.py; what is left when a batch is over: batches.py.)
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.incremental.store.collections import enter_indexes
from dlog.engine.kernels.incremental.store.histories import add_entry, clear_bit, get_bit, open_item, put_bit
from dlog.engine.kernels.incremental.store.lists import change_at, list_empty, list_push, push_change, sort_changes
from dlog.engine.kernels.layout import (
    CHANGE_DIFF,
    CHANGE_ROW,
    CHANGE_TIME,
    CO_COUNTS,
    CO_DERIVED,
    CO_DOOMED,
    CO_FRESH,
    CO_GROUPED,
    CO_LOG,
    CO_OUTER,
    CO_QUIET,
    CO_STAMPS,
    CO_TOUCHED,
    HI_BITS,
    LIST_COUNT,
    LIST_DATA,
    RD_GROUPS,
    REL_ROWS,
    WORK_TICK,
)


@kernel
def announce(ctl, collection, row, time, diff):
    """A row becomes present (+1) or absent (-1) for the rest of the world; false with CTL_ERROR set."""
    outer = load_i64(collection, CO_OUTER)
    if load_i64(collection, CO_QUIET) != 0:
        fresh = load_i64(collection, CO_FRESH) != 0
        # What has changed without being logged could not be taken back.
        if not fresh and not push_change(ctl, load_i64(collection, CO_LOG), row, time, diff, 0):
            return False
        if diff > 0:
            clear_bit(load_i64(outer, HI_BITS), row)
        else:
            put_bit(load_i64(outer, HI_BITS), row)
        return not fresh or diff > 0 or list_push(ctl, load_i64(collection, CO_DOOMED), row)
    if load_i64(collection, CO_FRESH) != 0:
        # All rows of a fresh collection count as its changes (`log_fresh`).
        if diff > 0 and get_bit(load_i64(outer, HI_BITS), row) == 0:
            return True
        return add_entry(ctl, outer, row, time, diff)
    if not add_entry(ctl, outer, row, time, diff):
        return False
    return push_change(ctl, load_i64(collection, CO_LOG), row, time, diff, 0)


@kernel
def log_fresh(collection):
    """Makes all rows of a fresh collection its changes: a log without data stands for them (`is_implicit`)."""
    if load_i64(collection, CO_FRESH) != 0:
        log = load_i64(collection, CO_LOG)
        store_i64(log, LIST_COUNT, load_i64(with_rows(collection), REL_ROWS))


@kernel
def with_rows(collection):
    """The collection, or the groups that are its rows."""
    reduction = load_i64(collection, CO_GROUPED)
    return collection if reduction == 0 else load_i64(reduction, RD_GROUPS)
# ----------------------------------------------------------------------------------------------------------------- total


@kernel
def same_time(changes, first):
    """End of the run of changes that have the time of change `first`."""
    time = load_i64(change_at(changes, first), CHANGE_TIME)
    last = first + 1
    count = load_i64(changes, LIST_COUNT)
    while last < count and load_i64(change_at(changes, last), CHANGE_TIME) == time:
        last += 1
    return last


@entry()
def next_tick(work):
    tick = load_i64(work, WORK_TICK) + 1
    store_i64(work, WORK_TICK, tick)
    return tick


@kernel
def flush_distinct(ctl, work, collection, spare, counts):
    """Derived rows (total model) become changes, round by round; false with CTL_ERROR set."""
    derived = load_i64(collection, CO_DERIVED)
    if load_i64(collection, CO_FRESH) != 0:
        return flush_fresh(ctl, collection)
    if not enter_indexes(ctl, collection) or not sort_changes(ctl, derived, spare, counts):
        return False
    first = 0
    while first < load_i64(derived, LIST_COUNT):
        last = same_time(derived, first)
        if last == first + 1:
            done = flush_single(ctl, collection, change_at(derived, first))
        else:
            done = flush_round(ctl, collection, derived, first, last, next_tick(work))
        if not done:
            return False
        first = last
    list_empty(ctl, derived)
    return True


@kernel
def flush_single(ctl, collection, change):
    """`flush_round` of a round with one change."""
    row = load_i64(change, CHANGE_ROW)
    time = load_i64(change, CHANGE_TIME)
    counts = load_i64(collection, CO_COUNTS)
    before = load_i64(counts, row)
    after = before + load_i64(change, CHANGE_DIFF)
    store_i64(counts, row, after)
    if (before > 0) != (after > 0) and not announce(ctl, collection, row, time, 1 if after > 0 else -1):
        return False
    return after > 0 or doom(ctl, collection, row)


@kernel
def flush_fresh(ctl, collection):
    """`flush_distinct` of a fresh collection, whose counts are there already; false with CTL_ERROR set."""
    counts = load_i64(collection, CO_COUNTS)
    for row in range(load_i64(collection, REL_ROWS)):
        if load_i64(counts, row) <= 0 and not doom(ctl, collection, row):
            return False
    log_fresh(collection)
    return enter_indexes(ctl, collection)


@kernel
def flush_round(ctl, collection, derived, first, last, tick):
    """The changes [first, last) of one round: counts first, then the rows whose presence differs."""
    counts = load_i64(collection, CO_COUNTS)
    stamps = load_i64(collection, CO_STAMPS)
    touched = load_i64(collection, CO_TOUCHED)
    store_i64(touched, LIST_COUNT, 0)
    for i in range(first, last):
        change = change_at(derived, i)
        row = load_i64(change, CHANGE_ROW)
        if load_i32(stamps, row) != tick:
            store_i32(stamps, row, tick)
            if not list_push(ctl, touched, row) or not list_push(ctl, touched, load_i64(counts, row)):
                return False
        store_i64(counts, row, load_i64(counts, row) + load_i64(change, CHANGE_DIFF))
    time = load_i64(change_at(derived, first), CHANGE_TIME)
    for i in range(0, load_i64(touched, LIST_COUNT), 2):
        row = load_i64(load_i64(touched, LIST_DATA), i)
        before = load_i64(load_i64(touched, LIST_DATA), i + 1) > 0
        after = load_i64(counts, row) > 0
        if before != after and not announce(ctl, collection, row, time, 1 if after else -1):
            return False
        if not after and not doom(ctl, collection, row):
            return False
    return True


@kernel
def doom(ctl, collection, row):
    """Marks a row for removal when the batch settles, and, in a fresh collection, as absent; false with CTL_ERROR set."""
    outer = load_i64(collection, CO_OUTER)
    if load_i64(collection, CO_QUIET) != 0:
        put_bit(load_i64(outer, HI_BITS), row)
    elif get_bit(load_i64(outer, HI_BITS), row) == 0 and open_item(ctl, outer, row) == 0:
        return False
    return list_push(ctl, load_i64(collection, CO_DOOMED), row)
