"""Derivations of rows at iterations (partial model): how many there are, and when their rows are looked at.

A row keeps its count per iteration, before (old) and after (new) the round that is running; where one changes, the row is
entered in the bucket of the iteration.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.incremental.store.lists import list_push, list_room, pool_take
from dlog.engine.kernels.layout import (
    BUCKET_NEXT,
    CO_BUCKET_COUNT,
    CO_BUCKETS,
    CO_ENTRIES,
    CO_SCOPE,
    CO_STAMPS,
    CO_SUPPORT,
    CO_TOUCHED,
    CTL_ERROR,
    ERROR_SUM,
    LIST_COUNT,
    LIST_DATA,
    LIST_SIZE,
    LIST_WORDS,
    SC_BIT_WORDS,
    SC_BITS,
    SC_HEAD_COUNT,
    SC_HEADS,
    SC_LAST,
    SC_ROUND_TICK,
    SC_TICK,
    SUM_MOST,
    SUPPORT_AT,
    SUPPORT_NEW,
    SUPPORT_OLD,
    SUPPORT_SIZE,
)
from dlog.engine.kernels.static.storage import resize

AHEAD = 32
"""Rows of a bucket that are asked for before they are looked at."""


@kernel
def bucket_at(collection, iteration):
    return load_i64(collection, CO_BUCKETS) + iteration * (LIST_SIZE * 8)


@kernel
def schedule(ctl, collection, iteration, row):
    """Notes that a row must be looked at, at an iteration; false with CTL_ERROR set."""
    if iteration >= load_i64(collection, CO_BUCKET_COUNT) and not grow_buckets(ctl, collection, iteration + 1):
        return False
    bucket = bucket_at(collection, iteration)
    count = load_i64(bucket, LIST_COUNT)
    if count == 0 and not enter_bucket(ctl, collection, bucket, iteration):
        return False
    if not list_room(ctl, bucket, 1):
        return False
    store_i64(load_i64(bucket, LIST_DATA), count, row)
    store_i64(bucket, LIST_COUNT, count + 1)
    return True


@kernel
def enter_bucket(ctl, collection, bucket, iteration):
    """Notes that a collection has rows to look at, at an iteration; false with CTL_ERROR set."""
    scope = load_i64(collection, CO_SCOPE)
    known = load_i64(scope, SC_HEAD_COUNT)
    if iteration >= known:
        new = max(iteration + 1, known + (known >> 1), 64)
        moved = resize(ctl, load_i64(scope, SC_HEADS), known * 8, new * 8)
        if moved == 0:
            return False
        for at in range(known, new):
            store_i64(moved, at, 0)
        store_i64(scope, SC_HEADS, moved)
        store_i64(scope, SC_HEAD_COUNT, new)
    heads = load_i64(scope, SC_HEADS)
    store_i64(bucket, BUCKET_NEXT, load_i64(heads, iteration))
    store_i64(heads, iteration, collection)
    return mark_iteration(ctl, scope, iteration)


@kernel
def grow_buckets(ctl, collection, wanted):
    old = load_i64(collection, CO_BUCKET_COUNT)
    new = max(wanted, old + (old >> 1), 16)
    moved = resize(ctl, load_i64(collection, CO_BUCKETS), old * LIST_SIZE * 8, new * LIST_SIZE * 8)
    if moved == 0:
        return False
    store_i64(collection, CO_BUCKETS, moved)
    store_i64(collection, CO_BUCKET_COUNT, new)
    for number in range(old, new):
        for word in range(LIST_SIZE):
            store_i64(bucket_at(collection, number), word, 0)
        store_i64(bucket_at(collection, number), LIST_WORDS, 1)
    return True


@entry()
def mark_iteration(ctl, scope, iteration):
    """Notes that some collection of the scope has something to do at an iteration."""
    words = load_i64(scope, SC_BIT_WORDS)
    if iteration >> 6 >= words:
        new = max((iteration >> 6) + 1, words + (words >> 1), 8)
        moved = resize(ctl, load_i64(scope, SC_BITS), words * 8, new * 8)
        if moved == 0:
            return False
        for word in range(words, new):
            store_i64(moved, word, 0)
        store_i64(scope, SC_BITS, moved)
        store_i64(scope, SC_BIT_WORDS, new)
    bits = load_i64(scope, SC_BITS)
    store_i64(bits, iteration >> 6, load_i64(bits, iteration >> 6) | (1 << (iteration & 63)))
    if iteration > load_i64(scope, SC_LAST):
        store_i64(scope, SC_LAST, iteration)
    return True


@kernel
def support_at(collection, number):
    """Address of a support entry by its number plus one."""
    return load_i64(load_i64(collection, CO_ENTRIES), LIST_DATA) + (number - 1) * (SUPPORT_SIZE * 8)


@kernel
def may_hold(ctl, count):
    """Whether derivations are so few, or weigh so little, that sums of two such counts are right; false with CTL_ERROR set."""
    if -SUM_MOST <= count <= SUM_MOST:
        return True
    store_i64(ctl, CTL_ERROR, ERROR_SUM)
    return False


@kernel
def add_support(ctl, collection, row, iteration, diff):
    """Adds derivations of a row at an iteration and sees to it that it is looked at then; false with CTL_ERROR set. The entries
    of a row ascend."""
    heads = load_i64(collection, CO_SUPPORT)
    before = 0
    at = load_i32(heads, row)
    while at != 0:
        word = load_i64(support_at(collection, at), SUPPORT_AT)
        if word & 0xFFFFFFFF >= iteration:
            break
        before = at
        at = word >> 32
    if at != 0:
        entry = support_at(collection, at)
        if load_i64(entry, SUPPORT_AT) & 0xFFFFFFFF == iteration:
            count = load_i64(entry, SUPPORT_NEW)
            if not may_hold(ctl, count + diff):
                return False
            store_i64(entry, SUPPORT_NEW, count + diff)
            return count != load_i64(entry, SUPPORT_OLD) or schedule(ctl, collection, iteration, row)
    number = pool_take(ctl, load_i64(collection, CO_ENTRIES)) + 1
    if number == 0:
        return False
    entry = support_at(collection, number)
    store_i64(entry, SUPPORT_AT, iteration | (at << 32))
    store_i64(entry, SUPPORT_OLD, 0)
    store_i64(entry, SUPPORT_NEW, diff)
    if before == 0:
        store_i32(heads, row, number)
    else:
        previous = support_at(collection, before)
        store_i64(previous, SUPPORT_AT, (load_i64(previous, SUPPORT_AT) & 0xFFFFFFFF) | (number << 32))
    return schedule(ctl, collection, iteration, row)


@kernel
def gather_bucket(ctl, scope, collection, iteration):
    """Leaves each row of a bucket once at its front; returns how many, -1 on error.

    Rows met for the first time in this round are noted as touched."""
    tick = load_i64(scope, SC_TICK)
    round_tick = load_i64(scope, SC_ROUND_TICK)
    stamps = load_i64(collection, CO_STAMPS)
    touched = load_i64(collection, CO_TOUCHED)
    heads = load_i64(collection, CO_SUPPORT)
    bucket = bucket_at(collection, iteration)
    data = load_i64(bucket, LIST_DATA)
    count = load_i64(bucket, LIST_COUNT)
    rows = 0
    for i in range(count):
        if i + AHEAD < count:
            prefetch(stamps + load_i64(data, i + AHEAD) * 4)
            prefetch(heads + load_i64(data, i + AHEAD) * 4)
        row = load_i64(data, i)
        stamp = load_i32(stamps, row)
        if stamp < round_tick and not list_push(ctl, touched, row):
            return -1
        if stamp != tick:
            store_i32(stamps, row, tick)
            store_i64(data, rows, row)
            rows += 1
    return rows
