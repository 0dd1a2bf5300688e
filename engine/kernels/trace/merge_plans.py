"""A merge of layers: its description, and what its outputs will be.

Advancing times to a frontier and splitting what has settled from what is open is described in engine/trace/merge.py.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_i64, store_i64
from dlog.engine.kernels.trace.layers import (
    FIELD_BOUND,
    FIELD_WIDTH,
    LAYER_ARITY,
    LAYER_DEPTH,
    LAYER_INDEX,
    LAYER_ROWS,
    describe,
    field_at,
    load_value,
    place_fields,
    set_field,
    want_index,
    width_of,
)

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
whether no row comes twice, and whether all updates settle: no row comes twice then, either."""
PENDING_SIZE = 5
"""Input and row of an update that settles; input, row and diff of one that stays open, followed by its time."""
MERGE_DONE, MERGE_PAUSED, MERGE_NEEDS_ROOM = 1, 0, -1
MERGE_TOGETHER = 256
"""Updates that wait to be written column by column."""


@kernel
def head_of(merge, source):  # type: ignore[no-untyped-def]
    """The address of an input's words."""
    return merge + 8 * (MERGE_HEADS + HEAD_SIZE * source)


@kernel
def advanced(merge, coordinate, depth, value):  # type: ignore[no-untyped-def]
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
    """Whether all updates of a layer become diffs of +1 at the advanced least time: those of different rows settle."""
    arity, depth = load_i64(layer, LAYER_ARITY), load_i64(layer, LAYER_DEPTH)
    at = field_at(arity + depth)
    if load_i64(layer, at + FIELD_WIDTH) != 0 or load_i64(layer, at) != 1:
        return False
    for c in range(depth):
        bound = load_i64(layer, field_at(arity + c) + FIELD_BOUND)
        if advanced(merge, c, depth, bound) != load_i64(load_i64(merge, MERGE_BASE), c):
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
    sources, first = load_i64(merge, MERGE_SOURCES), load_i64(head_of(merge, 0), HEAD_LAYER)
    arity, depth = load_i64(first, LAYER_ARITY), load_i64(first, LAYER_DEPTH)
    stride = 8 * field_at(arity + depth + 1)
    settled = head_of(merge, sources)
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
        store_i64(base, c, advanced(merge, c, depth, 0))
    for output in (settled, opened):
        describe(output, arity, depth)
        for c in range(arity):
            _merge_column(merge, output, c)
    for c in range(depth):
        _merge_time(merge, settled, opened, c)
    total, settling, largest, weight = 0, 0, 0, 0
    for s in range(sources):
        layer = load_i64(head_of(merge, s), HEAD_LAYER)
        rows = load_i64(layer, LAYER_ROWS)
        total += rows
        weight += load_i64(layer, field_at(arity + depth) + FIELD_BOUND)
        single = _at_one_time(layer)
        settles = load_i64(merge, MERGE_SPLIT) != 0 and single and _settles(merge, layer)
        if settles:
            settling += rows
            largest = max(largest, rows)
        store_i64(head_of(merge, s), HEAD_SETTLES, 1 if settles else 0)
        store_i64(head_of(merge, s), HEAD_SINGLE, 1 if single else 0)
        store_i64(head_of(merge, s), HEAD_ROWS, rows)
    set_field(settled, arity + depth, 1, 0, 0)
    set_field(opened, arity + depth, 0, width_of(-weight, weight), weight)
    if arity > 0:
        low, high = _first_column(merge)
        want_index(settled, low, high, total)  # given up again should few of them settle
        want_index(opened, low, high, total - settling)
    # An update that settles does so alone; with others of its row it becomes one more open update at most.
    room = min(total, 2 * (total - settling) + settling - largest)
    store_i64(merge, MERGE_ROOM, 0)
    store_i64(merge, MERGE_SETTLED_BYTES, place_fields(settled, 0, total) if load_i64(merge, MERGE_SPLIT) != 0 else 0)
    store_i64(merge, MERGE_OPEN_BYTES, place_fields(opened, 0, room))


@kernel
def _merge_column(merge, output, column):  # type: ignore[no-untyped-def]
    """A column is a constant if it is the same one in all inputs; else as wide as the widest of them."""
    first = load_i64(head_of(merge, 0), HEAD_LAYER)
    constant, width = load_i64(first, field_at(column)), 0
    same = True
    for s in range(load_i64(merge, MERGE_SOURCES)):
        layer = load_i64(head_of(merge, s), HEAD_LAYER)
        own = load_i64(layer, field_at(column) + FIELD_WIDTH)
        if own == 0:
            value = load_i64(layer, field_at(column))
            same = same and value == constant
            own = width_of(value, value)
        else:
            same = False
        width = max(width, own)
    set_field(output, column, constant if same else 0, 0 if same else width, 0)


@kernel
def _merge_time(merge, settled, opened, coordinate):  # type: ignore[no-untyped-def]
    """A coordinate that is nowhere after that of the frontier's one element becomes that constant."""
    arity, depth = load_i64(opened, LAYER_ARITY), load_i64(opened, LAYER_DEPTH)
    latest = 0
    for s in range(load_i64(merge, MERGE_SOURCES)):
        layer = load_i64(head_of(merge, s), HEAD_LAYER)
        bound = load_i64(layer, field_at(arity + coordinate) + FIELD_BOUND)
        latest = max(latest, advanced(merge, coordinate, depth, bound))
    same = load_i64(merge, MERGE_ELEMENTS) == 1 and latest == load_i64(load_i64(merge, MERGE_FRONTIER), coordinate)
    set_field(settled, arity + coordinate, 0, 0, 0)
    set_field(opened, arity + coordinate, latest, 0 if same else width_of(0, latest), latest)


@kernel
def _first_column(merge):  # type: ignore[no-untyped-def]
    """The least and the greatest value of the first column over all inputs."""
    low, high = 0, 0
    for s in range(load_i64(merge, MERGE_SOURCES)):
        layer = load_i64(head_of(merge, s), HEAD_LAYER)
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
        take_head(head_of(merge, s), 0)


@kernel
def _move_fields(layer, memory):  # type: ignore[no-untyped-def]
    for f in range(load_i64(layer, LAYER_ARITY) + load_i64(layer, LAYER_DEPTH) + 1):
        if load_i64(layer, field_at(f) + FIELD_WIDTH) != 0:
            store_i64(layer, field_at(f), load_i64(layer, field_at(f)) + memory)
    if load_i64(layer, LAYER_INDEX) != 0:
        store_i64(layer, LAYER_INDEX, load_i64(layer, LAYER_INDEX) + memory)


@kernel
def take_head(head, row):  # type: ignore[no-untyped-def]
    """Moves an input to a row and reads its first column."""
    store_i64(head, HEAD_ROW, row)
    if row < load_i64(head, HEAD_ROWS):
        layer = load_i64(head, HEAD_LAYER)
        if load_i64(layer, LAYER_ARITY) > 0:
            store_i64(head, HEAD_VALUE, load_value(layer, 0, row))
