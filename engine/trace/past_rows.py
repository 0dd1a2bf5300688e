"""A relation as of another round: the rows of a table with what changed in between undone, or done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels.trace.finding import find_rows
from dlog.engine.trace.layer import Layer, address_of
from dlog.engine.values.table import Table

SLOTS_PER_ROW = 4
"""Slots of a hash table: most rows of a table meet an empty one."""
FILTER_BYTES_PER_ROW = 16
MAX_FILTER_BYTES = 1 << 22
"""Bytes of the filter by which most rows of a table go: few of those that stay have another's byte, and it fits the cache."""
SAMPLE_ROWS = 64
"""Rows that are looked at for the column to filter by."""
KEPT_ROWS_PER_CHANGE = 8
"""Rows of past tables that are kept, by the changes of their relation: where there are more of these than a few for each row,
it takes longer to add them up than to read the relation."""
MAX_KEPT = 32
"""Past tables that are kept of a relation."""


def undone(table: Table, net: Layer) -> Table:
    """The rows of a set before what changed in it all in all (`ChangeTrace.net`). What came is in the set, what went is not."""
    return _changed(table, net, 1)


def done(table: Table, net: Layer) -> Table:
    """The rows of a set after what changed in it all in all. What went is in the set, what came is not."""
    return _changed(table, net, -1)


def _changed(table: Table, net: Layer, sign: int) -> Table:
    """Without the rows whose diffs have this sign, and with the others: columns of 4 or 8 bytes, as those of the table, or$
    wider where the values ask for it. A table that is nobody else's is written to."""
    diffs = net.diffs() * sign
    back = np.flatnonzero(diffs < 0)
    if not table.columns:
        rows = min(max(table.rows - (net.rows - len(back)) + len(back), 0), 1)
        return Table(table.kinds, (), rows)
    values = [net.values(c, back) for c in range(net.arity)]
    columns = [_writable(column, table.fresh, v) for column, v in zip(table.columns, values, strict=True)]
    holes = _found(columns, table.rows, net, sign, net.rows - len(back))
    return Table(table.kinds, tuple(_refilled(c, v, holes) for c, v in zip(columns, values, strict=True)), fresh=True)


def _writable(column: np.ndarray, fresh: bool, values: np.ndarray) -> np.ndarray:
    """A column of one's own that has room for further values."""
    if column.itemsize == 4 and len(values) and not -(2**31) <= values.min() <= values.max() < 2**31:
        return column.astype(np.int64)
    return column if fresh and column.flags.c_contiguous else column.copy()


def _found(columns: Sequence[np.ndarray], rows: int, net: Layer, sign: int, count: int) -> np.ndarray:
    """Where in a table the rows are, so many, that have gone; descending."""
    found = np.empty(count, np.int64)
    if not count or not rows:
        return found[:0]
    slots = np.zeros(SLOTS_PER_ROW * count + 1, np.int32)
    filter = np.zeros(min(1 << (FILTER_BYTES_PER_ROW * count).bit_length(), MAX_FILTER_BYTES), np.uint8)
    stored = np.array([(address_of(column), column.itemsize) for column in columns], np.int64)
    tables = address_of(slots), len(slots), _most_selective(net), address_of(filter), len(filter) - 1
    met = find_rows(net.address, sign, *tables, address_of(stored), rows, address_of(found))
    return found[: int(met)]


def _most_selective(net: Layer) -> int:
    """The column with the most values."""
    spread = np.arange(0, net.rows, net.rows // SAMPLE_ROWS + 1)
    return max(range(net.arity), key=lambda c: len(set(net.values(c, spread).tolist())))


def _refilled(column: np.ndarray, values: np.ndarray, holes: np.ndarray) -> np.ndarray:
    """A column with values in the place of holes, which descend: the last rows go where there are more holes, and values behind
    them where there are less."""
    words = column.view(np.int32 if column.itemsize == 4 else np.int64)
    many = min(len(values), len(holes))
    left, filled = holes[: len(holes) - many], holes[len(holes) - many :]
    words[filled] = values[:many]
    if many < len(values):
        return np.concatenate([words, values[many:].astype(words.dtype)]).view(column.dtype)
    rows = len(words) - len(left)
    last = np.ones(len(left), bool)
    last[left[left >= rows] - rows] = False
    words[left[left < rows]] = words[rows:][last]
    return column[:rows]


@dataclass(slots=True)
class _Known:
    table: Table
    asked: bool = True
    """Whether somebody has read it of late."""


class KnownTables:
    """Tables of past rounds that somebody has read, the last ones at the end: where much has changed since, others are found
    from them."""

    def __init__(self) -> None:
        self._tables: dict[int, _Known] = {}
        self._rows = 0
        """Of all of them."""

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for known in self._tables.values() for column in known.table.columns)

    def nearest(self, round: int, last: int, now: Table) -> tuple[int, Table]:
        """The round nearest to one whose rows are known, and these: `now` are those of the round `last`."""
        found = min((*self._tables, last), key=lambda known: abs(known - round))
        if found == last:
            return last, now
        known = self._tables[found] = self._tables.pop(found)
        known.asked = True
        return found, known.table

    def keep(self, round: int, table: Table, changes: int) -> Table:
        """Keeps the rows of a round, of a relation with so many changes, in the place of those that were read longest ago; the
        table as it is to be used then."""
        room = KEPT_ROWS_PER_CHANGE * changes - table.rows
        if room < 0 or not table.columns:
            return table
        while self._rows > room or len(self._tables) >= MAX_KEPT:
            self._drop(next(iter(self._tables)))
        kept = replace(table, fresh=False)
        for column in kept.columns:
            column.flags.writeable = False
        self._tables[round] = _Known(kept)
        self._rows += kept.rows
        return kept

    def forget(self, oldest: int) -> None:
        """Gives up rounds before `oldest`."""
        for round in [round for round in self._tables if round < oldest]:
            self._drop(round)

    def age(self) -> None:
        """Gives up what nobody has read since the last time."""
        for round in [round for round, known in self._tables.items() if not known.asked]:
            self._drop(round)
        for known in self._tables.values():
            known.asked = False

    def _drop(self, round: int) -> None:
        self._rows -= self._tables.pop(round).table.rows
