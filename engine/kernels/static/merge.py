"""Keyed relations: one row per key whose value merges (sums, minima, maxima), and the radix heap that orders a lattice's
changes. Sums that have a bound, the value in the column before, change where they exceed it.

A lattice relation (`min` or `max` inside recursion) hands its changed rows to the loop least value first. Where rules do not
lower a value (distances, labels) each row is then final when it is expanded, as in Dijkstra's algorithm; where they do, the
order costs repeats but never the answer. The heap is the radix heap of Ahuja, Mehlhorn, Orlin and Tarjan (1990).
"""

from __future__ import annotations

from dlog.engine.kernels.combine import Combine, joined, rank
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_float, bit_length, load_i32, load_i64, prefetch, store_i32, store_i64
from dlog.engine.kernels.layout import (
    COL_DATA,
    COL_SIZE,
    COL_WIDTH,
    CTL_ERROR,
    ERROR_SUM,
    HEAP_BUCKETS,
    HEAP_COUNT,
    HEAP_LAST,
    REL_ARITY,
    REL_COLUMNS,
    REL_HEAP,
    REL_KEY_COUNT,
    REL_MERGE,
    REL_QUEUE,
    REL_QUEUE_CAPACITY,
    REL_QUEUE_ROWS,
    REL_ROWS,
    REL_SET,
    REL_SLOT_COUNT,
    REL_SLOTS,
    REL_VALUE,
    SET_DENSE,
    SUM_MOST,
)
from dlog.engine.kernels.static.bitmaps import dense_codes
from dlog.engine.kernels.static.hashes import find_hash, grow_hash, hash_block, home, row_bits, slot_word
from dlog.engine.kernels.static.storage import load_cell, register, reserve, resize, store_cell
from dlog.engine.kernels.values.floats import float_word


@kernel
def merge_block(ctl, relation, registers, keys, n, codes):
    """Merges n rows into a keyed relation. `registers` has one register per column, `keys` those of the key columns.

    Returns rows added or improved, -1 with CTL_ERROR set on error.
    """
    rows = load_i64(relation, REL_ROWS)
    if not reserve(ctl, relation, n):
        return -1
    dense = load_i64(relation, REL_SET) == SET_DENSE
    if dense:
        dense_codes(relation, ctl, keys, n, codes)
    else:
        if not grow_hash(ctl, relation, rows + n):
            return -1
        hash_block(ctl, keys, load_i64(relation, REL_KEY_COUNT), n, codes)
    slots = load_i64(relation, REL_SLOTS)
    slot_count = load_i64(relation, REL_SLOT_COUNT)
    slot = 0
    merge = load_i64(relation, REL_MERGE)
    heap = load_i64(relation, REL_HEAP)
    number = load_i64(relation, REL_VALUE)
    value_column = load_i64(relation, REL_COLUMNS) + number * COL_SIZE * 8
    data = load_i64(value_column, COL_DATA)
    width = load_i64(value_column, COL_WIDTH)
    values = register(ctl, load_i64(registers, number))
    changed = 0
    if dense:
        # Two waits per block instead of two per row: for the slots, then for the values of the rows these name.
        for i in range(n):
            prefetch(slots + load_i64(codes, i) * 4)
        for i in range(n):
            prefetch(data + (load_i32(slots, load_i64(codes, i)) - 1) * width)
    for i in range(n):
        code = load_i64(codes, i)
        if dense:
            row = load_i32(slots, code) - 1
        else:
            slot = find_hash(relation, ctl, keys, i, code, home(code, slot_count))
            row = max(slot, -1)
        value = load_i64(values, i)
        if row < 0:
            row = rows
            rows += 1
            write_row(relation, ctl, registers, i, row)
            if dense:
                store_i32(slots, code, rows)
            else:
                store_i32(slots, -1 - slot, slot_word(code, row, row_bits(slot_count)))
            if merge == Combine.BOUND and value <= load_i64(register(ctl, load_i64(registers, number - 1)), i):
                continue
        elif merge == Combine.BOUND:
            bound = load_i64(register(ctl, load_i64(registers, number - 1)), i)
            before = load_i64(data, row)
            if before + value > SUM_MOST:
                store_i64(ctl, CTL_ERROR, ERROR_SUM)
                return -1
            store_i64(data, row, before + value)
            if before > bound or before + value <= bound:
                continue
        elif merge < Combine.SUM_FLOAT:
            store_i64(data, row, joined(merge, load_i64(data, row), value, 1))
            continue
        elif merge in (Combine.SUM_FLOAT, Combine.MEAN):
            store_i64(data, row, float_word(as_float(load_i64(data, row)) + as_float(value)))
            if load_i64(relation, REL_ARITY) == number + 2:
                add_count(relation, ctl, registers, number + 1, i, row)
            continue
        else:
            if rank(merge, value) >= rank(merge, load_cell(data, width, row)):
                continue
            store_cell(data, width, row, value)
        changed += 1
        if heap != 0 and not push(ctl, heap, rank(merge, value), row):
            return -1
    store_i64(relation, REL_ROWS, rows)
    return changed


@kernel
def write_row(relation, ctl, registers, i, row):
    columns = load_i64(relation, REL_COLUMNS)
    for c in range(load_i64(relation, REL_ARITY)):
        column = columns + c * COL_SIZE * 8
        value = load_i64(register(ctl, load_i64(registers, c)), i)
        store_cell(load_i64(column, COL_DATA), load_i64(column, COL_WIDTH), row, value)


@kernel
def add_count(relation, ctl, registers, number, i, row):
    """The second column of a mean: how many values its sum holds."""
    column = load_i64(relation, REL_COLUMNS) + number * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    store_i64(data, row, load_i64(data, row) + load_i64(register(ctl, load_i64(registers, number)), i))


# ----------------------------------------------------------------------------------------------------------------- heap


@kernel
def bucket_of(heap, index):
    return heap + (HEAP_BUCKETS + index * 3) * 8


@kernel
def push(ctl, heap, key, row):
    """Adds an entry; a key below the last popped one goes to bucket 0, to be expanded next. False when out of memory."""
    last = load_i64(heap, HEAP_LAST)
    bucket = bucket_of(heap, 0 if key <= last else bit_length(key ^ last))
    entries = load_i64(bucket, 1)
    capacity = load_i64(bucket, 2)
    data = load_i64(bucket, 0)
    if entries == capacity:
        target = max(capacity * 2, 64)
        data = resize(ctl, data, capacity * 16, target * 16)
        if data == 0:
            return False
        store_i64(bucket, 0, data)
        store_i64(bucket, 2, target)
    store_i64(data, entries * 2, key)
    store_i64(data, entries * 2 + 1, row)
    store_i64(bucket, 1, entries + 1)
    store_i64(heap, HEAP_COUNT, load_i64(heap, HEAP_COUNT) + 1)
    return True


@kernel
def is_fresh(merge, data, width, key, row):
    """Whether the entry still tells the row's value (it was not improved since)."""
    return rank(merge, load_cell(data, width, row)) == key


@kernel
def refill(ctl, heap, merge, data, width):
    """Moves the lowest non-empty bucket's fresh entries down so that bucket 0 holds the least keys. False when out of
    memory."""
    while load_i64(heap, HEAP_COUNT) > 0 and load_i64(bucket_of(heap, 0), 1) == 0:
        index = 1
        while load_i64(bucket_of(heap, index), 1) == 0:
            index += 1
        bucket = bucket_of(heap, index)
        entries = load_i64(bucket, 1)
        at = load_i64(bucket, 0)
        kept = 0
        least = 0
        for e in range(entries):
            key = load_i64(at, e * 2)
            row = load_i64(at, e * 2 + 1)
            if is_fresh(merge, data, width, key, row):
                store_i64(at, kept * 2, key)
                store_i64(at, kept * 2 + 1, row)
                if kept == 0 or key < least:
                    least = key
                kept += 1
        store_i64(bucket, 1, 0)
        store_i64(heap, HEAP_COUNT, load_i64(heap, HEAP_COUNT) - entries)
        if kept == 0:
            continue
        store_i64(heap, HEAP_LAST, least)
        for e in range(kept):
            if not push(ctl, heap, load_i64(at, e * 2), load_i64(at, e * 2 + 1)):
                return False
    return True


@kernel
def next_changes(ctl, relation):
    """Fills the relation's queue with the rows of the least fresh value. Returns how many, -1 when out of memory."""
    heap = load_i64(relation, REL_HEAP)
    merge = load_i64(relation, REL_MERGE)
    column = load_i64(relation, REL_COLUMNS) + load_i64(relation, REL_VALUE) * COL_SIZE * 8
    data = load_i64(column, COL_DATA)
    width = load_i64(column, COL_WIDTH)
    store_i64(relation, REL_QUEUE_ROWS, 0)
    count = 0
    while count == 0 and load_i64(heap, HEAP_COUNT) > 0:
        if not refill(ctl, heap, merge, data, width):
            return -1
        bucket = bucket_of(heap, 0)
        entries = load_i64(bucket, 1)
        capacity = load_i64(relation, REL_QUEUE_CAPACITY)
        if entries > capacity:
            target = max(entries, capacity * 2)
            queue = resize(ctl, load_i64(relation, REL_QUEUE), capacity * 4, target * 4)
            if queue == 0:
                return -1
            store_i64(relation, REL_QUEUE, queue)
            store_i64(relation, REL_QUEUE_CAPACITY, target)
        queue = load_i64(relation, REL_QUEUE)
        at = load_i64(bucket, 0)
        for e in range(entries):
            row = load_i64(at, e * 2 + 1)
            if is_fresh(merge, data, width, load_i64(at, e * 2), row):
                store_i32(queue, count, row)
                count += 1
        store_i64(bucket, 1, 0)
        store_i64(heap, HEAP_COUNT, load_i64(heap, HEAP_COUNT) - entries)
    store_i64(relation, REL_QUEUE_ROWS, count)
    return count
