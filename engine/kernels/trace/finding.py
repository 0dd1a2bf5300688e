"""Where rows of a set are that a layer has with a diff of one sign."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.core.memory import load_u8, store_u8, wrapped_product
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
def _spot(value, mask):
    """Where a filter says whether it has a value: in the lower bits, which `mask` has, of its hash."""
    return (wrapped_product(value, _FACTOR) >> 40) & mask


@kernel
def _enter(layer: LayerHeader, sign, slots: Numbers, count, column, filter, mask):
    """Enters the rows whose diffs have a sign into an empty hash table of so many slots, by number plus one, and their values
    of a column into a filter, a byte each; returns how many there are."""
    diff, entered = layer.arity + layer.depth, 0
    for row in range(layer.rows):
        if load_value(layer, diff, row) * sign > 0:
            hashed = 0
            for c in range(layer.arity):
                hashed = mix(hashed, load_value(layer, c, row))
            slot = home(hashed, count)
            while slots[slot] != 0:
                slot = _next(slot, count)
            slots[slot] = row + 1
            store_u8(filter, _spot(load_value(layer, column, row), mask), 1)
            entered += 1
    return entered


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
def _before_spotted(data, width, row, filter, mask):
    """The last row before `row` whose value the filter has; -1 where there is none."""
    row -= 1
    if width == 4:
        numbers = Numbers(data)
        while row >= 0 and load_u8(filter, _spot(numbers[row], mask)) == 0:
            row -= 1
    else:
        words = Words(data)
        while row >= 0 and load_u8(filter, _spot(words[row], mask)) == 0:
            row -= 1
    return row


@entry()
def find_rows(
    layer: LayerHeader, sign, slots: Numbers, count, column, filter, mask, columns: StoredColumns, rows, found: Words
):
    """Finds those of so many rows, each there once, that the layer has with a diff of a sign: writes their numbers, descending
    (those that came last are mostly at the end), and returns how many there are. `slots` are zeros, more of them than such
    rows; so are the bytes of the `filter`, `mask` + 1 of them, a power of two up to 2^22: most rows go by what it says of a
    `column`."""
    wanted = _enter(layer, sign, slots, count, column, filter, mask)
    data, width = columns[column].data, columns[column].width
    met = 0
    row = _before_spotted(data, width, rows, filter, mask)
    while row >= 0:
        if _is_in(layer, slots, count, columns, row):
            found[met] = row
            met += 1
            if met == wanted:
                return met
        row = _before_spotted(data, width, row, filter, mask)
    return met
