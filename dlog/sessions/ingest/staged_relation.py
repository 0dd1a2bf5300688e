"""Changes that wait for their commit: per relation, what came last about each row.

Rows are tuples of 64-bit words (see `Updates`). Single rows are kept in a dict, where a later change of a row replaces an
earlier one; many rows at once are kept as the arrays they came in. The two are in the order they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlog.engine.values.differences import Columns, last_of_each
from dlog.engine.values.updates import BlockUpdates, RowUpdates, Updates, joined

Words = tuple[int, ...]
_ROW, _VALUE = 250, 40
"""Bytes of a row that waits in a dict, and of each of its values, until it is committed: as measured, rounded up."""


class Staged:
    """The staged changes of one relation with `arity` columns."""

    __slots__ = ("_chunks", "_signs", "_size", "arity", "frames", "single")

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.single: dict[Words, int] = {}
        self.frames: list[tuple[Any, int]] = []
        """Rows that are elsewhere, and whether they come (+1) or go (-1), in order: of a row that is in several the last one
        counts. Where there are rows here, too, all do the same."""
        self._chunks: list[Updates] = []
        self._size = 0
        """Bytes of the chunks."""
        self._signs: set[int] = set()
        """The diffs that there are in them."""

    def bytes_with(self, rows: int) -> int:
        """About how much memory all that is here takes with so many more single rows, texts aside."""
        return self._size + (len(self.single) + rows) * (_ROW + _VALUE * self.arity)

    def __len__(self) -> int:
        """How many changes wait, those that later ones replace included where they came in bulk."""
        elsewhere = sum(int(frame.count()) for frame, _ in self.frames)
        return len(self.single) + sum(chunk.rows for chunk in self._chunks) + elsewhere

    def takes_frame(self, diff: int) -> bool:
        """Whether rows that are elsewhere may wait here: no row that is here does the opposite."""
        return set(self.single.values()) <= {diff} and all((chunk.diffs == diff).all() for chunk in self._chunks)

    def takes_rows(self, diff: int) -> bool:
        """Whether rows may wait here while others are elsewhere."""
        return all(sign == diff for _, sign in self.frames)

    def put_frame(self, frame: Any, diff: int) -> None:
        """Rows that are elsewhere, where `takes_frame`. What they have in common with earlier ones is known only to who reads
        them: Spark takes 0.0 and -0.0 for equal, a record may be written in several ways, and rows may be others each time."""
        self.frames.append((frame, diff))

    def put_many(self, columns: Columns, diffs: np.ndarray, diff: int | None = None) -> None:
        """Rows as columns of words, in order. `diff` is that of all, where it is known."""
        self._settle()
        self._chunks.append(Updates(columns, diffs, diffs))
        self._signs.update(np.unique(diffs).tolist() if diff is None else (diff,))
        self._size += bytes_of(columns, diffs)

    def put_block(self, block: np.ndarray, diff: int) -> None:
        """The same for rows in a block that is nobody else's: their columns, diffs, which are all the same, and room for
        rounds."""
        self._settle()
        self._chunks.append(BlockUpdates(block))
        self._signs.add(diff)
        self._size += block.nbytes

    def copy(self) -> Staged:
        made = Staged(self.arity)
        made.single, made._chunks, made.frames = dict(self.single), list(self._chunks), list(self.frames)
        made._size, made._signs = self._size, set(self._signs)
        return made

    def updates(self, round: int) -> Updates:
        """All of it as the changes of one round, each row with at most one sign."""
        if not self._chunks:
            return RowUpdates(self.single, self.arity, round)
        self._settle()
        whole = joined(self._chunks)
        if isinstance(whole, BlockUpdates):
            whole.block[-1] = round
            return whole
        columns, diffs = whole.columns, whole.diffs
        if len(self._signs) > 1:
            places = last_of_each(columns, len(diffs))
            columns, diffs = tuple(column[places] for column in columns), diffs[places]
        return Updates(columns, diffs, np.full(len(diffs), round, np.int64))

    def _settle(self) -> None:
        """Makes the single rows a chunk, so that what comes next comes after them."""
        if self.single:
            self._size = self.bytes_with(0)
            self._signs.update(self.single.values())
            self._chunks.append(RowUpdates(self.single, self.arity, 0))
            self.single = {}


def bytes_of(columns: Columns, diffs: np.ndarray) -> int:
    """The memory of rows in columns, all of them words."""
    return diffs.nbytes * (1 + len(columns))


def columns_of(rows: Sequence[Words]) -> np.ndarray:
    """Rows of words, one at least, column after column."""
    return np.array(rows, np.int64).T.copy()
