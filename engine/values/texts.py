"""Columns of texts of which few are different.

Arrow's `dictionary_encode` says the same in 1.4 to 2.5 times the time: a seventh of a round of a thousand rows with two such
columns (TPC-H's query 1 in batches).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.kernels.values.repeated import equal_texts

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TEXTS_TAKEN_SINGLY = 32
"""Texts up to which they are taken out of a column one by one: faster than to have Arrow take them all."""


def different_texts(texts: pa.StringArray) -> tuple[list[str], np.ndarray]:
    """The different texts, and for each row which of them it has. There are no nulls, and all lies within its memory
    (`arrow_memory`)."""
    import pyarrow as pa

    rows = len(texts)
    found = np.empty((2, rows), np.int64)
    if not rows:
        return [], found[1]
    _, offsets, data = texts.buffers()
    start, size = (0, 0) if data is None else (data.address, data.size)
    slots = np.zeros(2 * rows + 1, np.int32)
    at, given = int(found.ctypes.data), (start, start + size, offsets.address + 4 * texts.offset, rows)
    count = equal_texts(*given, int(slots.ctypes.data), len(slots), at, at + 8 * rows)
    if count <= MAX_TEXTS_TAKEN_SINGLY:
        return [texts[row].as_py() for row in found[0, :count].tolist()], found[1]
    return (texts.take(pa.array(found[0, :count])) if count < rows else texts).to_pylist(), found[1]
