"""Building a layer of unsorted updates: packed into words, sorted, summed (layers.py says what a layer is)."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import bit_length, calloc, free, load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.trace.layers import (
    FIELD_BOUND,
    FIELD_WIDTH,
    LAYER_ARITY,
    LAYER_DEPTH,
    LAYER_INDEX,
    LAYER_LOW,
    LAYER_RANGE,
    LAYER_ROWS,
    SIGN,
    describe,
    field_at,
    fill_index,
    load_value,
    place_fields,
    set_field,
    store_value,
    want_index,
    width_of,
)

PLAN_LOW, PLAN_HIGH, PLAN_WORD, PLAN_SHIFT, PLAN_BITS, PLAN_SIZE = range(6)
"""What is planned for each field: its least and greatest value, and where its bits lie in the packed words."""

_SMALL = 64  # rows up to which sorting by insertion beats counting digits


@kernel
def _plan_fields(source, plan):  # type: ignore[no-untyped-def]
    """Writes the range of each field, lays out the key fields, columns and times, in as few 64-bit words as hold them in order,
    and sets the bound of the diff to the sum of all |diff|. Returns the number of words."""
    rows = load_i64(source, LAYER_ROWS)
    fields = load_i64(source, LAYER_ARITY) + load_i64(source, LAYER_DEPTH) + 1
    weight = 0
    word, free = -1, 0
    for f in range(fields):
        entry = f * PLAN_SIZE
        low = load_value(source, f, 0)
        high = low
        varied = load_i64(source, field_at(f) + FIELD_WIDTH) != 0
        if varied:
            for i in range(1, rows):
                value = load_value(source, f, i)
                low = min(low, value)
                high = max(high, value)
        store_i64(plan, entry + PLAN_LOW, low)
        store_i64(plan, entry + PLAN_HIGH, high)
        if f < fields - 1:
            bits = bit_length(high - low)  # the difference wraps around, and is right as an unsigned word
            if bits > free:
                word += 1
                free = 64
            free -= bits
            store_i64(plan, entry + PLAN_WORD, word)
            store_i64(plan, entry + PLAN_SHIFT, free)
            store_i64(plan, entry + PLAN_BITS, bits)
        elif varied:
            for i in range(rows):
                weight += abs(load_value(source, f, i))
        else:
            weight = abs(low) * rows
    store_i64(source, field_at(fields - 1) + FIELD_BOUND, weight)
    return word + 1


@kernel
def _pack(source, plan, words, count):  # type: ignore[no-untyped-def]
    """Writes the words of every row, the first field in the first word's high bits. Returns whether the rows ascend already."""
    rows = load_i64(source, LAYER_ROWS)
    for i in range(count * rows):
        store_i64(words, i, SIGN)
    for f in range(load_i64(source, LAYER_ARITY) + load_i64(source, LAYER_DEPTH)):
        entry = f * PLAN_SIZE
        if load_i64(plan, entry + PLAN_BITS) > 0:
            low, shift = load_i64(plan, entry + PLAN_LOW), np.uint64(load_i64(plan, entry + PLAN_SHIFT))
            first = load_i64(plan, entry + PLAN_WORD) * rows
            for i in range(rows):
                bits = np.uint64(load_value(source, f, i) - low) << shift
                store_i64(words, first + i, load_i64(words, first + i) ^ np.int64(bits))
    ascending = 1
    while ascending < rows and _order(words, count, rows, ascending - 1, ascending) <= 0:
        ascending += 1
    return ascending >= rows


@kernel
def _order(words, count, rows, a, b):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 as row a is before, equal to or after row b."""
    for w in range(count):
        x, y = load_i64(words, w * rows + a), load_i64(words, w * rows + b)
        if x != y:
            return -1 if x < y else 1
    return 0


@kernel
def _insertion_sort(words, count, rows, order):  # type: ignore[no-untyped-def]
    for i in range(1, rows):
        moving = load_i32(order, i)
        k = i
        while k > 0 and _order(words, count, rows, load_i32(order, k - 1), moving) > 0:
            store_i32(order, k, load_i32(order, k - 1))
            k -= 1
        store_i32(order, k, moving)


@kernel
def _radix_sort(key, order, key2, order2, rows):  # type: ignore[no-untyped-def]
    """Sorts the words at `key` and moves `order` along; equal words keep their order. The other two are scratch."""
    digit = 8 if rows < 1 << 16 else 11
    mask = (1 << digit) - 1
    passes = (64 + digit - 1) // digit
    counts = calloc(passes << digit, 8)
    for i in range(rows):
        word = np.uint64(load_i64(key, i) ^ SIGN)
        for p in range(passes):
            at = (p << digit) + (np.int64(word >> np.uint64(p * digit)) & mask)
            store_i64(counts, at, load_i64(counts, at) + 1)
    swapped = False
    for p in range(passes):
        shift = np.uint64(p * digit)
        places = counts + (p << digit) * 8
        if load_i64(places, np.int64(np.uint64(load_i64(key, 0) ^ SIGN) >> shift) & mask) == rows:
            continue
        total = 0
        for d in range(1 << digit):
            count = load_i64(places, d)
            store_i64(places, d, total)
            total += count
        for i in range(rows):
            word = load_i64(key, i)
            d = np.int64(np.uint64(word ^ SIGN) >> shift) & mask
            place = load_i64(places, d)
            store_i64(places, d, place + 1)
            store_i64(key2, place, word)
            store_i32(order2, place, load_i32(order, i))
        key, key2 = key2, key
        order, order2 = order2, order
        swapped = not swapped
    free(counts)
    if swapped:
        for i in range(rows):
            store_i64(key2, i, load_i64(key, i))
            store_i32(order2, i, load_i32(order, i))


@kernel
def _sort(words, count, rows, order, scratch):  # type: ignore[no-untyped-def]
    """Writes the order of the rows to `order`. True says that the words, being single, have been put in order too."""
    if rows <= _SMALL:
        _insertion_sort(words, count, rows, order)
        return False
    order2 = scratch + 16 * rows
    if count == 1:
        _radix_sort(words, order, scratch, order2, rows)
        return True
    for w in range(count - 1, -1, -1):
        for i in range(rows):
            store_i64(scratch, i, load_i64(words, w * rows + load_i32(order, i)))
        _radix_sort(scratch, order, scratch + 8 * rows, order2, rows)
    return False


@kernel
def _lay_out(source, plan, target, constant_diff):  # type: ignore[no-untyped-def]
    """Decides widths, bounds and the index of a layer that is being built."""
    arity, depth = load_i64(source, LAYER_ARITY), load_i64(source, LAYER_DEPTH)
    describe(target, arity, depth)
    for f in range(arity + depth):
        low, high = load_i64(plan, f * PLAN_SIZE + PLAN_LOW), load_i64(plan, f * PLAN_SIZE + PLAN_HIGH)
        set_field(target, f, low, 0 if low == high else width_of(low, high), 0 if f < arity else high)
    if arity > 0 and load_i64(plan, PLAN_LOW) < load_i64(plan, PLAN_HIGH):
        want_index(target, load_i64(plan, PLAN_LOW), load_i64(plan, PLAN_HIGH), load_i64(source, LAYER_ROWS))
    diff = arity + depth
    weight = load_i64(source, field_at(diff) + FIELD_BOUND)
    set_field(target, diff, load_i64(plan, diff * PLAN_SIZE), 0 if constant_diff else width_of(-weight, weight), weight)


@entry()
def build_layer(source, target, memory, scratch):  # type: ignore[no-untyped-def]
    """Sorts the updates that `source` describes as it would a layer, sums the diffs of equal (row, time), leaves out zeros and
    describes the rest at `target`, in `memory`.

    A row of `source` may take 8 bytes a field and 4 for the index in `memory`, and (8 a field + 24) bytes of `scratch` besides
    PLAN_SIZE words for each field.
    """
    rows = load_i64(source, LAYER_ROWS)
    diff = load_i64(source, LAYER_ARITY) + load_i64(source, LAYER_DEPTH)
    plan = scratch
    words = plan + 8 * PLAN_SIZE * (diff + 1)
    count = _plan_fields(source, plan)
    order = words + 8 * count * rows
    for i in range(rows):
        store_i32(order, i, i)
    in_order = _pack(source, plan, words, count)
    if not in_order:
        in_order = _sort(words, count, rows, order, order + (4 * rows + 7) // 8 * 8)
    same = load_i64(plan, diff * PLAN_SIZE + PLAN_LOW) == load_i64(plan, diff * PLAN_SIZE + PLAN_HIGH)
    _lay_out(source, plan, target, same)
    place_fields(target, memory, rows)
    if not _write_sums(source, plan, words, count, order, in_order, target, same):
        _lay_out(source, plan, target, False)  # equal rows have added up
        place_fields(target, memory, rows)
        _write_sums(source, plan, words, count, order, in_order, target, False)


@kernel
def _write_sums(source, plan, words, count, order, in_order, target, same):  # type: ignore[no-untyped-def]
    """Writes what is left of the sorted updates; False if the diffs, promised to be the same, are not."""
    rows = load_i64(source, LAYER_ROWS)
    diff_field = load_i64(source, LAYER_ARITY) + load_i64(source, LAYER_DEPTH)
    indexed = load_i64(target, LAYER_INDEX) != 0
    promised = load_i64(plan, diff_field * PLAN_SIZE + PLAN_LOW)
    written, filled, low, high, weight, i = 0, 0, 0, 0, 0, 0
    while i < rows:
        first = i if in_order else load_i32(order, i)
        diff = load_value(source, diff_field, load_i32(order, i))
        i += 1
        while i < rows and _order(words, count, rows, first, i if in_order else load_i32(order, i)) == 0:
            diff += load_value(source, diff_field, load_i32(order, i))
            i += 1
        if diff == 0:
            continue
        if same and diff != promised:
            return False
        for f in range(diff_field):
            value = _unpack(plan, f, words, rows, first)
            if f == 0 and indexed:
                filled = fill_index(target, filled, value, written)
            store_value(target, f, written, value)
        store_value(target, diff_field, written, diff)
        low = diff if written == 0 else min(low, diff)
        high = diff if written == 0 else max(high, diff)
        weight += abs(diff)
        written += 1
    if indexed:
        fill_index(target, filled, load_i64(target, LAYER_LOW) + load_i64(target, LAYER_RANGE), written)
    store_i64(target, LAYER_ROWS, written)
    set_diffs(target, low, high, weight)
    return True


@kernel
def _unpack(plan, field, words, rows, row):  # type: ignore[no-untyped-def]
    """The value of a field from the packed words."""
    entry = field * PLAN_SIZE
    value, bits = load_i64(plan, entry + PLAN_LOW), load_i64(plan, entry + PLAN_BITS)
    if bits > 0:
        word = np.uint64(load_i64(words, load_i64(plan, entry + PLAN_WORD) * rows + row) ^ SIGN)
        above = np.uint64(64 - bits)
        value += np.int64(((word >> np.uint64(load_i64(plan, entry + PLAN_SHIFT))) << above) >> above)
    return value


@kernel
def set_diffs(layer, low, high, weight):  # type: ignore[no-untyped-def]
    """Sets the bound of the diffs, and makes them a constant where they are all the same."""
    field = load_i64(layer, LAYER_ARITY) + load_i64(layer, LAYER_DEPTH)
    if low == high:
        set_field(layer, field, low, 0, weight)
    else:
        store_i64(layer, field_at(field) + FIELD_BOUND, weight)
