"""What a merge of layers will put out: fields, room and indexes, decided before it starts.

Advancing times to a frontier and splitting what has settled from what is open is described in engine/trace/merge.py.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.trace.layers import add_size, describe, load_value, place_fields, set_field, want_index, width_of
from dlog.engine.kernels.trace_structs import Field, LayerHeader, MergeHeader, MergeInput, Stored, StoredColumns, WaitingUpdate

MERGE_DONE, MERGE_PAUSED, MERGE_NEEDS_ROOM = 1, 0, -1
MERGE_TOGETHER = 256
"""Updates that wait to be written column by column."""


@kernel
def advanced(merge: MergeHeader, coordinate, depth, value):
    """A coordinate of a time advanced to the frontier: the least over its elements of the greater of the two."""
    elements = merge.elements
    if elements == 0:
        return value
    frontier = merge.frontier
    least = max(value, frontier[coordinate])
    for k in range(1, elements):
        least = min(least, max(value, frontier[k * depth + coordinate]))
    return least


@kernel
def _settles(merge: MergeHeader, layer: LayerHeader):
    """Whether all updates of a layer become diffs of +1 at the advanced least time: those of different rows settle."""
    arity, depth = layer.arity, layer.depth
    diff = layer.fields[arity + depth]
    if diff.width != 0 or diff.data != 1:
        return False
    for c in range(depth):
        if advanced(merge, c, depth, layer.fields[arity + c].bound) != merge.base[c]:
            return False
    return True


@kernel
def _at_one_time(layer: LayerHeader):
    """Whether all updates have the same time, so that every row is there once."""
    for f in range(layer.arity, layer.arity + layer.depth):
        if layer.fields[f].width != 0:
            return False
    return True


@entry()
def plan_merge(merge: MergeHeader):
    """Decides the fields, room and indexes of the outputs, and so the memory they need. There must be an input."""
    first = merge.inputs[0].layer
    arity, depth = first.arity, first.depth
    settled, opened = _lay_out(merge, arity, depth)
    for c in range(depth):
        merge.base[c] = advanced(merge, c, depth, 0)
    for output in (settled, opened):
        describe(output, arity, depth)
        for c in range(arity):
            _merge_column(merge, output, c)
    for c in range(depth):
        _merge_time(merge, settled, opened, c)
    total, settling, largest, weight = 0, 0, 0, 0
    for s in range(merge.input_count):
        head = merge.inputs[s]
        layer = head.layer
        rows = layer.rows
        total += rows
        weight = add_size(weight, layer.fields[arity + depth].bound)
        single = _at_one_time(layer)
        settles = merge.split != 0 and single and _settles(merge, layer)
        if settles:
            settling += rows
            largest = max(largest, rows)
        head.settles = 1 if settles else 0
        head.single = 1 if single else 0
        head.rows = rows
    set_field(settled, arity + depth, 1, 0, 0)
    set_field(opened, arity + depth, 0, width_of(-weight, weight), weight)
    if arity > 0:
        low, high = _first_column(merge)
        want_index(settled, low, high, total)  # given up again should few of them settle
        want_index(opened, low, high, total - settling)
    # An update that settles does so alone; with others of its row it becomes one more open update at most.
    room = min(total, 2 * (total - settling) + settling - largest)
    merge.room = 0
    merge.settled.bytes = place_fields(settled, 0, total) if merge.split != 0 else 0
    merge.open.bytes = place_fields(opened, 0, room)


@kernel
def _lay_out(merge: MergeHeader, arity, depth):
    """Says where behind the inputs the rest is; returns the headers of both outputs."""
    header = LayerHeader.size + Field.size * (arity + depth + 1)
    settled = LayerHeader(merge.inputs[merge.input_count].address)
    opened = LayerHeader(settled.address + header)
    merge.settled.layer = settled
    merge.open.layer = opened
    merge.frontier = Words(opened.address + header)
    merge.base = Words(merge.frontier.address + 8 * merge.elements * depth)
    merge.columns = StoredColumns(merge.base.address + 8 * depth)
    merge.settled.waiting = merge.columns.address + Stored.size * merge.input_count
    merge.open.waiting = merge.settled.waiting + WaitingUpdate.size * merge.block
    return settled, opened


@kernel
def _merge_column(merge: MergeHeader, output: LayerHeader, column):
    """A column is a constant if it is the same one in all inputs; else as wide as the widest of them."""
    constant, width = merge.inputs[0].layer.fields[column].data, 0
    same = True
    for s in range(merge.input_count):
        field = merge.inputs[s].layer.fields[column]
        own = field.width
        if own == 0:
            value = field.data
            same = same and value == constant
            own = width_of(value, value)
        else:
            same = False
        width = max(width, own)
    set_field(output, column, constant if same else 0, 0 if same else width, 0)


@kernel
def _merge_time(merge: MergeHeader, settled: LayerHeader, opened: LayerHeader, coordinate):
    """A coordinate that is nowhere after that of the frontier's one element becomes that constant."""
    arity, depth = opened.arity, opened.depth
    latest = 0
    for s in range(merge.input_count):
        bound = merge.inputs[s].layer.fields[arity + coordinate].bound
        latest = max(latest, advanced(merge, coordinate, depth, bound))
    same = merge.elements == 1 and latest == merge.frontier[coordinate]
    set_field(settled, arity + coordinate, 0, 0, 0)
    set_field(opened, arity + coordinate, latest, 0 if same else width_of(0, latest), latest)


@kernel
def _first_column(merge: MergeHeader):
    """The least and the greatest value of the first column over all inputs."""
    low, high = 0, 0
    for s in range(merge.input_count):
        layer = merge.inputs[s].layer
        first, last = load_value(layer, 0, 0), load_value(layer, 0, layer.rows - 1)
        low = first if s == 0 else min(low, first)
        high = last if s == 0 else max(high, last)
    return low, high


@entry()
def start_merge(merge: MergeHeader, settled_memory, open_memory):
    """Gives the outputs, laid out from address 0, their memory and reads the first row of each input."""
    _move_fields(merge.settled.layer, settled_memory)
    _move_fields(merge.open.layer, open_memory)
    for s in range(merge.input_count):
        take_row(merge.inputs[s], 0)


@kernel
def _move_fields(layer: LayerHeader, memory):
    for f in range(layer.arity + layer.depth + 1):
        field = layer.fields[f]
        if field.width != 0:
            field.data += memory
    if layer.index:
        layer.index = Numbers(layer.index.address + memory)


@kernel
def take_row(head: MergeInput, row):
    """Moves an input to a row and reads its first column."""
    head.row = row
    if row < head.rows and head.layer.arity > 0:
        head.value = load_value(head.layer, 0, row)
