"""Merging layers step by step: rows in order, their histories, and what is written together, column by column."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64
from dlog.engine.kernels.trace.layers import (
    FIELD_WIDTH,
    LAYER_ARITY,
    LAYER_DEPTH,
    LAYER_INDEX,
    LAYER_LOW,
    LAYER_RANGE,
    LAYER_ROWS,
    SPARSE,
    field_at,
    fill_index,
    load_value,
    store_value,
)
from dlog.engine.kernels.trace.merge_histories import sort_history, sum_history
from dlog.engine.kernels.trace.merge_plans import (
    HEAD_END,
    HEAD_LAYER,
    HEAD_ROW,
    HEAD_ROWS,
    HEAD_SETTLES,
    HEAD_SINGLE,
    HEAD_VALUE,
    MERGE_BASE,
    MERGE_BLOCK,
    MERGE_DIFF_HIGH,
    MERGE_DIFF_LOW,
    MERGE_DIFFS,
    MERGE_DONE,
    MERGE_NEEDED,
    MERGE_NEEDS_ROOM,
    MERGE_OPEN,
    MERGE_OPEN_FILLED,
    MERGE_OPEN_PENDING,
    MERGE_PAUSED,
    MERGE_PLACES,
    MERGE_ROOM,
    MERGE_SETTLED,
    MERGE_SETTLED_FILLED,
    MERGE_SETTLED_PENDING,
    MERGE_SOURCES,
    MERGE_SPLIT,
    MERGE_TIMES,
    MERGE_WEIGHT,
    advanced,
    head_of,
    take_head,
)
from dlog.engine.kernels.trace.sorting import set_diffs

FILLS_PER_UPDATE = 8
"""Index entries filled at the price of one update merged."""


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
        head = head_of(merge, s)
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
            head = head_of(merge, s)
            end = _end_of_row(head)
            store_i64(head, HEAD_END, end)
            size += end - load_i64(head, HEAD_ROW)
    if size > load_i64(merge, MERGE_ROOM):
        return size
    times, diffs, entry = load_i64(merge, MERGE_TIMES), load_i64(merge, MERGE_DIFFS), 0
    for s in range(sources):
        if ties >> s & 1:
            head = head_of(merge, s)
            layer = load_i64(head, HEAD_LAYER)
            arity, depth = load_i64(layer, LAYER_ARITY), load_i64(layer, LAYER_DEPTH)
            for i in range(load_i64(head, HEAD_ROW), load_i64(head, HEAD_END)):
                for c in range(depth):
                    store_i64(times, entry * depth + c, advanced(merge, c, depth, load_value(layer, arity + c, i)))
                store_i64(diffs, entry, load_value(layer, arity + depth, i))
                entry += 1
    return size


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
            layer = load_i64(head_of(merge, s), HEAD_LAYER)
            store_i64(places, 2 * s, load_i64(layer, field_at(c)))
            store_i64(places, 2 * s + 1, load_i64(layer, field_at(c) + FIELD_WIDTH))
        if c == 0 and count > 0:
            _check_index(target, _pending_value(places, pending + 8 * (count - 1) * size), at + count)
            if load_i64(target, LAYER_INDEX) != 0:
                before = load_i64(merge, counter)
                after = before
                for i in range(count):
                    after = fill_index(target, after, _pending_value(places, pending + 8 * i * size), at + i)
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
        head = head_of(merge, best)
        row = load_i64(head, HEAD_ROW)
        if ties == 1 << best and load_i64(head, HEAD_SETTLES) != 0:
            store_i64(settled, 2 * settling, best)
            store_i64(settled, 2 * settling + 1, row)
            settling += 1
            fuel -= 1
            take_head(head, row + 1)
            continue
        history = _collect(merge, sources, ties)
        if history > load_i64(merge, MERGE_ROOM):
            store_i64(merge, MERGE_NEEDED, history)
            status = MERGE_NEEDS_ROOM
            break
        fuel -= history
        times, diffs = load_i64(merge, MERGE_TIMES), load_i64(merge, MERGE_DIFFS)
        if history > 1:
            sort_history(times, diffs, depth, history)
            history = sum_history(times, diffs, depth, history)
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
                tied = head_of(merge, s)
                take_head(tied, load_i64(tied, HEAD_END))
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
            filled = fill_index(layer, filled, load_i64(layer, LAYER_LOW) + last, load_i64(layer, LAYER_ROWS))
            store_i64(merge, counter, filled)
            if last < values:
                return MERGE_PAUSED
    settled = load_i64(merge, MERGE_SETTLED)
    set_diffs(settled, 1, 1, load_i64(settled, LAYER_ROWS))
    low, high = load_i64(merge, MERGE_DIFF_LOW), load_i64(merge, MERGE_DIFF_HIGH)
    set_diffs(load_i64(merge, MERGE_OPEN), low, high, load_i64(merge, MERGE_WEIGHT))
    return MERGE_DONE
