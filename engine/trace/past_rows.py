"""A relation as of another round: the rows of a table with what changed in between undone, or done."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels.trace.undoing import LAST_BIT, add_up, change_rows, pick_updates
from dlog.engine.kernels.trace_structs import NetChanges
from dlog.engine.trace.layer import Described, Layer
from dlog.engine.values.addresses import address_of
from dlog.engine.values.table import Table

SLOTS_PER_ROW = 4
"""Slots of a hash table: most rows of a table meet an empty one."""
FILTER_BYTES_PER_ROW = 16
MAX_FILTER_BYTES = 1 << 22
"""Bytes of the filter by which most rows of a table go: few of those that stay have another's byte, and it fits the cache."""
KEPT_ROWS_PER_CHANGE = 8
"""Rows of past tables that are kept, by the changes of their relation: where there are more of these than a few for each row,
it takes longer to add them up than to read the relation."""
ROWS_OF_A_TABLE = 64
"""Rows that a table counts for besides its own: it is some objects."""
MIN_STEP = 1024
"""Changes at least after which a table is kept on the way to an older one: adding up half as many takes no longer than the rest
of reading a table of few rows."""
MAX_SPAN = 1 << 31
"""Rounds of changes that are in parts are less."""
_AT = NetChanges.place


def undone(table: Table, net: Layer) -> Table:
    """The rows of a set before what changed in it all in all (`ChangeTrace.net`). What came is in the set, what went is not."""
    return PickedChanges((net,), -1, 0).changed(table, 0, 1)


def done(table: Table, net: Layer) -> Table:
    """The rows of a set after what changed in it all in all. What went is in the set, what came is not."""
    return PickedChanges((net,), -1, 0).changed(table, 0, -1)


class PickedChanges:
    """The changes that layers have of the rounds after one up to another, in parts of as many rounds each."""

    def __init__(self, layers: Sequence[Layer | Described], after: int, upto: int, parts: int = 1) -> None:
        self._layers, self._after, self._upto, self.parts = layers, after, upto, parts
        self._addresses = np.array([layer.address for layer in layers], np.int64)
        self._picked = np.empty(sum([layer.rows for layer in layers]) + 1, np.int64)
        self._ends = np.zeros(parts + 1, np.int64)
        targets = address_of(self._ends), address_of(self._picked)
        self.rows = int(pick_updates(address_of(self._addresses), len(layers), after, upto, parts, *targets)) if layers else 0

    def cut(self, rows: int) -> PickedChanges:
        """The same changes, in parts of about so many."""
        span = self._upto - self._after
        parts = min(self.rows // rows, span) if span < MAX_SPAN else 1
        return PickedChanges(self._layers, self._after, self._upto, parts) if parts > 1 else self

    def before(self, part: int) -> int:
        """The last round before a part; one behind the last part is there, too."""
        return self._after - part * (self._after - self._upto) // self.parts

    def changed(self, table: Table, part: int, sign: int) -> Table:
        """The rows of a set without those whose diffs have this sign, and with the others: columns of 4 or 8 bytes, as those of
        the table, or wider where the values ask for it. A table that is nobody else's is written to."""
        start, end = int(self._ends[part - 1]) if part else 0, int(self._ends[part])
        if start == end:
            return table
        count, arity = end - start, len(table.columns)
        entries, slots = np.empty(count * (arity + 1), np.int64), np.zeros(SLOTS_PER_ROW * count, np.int32)
        filter = np.zeros(min(1 << (FILTER_BYTES_PER_ROW * count).bit_length(), MAX_FILTER_BYTES), np.uint8)
        net = np.zeros(_AT.size, np.int64)
        net[: _AT.entry_count] = (
            address_of(self._addresses), arity, sign, address_of(slots), len(slots), address_of(entries),
            address_of(filter), len(filter) - 1,
        )  # fmt: skip
        add_up(address_of(net), address_of(self._picked), start, end)
        return _rewritten(table, net)


def _rewritten(table: Table, net: np.ndarray) -> Table:
    """A table with what `add_up` found."""
    _, _, gone, came, wide = net[_AT.entry_count :].tolist()
    rows, more = table.rows, max(came - gone, 0)
    if not table.columns:
        return Table(table.kinds, (), min(max(rows - gone + came, 0), 1))
    columns = [_writable(column, table.fresh, more, wide >> min(c, LAST_BIT) & 1) for c, column in enumerate(table.columns)]
    stored = np.array([(address_of(column), column.itemsize) for column in columns], np.int64)
    rows = int(change_rows(address_of(net), address_of(stored), rows, rows + more))
    return Table(table.kinds, tuple([column[:rows] for column in columns]), fresh=True)


def _writable(column: np.ndarray, fresh: bool, more: int, wide: int) -> np.ndarray:
    """A column of one's own, with room for so many more rows, whose values may be wide."""
    widens = wide and column.itemsize == 4
    if fresh and not more and not widens and column.flags.c_contiguous:
        return column
    made = np.empty(len(column) + more, np.int64 if widens else column.dtype)
    made[: len(column)] = column
    return made


@dataclass(slots=True)
class _Known:
    table: Table
    asked: bool = True
    """Whether somebody has read it of late."""


class KnownTables:
    """Tables of past rounds that somebody has read, or that lay on the way, the last ones at the end: where much has changed
    since, others are found from them."""

    def __init__(self) -> None:
        self._tables: dict[int, _Known] = {}
        self._rounds: list[int] = []
        """Theirs, ascending."""
        self._rows = 0
        """What all of them count for."""

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for known in self._tables.values() for column in known.table.columns)

    def nearest(self, round: int, last: int) -> int:
        """The round nearest to one whose rows are known, those of the round `last` among them."""
        at = bisect_left(self._rounds, round)
        found = last
        for known in self._rounds[max(at - 1, 0) : at + 1]:
            if abs(known - round) < abs(found - round):
                found = known
        return found

    def of(self, round: int) -> Table:
        """The table of a round that is known."""
        known = self._tables[round] = self._tables.pop(round)
        known.asked = True
        return known.table

    def keep(self, round: int, table: Table, changes: int) -> Table:
        """Keeps the rows of a round, of a relation with so many changes, in the place of those that were read longest ago; the
        table as it is to be used then."""
        room = KEPT_ROWS_PER_CHANGE * changes - table.rows - ROWS_OF_A_TABLE
        if room < 0 or not table.columns:
            return table
        while self._rows > room:
            self._drop(next(iter(self._tables)))
        for column in table.columns:
            column.flags.writeable = False
        kept = Table(table.kinds, table.columns)
        self._tables[round] = _Known(kept)
        insort(self._rounds, round)
        self._rows += kept.rows + ROWS_OF_A_TABLE
        return kept

    def forget(self, oldest: int) -> None:
        """Gives up rounds before `oldest`."""
        for round in self._rounds[: bisect_left(self._rounds, oldest)]:
            self._drop(round)

    def age(self) -> None:
        """Gives up what nobody has read since the last time."""
        for round in [round for round, known in self._tables.items() if not known.asked]:
            self._drop(round)
        for known in self._tables.values():
            known.asked = False

    def _drop(self, round: int) -> None:
        del self._rounds[bisect_left(self._rounds, round)]
        self._rows -= self._tables.pop(round).table.rows + ROWS_OF_A_TABLE
