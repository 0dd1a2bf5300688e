"""Keyed relations: one row per key whose value merges (sums, minima, maxima), or which gives way to one that precedes it, and
the radix heap that orders a lattice's changes. Sums that have a bound, the value in the column before, change where they
exceed it.

A lattice relation (`min` or `max` inside recursion) hands its changed rows to the loop least value first. Where rules do not
lower a value (distances, labels) each row is then final when it is expanded, as in Dijkstra's algorithm; where they do, the
order costs repeats but never the answer. The heap is the radix heap of Ahuja, Mehlhorn, Orlin and Tarjan (1990).
"""

from __future__ import annotations

from dlog.engine.kernels.codes import Error, SetKind
from dlog.engine.kernels.combine import Combine, joined, rank
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_float, bit_length, prefetch
from dlog.engine.kernels.layout import SUM_MOST
from dlog.engine.kernels.machine_structs import Heap, HeapBucket, Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.bitmaps import dense_codes
from dlog.engine.kernels.static.hashes import (
    ROWS_AHEAD,
    find_hash,
    grow_hash,
    hash_block,
    home,
    prefetch_homes,
    prefetch_later,
    row_bits,
    row_of,
    slot_word,
)
from dlog.engine.kernels.static.storage import load_cell, register, reserve, resize, store_cell
from dlog.engine.kernels.values.floats import float_word
from dlog.engine.kernels.values.texts import precedes_text


@kernel
def merge_block(ctl: Control, relation: Relation, registers: Words, keys: Words, n, codes: Words):
    """Merges n rows into a keyed relation. `registers` has one register per column, `keys` those of the key columns.

    Returns rows added or improved, -1 with ctl.error set on error.
    """
    rows = relation.rows
    if not reserve(ctl, relation, n):
        return -1
    dense = relation.set == SetKind.DENSE
    if dense:
        dense_codes(relation, ctl, keys, n, codes)
    else:
        if not grow_hash(ctl, relation, rows + n):
            return -1
        hash_block(ctl, keys, relation.key_count, n, codes)
    slots = Numbers(relation.slots)
    slot_count = relation.slot_count
    if relation.merge == Combine.FIRST:
        return merge_first(relation, ctl, registers, keys, n, codes)
    slot = 0
    merge = relation.merge
    heap = relation.heap
    number = relation.value
    value_column = relation.columns[number]
    data = Words(value_column.data)
    width = value_column.width
    values = register(ctl, registers[number])
    changed = 0
    if dense:
        # Two waits per block instead of two per row: for the slots, then for the values of the rows these name.
        for i in range(n):
            prefetch(slots.address + codes[i] * 4)
        for i in range(n):
            prefetch(data.address + (slots[codes[i]] - 1) * width)
    else:
        prefetch_homes(slots, slot_count, codes, n)
    for i in range(n):
        code = codes[i]
        if dense:
            row = slots[code] - 1
        else:
            warm_row(relation, slots, slot_count, i, n, codes)
            slot = find_hash(relation, ctl, keys.address, i, code, home(code, slot_count))
            row = max(slot, -1)
        value = values[i]
        if row < 0:
            row = rows
            rows += 1
            write_row(relation, ctl, registers, i, row)
            if dense:
                slots[code] = rows
            else:
                slots[-1 - slot] = slot_word(code, row, row_bits(slot_count))
            if merge == Combine.BOUND and value <= register(ctl, registers[number - 1])[i]:
                continue
        elif merge == Combine.BOUND:
            bound = register(ctl, registers[number - 1])[i]
            before = data[row]
            if before + value > SUM_MOST:
                ctl.error = Error.SUM
                return -1
            data[row] = before + value
            if before > bound or before + value <= bound:
                continue
        elif merge < Combine.SUM_FLOAT:
            data[row] = joined(merge, data[row], value, 1)
            continue
        elif merge in (Combine.SUM_FLOAT, Combine.MEAN):
            data[row] = float_word(as_float(data[row]) + as_float(value))
            if relation.arity == number + 2:
                add_count(relation, ctl, registers, number + 1, i, row)
            continue
        else:
            if rank(merge, value) >= rank(merge, load_cell(data.address, width, row)):
                continue
            store_cell(data.address, width, row, value)
        changed += 1
        if heap and not push(ctl, heap, rank(merge, value), row):
            return -1
    relation.rows = rows
    return changed


@kernel
def merge_first(relation: Relation, ctl: Control, registers: Words, keys: Words, n, codes: Words):
    """`merge_block` where a row takes the place of one that it precedes; there is room."""
    dense = relation.set == SetKind.DENSE
    slots = Numbers(relation.slots)
    slot_count = relation.slot_count
    rows = relation.rows
    start = rows
    if not dense:
        prefetch_homes(slots, slot_count, codes, n)
    for i in range(n):
        code = codes[i]
        if dense:
            slot = code
            row = slots[code] - 1
        else:
            warm_row(relation, slots, slot_count, i, n, codes)
            slot = find_hash(relation, ctl, keys.address, i, code, home(code, slot_count))
            row = max(slot, -1)
            slot = -1 - slot
        if row < 0:
            write_row(relation, ctl, registers, i, rows)
            slots[slot] = rows + 1 if dense else slot_word(code, rows, row_bits(slot_count))
            rows += 1
        elif precedes(relation, ctl, registers, i, row):
            write_row(relation, ctl, registers, i, row)
    relation.rows = rows
    return rows - start


@kernel
def warm_row(relation: Relation, table: Numbers, count, i, n, hashes: Words):
    """While block row i is merged: asks for the row in the home of the one ROWS_AHEAD / 2 behind, likely to be merged with, and
    for the home of the one ROWS_AHEAD behind."""
    prefetch_later(table, count, hashes, i, n)
    if i + (ROWS_AHEAD >> 1) < n:
        word = table[home(hashes[i + (ROWS_AHEAD >> 1)], count)]
        row = row_of(word, row_bits(count))
        if row >= 0:
            for c in range(relation.arity):
                column = relation.columns[c]
                prefetch(column.data + row * column.width)


@kernel
def precedes(relation: Relation, ctl: Control, registers: Words, i, row):
    """Whether row i of the block comes before a row that is here."""
    for k in range(relation.compared_count):
        number = relation.compared[2 * k]
        order = relation.compared[2 * k + 1]
        column = relation.columns[number]
        value = register(ctl, registers[number])[i]
        held = load_cell(column.data, column.width, row)
        if value != held:
            if order == Combine.TEXT:
                return precedes_text(ctl.account.symbols, relation.firsts, relation.first_count, value, held)
            return rank(order, value) < rank(order, held)
    return False


@kernel
def write_row(relation: Relation, ctl: Control, registers: Words, i, row):
    columns = relation.columns
    for c in range(relation.arity):
        column = columns[c]
        value = register(ctl, registers[c])[i]
        store_cell(column.data, column.width, row, value)


@kernel
def add_count(relation: Relation, ctl: Control, registers: Words, number, i, row):
    """The second column of a mean: how many values its sum holds."""
    column = relation.columns[number]
    data = Words(column.data)
    data[row] += register(ctl, registers[number])[i]


# ----------------------------------------------------------------------------------------------------------------- heap


@kernel
def bucket_of(heap: Heap, index) -> HeapBucket:
    return heap.buckets[index]


@kernel
def push(ctl: Control, heap: Heap, key, row):
    """Adds an entry; a key below the last popped one goes to bucket 0, to be expanded next. False when out of memory."""
    last = heap.last
    bucket = bucket_of(heap, 0 if key <= last else bit_length(key ^ last))
    entries = bucket.count
    capacity = bucket.capacity
    data = bucket.entries
    if entries == capacity:
        target = max(capacity * 2, 64)
        data = Words(resize(ctl, data.address, capacity * 16, target * 16))
        if not data:
            return False
        bucket.entries = data
        bucket.capacity = target
    data[entries * 2] = key
    data[entries * 2 + 1] = row
    bucket.count = entries + 1
    heap.count += 1
    return True


@kernel
def is_fresh(merge, data, width, key, row):
    """Whether the entry still tells the row's value (it was not improved since)."""
    return rank(merge, load_cell(data, width, row)) == key


@kernel
def refill(ctl: Control, heap: Heap, merge, data, width):
    """Moves the lowest non-empty bucket's fresh entries down so that bucket 0 holds the least keys. False when out of
    memory."""
    while heap.count > 0 and bucket_of(heap, 0).count == 0:
        index = 1
        while bucket_of(heap, index).count == 0:
            index += 1
        bucket = bucket_of(heap, index)
        entries = bucket.count
        at = bucket.entries
        kept = 0
        least = 0
        for e in range(entries):
            key = at[e * 2]
            row = at[e * 2 + 1]
            if is_fresh(merge, data, width, key, row):
                at[kept * 2] = key
                at[kept * 2 + 1] = row
                if kept == 0 or key < least:
                    least = key
                kept += 1
        bucket.count = 0
        heap.count -= entries
        if kept == 0:
            continue
        heap.last = least
        for e in range(kept):
            if not push(ctl, heap, at[e * 2], at[e * 2 + 1]):
                return False
    return True


@kernel
def next_changes(ctl: Control, relation: Relation):
    """Fills the relation's queue with the rows of the least fresh value. Returns how many, -1 when out of memory."""
    heap = relation.heap
    merge = relation.merge
    column = relation.columns[relation.value]
    data = column.data
    width = column.width
    relation.queue_rows = 0
    count = 0
    while count == 0 and heap.count > 0:
        if not refill(ctl, heap, merge, data, width):
            return -1
        bucket = bucket_of(heap, 0)
        entries = bucket.count
        capacity = relation.queue_capacity
        if entries > capacity:
            target = max(entries, capacity * 2)
            queue = Numbers(resize(ctl, relation.queue.address, capacity * 4, target * 4))
            if not queue:
                return -1
            relation.queue = queue
            relation.queue_capacity = target
        queue = relation.queue
        at = bucket.entries
        for e in range(entries):
            row = at[e * 2 + 1]
            if is_fresh(merge, data, width, at[e * 2], row):
                queue[count] = row
                count += 1
        bucket.count = 0
        heap.count -= entries
    relation.queue_rows = count
    return count
