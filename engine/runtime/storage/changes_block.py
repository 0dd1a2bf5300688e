"""A block of memory for the changes of a batch, as kernels write them."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.incremental.loop import reading
from dlog.engine.runtime.storage.native import words


class ChangesBlock:
    """A block into which kernels write changes: an array with a row for each column, one for rounds, one for diffs."""

    def __init__(self, block: np.ndarray) -> None:
        self.block = block
        # One address and its multiples: asking NumPy for each takes longer than a small round.
        start, step = int(block.ctypes.data), block.strides[0]
        *places, self._rounds, self._diffs = range(start, start + step * len(block), step) if step else [start] * len(block)
        self._places = words(places)

    def write(self, collection: int, first: int) -> int:
        """Writes the last batch's changes, rounds counted from `first` on; returns how many."""
        return int(reading.copy_changes(collection, first, self._places.address, self._rounds, self._diffs))

    def copied(self, collection: int, first: int) -> np.ndarray:
        """The last batch's changes as an array of their own."""
        return self.block[:, : self.write(collection, first)].copy()
