"""The external rows of a relation as the disk has them: those of the last checkpoint, and the changes that were logged since.

Later changes of a row replace earlier ones, so that the rows are found in one pass when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.program.rules import Kind
from dlog.engine.trace.durable.layers import Stored
from dlog.engine.values.differences import Columns, apply_changes, last_of_each, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.sessions.changes import none, typed

Chunk = tuple[Columns, np.ndarray]
"""Changed rows and their diffs."""
RECENT = 256
"""So many small chunks become one."""


class ExternalRows:
    """Those of one relation. `stored` is what the last checkpoint wrote, None where the relation was not in it."""

    def __init__(self, stored: Stored | None = None) -> None:
        self.stored = stored
        self._chunks: list[Chunk] = []
        self._recent: list[Chunk] = []

    @property
    def arity(self) -> int | None:
        """None before there is anything."""
        for columns, _ in (*self._chunks, *self._recent):
            return len(columns)
        return None if self.stored is None else len(self.stored.kinds)

    @property
    def changed(self) -> bool:
        """Whether anything has been logged since the checkpoint."""
        return bool(self._chunks or self._recent)

    def add(self, updates: Updates) -> None:
        """The changes of further rounds."""
        if updates.rows:
            self._recent.append((updates.columns, updates.diffs))
            if len(self._recent) >= RECENT:
                self._gather()

    def _gather(self) -> None:
        if self._recent:
            columns = tuple(np.concatenate(parts) for parts in zip(*(columns for columns, _ in self._recent), strict=True))
            self._chunks.append((columns, np.concatenate([diffs for _, diffs in self._recent])))
            self._recent = []

    def logged(self) -> list[Chunk]:
        """All changes since the checkpoint, in order."""
        self._gather()
        return list(self._chunks)

    def rebase(self, stored: Stored | None, chunks: int) -> None:
        """A checkpoint has written the first so many of the chunks that `logged` gave."""
        self.stored = stored
        del self._chunks[:chunks]


def applied(stored: Stored | None, chunks: Sequence[Chunk], kinds: tuple[Kind, ...]) -> Table:
    """The rows after all changes; each once. What is stored of other kinds is of a relation that was dropped."""
    table = empty(kinds) if stored is None or stored.kinds != kinds else stored.table()
    if not chunks:
        return table
    present = tuple(words(column) for column in table.columns)
    columns = tuple(np.concatenate(parts) for parts in zip(*(columns for columns, _ in chunks), strict=True))
    columns, rows = apply_changes(present, table.rows, columns, np.concatenate([diffs for _, diffs in chunks]))
    marks = np.ones(rows, np.int64)
    return typed(kinds, Updates(columns, marks, marks))


def last_changes(chunks: Sequence[Chunk], arity: int, round: int) -> Updates:
    """What became of each changed row in the end, as changes of one round."""
    if not chunks:
        return none(arity)
    columns = tuple(np.concatenate(parts) for parts in zip(*(columns for columns, _ in chunks), strict=True))
    diffs = np.concatenate([diffs for _, diffs in chunks])
    places = last_of_each(columns, len(diffs))
    return Updates(tuple(column[places] for column in columns), diffs[places], np.full(len(places), round, np.int64))


def empty(kinds: tuple[Kind, ...]) -> Table:
    """No rows."""
    return typed(kinds, none(len(kinds)))
