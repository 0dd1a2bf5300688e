"""The latest changes of a trace, which wait until there are enough of them for a batch."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.trace_structs import LayerHeader
from dlog.engine.trace.layer import Described
from dlog.engine.values.updates import Updates, joined

_ROWS = LayerHeader.place.rows
_INITIAL_ROWS = 64


class WaitingChanges:
    """Changes of rows with so many columns, as they came; and laid out in no order, for kernels that look at all of them."""

    def __init__(self, arity: int) -> None:
        self._arity = arity
        self.begin()

    def begin(self) -> None:
        """Without changes."""
        self.parts: list[Updates] = []
        self.rows = 0
        self._laid = self._laid_rows = 0
        """The parts that are laid out, and their changes."""
        self._layer: Described | None = None
        self._block = np.empty((self._arity + 2, 0), np.int64)

    @property
    def last(self) -> int:
        """The last round; where there are changes."""
        return self.parts[-1].last

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return 8 * self.rows * (self._arity + 2) + self._block.nbytes

    def add(self, updates: Updates) -> None:
        self.parts.append(updates)
        self.rows += updates.rows

    def take(self) -> Updates:
        """All of them, of which there are some; they wait no longer."""
        taken = joined(self.parts)
        self.begin()
        return taken

    def layer(self) -> Described:
        """All of them, until more come: what has been laid out before stays where it is, as long as there is room."""
        if self._layer is None or self.rows > self._block.shape[1]:
            self._move()
        assert self._layer is not None
        for part in self.parts[self._laid :]:
            start, end = self._laid_rows, self._laid_rows + part.rows
            self._block[:, start:end] = (*part.columns, part.rounds, part.diffs)
            self._laid, self._laid_rows = self._laid + 1, end
        self._layer.words[_ROWS] = self._laid_rows
        return self._layer

    def _move(self) -> None:
        """Makes room for twice as many."""
        block = np.empty((self._arity + 2, max(2 * self.rows, _INITIAL_ROWS)), np.int64)
        block[:, : self._laid_rows] = self._block[:, : self._laid_rows]
        self._block, self._layer = block, Described.of_block(block, self._arity)
