"""Merging layers step by step: rows in order, their histories, and what is written together, column by column.

An update that comes out waits as the number of its input and row there, with its diff and time where it stays open, until as
many wait as are written together; then each column is copied by itself, in a loop that knows its widths.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.trace.layers import SPARSE, add_size, fill_index, load_stored, load_value, store_value
from dlog.engine.kernels.trace.merge_histories import sort_history, sum_history
from dlog.engine.kernels.trace.merge_plans import MERGE_DONE, MERGE_NEEDS_ROOM, MERGE_PAUSED, advanced, take_row
from dlog.engine.kernels.trace.sorting import set_diffs
from dlog.engine.kernels.trace_structs import (
    LayerHeader,
    MergeHeader,
    MergeInput,
    MergeOutput,
    OpenUpdate,
    StoredColumns,
    WaitingUpdate,
)

FILLS_PER_UPDATE = 8
"""Index entries filled at the price of one update merged."""


@kernel
def _compare_rows(a: LayerHeader, i, b: LayerHeader, j, start):
    """-1, 0 or 1 by the columns from `start` on."""
    for c in range(start, a.arity):
        x, y = load_value(a, c, i), load_value(b, c, j)
        if x != y:
            return -1 if x < y else 1
    return 0


@kernel
def _least_row(merge: MergeHeader):
    """The first input whose row comes first, -1 where all are at their ends, and a bit for each input that has this row."""
    best, ties, least, other = -1, 0, 0, merge.inputs[0]
    for s in range(merge.input_count):
        head = merge.inputs[s]
        if head.row == head.rows:
            continue
        mine = head.value
        sign = -1
        if best >= 0:
            if mine == least:
                sign = _compare_rows(head.layer, head.row, other.layer, other.row, 1)
            elif mine > least:
                sign = 1
        if sign < 0:
            best, ties, least, other = s, 1 << s, mine, head
        elif sign == 0:
            ties |= 1 << s
    return best, ties


@kernel
def _end_of_row(head: MergeInput):
    """The place behind the last update of the input's row."""
    end = head.row + 1
    if head.single == 0:
        while end < head.rows and _compare_rows(head.layer, head.row, head.layer, end, 0) == 0:
            end += 1
    return end


@kernel
def _collect(merge: MergeHeader, ties):
    """Gathers the history of one row from the inputs that have it, advanced; returns its size. Nothing is gathered if there is
    no room for that many."""
    size = 0
    for s in range(merge.input_count):
        if ties >> s & 1:
            head = merge.inputs[s]
            head.end = _end_of_row(head)
            size += head.end - head.row
    if size > merge.room:
        return size
    times, diffs, entry = merge.times, merge.diffs, 0
    for s in range(merge.input_count):
        if ties >> s & 1:
            head = merge.inputs[s]
            layer = head.layer
            arity, depth = layer.arity, layer.depth
            for i in range(head.row, head.end):
                for c in range(depth):
                    times[entry * depth + c] = advanced(merge, c, depth, load_value(layer, arity + c, i))
                diffs[entry] = load_value(layer, arity + depth, i)
                entry += 1
    return size


@kernel
def _settles_at(merge: MergeHeader, times: Words, depth):
    """Whether a time is the advanced least one."""
    for c in range(depth):
        if times[c] != merge.base[c]:
            return False
    return True


# -------------------------------------------------------------------------------------------------------------- writing


@kernel
def _write_settled(merge: MergeHeader, count):
    """Writes the updates that wait to settle; returns the index entries filled."""
    return _write_columns(merge, merge.settled, WaitingUpdate.size, count)


@kernel
def _write_open(merge: MergeHeader, count):
    """Writes the open updates that wait, and keeps account of their diffs; returns the index entries filled."""
    layer, waiting = merge.open.layer, merge.open.waiting
    arity, depth, at = layer.arity, layer.depth, layer.rows
    size = OpenUpdate.size + 8 * depth
    for c in range(depth):
        for i in range(count):
            store_value(layer, arity + c, at + i, OpenUpdate(waiting + i * size).time[c])
    low, high, weight = merge.diff_low, merge.diff_high, merge.weight
    if at == 0 and count > 0:
        low = OpenUpdate(waiting).diff
        high = low
    for i in range(count):
        diff = OpenUpdate(waiting + i * size).diff
        low, high, weight = min(low, diff), max(high, diff), add_size(weight, diff)
        store_value(layer, arity + depth, at + i, diff)
    merge.diff_low = low
    merge.diff_high = high
    merge.weight = weight
    return _write_columns(merge, merge.open, size, count)


@kernel
def _write_columns(merge: MergeHeader, output: MergeOutput, size, count):
    """Appends the rows that waiting updates, `size` bytes each, name by input and row; returns the index entries filled."""
    layer, columns, waiting = output.layer, merge.columns, output.waiting
    at, filled = layer.rows, 0
    for c in range(layer.arity):
        for s in range(merge.input_count):
            source = merge.inputs[s].layer.fields[c]
            columns[s].data = source.data
            columns[s].width = source.width
        if c == 0 and count > 0:
            _check_index(layer, _waiting_value(columns, WaitingUpdate(waiting + (count - 1) * size)), at + count)
            if layer.index:
                before = output.filled
                after = before
                for i in range(count):
                    after = fill_index(layer, after, _waiting_value(columns, WaitingUpdate(waiting + i * size)), at + i)
                output.filled = after
                filled = after - before
        data, width = layer.fields[c].data, layer.fields[c].width
        if width == 4:
            for i in range(count):
                Numbers(data)[at + i] = _waiting_value(columns, WaitingUpdate(waiting + i * size))
        elif width == 8:
            for i in range(count):
                Words(data)[at + i] = _waiting_value(columns, WaitingUpdate(waiting + i * size))
    layer.rows = at + count
    return filled


@kernel
def _check_index(layer: LayerHeader, value, rows):
    """Gives up an index when fewer rows come out than were expected: entries up to `value` would be many for so few."""
    if layer.index and value - layer.low > 4 * rows + SPARSE:
        layer.index = Numbers(0)


@kernel
def _waiting_value(columns: StoredColumns, update: WaitingUpdate):
    """The value of the column that `columns` are about, for a waiting update."""
    column = columns[update.input]
    return load_stored(column.data, column.width, update.row)


# -------------------------------------------------------------------------------------------------------------- merging


@entry()
def merge_layers(merge: MergeHeader, fuel):
    """Merges some more rows of the inputs into the outputs: about `fuel` updates, but the history of a row is never parted.

    Times are advanced to the frontier. With `split`, an update at the advanced least time with diff +1 goes to the settled
    output, whose times and diffs are constants; all others go to the open one. The outputs count their rows. Returns
    MERGE_DONE, MERGE_PAUSED or MERGE_NEEDS_ROOM; in the last case `needed` says how much the history of a row needs, and
    nothing has been done to that row.
    """
    block, split = merge.block, merge.split
    settled, opened = merge.settled.waiting, merge.open.waiting
    depth = merge.open.layer.depth
    size = OpenUpdate.size + 8 * depth
    # How many updates wait: none do between two calls.
    settling, staying, status = 0, 0, MERGE_PAUSED
    while fuel > 0:
        if settling == block:
            fuel -= _write_settled(merge, settling) // FILLS_PER_UPDATE
            settling = 0
        best, ties = _least_row(merge)
        if best < 0:
            status = MERGE_DONE
            break
        head = merge.inputs[best]
        row = head.row
        if ties == 1 << best and head.settles != 0:
            _wait(WaitingUpdate(settled + WaitingUpdate.size * settling), best, row)
            settling += 1
            fuel -= 1
            take_row(head, row + 1)
            continue
        history = _collect(merge, ties)
        if history > merge.room:
            merge.needed = history
            status = MERGE_NEEDS_ROOM
            break
        fuel -= history
        times, diffs = merge.times, merge.diffs
        if history > 1:
            sort_history(times, diffs, depth, history)
            history = sum_history(times, diffs, depth, history)
        # In an ordered history only the first update can be at the least time.
        first = 0
        if history > 0 and split != 0 and diffs[0] == 1 and _settles_at(merge, times, depth):
            _wait(WaitingUpdate(settled + WaitingUpdate.size * settling), best, row)
            settling += 1
            first = 1
        for k in range(first, history):
            if staying == block:
                fuel -= _write_open(merge, staying) // FILLS_PER_UPDATE
                staying = 0
            update = OpenUpdate(opened + size * staying)
            _wait(update, best, row)
            update.diff = diffs[k]
            for c in range(depth):
                update.time[c] = times[k * depth + c]
            staying += 1
        for s in range(best, merge.input_count):
            if ties >> s & 1:
                take_row(merge.inputs[s], merge.inputs[s].end)
    fuel -= (_write_settled(merge, settling) + _write_open(merge, staying)) // FILLS_PER_UPDATE
    return _finish_merge(merge, max(fuel, 0)) if status == MERGE_DONE else status


@kernel
def _wait(update: WaitingUpdate, source, row):
    """Notes an update whose row is that of an input."""
    update.input = source
    update.row = row


@kernel
def _finish_merge(merge: MergeHeader, fuel):
    """Fills what is left of the indexes behind the last row, as far as the fuel goes, then sets the final bounds."""
    for output in (merge.settled, merge.open):
        layer = output.layer
        if layer.rows > 0:
            _check_index(layer, layer.low + layer.range, layer.rows)
        if layer.index and layer.rows > 0:
            last = min(layer.range, output.filled + fuel * FILLS_PER_UPDATE)
            output.filled = fill_index(layer, output.filled, layer.low + last, layer.rows)
            if last < layer.range:
                return MERGE_PAUSED
    set_diffs(merge.settled.layer, 1, 1, merge.settled.layer.rows)
    set_diffs(merge.open.layer, merge.diff_low, merge.diff_high, merge.weight)
    return MERGE_DONE
