"""Rows of a table without those that a layer has with a positive diff."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import copy_bytes, load_u8, store_u8, wrapped_product
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.static.storage import mix
from dlog.engine.kernels.trace.layers import load_stored, load_value
from dlog.engine.kernels.trace_structs import LayerHeader, StoredColumns

_FACTOR = -7046029254386353131
"""Odd, its bits without a pattern: 2^64 divided by the golden ratio."""


@kernel
def _next(slot, count):
    """The slot after one, around the end."""
    return 0 if slot + 1 == count else slot + 1


@kernel
def _enter(layer: LayerHeader, slots: Numbers, count):
    """Enters the rows of a positive diff into an empty hash table of so many slots, by number plus one."""
    diff = layer.arity + layer.depth
    for row in range(layer.rows):
        if load_value(layer, diff, row) > 0:
            hashed = 0
            for c in range(layer.arity):
                hashed = mix(hashed, load_value(layer, c, row))
            slot = home(hashed, count)
            while slots[slot] != 0:
                slot = _next(slot, count)
            slots[slot] = row + 1


@kernel
def _is_in(layer: LayerHeader, slots: Numbers, count, columns: StoredColumns, row):
    hashed = 0
    for c in range(layer.arity):
        hashed = mix(hashed, load_stored(columns[c].data, columns[c].width, row))
    slot = home(hashed, count)
    while slots[slot] != 0:
        other = slots[slot] - 1
        equal = True
        for c in range(layer.arity):
            if load_value(layer, c, other) != load_stored(columns[c].data, columns[c].width, row):
                equal = False
                break
        if equal:
            return True
        slot = _next(slot, count)
    return False


@kernel
def _spot(value, mask):
    """Where a filter says whether it has a value: in the lower bits, which `mask` has, of its hash."""
    return (wrapped_product(value, _FACTOR) >> 40) & mask


@kernel
def _fill(layer: LayerHeader, column, filter, mask):
    """Enters a column's values of all rows into a filter, a byte each."""
    for row in range(layer.rows):
        store_u8(filter, _spot(load_value(layer, column, row), mask), 1)


@kernel
def _copy(columns: StoredColumns, outputs: StoredColumns, arity, to, first, end):
    """Copies the rows from `first` up to `end` to the outputs, from row `to` on. No column has one value for all rows."""
    for c in range(arity):
        width = columns[c].width
        copy_bytes(outputs[c].data + to * width, columns[c].data + first * width, (end - first) * width)


@kernel
def _next_spotted(data, width, row, rows, filter, mask):
    """The next row from `row` on whose value the filter has; `rows` where there is none."""
    if width == 4:
        numbers = Numbers(data)
        while row < rows and load_u8(filter, _spot(numbers[row], mask)) == 0:
            row += 1
    else:
        words = Words(data)
        while row < rows and load_u8(filter, _spot(words[row], mask)) == 0:
            row += 1
    return row


@entry()
def copy_without(
    layer: LayerHeader, slots: Numbers, count, filter, mask, column, columns: StoredColumns, outputs: StoredColumns, rows
):
    """Copies those of so many rows that the layer does not have with a positive diff, in order; returns how many there are.
    `slots` are zeros, more of them than rows in the layer; so are the bytes of the `filter`, `mask` + 1 of them, a power of two
    up to 2^22: most rows go by what it says of a `column`. Outputs have the widths of the columns, and room for all rows."""
    _enter(layer, slots, count)
    _fill(layer, column, filter, mask)
    data, width = columns[column].data, columns[column].width
    kept, start = 0, 0
    row = _next_spotted(data, width, 0, rows, filter, mask)
    while row < rows:
        if _is_in(layer, slots, count, columns, row):
            _copy(columns, outputs, layer.arity, kept, start, row)
            kept += row - start
            start = row + 1
        row = _next_spotted(data, width, row + 1, rows, filter, mask)
    _copy(columns, outputs, layer.arity, kept, start, rows)
    return kept + rows - start
