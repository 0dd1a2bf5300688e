"""Building a layer of unsorted updates: packed into words, sorted, summed (trace_structs.py says what a layer is)."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import bit_length, calloc, free
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.trace.layers import (
    MOST,
    SIGN,
    add_size,
    describe,
    fill_index,
    load_value,
    place_fields,
    set_field,
    store_value,
    want_index,
    width_of,
)
from dlog.engine.kernels.trace_structs import LayerHeader, PackedField, PackedFields

_SMALL = 64  # rows up to which sorting by insertion beats counting digits


@kernel
def _plan_fields(source: LayerHeader, plan: PackedFields):
    """Writes the range of each field, lays out the key fields, columns and times, in as few 64-bit words as hold them in order,
    and sets the bound of the diff to the sum of all |diff|. Returns the number of words."""
    rows = source.rows
    fields = source.arity + source.depth + 1
    weight = 0
    word, free = -1, 0
    for f in range(fields):
        field = plan[f]
        low = load_value(source, f, 0)
        high = low
        varied = source.fields[f].width != 0
        if varied:
            for i in range(1, rows):
                value = load_value(source, f, i)
                low = min(low, value)
                high = max(high, value)
        field.low = low
        field.high = high
        if f < fields - 1:
            bits = bit_length(high - low)  # the difference wraps around, and is right as an unsigned word
            if bits > free:
                word += 1
                free = 64
            free -= bits
            field.word = word
            field.shift = free
            field.bits = bits
        elif varied:
            for i in range(rows):
                weight = add_size(weight, load_value(source, f, i))
        else:
            weight = abs(low) * rows if -(MOST // rows) <= low <= MOST // rows else MOST
    source.fields[fields - 1].bound = weight
    return word + 1


@kernel
def _pack(source: LayerHeader, plan: PackedFields, words: Words, count):
    """Writes the words of every row, the first field in the first word's high bits. Returns whether the rows ascend already."""
    rows = source.rows
    for i in range(count * rows):
        words[i] = SIGN
    for f in range(source.arity + source.depth):
        field = plan[f]
        if field.bits > 0:
            low, shift = field.low, np.uint64(field.shift)
            first = field.word * rows
            for i in range(rows):
                bits = np.uint64(load_value(source, f, i) - low) << shift
                words[first + i] ^= np.int64(bits)
    ascending = 1
    while ascending < rows and _order(words, count, rows, ascending - 1, ascending) <= 0:
        ascending += 1
    return ascending >= rows


@kernel
def _order(words: Words, count, rows, a, b):
    """-1, 0 or 1 as row a is before, equal to or after row b."""
    for w in range(count):
        x, y = words[w * rows + a], words[w * rows + b]
        if x != y:
            return -1 if x < y else 1
    return 0


@kernel
def _insertion_sort(words: Words, count, rows, order: Numbers):
    for i in range(1, rows):
        moving = order[i]
        k = i
        while k > 0 and _order(words, count, rows, order[k - 1], moving) > 0:
            order[k] = order[k - 1]
            k -= 1
        order[k] = moving


@kernel
def _radix_sort(key: Words, order: Numbers, key2: Words, order2: Numbers, rows):
    """Sorts the words at `key` and moves `order` along; equal words keep their order. The other two are scratch.

    Least significant digit first: each pass keeps the order of the passes before among words with the same digit. All digits
    are counted in one go, and one that all words share needs no pass."""
    digit = 8 if rows < 1 << 16 else 11
    mask = (1 << digit) - 1
    passes = (64 + digit - 1) // digit
    counts = Words(calloc(passes << digit, 8))
    for i in range(rows):
        word = np.uint64(key[i] ^ SIGN)
        for p in range(passes):
            counts[(p << digit) + (np.int64(word >> np.uint64(p * digit)) & mask)] += 1
    swapped = False
    for p in range(passes):
        shift = np.uint64(p * digit)
        places = Words(counts.address + (p << digit) * 8)
        if places[np.int64(np.uint64(key[0] ^ SIGN) >> shift) & mask] == rows:
            continue
        total = 0
        for d in range(1 << digit):
            count = places[d]
            places[d] = total
            total += count
        for i in range(rows):
            word = key[i]
            d = np.int64(np.uint64(word ^ SIGN) >> shift) & mask
            place = places[d]
            places[d] = place + 1
            key2[place] = word
            order2[place] = order[i]
        key, key2 = key2, key
        order, order2 = order2, order
        swapped = not swapped
    free(counts.address)
    if swapped:
        for i in range(rows):
            key2[i] = key[i]
            order2[i] = order[i]


@kernel
def _sort(words: Words, count, rows, order: Numbers, scratch: Words):
    """Writes the order of the rows to `order`. True says that the words, being single, have been put in order too."""
    if rows <= _SMALL:
        _insertion_sort(words, count, rows, order)
        return False
    order2 = Numbers(scratch.address + 16 * rows)
    if count == 1:
        _radix_sort(words, order, scratch, order2, rows)
        return True
    for w in range(count - 1, -1, -1):
        for i in range(rows):
            scratch[i] = words[w * rows + order[i]]
        _radix_sort(scratch, order, Words(scratch.address + 8 * rows), order2, rows)
    return False


@kernel
def _lay_out(source: LayerHeader, plan: PackedFields, target: LayerHeader, constant_diff):
    """Decides widths, bounds and the index of a layer that is being built."""
    arity, depth = source.arity, source.depth
    describe(target, arity, depth)
    for f in range(arity + depth):
        low, high = plan[f].low, plan[f].high
        set_field(target, f, low, 0 if low == high else width_of(low, high), 0 if f < arity else high)
    if arity > 0 and plan[0].low < plan[0].high:
        want_index(target, plan[0].low, plan[0].high, source.rows)
    diff = arity + depth
    weight = source.fields[diff].bound
    set_field(target, diff, plan[diff].low, 0 if constant_diff else width_of(-weight, weight), weight)


@entry()
def build_layer(source: LayerHeader, target: LayerHeader, memory, scratch):
    """Sorts the updates that `source` describes as it would a layer, sums the diffs of equal (row, time), leaves out zeros and
    describes the rest at `target`, in `memory`.

    A row of `source` may take 8 bytes a field and 4 for the index in `memory`, and (8 a field + 24) bytes of `scratch` besides
    a `PackedField` for each field.
    """
    rows = source.rows
    diff = source.arity + source.depth
    plan = PackedFields(scratch)
    words = Words(plan[diff + 1].address)
    count = _plan_fields(source, plan)
    order = Numbers(words.address + 8 * count * rows)
    for i in range(rows):
        order[i] = i
    in_order = _pack(source, plan, words, count)
    if not in_order:
        in_order = _sort(words, count, rows, order, Words(order.address + (4 * rows + 7) // 8 * 8))
    same = plan[diff].low == plan[diff].high
    _lay_out(source, plan, target, same)
    place_fields(target, memory, rows)
    if not _write_sums(source, plan, words, count, order, in_order, target, same):
        _lay_out(source, plan, target, False)  # equal rows have added up
        place_fields(target, memory, rows)
        _write_sums(source, plan, words, count, order, in_order, target, False)


@kernel
def _write_sums(
    source: LayerHeader, plan: PackedFields, words: Words, count, order: Numbers, in_order, target: LayerHeader, same
):
    """Writes what is left of the sorted updates; False if the diffs, promised to be the same, are not."""
    rows = source.rows
    diff_field = source.arity + source.depth
    indexed = bool(target.index)
    promised = plan[diff_field].low
    written, filled, low, high, weight, i = 0, 0, 0, 0, 0, 0
    while i < rows:
        # `order` has the rows as they came; of words that are in order themselves, row i's are the i-th.
        first = i if in_order else order[i]
        diff = load_value(source, diff_field, order[i])
        i += 1
        while i < rows and _order(words, count, rows, first, i if in_order else order[i]) == 0:
            diff += load_value(source, diff_field, order[i])
            i += 1
        if diff == 0:
            continue
        if same and diff != promised:
            return False
        for f in range(diff_field):
            value = _unpack(plan[f], words, rows, first)
            if f == 0 and indexed:
                filled = fill_index(target, filled, value, written)
            store_value(target, f, written, value)
        store_value(target, diff_field, written, diff)
        low = diff if written == 0 else min(low, diff)
        high = diff if written == 0 else max(high, diff)
        weight = add_size(weight, diff)
        written += 1
    if indexed:
        fill_index(target, filled, target.low + target.range, written)
    target.rows = written
    set_diffs(target, low, high, weight)
    return True


@kernel
def _unpack(field: PackedField, words: Words, rows, row):
    """The value of a field from the packed words."""
    value, bits = field.low, field.bits
    if bits > 0:
        word = np.uint64(words[field.word * rows + row] ^ SIGN)
        above = np.uint64(64 - bits)
        value += np.int64(((word >> np.uint64(field.shift)) << above) >> above)
    return value


@kernel
def set_diffs(layer: LayerHeader, low, high, weight):
    """Sets the bound of the diffs, and makes them a constant where they are all the same."""
    diff = layer.fields[layer.arity + layer.depth]
    if low == high:
        diff.data = low
        diff.width = 0
    diff.bound = weight
