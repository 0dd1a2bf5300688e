"""Which texts of a column are the same."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.machine_structs import Numbers, Words
from dlog.engine.kernels.static.hashes import home
from dlog.engine.kernels.values.words import equal_bytes, hash_bytes


@entry()
def equal_texts(data, limit, offsets: Numbers, rows, slots: Numbers, count, firsts: Words, places: Words):
    """Writes to `firsts` the first row of each different text, and to `places` for each row which of these texts it has;
    returns how many there are. Row r has the bytes from `data + offsets[r]` up to `data + offsets[r + 1]`; memory ends at
    `limit`. There are `count` slots, more than rows, all 0."""
    texts = 0
    for row in range(rows):
        start = offsets[row]
        length = offsets[row + 1] - start
        slot = home(np.int64(hash_bytes(data + start, length, limit)) << 32, count)
        while slots[slot] != 0:
            other = offsets[firsts[slots[slot] - 1]]
            same = offsets[firsts[slots[slot] - 1] + 1] - other == length
            if same and equal_bytes(data + start, limit, data + other, limit, length):
                break
            slot = 0 if slot + 1 == count else slot + 1
        if slots[slot] == 0:
            firsts[texts] = row
            texts += 1
            slots[slot] = texts
        places[row] = slots[slot] - 1
    return texts
