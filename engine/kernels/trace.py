"""Sorted updates: building a layer from unsorted ones, merging layers step by step, finding rows by a prefix of their columns.

A layer is described by a vector of words: rows, arity, depth of its times, its index, then for each *field* - the row's
columns, the coordinates of the time, the diff - an address, a width and a bound. A width is 4 or 8 bytes; 0 means that all rows
have one value, which then stands in the place of the address. The bound of a time's coordinate is at or above all its values,
that of the diff is the sum of all |diff|; columns have none. Rows are ordered lexicographically by (columns, time), each pair
once, no diff is zero; values compare as signed 64-bit words. The index, where there is one, holds for each value v of the first
column from `LAYER_LOW` on the first row whose value is not less than v, as 32-bit words, with one entry more than there are
values.

Kernels take the addresses of such vectors and of all other memory, which belongs to the caller; they write where they are told
and never read past `LAYER_ROWS`.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.jit import entry, kernel
from dlog.engine.kernels.memory import bit_length, calloc, free, load_i32, load_i64, store_i32, store_i64

LAYER_ROWS, LAYER_ARITY, LAYER_DEPTH, LAYER_INDEX, LAYER_LOW, LAYER_RANGE, LAYER_FIELDS = range(7)
FIELD_ADDRESS, FIELD_WIDTH, FIELD_BOUND, FIELD_SIZE = range(4)

PLAN_LOW, PLAN_HIGH, PLAN_WORD, PLAN_SHIFT, PLAN_BITS, PLAN_SIZE = range(6)
"""What is planned for each field: its least and greatest value, and where its bits lie in the packed words."""

MERGE_SOURCES, MERGE_ELEMENTS, MERGE_SPLIT, MERGE_TIMES, MERGE_DIFFS, MERGE_ROOM, MERGE_NEEDED, MERGE_BLOCK = range(8)
MERGE_SETTLED, MERGE_OPEN, MERGE_FRONTIER, MERGE_BASE = range(8, 12)
MERGE_SETTLED_BYTES, MERGE_OPEN_BYTES, MERGE_SETTLED_FILLED, MERGE_OPEN_FILLED = range(12, 16)
MERGE_DIFF_LOW, MERGE_DIFF_HIGH, MERGE_WEIGHT = range(16, 19)
MERGE_SETTLED_PENDING, MERGE_OPEN_PENDING, MERGE_PLACES, MERGE_HEADS = range(19, 23)
"""A merge: how many inputs and elements of the frontier, whether to split; addresses of scratch for the history of a row, the
updates it has room for and the room it needs; the updates that are written together. `plan_merge` adds where in this very
vector the outputs' descriptions, the frontier and the least time, advanced, are, and the bytes both outputs need. Then index
entries filled, the range of the open diffs and the sum of all |diff| there, and where updates wait to be written. Then come
HEAD_SIZE words for each input, two descriptions, the frontier's elements, the advanced least time, two words an input that
say where a column is, and for each of the updates written together PENDING_SIZE words and one for each coordinate."""
HEAD_LAYER, HEAD_ROW, HEAD_VALUE, HEAD_END, HEAD_ROWS, HEAD_SINGLE, HEAD_SETTLES, HEAD_SIZE = range(8)
"""An input: its description, its next row, the first column there, where the updates of this row end, how many rows there are,
whether no row comes twice, and whether all updates settle."""
PENDING_SIZE = 5
"""Input and row of an update that settles; input, row and diff of one that stays open, followed by its time."""
MERGE_DONE, MERGE_PAUSED, MERGE_NEEDS_ROOM = 1, 0, -1
MERGE_TOGETHER = 256
"""Updates that wait to be written column by column."""

INDEX_ROWS = 256
"""Layers with fewer rows are searched without an index."""
SPARSE = 1 << 16
"""Index entries that do not matter, however few the rows."""
FILLS_PER_UPDATE = 8
"""Index entries filled at the price of one update merged."""

_SMALL = 64  # rows up to which sorting by insertion beats counting digits
_SIGN = -(2**63)  # flips the order of unsigned words into that of signed ones
_LEAST, _MOST = -(2**31), 2**31 - 1


@kernel
def field_at(field):  # type: ignore[no-untyped-def]
    """Where the words of a field begin."""
    return LAYER_FIELDS + FIELD_SIZE * field


@kernel
def load_value(layer, field, row):  # type: ignore[no-untyped-def]
    """The value of a field in a row."""
    at = field_at(field)
    address, width = load_i64(layer, at), load_i64(layer, at + FIELD_WIDTH)
    if width == 4:
        return load_i32(address, row)
    if width == 8:
        return load_i64(address, row)
    return address


@kernel
def store_value(layer, field, row, value):  # type: ignore[no-untyped-def]
    """Writes a value of a field; constants are not written."""
    at = field_at(field)
    address, width = load_i64(layer, at), load_i64(layer, at + FIELD_WIDTH)
    if width == 4:
        store_i32(address, row, value)
    elif width == 8:
        store_i64(address, row, value)


@kernel
def _set_field(layer, field, address, width, bound):  # type: ignore[no-untyped-def]
    at = field_at(field)
    store_i64(layer, at, address)
    store_i64(layer, at + FIELD_WIDTH, width)
    store_i64(layer, at + FIELD_BOUND, bound)


@kernel
def _width(low, high):  # type: ignore[no-untyped-def]
    """Bytes for values of a range."""
    return 4 if low >= _LEAST and high <= _MOST else 8


@kernel
def _describe(layer, arity, depth):  # type: ignore[no-untyped-def]
    """Says of an output what it is; it has no rows yet."""
    store_i64(layer, LAYER_ROWS, 0)
    store_i64(layer, LAYER_ARITY, arity)
    store_i64(layer, LAYER_DEPTH, depth)
    store_i64(layer, LAYER_INDEX, 0)


@kernel
def _want_index(layer, low, high, rows):  # type: ignore[no-untyped-def]
    """Asks for an index where the first column is dense enough that it costs at most 4 bytes a row."""
    if rows >= INDEX_ROWS and low > _SIGN >> 1 and high < -(_SIGN >> 1) and high - low < rows:
        store_i64(layer, LAYER_INDEX, 1)
        store_i64(layer, LAYER_LOW, low)
        store_i64(layer, LAYER_RANGE, high - low + 1)


@kernel
def _place_fields(layer, memory, room):  # type: ignore[no-untyped-def]
    """Gives each field that is no constant its place in `memory`, then the index asked for. Returns the bytes needed."""
    at = memory
    for f in range(load_i64(layer, LAYER_ARITY) + load_i64(layer, LAYER_DEPTH) + 1):
        width = load_i64(layer, field_at(f) + FIELD_WIDTH)
        if width != 0:
            store_i64(layer, field_at(f), at)
            at += (room * width + 7) // 8 * 8
    if load_i64(layer, LAYER_INDEX) != 0:
        store_i64(layer, LAYER_INDEX, at)
        at += 4 * (load_i64(layer, LAYER_RANGE) + 1)
    return at - memory


@kernel
def _fill_index(layer, filled, value, row):  # type: ignore[no-untyped-def]
    """Says that `row` is the first one with this value of the first column, or none; returns the entries filled."""
    slot = value - load_i64(layer, LAYER_LOW)
    index = load_i64(layer, LAYER_INDEX)
    while filled <= slot:
        store_i32(index, filled, row)
        filled += 1
    return filled


# ------------------------------------------------------------------------------------------------------------- building


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
        store_i64(words, i, _SIGN)
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
        word = np.uint64(load_i64(key, i) ^ _SIGN)
        for p in range(passes):
            at = (p << digit) + (np.int64(word >> np.uint64(p * digit)) & mask)
            store_i64(counts, at, load_i64(counts, at) + 1)
    swapped = False
    for p in range(passes):
        shift = np.uint64(p * digit)
        places = counts + (p << digit) * 8
        if load_i64(places, np.int64(np.uint64(load_i64(key, 0) ^ _SIGN) >> shift) & mask) == rows:
            continue
        total = 0
        for d in range(1 << digit):
            count = load_i64(places, d)
            store_i64(places, d, total)
            total += count
        for i in range(rows):
            word = load_i64(key, i)
            d = np.int64(np.uint64(word ^ _SIGN) >> shift) & mask
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
    _describe(target, arity, depth)
    for f in range(arity + depth):
        low, high = load_i64(plan, f * PLAN_SIZE + PLAN_LOW), load_i64(plan, f * PLAN_SIZE + PLAN_HIGH)
        _set_field(target, f, low, 0 if low == high else _width(low, high), 0 if f < arity else high)
    if arity > 0 and load_i64(plan, PLAN_LOW) < load_i64(plan, PLAN_HIGH):
        _want_index(target, load_i64(plan, PLAN_LOW), load_i64(plan, PLAN_HIGH), load_i64(source, LAYER_ROWS))
    diff = arity + depth
    weight = load_i64(source, field_at(diff) + FIELD_BOUND)
    _set_field(target, diff, load_i64(plan, diff * PLAN_SIZE), 0 if constant_diff else _width(-weight, weight), weight)


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
    _place_fields(target, memory, rows)
    if not _write_sums(source, plan, words, count, order, in_order, target, same):
        _lay_out(source, plan, target, False)  # equal rows have added up
        _place_fields(target, memory, rows)
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
                filled = _fill_index(target, filled, value, written)
            store_value(target, f, written, value)
        store_value(target, diff_field, written, diff)
        low = diff if written == 0 else min(low, diff)
        high = diff if written == 0 else max(high, diff)
        weight += abs(diff)
        written += 1
    if indexed:
        _fill_index(target, filled, load_i64(target, LAYER_LOW) + load_i64(target, LAYER_RANGE), written)
    store_i64(target, LAYER_ROWS, written)
    _set_diffs(target, low, high, weight)
    return True


@kernel
def _unpack(plan, field, words, rows, row):  # type: ignore[no-untyped-def]
    """The value of a field from the packed words."""
    entry = field * PLAN_SIZE
    value, bits = load_i64(plan, entry + PLAN_LOW), load_i64(plan, entry + PLAN_BITS)
    if bits > 0:
        word = np.uint64(load_i64(words, load_i64(plan, entry + PLAN_WORD) * rows + row) ^ _SIGN)
        above = np.uint64(64 - bits)
        value += np.int64(((word >> np.uint64(load_i64(plan, entry + PLAN_SHIFT))) << above) >> above)
    return value


@kernel
def _set_diffs(layer, low, high, weight):  # type: ignore[no-untyped-def]
    """Sets the bound of the diffs, and makes them a constant where they are all the same."""
    field = load_i64(layer, LAYER_ARITY) + load_i64(layer, LAYER_DEPTH)
    if low == high:
        _set_field(layer, field, low, 0, weight)
    else:
        store_i64(layer, field_at(field) + FIELD_BOUND, weight)


# ------------------------------------------------------------------------------------------------------------- merging


@kernel
def _head(merge, source):  # type: ignore[no-untyped-def]
    """The address of an input's words."""
    return merge + 8 * (MERGE_HEADS + HEAD_SIZE * source)


@kernel
def _advanced(merge, coordinate, depth, value):  # type: ignore[no-untyped-def]
    """A coordinate of a time advanced to the frontier: the least over its elements of the greater of the two."""
    elements = load_i64(merge, MERGE_ELEMENTS)
    if elements == 0:
        return value
    frontier = load_i64(merge, MERGE_FRONTIER)
    least = max(value, load_i64(frontier, coordinate))
    for k in range(1, elements):
        least = min(least, max(value, load_i64(frontier, k * depth + coordinate)))
    return least


@kernel
def _settles(merge, layer):  # type: ignore[no-untyped-def]
    """Whether all updates of a layer become diffs of +1 at the advanced least time."""
    arity, depth = load_i64(layer, LAYER_ARITY), load_i64(layer, LAYER_DEPTH)
    at = field_at(arity + depth)
    if load_i64(layer, at + FIELD_WIDTH) != 0 or load_i64(layer, at) != 1:
        return False
    for c in range(depth):
        bound = load_i64(layer, field_at(arity + c) + FIELD_BOUND)
        if _advanced(merge, c, depth, bound) != load_i64(load_i64(merge, MERGE_BASE), c):
            return False
    return True


@kernel
def _at_one_time(layer):  # type: ignore[no-untyped-def]
    """Whether all updates have the same time, so that every row is there once."""
    arity = load_i64(layer, LAYER_ARITY)
    for f in range(arity, arity + load_i64(layer, LAYER_DEPTH)):
        if load_i64(layer, field_at(f) + FIELD_WIDTH) != 0:
            return False
    return True


@entry()
def plan_merge(merge):  # type: ignore[no-untyped-def]
    """Decides the fields, room and indexes of the outputs, and so the memory they need. There must be an input."""
    sources, first = load_i64(merge, MERGE_SOURCES), load_i64(_head(merge, 0), HEAD_LAYER)
    arity, depth = load_i64(first, LAYER_ARITY), load_i64(first, LAYER_DEPTH)
    stride = 8 * field_at(arity + depth + 1)
    settled = _head(merge, sources)
    opened = settled + stride
    frontier = opened + stride
    base = frontier + 8 * load_i64(merge, MERGE_ELEMENTS) * depth
    store_i64(merge, MERGE_SETTLED, settled)
    store_i64(merge, MERGE_OPEN, opened)
    store_i64(merge, MERGE_FRONTIER, frontier)
    store_i64(merge, MERGE_BASE, base)
    store_i64(merge, MERGE_PLACES, base + 8 * depth)
    pending = base + 8 * depth + 16 * sources
    store_i64(merge, MERGE_SETTLED_PENDING, pending)
    store_i64(merge, MERGE_OPEN_PENDING, pending + 16 * load_i64(merge, MERGE_BLOCK))
    for c in range(depth):
        store_i64(base, c, _advanced(merge, c, depth, 0))
    for output in (settled, opened):
        _describe(output, arity, depth)
        for c in range(arity):
            _merge_column(merge, output, c)
    for c in range(depth):
        _merge_time(merge, settled, opened, c)
    total, settling, largest, weight = 0, 0, 0, 0
    for s in range(sources):
        layer = load_i64(_head(merge, s), HEAD_LAYER)
        rows = load_i64(layer, LAYER_ROWS)
        total += rows
        weight += load_i64(layer, field_at(arity + depth) + FIELD_BOUND)
        settles = load_i64(merge, MERGE_SPLIT) != 0 and _settles(merge, layer)
        if settles:
            settling += rows
            largest = max(largest, rows)
        store_i64(_head(merge, s), HEAD_SETTLES, 1 if settles else 0)
        store_i64(_head(merge, s), HEAD_SINGLE, 1 if _at_one_time(layer) else 0)
        store_i64(_head(merge, s), HEAD_ROWS, rows)
    _set_field(settled, arity + depth, 1, 0, 0)
    _set_field(opened, arity + depth, 0, _width(-weight, weight), weight)
    if arity > 0:
        low, high = _first_column(merge)
        _want_index(settled, low, high, total)  # given up again should few of them settle
        _want_index(opened, low, high, total - settling)
    # An update that settles does so alone; with others of its row it becomes one more open update at most.
    room = min(total, 2 * (total - settling) + settling - largest)
    store_i64(merge, MERGE_ROOM, 0)
    store_i64(merge, MERGE_SETTLED_BYTES, _place_fields(settled, 0, total) if load_i64(merge, MERGE_SPLIT) != 0 else 0)
    store_i64(merge, MERGE_OPEN_BYTES, _place_fields(opened, 0, room))


@kernel
def _merge_column(merge, output, column):  # type: ignore[no-untyped-def]
    """A column is a constant if it is the same one in all inputs; else as wide as the widest of them."""
    first = load_i64(_head(merge, 0), HEAD_LAYER)
    constant, width = load_i64(first, field_at(column)), 0
    same = True
    for s in range(load_i64(merge, MERGE_SOURCES)):
        layer = load_i64(_head(merge, s), HEAD_LAYER)
        own = load_i64(layer, field_at(column) + FIELD_WIDTH)
        if own == 0:
            value = load_i64(layer, field_at(column))
            same = same and value == constant
            own = _width(value, value)
        else:
            same = False
        width = max(width, own)
    _set_field(output, column, constant if same else 0, 0 if same else width, 0)


@kernel
def _merge_time(merge, settled, opened, coordinate):  # type: ignore[no-untyped-def]
    """A coordinate that is nowhere after that of the frontier's one element becomes that constant."""
    arity, depth = load_i64(opened, LAYER_ARITY), load_i64(opened, LAYER_DEPTH)
    latest = 0
    for s in range(load_i64(merge, MERGE_SOURCES)):
        layer = load_i64(_head(merge, s), HEAD_LAYER)
        bound = load_i64(layer, field_at(arity + coordinate) + FIELD_BOUND)
        latest = max(latest, _advanced(merge, coordinate, depth, bound))
    same = load_i64(merge, MERGE_ELEMENTS) == 1 and latest == load_i64(load_i64(merge, MERGE_FRONTIER), coordinate)
    _set_field(settled, arity + coordinate, 0, 0, 0)
    _set_field(opened, arity + coordinate, latest, 0 if same else _width(0, latest), latest)


@kernel
def _first_column(merge):  # type: ignore[no-untyped-def]
    """The least and the greatest value of the first column over all inputs."""
    low, high = 0, 0
    for s in range(load_i64(merge, MERGE_SOURCES)):
        layer = load_i64(_head(merge, s), HEAD_LAYER)
        first, last = load_value(layer, 0, 0), load_value(layer, 0, load_i64(layer, LAYER_ROWS) - 1)
        low = first if s == 0 else min(low, first)
        high = last if s == 0 else max(high, last)
    return low, high


@entry()
def start_merge(merge, settled_memory, open_memory):  # type: ignore[no-untyped-def]
    """Gives the outputs, laid out from address 0, their memory and reads the first row of each input."""
    _move_fields(load_i64(merge, MERGE_SETTLED), settled_memory)
    _move_fields(load_i64(merge, MERGE_OPEN), open_memory)
    for s in range(load_i64(merge, MERGE_SOURCES)):
        _take_head(_head(merge, s), 0)


@kernel
def _move_fields(layer, memory):  # type: ignore[no-untyped-def]
    for f in range(load_i64(layer, LAYER_ARITY) + load_i64(layer, LAYER_DEPTH) + 1):
        if load_i64(layer, field_at(f) + FIELD_WIDTH) != 0:
            store_i64(layer, field_at(f), load_i64(layer, field_at(f)) + memory)
    if load_i64(layer, LAYER_INDEX) != 0:
        store_i64(layer, LAYER_INDEX, load_i64(layer, LAYER_INDEX) + memory)


@kernel
def _take_head(head, row):  # type: ignore[no-untyped-def]
    """Moves an input to a row and reads its first column."""
    store_i64(head, HEAD_ROW, row)
    if row < load_i64(head, HEAD_ROWS):
        layer = load_i64(head, HEAD_LAYER)
        if load_i64(layer, LAYER_ARITY) > 0:
            store_i64(head, HEAD_VALUE, load_value(layer, 0, row))


@kernel
def _compare_rows(a, i, b, j, start):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 by the columns from `start` on."""
    for c in range(start, load_i64(a, LAYER_ARITY)):
        x, y = load_value(a, c, i), load_value(b, c, j)
        if x != y:
            return -1 if x < y else 1
    return 0


@kernel
def _least_row(merge, sources):  # type: ignore[no-untyped-def]
    """The first input whose row comes first, -1 where all are at their ends, and a bit for each input that has this row."""
    best, ties, least, other = -1, 0, 0, merge
    for s in range(sources):
        head = _head(merge, s)
        row = load_i64(head, HEAD_ROW)
        if row == load_i64(head, HEAD_ROWS):
            continue
        mine = load_i64(head, HEAD_VALUE)
        sign = -1
        if best >= 0:
            if mine == least:
                sign = _compare_rows(load_i64(head, HEAD_LAYER), row, load_i64(other, HEAD_LAYER), load_i64(other, HEAD_ROW), 1)
            elif mine > least:
                sign = 1
        if sign < 0:
            best, ties, least, other = s, 1 << s, mine, head
        elif sign == 0:
            ties |= 1 << s
    return best, ties


@kernel
def _end_of_row(head):  # type: ignore[no-untyped-def]
    """The place behind the last update of the input's row."""
    start = load_i64(head, HEAD_ROW)
    end = start + 1
    if load_i64(head, HEAD_SINGLE) == 0:
        layer, rows = load_i64(head, HEAD_LAYER), load_i64(head, HEAD_ROWS)
        while end < rows and _compare_rows(layer, start, layer, end, 0) == 0:
            end += 1
    return end


@kernel
def _collect(merge, sources, ties):  # type: ignore[no-untyped-def]
    """Gathers the history of one row from the inputs that have it, advanced; returns its size. Nothing is gathered if there is
    no room for that many."""
    size = 0
    for s in range(sources):
        if ties >> s & 1:
            head = _head(merge, s)
            end = _end_of_row(head)
            store_i64(head, HEAD_END, end)
            size += end - load_i64(head, HEAD_ROW)
    if size > load_i64(merge, MERGE_ROOM):
        return size
    times, diffs, entry = load_i64(merge, MERGE_TIMES), load_i64(merge, MERGE_DIFFS), 0
    for s in range(sources):
        if ties >> s & 1:
            head = _head(merge, s)
            layer = load_i64(head, HEAD_LAYER)
            arity, depth = load_i64(layer, LAYER_ARITY), load_i64(layer, LAYER_DEPTH)
            for i in range(load_i64(head, HEAD_ROW), load_i64(head, HEAD_END)):
                for c in range(depth):
                    store_i64(times, entry * depth + c, _advanced(merge, c, depth, load_value(layer, arity + c, i)))
                store_i64(diffs, entry, load_value(layer, arity + depth, i))
                entry += 1
    return size


@kernel
def _later(times, depth, a, b):  # type: ignore[no-untyped-def]
    """Whether the time of entry a is after that of entry b in the lexicographic order."""
    for c in range(depth):
        x, y = load_i64(times, a * depth + c), load_i64(times, b * depth + c)
        if x != y:
            return x > y
    return False


@kernel
def _swap(times, diffs, depth, a, b):  # type: ignore[no-untyped-def]
    for c in range(depth):
        kept = load_i64(times, a * depth + c)
        store_i64(times, a * depth + c, load_i64(times, b * depth + c))
        store_i64(times, b * depth + c, kept)
    kept = load_i64(diffs, a)
    store_i64(diffs, a, load_i64(diffs, b))
    store_i64(diffs, b, kept)


@kernel
def _sift(times, diffs, depth, root, size):  # type: ignore[no-untyped-def]
    """Restores the heap with the latest time on top below `root`."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and _later(times, depth, child + 1, child):
            child += 1
        if not _later(times, depth, child, root):
            return
        _swap(times, diffs, depth, root, child)
        root = child


@kernel
def _sort_history(times, diffs, depth, size):  # type: ignore[no-untyped-def]
    """Orders the entries by time: by insertion where they are few, by a heap where they are many."""
    ordered = 1
    while ordered < size and not _later(times, depth, ordered - 1, ordered):
        ordered += 1
    if ordered >= size:
        return
    if size <= 24:
        for i in range(ordered, size):
            k = i
            while k > 0 and _later(times, depth, k - 1, k):
                _swap(times, diffs, depth, k - 1, k)
                k -= 1
        return
    for root in range(size // 2 - 1, -1, -1):
        _sift(times, diffs, depth, root, size)
    for last in range(size - 1, 0, -1):
        _swap(times, diffs, depth, 0, last)
        _sift(times, diffs, depth, 0, last)


@kernel
def _sum_history(times, diffs, depth, size):  # type: ignore[no-untyped-def]
    """Adds up the diffs of equal times of an ordered history and leaves out zeros; returns what is left."""
    kept, i = 0, 0
    while i < size:
        diff, k = load_i64(diffs, i), i + 1
        while k < size and not _later(times, depth, k, i):
            diff += load_i64(diffs, k)
            k += 1
        if diff != 0:
            for c in range(depth):
                store_i64(times, kept * depth + c, load_i64(times, i * depth + c))
            store_i64(diffs, kept, diff)
            kept += 1
        i = k
    return kept


@kernel
def _settles_at(merge, times, depth):  # type: ignore[no-untyped-def]
    """Whether a time is the advanced least one."""
    base = load_i64(merge, MERGE_BASE)
    for c in range(depth):
        if load_i64(times, c) != load_i64(base, c):
            return False
    return True


@kernel
def _write_settled(merge, count):  # type: ignore[no-untyped-def]
    """Writes the updates that wait to settle; returns the index entries filled."""
    return _write_columns(merge, MERGE_SETTLED, MERGE_SETTLED_FILLED, load_i64(merge, MERGE_SETTLED_PENDING), 2, count)


@kernel
def _write_open(merge, count):  # type: ignore[no-untyped-def]
    """Writes the open updates that wait, and keeps account of their diffs; returns the index entries filled."""
    pending, target = load_i64(merge, MERGE_OPEN_PENDING), load_i64(merge, MERGE_OPEN)
    arity, depth, at = load_i64(target, LAYER_ARITY), load_i64(target, LAYER_DEPTH), load_i64(target, LAYER_ROWS)
    size = depth + 3
    for c in range(depth):
        for i in range(count):
            store_value(target, arity + c, at + i, load_i64(pending, i * size + 3 + c))
    low, high, weight = load_i64(merge, MERGE_DIFF_LOW), load_i64(merge, MERGE_DIFF_HIGH), load_i64(merge, MERGE_WEIGHT)
    if at == 0 and count > 0:
        low = load_i64(pending, 2)
        high = low
    for i in range(count):
        diff = load_i64(pending, i * size + 2)
        low, high, weight = min(low, diff), max(high, diff), weight + abs(diff)
        store_value(target, arity + depth, at + i, diff)
    store_i64(merge, MERGE_DIFF_LOW, low)
    store_i64(merge, MERGE_DIFF_HIGH, high)
    store_i64(merge, MERGE_WEIGHT, weight)
    return _write_columns(merge, MERGE_OPEN, MERGE_OPEN_FILLED, pending, size, count)


@kernel
def _write_columns(merge, output, counter, pending, size, count):  # type: ignore[no-untyped-def]
    """Appends the rows that waiting updates, `size` words each, name by input and row; returns the index entries filled."""
    target, places = load_i64(merge, output), load_i64(merge, MERGE_PLACES)
    at, filled = load_i64(target, LAYER_ROWS), 0
    for c in range(load_i64(target, LAYER_ARITY)):
        for s in range(load_i64(merge, MERGE_SOURCES)):
            layer = load_i64(_head(merge, s), HEAD_LAYER)
            store_i64(places, 2 * s, load_i64(layer, field_at(c)))
            store_i64(places, 2 * s + 1, load_i64(layer, field_at(c) + FIELD_WIDTH))
        if c == 0 and count > 0:
            _check_index(target, _pending_value(places, pending + 8 * (count - 1) * size), at + count)
            if load_i64(target, LAYER_INDEX) != 0:
                before = load_i64(merge, counter)
                after = before
                for i in range(count):
                    after = _fill_index(target, after, _pending_value(places, pending + 8 * i * size), at + i)
                store_i64(merge, counter, after)
                filled = after - before
        address, width = load_i64(target, field_at(c)), load_i64(target, field_at(c) + FIELD_WIDTH)
        if width == 4:
            for i in range(count):
                store_i32(address, at + i, _pending_value(places, pending + 8 * i * size))
        elif width == 8:
            for i in range(count):
                store_i64(address, at + i, _pending_value(places, pending + 8 * i * size))
    store_i64(target, LAYER_ROWS, at + count)
    return filled


@kernel
def _check_index(layer, value, rows):  # type: ignore[no-untyped-def]
    """Gives up an index when fewer rows come out than were expected: entries up to `value` would be many for so few."""
    if load_i64(layer, LAYER_INDEX) != 0 and value - load_i64(layer, LAYER_LOW) > 4 * rows + SPARSE:
        store_i64(layer, LAYER_INDEX, 0)


@kernel
def _pending_value(places, update):  # type: ignore[no-untyped-def]
    """The value of the column that `places` are about, for a waiting update."""
    source, row = load_i64(update, 0), load_i64(update, 1)
    address, width = load_i64(places, 2 * source), load_i64(places, 2 * source + 1)
    if width == 4:
        return load_i32(address, row)
    if width == 8:
        return load_i64(address, row)
    return address


@entry()
def merge_layers(merge, fuel):  # type: ignore[no-untyped-def]
    """Merges some more rows of the inputs into the outputs: about `fuel` updates, but the history of a row is never parted.

    Times are advanced to the frontier. With MERGE_SPLIT, an update at the advanced least time with diff +1 goes to the settled
    output, whose times and diffs are constants; all others go to the open one. The outputs count their rows. Returns
    MERGE_DONE, MERGE_PAUSED or MERGE_NEEDS_ROOM; in the last case MERGE_NEEDED says how much the history of a row needs, and
    nothing has been done to that row.
    """
    sources, block, split = load_i64(merge, MERGE_SOURCES), load_i64(merge, MERGE_BLOCK), load_i64(merge, MERGE_SPLIT)
    settled, opened = load_i64(merge, MERGE_SETTLED_PENDING), load_i64(merge, MERGE_OPEN_PENDING)
    depth = load_i64(load_i64(merge, MERGE_OPEN), LAYER_DEPTH)
    size = depth + 3
    settling, staying, status = 0, 0, MERGE_PAUSED
    while fuel > 0:
        if settling == block:
            fuel -= _write_settled(merge, settling) // FILLS_PER_UPDATE
            settling = 0
        best, ties = _least_row(merge, sources)
        if best < 0:
            status = MERGE_DONE
            break
        head = _head(merge, best)
        row = load_i64(head, HEAD_ROW)
        if ties == 1 << best and load_i64(head, HEAD_SETTLES) != 0:
            store_i64(settled, 2 * settling, best)
            store_i64(settled, 2 * settling + 1, row)
            settling += 1
            fuel -= 1
            _take_head(head, row + 1)
            continue
        history = _collect(merge, sources, ties)
        if history > load_i64(merge, MERGE_ROOM):
            store_i64(merge, MERGE_NEEDED, history)
            status = MERGE_NEEDS_ROOM
            break
        fuel -= history
        times, diffs = load_i64(merge, MERGE_TIMES), load_i64(merge, MERGE_DIFFS)
        if history > 1:
            _sort_history(times, diffs, depth, history)
            history = _sum_history(times, diffs, depth, history)
        first = 0
        if history > 0 and split != 0 and load_i64(diffs, 0) == 1 and _settles_at(merge, times, depth):
            store_i64(settled, 2 * settling, best)
            store_i64(settled, 2 * settling + 1, row)
            settling += 1
            first = 1
        for k in range(first, history):
            if staying == block:
                fuel -= _write_open(merge, staying) // FILLS_PER_UPDATE
                staying = 0
            at = opened + 8 * size * staying
            store_i64(at, 0, best)
            store_i64(at, 1, row)
            store_i64(at, 2, load_i64(diffs, k))
            for c in range(depth):
                store_i64(at, 3 + c, load_i64(times, k * depth + c))
            staying += 1
        for s in range(best, sources):
            if ties >> s & 1:
                tied = _head(merge, s)
                _take_head(tied, load_i64(tied, HEAD_END))
    fuel -= (_write_settled(merge, settling) + _write_open(merge, staying)) // FILLS_PER_UPDATE
    return _finish_merge(merge, max(fuel, 0)) if status == MERGE_DONE else status


@kernel
def _finish_merge(merge, fuel):  # type: ignore[no-untyped-def]
    """Fills what is left of the indexes behind the last row, as far as the fuel goes, then sets the final bounds."""
    for output, counter in ((MERGE_SETTLED, MERGE_SETTLED_FILLED), (MERGE_OPEN, MERGE_OPEN_FILLED)):
        layer = load_i64(merge, output)
        if load_i64(layer, LAYER_INDEX) != 0 and load_i64(layer, LAYER_ROWS) > 0:
            _check_index(layer, load_i64(layer, LAYER_LOW) + load_i64(layer, LAYER_RANGE), load_i64(layer, LAYER_ROWS))
        if load_i64(layer, LAYER_INDEX) != 0 and load_i64(layer, LAYER_ROWS) > 0:
            filled, values = load_i64(merge, counter), load_i64(layer, LAYER_RANGE)
            last = min(values, filled + fuel * FILLS_PER_UPDATE)
            filled = _fill_index(layer, filled, load_i64(layer, LAYER_LOW) + last, load_i64(layer, LAYER_ROWS))
            store_i64(merge, counter, filled)
            if last < values:
                return MERGE_PAUSED
    settled = load_i64(merge, MERGE_SETTLED)
    _set_diffs(settled, 1, 1, load_i64(settled, LAYER_ROWS))
    low, high = load_i64(merge, MERGE_DIFF_LOW), load_i64(merge, MERGE_DIFF_HIGH)
    _set_diffs(load_i64(merge, MERGE_OPEN), low, high, load_i64(merge, MERGE_WEIGHT))
    return MERGE_DONE


# -------------------------------------------------------------------------------------------------------------- looking up


@kernel
def _compare_key(layer, row, keys, probes, probe, start, count):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 as a row's columns from `start` up to `count` are before, equal to or after the probe's."""
    for c in range(start, count):
        x, y = load_value(layer, c, row), load_i64(keys, c * probes + probe)
        if x != y:
            return -1 if x < y else 1
    return 0


@kernel
def _bisect(layer, low, high, keys, probes, probe, start, count, beyond):  # type: ignore[no-untyped-def]
    """The first row from `low` on, before `high`, that is not before the probe's key; with `beyond` 1, that is after it."""
    while low < high:
        middle = (low + high) >> 1
        if _compare_key(layer, middle, keys, probes, probe, start, count) < beyond:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _gallop(layer, low, high, keys, probes, probe, start, count, beyond):  # type: ignore[no-untyped-def]
    """The same, in steps that double from `low`: fast where the row is near."""
    bound, step = low, 1
    while bound < high and _compare_key(layer, bound, keys, probes, probe, start, count) < beyond:
        low = bound + 1
        bound = low + step
        step *= 2
    return _bisect(layer, low, min(bound, high), keys, probes, probe, start, count, beyond)


@entry()
def seek(layer, keys, count, probes, starts, ends):  # type: ignore[no-untyped-def]
    """Writes for each probe the range of rows that begin with its key: `count` prefix columns of so many probes each, one after
    the other. Probes in ascending order keep the search local; any order is right. The layer must have rows."""
    rows, index = load_i64(layer, LAYER_ROWS), load_i64(layer, LAYER_INDEX)
    first, values = load_i64(layer, LAYER_LOW), load_i64(layer, LAYER_RANGE)
    at = 0
    for p in range(probes):
        low, high, end, start = 0, rows, rows, 0
        if index != 0 and count > 0:
            key = load_i64(keys, p)
            if key < first or key >= first + values:
                store_i64(starts, p, 0)
                store_i64(ends, p, 0)
                continue
            start = 1
            low, end = load_i32(index, key - first), load_i32(index, key - first + 1)
            high = end
        elif at > 0:
            if _compare_key(layer, at - 1, keys, probes, p, 0, count) < 0:
                low = at
            else:
                high = at - 1
        if start < count:
            if 0 < at == low:
                low = _gallop(layer, low, high, keys, probes, p, start, count, 0)
            else:
                low = _bisect(layer, low, high, keys, probes, p, start, count, 0)
            end = _gallop(layer, low, end, keys, probes, p, start, count, 1)
        store_i64(starts, p, low)
        store_i64(ends, p, end)
        at = low


@entry()
def expand(starts, ends, count, probes, rows):  # type: ignore[no-untyped-def]
    """Writes every row of every range with the number of its probe."""
    at = 0
    for p in range(count):
        for row in range(load_i64(starts, p), load_i64(ends, p)):
            store_i64(probes, at, p)
            store_i64(rows, at, row)
            at += 1


@entry()
def accumulate(layer, starts, ends, count, time, sums):  # type: ignore[no-untyped-def]
    """Adds to the sum of each probe the diffs in its range whose times are at or before `time`."""
    arity, depth = load_i64(layer, LAYER_ARITY), load_i64(layer, LAYER_DEPTH)
    for p in range(count):
        total = load_i64(sums, p)
        for row in range(load_i64(starts, p), load_i64(ends, p)):
            c = 0
            while c < depth and load_value(layer, arity + c, row) <= load_i64(time, c):
                c += 1
            if c == depth:
                total += load_value(layer, arity + depth, row)
        store_i64(sums, p, total)
