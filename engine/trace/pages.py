"""Memory for layers: blocks that become resident as they are written and go a little at a time.

A large block is a private mapping of its own. What is reserved and never written costs nothing, so outputs can have room for
all that might come. Pages are small ones: clearing a huge page can take longer than an insert may. Unmapping a block takes time
in proportion to its size too: a block of a trace without readers is kept by the trace's `Pages`, which gives its pages
back in small steps, and at once when the trace itself goes.
"""

from __future__ import annotations

import mmap
import weakref

import numpy as np

MIN_MAPPED_BYTES = 1 << 20
"""Bytes from which on a block is a mapping of its own: smaller ones are the allocator's."""
RELEASE_BYTES = 1 << 20
"""Bytes given back at a time, which takes some tens of microseconds."""

_MAPS = hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MADV_DONTNEED")


def allocate(words: int, pages: Pages | None = None) -> np.ndarray:
    """An array of so many int64, not cleared."""
    if 8 * words < MIN_MAPPED_BYTES or not _MAPS:
        return np.empty(words, np.int64)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    block = _Block(-1, 8 * words, flags=flags)
    block.pages = None if pages is None else weakref.ref(pages)
    return np.frombuffer(block, np.int64)


class _Block(mmap.mmap):
    """A mapping that goes back to its trace when the last array in it is gone."""

    pages: weakref.ref[Pages] | None = None

    def __del__(self) -> None:
        owner = None if self.pages is None else self.pages()
        if owner is not None:
            owner.free_blocks.append(self)  # alive again, and not finalized a second time


class Pages:
    """The spent blocks of a trace."""

    def __init__(self) -> None:
        self.free_blocks: list[_Block] = []
        self._released_bytes = 0  # bytes of the last one that are gone already

    def give_back(self, limit: int) -> None:
        """Gives back about so many bytes."""
        while self.free_blocks and limit > 0:
            block = self.free_blocks[0]
            size = min(RELEASE_BYTES, len(block) - self._released_bytes)
            block.madvise(mmap.MADV_DONTNEED, self._released_bytes, size)
            self._released_bytes += size
            limit -= size
            if self._released_bytes == len(block):
                del self.free_blocks[0]  # nothing of it is resident
                self._released_bytes = 0
