"""The first rows of keys, in an order: what a choice domain keeps."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.machine_structs import Bytes, Words


@entry()
def choose_rows(groups: Words, taken: Bytes, keys, rows, order: Words, chosen: Words):
    """Goes through `rows` rows in an order and writes the places of those none of whose groups has one yet; returns how many.
    Row i is in group `groups[key * rows + i]` of each key; a byte of `taken` says of each group whether it has a row."""
    count = 0
    for i in range(rows):
        row = order[i]
        free = True
        for key in range(keys):
            if taken[groups[key * rows + row]]:
                free = False
                break
        if free:
            for key in range(keys):
                taken[groups[key * rows + row]] = 1
            chosen[count] = row
            count += 1
    return count
