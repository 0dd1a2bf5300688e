"""Layers of sorted updates: how they are described, and their fields and indexes.

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

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import load_i32, load_i64, store_i32, store_i64

LAYER_ROWS, LAYER_ARITY, LAYER_DEPTH, LAYER_INDEX, LAYER_LOW, LAYER_RANGE, LAYER_FIELDS = range(7)
FIELD_ADDRESS, FIELD_WIDTH, FIELD_BOUND, FIELD_SIZE = range(4)

INDEX_ROWS = 256
"""Layers with fewer rows are searched without an index."""
SPARSE = 1 << 16
"""Index entries that do not matter, however few the rows."""
_LEAST, _MOST = -(2**31), 2**31 - 1
SIGN = -(2**63)
"""Flips the order of unsigned words into that of signed ones."""


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
def set_field(layer, field, address, width, bound):  # type: ignore[no-untyped-def]
    at = field_at(field)
    store_i64(layer, at, address)
    store_i64(layer, at + FIELD_WIDTH, width)
    store_i64(layer, at + FIELD_BOUND, bound)


@kernel
def width_of(low, high):  # type: ignore[no-untyped-def]
    """Bytes for values of a range."""
    return 4 if low >= _LEAST and high <= _MOST else 8


@kernel
def describe(layer, arity, depth):  # type: ignore[no-untyped-def]
    """Says of an output what it is; it has no rows yet."""
    store_i64(layer, LAYER_ROWS, 0)
    store_i64(layer, LAYER_ARITY, arity)
    store_i64(layer, LAYER_DEPTH, depth)
    store_i64(layer, LAYER_INDEX, 0)


@kernel
def want_index(layer, low, high, rows):  # type: ignore[no-untyped-def]
    """Asks for an index where the first column is dense enough that it costs at most 4 bytes a row."""
    if rows >= INDEX_ROWS and low > SIGN >> 1 and high < -(SIGN >> 1) and high - low < rows:
        store_i64(layer, LAYER_INDEX, 1)
        store_i64(layer, LAYER_LOW, low)
        store_i64(layer, LAYER_RANGE, high - low + 1)


@kernel
def place_fields(layer, memory, room):  # type: ignore[no-untyped-def]
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
def fill_index(layer, filled, value, row):  # type: ignore[no-untyped-def]
    """Says that `row` is the first one with this value of the first column, or none; returns the entries filled."""
    slot = value - load_i64(layer, LAYER_LOW)
    index = load_i64(layer, LAYER_INDEX)
    while filled <= slot:
        store_i32(index, filled, row)
        filled += 1
    return filled
