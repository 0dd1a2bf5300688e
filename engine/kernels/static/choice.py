"""The first rows of keys, in an order: what a choice domain keeps."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.core.memory import load_i64, load_u8, store_i64, store_u8


@entry()
def choose_rows(groups, taken, keys, rows, order, chosen):  # type: ignore[no-untyped-def]
    """Goes through `rows` rows in an order and writes the places of those none of whose groups has one yet; returns how many.
    Row i is in group `groups[key * rows + i]` of each key; a byte of `taken` says of each group whether it has a row."""
    count = 0
    for i in range(rows):
        row = load_i64(order, i)
        free = True
        for key in range(keys):
            if load_u8(taken, load_i64(groups, key * rows + row)):
                free = False
                break
        if free:
            for key in range(keys):
                store_u8(taken, load_i64(groups, key * rows + row), 1)
            store_i64(chosen, count, row)
            count += 1
    return count
