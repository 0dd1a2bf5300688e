"""The external rows of a relation as the disk has them: those of the last checkpoint, bulk changes in files of their own, and
what was logged since.

Later changes of a row replace earlier ones, so that the rows are found in one pass when they are asked for. Bulk changes stay
in their files: a checkpoint writes, for each, what later changes made of rows, apart from those that were there before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind
from dlog.engine.state.layers import Stored
from dlog.engine.values.differences import Columns, apply_changes, last_of_each, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.sessions.follow.changes import none, typed
from dlog.sessions.persistence.bulk_files import BulkChange, ones
from dlog.sessions.persistence.references import are_ids

Chunk = tuple[Columns, np.ndarray]
"""Changed rows and their diffs."""
ReadBulk = Callable[[BulkChange], tuple[Columns, int]]
MAX_SMALL_CHUNKS = 32
"""Small chunks before they are joined to one: trades copying against the number of arrays. Joining more at once has the system
clear pages for them within one commit."""
MIN_LARGE_ROWS = 1 << 14
"""Changes from which on a chunk is not joined to others: some commit of few would copy it."""


class Epoch:
    """The changes from one bulk change on, until the next. `number` is the bulk change's; the first epoch has none. `inserted`
    and `deleted` are what the last checkpoint wrote of it, None where it was not there yet."""

    def __init__(self, bulk: BulkChange | None, number: int, inserted: Stored | None, deleted: Stored | None) -> None:
        self.bulk, self.number = bulk, number
        self.inserted, self.deleted = inserted, deleted
        self._chunks: list[Chunk] = []
        self._recent: list[Chunk] = []

    @property
    def arity(self) -> int | None:
        """None before there is anything."""
        for columns, _ in (*self._chunks, *self._recent):
            return len(columns)
        if self.bulk is not None:
            return len(self.bulk.kinds)
        return None if self.inserted is None else len(self.inserted.kinds)

    @property
    def changed(self) -> bool:
        """Whether there is anything that the last checkpoint did not write."""
        return bool(self._chunks or self._recent) or (self.bulk is not None and self.inserted is None)

    def add(self, updates: Updates) -> None:
        """The changes of further rounds."""
        if updates.rows >= MIN_LARGE_ROWS:
            self._gather()
            self._chunks.append((updates.columns, updates.diffs))
            return
        self._recent.append((updates.columns, updates.diffs))
        if len(self._recent) >= MAX_SMALL_CHUNKS:
            self._gather()

    def _gather(self) -> None:
        if self._recent:
            columns = tuple(np.concatenate(parts) for parts in zip(*(columns for columns, _ in self._recent), strict=True))
            self._chunks.append((columns, np.concatenate([diffs for _, diffs in self._recent])))
            self._recent = []

    def frozen(self) -> FrozenEpoch:
        """A snapshot that later changes leave as it is."""
        self._gather()
        return FrozenEpoch(self.bulk, self.number, self.inserted, self.deleted, tuple(self._chunks))

    def rebase(self, inserted: Stored | None, deleted: Stored | None, chunks: int) -> None:
        """A checkpoint has written the first so many of the chunks that `frozen` had."""
        self.inserted, self.deleted = inserted, deleted
        del self._chunks[:chunks]


@dataclass(frozen=True, slots=True)
class FrozenEpoch:
    """An epoch at one time. `chunks` are the changes since the last checkpoint, in order."""

    bulk: BulkChange | None
    number: int
    inserted: Stored | None
    deleted: Stored | None
    chunks: tuple[Chunk, ...]

    def changes(self) -> Updates:
        """The last change of each row after its bulk change came; of epochs that have one."""
        assert self.bulk is not None
        stored = [chunk_of(s, diff) for s, diff in ((self.inserted, 1), (self.deleted, -1)) if s is not None]
        if any(s.kinds != self.bulk.kinds for s in (self.inserted, self.deleted) if s is not None):
            raise ValueError("what became of a bulk change has other columns")
        return last_changes([*stored, *self.chunks], len(self.bulk.kinds), 0)


class ExternalRows:
    """The external rows of one relation. `stored` is what the last checkpoint wrote, None where the relation was not in it."""

    def __init__(self, stored: Stored | None = None) -> None:
        self.epochs = [Epoch(None, 0, stored, None)]

    @property
    def arity(self) -> int | None:
        """None before there is anything."""
        return next((arity for s in self.epochs if (arity := s.arity) is not None), None)

    @property
    def bulks(self) -> bool:
        """Whether there are any."""
        return len(self.epochs) > 1

    @property
    def changed(self) -> bool:
        """Whether anything has been logged since the checkpoint."""
        return any(epoch.changed for epoch in self.epochs)

    def add(self, updates: Updates) -> None:
        """The changes of further rounds."""
        if updates.rows:
            self.epochs[-1].add(updates)

    def load(self, bulk: BulkChange, number: int, inserted: Stored | None = None, deleted: Stored | None = None) -> None:
        """A further bulk change; perhaps with what the last checkpoint wrote of what came after it."""
        self.epochs.append(Epoch(bulk, number, inserted, deleted))

    def frozen(self) -> list[FrozenEpoch]:
        """A snapshot of all epochs, which later changes leave as it is."""
        return [epoch.frozen() for epoch in self.epochs]


def applied(epochs: Sequence[FrozenEpoch], kinds: tuple[Kind, ...], read: ReadBulk) -> Table:
    """The rows after all changes; each once. What is stored of other kinds is of a relation that was dropped, and so is what
    has changed in other columns. Raises ValueError for rows that are none of these kinds."""
    first, *others = (s for s in epochs if s.bulk is None or s.bulk.kinds == kinds)
    if any(len(columns) != len(kinds) for s in others for columns, _ in s.chunks):
        raise ValueError("rows have other columns than their relation")
    table = empty(kinds) if first.inserted is None or first.inserted.kinds != kinds else first.inserted.table()
    chunks = [chunk for chunk in first.chunks if len(chunk[0]) == len(kinds)]
    if not others and not chunks:
        return table
    for epoch in others:
        assert epoch.bulk is not None
        columns, rows = read(epoch.bulk)
        changes = epoch.changes()
        chunks += [(columns, ones(rows, epoch.bulk.diff)), (changes.columns, changes.diffs)]
    present = tuple(words(column) for column in table.columns)
    columns = tuple(np.concatenate(parts) for parts in zip(*(columns for columns, _ in chunks), strict=True))
    columns, rows = apply_changes(present, table.rows, columns, np.concatenate([diffs for _, diffs in chunks]))
    if not are_ids(kinds, columns):
        raise ValueError("words are no ids")
    marks = np.ones(rows, np.int64)
    return typed(kinds, Updates(columns, marks, marks))


def chunk_of(stored: Stored, diff: int) -> Chunk:
    """Stored rows as changes."""
    table = stored.table()
    return tuple(words(column) for column in table.columns), ones(table.rows, diff)


def last_changes(chunks: Sequence[Chunk], arity: int, round: int) -> Updates:
    """The net change of each changed row, as changes of one round."""
    if not chunks:
        return none(arity)
    columns = tuple(np.concatenate(parts) for parts in zip(*(columns for columns, _ in chunks), strict=True))
    diffs = np.concatenate([diffs for _, diffs in chunks])
    places = last_of_each(columns, len(diffs))
    return Updates(tuple(column[places] for column in columns), diffs[places], np.full(len(places), round, np.int64))


def with_diff(updates: Updates, diff: int) -> Updates:
    """Only the changes that do this."""
    chosen = updates.diffs == diff
    return Updates(tuple(c[chosen] for c in updates.columns), updates.diffs[chosen], updates.rounds[chosen])


def empty(kinds: tuple[Kind, ...]) -> Table:
    """No rows."""
    return typed(kinds, none(len(kinds)))
