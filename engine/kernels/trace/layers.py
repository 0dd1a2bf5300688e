"""Fields and indexes of layers (trace_structs.py says what a layer is).

Kernels take the addresses of headers and of all other memory, which belongs to the caller; they write where they are told and
never read past a layer's rows.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.trace_structs import LayerHeader

INDEX_ROWS = 256
"""Layers with fewer rows are searched without an index."""
SPARSE = 1 << 16
"""Index entries that do not matter, however few the rows."""
_LEAST, _MOST = -(2**31), 2**31 - 1
MOST = 2**63 - 1
"""The greatest word."""
SIGN = -(2**63)
"""Flips the order of unsigned words into that of signed ones."""


@kernel
def load_stored(data, width, row):
    """The value in a row, of 4 or 8 bytes, or of no bytes where all rows have the same."""
    if width == 4:
        return Numbers(data)[row]
    if width == 8:
        return Words(data)[row]
    return data


@kernel
def load_value(layer: LayerHeader, number, row):
    """The value of a field in a row."""
    field = layer.fields[number]
    return load_stored(field.data, field.width, row)


@kernel
def store_value(layer: LayerHeader, number, row, value):
    """Writes a value of a field; constants are not written."""
    field = layer.fields[number]
    if field.width == 4:
        Numbers(field.data)[row] = value
    elif field.width == 8:
        Words(field.data)[row] = value


@kernel
def set_field(layer: LayerHeader, number, data, width, bound):
    field = layer.fields[number]
    field.data = data
    field.width = width
    field.bound = bound


@kernel
def add_size(weight, diff):
    """A sum of |diff| with one more, or the greatest word where that is less: the sum says how many bytes diffs need."""
    below = diff if diff < 0 else -diff
    return MOST if weight > MOST + below else weight - below


@kernel
def width_of(low, high):
    """Bytes for values of a range."""
    return 4 if low >= _LEAST and high <= _MOST else 8


@kernel
def describe(layer: LayerHeader, arity, depth):
    """Says of an output what it is; it has no rows yet."""
    layer.rows = 0
    layer.arity = arity
    layer.depth = depth
    layer.index = Numbers(0)


@kernel
def describe_block(layer: LayerHeader, block, rows, arity, depth):
    """Describes updates whose fields lie in a block of words, one behind the other."""
    describe(layer, arity, depth)
    layer.rows = rows
    for f in range(arity + depth + 1):
        set_field(layer, f, block + 8 * rows * f, 8, 0)


@kernel
def want_index(layer: LayerHeader, low, high, rows):
    """Asks for an index where the first column is dense enough that it costs at most 4 bytes a row."""
    if rows >= INDEX_ROWS and low > SIGN >> 1 and high < -(SIGN >> 1) and high - low < rows:
        layer.index = Numbers(1)
        layer.low = low
        layer.range = high - low + 1


@kernel
def place_fields(layer: LayerHeader, memory, room):
    """Gives each field that is no constant its place in `memory`, then the index asked for. Returns the bytes needed."""
    at = memory
    for f in range(layer.arity + layer.depth + 1):
        field = layer.fields[f]
        if field.width != 0:
            field.data = at
            at += (room * field.width + 7) // 8 * 8
    if layer.index:
        layer.index = Numbers(at)
        at += 4 * (layer.range + 1)
    return at - memory


@kernel
def fill_index(layer: LayerHeader, filled, value, row):
    """Says that `row` is the first one with this value of the first column, or none; returns the entries filled."""
    slot = value - layer.low
    index = layer.index
    while filled <= slot:
        index[filled] = row
        filled += 1
    return filled
