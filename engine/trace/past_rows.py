"""Tables of past rounds that are kept: rounds around them are found from these."""

from __future__ import annotations

from bisect import bisect_left, insort

from dlog.dataclass import dataclass
from dlog.engine.trace.undoing import StoredRows
from dlog.engine.values.table import Table

KEPT_ROWS_PER_CHANGE = 8
"""Rows of past tables that are kept, by the changes of their relation: where there are more of these than a few for each row,
it takes longer to add them up than to read the relation."""
ROWS_OF_A_TABLE = 64
"""Rows that a table counts for besides its own: it is some objects."""
MIN_STEP = 1024
"""Changes at least after which a table is kept on the way to an older one: adding up half as many takes no longer than the rest
of reading a table of few rows."""
CHANGES_PER_READ = 1 << 9
"""Changes that are added up in the time that it takes to read a relation of few rows."""


@dataclass(slots=True)
class _Known:
    rows: StoredRows
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

    def nearest(self, round: int, last: int, lead: int) -> int:
        """The round nearest to one whose rows are known. Those of the round `last` are: it counts as further away by `lead`."""
        if round == last or not self._rounds:
            return last
        at = bisect_left(self._rounds, round)
        found, least = last, last - round + lead
        for known in self._rounds[max(at - 1, 0) : at + 1]:
            if abs(known - round) <= least:
                found, least = known, abs(known - round)
        return found

    def of(self, round: int) -> _Known:
        """What is known of a round."""
        known = self._tables[round] = self._tables.pop(round)
        known.asked = True
        return known

    def keep(self, round: int, rows: StoredRows, changes: int) -> Table:
        """Keeps the rows of a round, of a relation with so many changes, in the place of those that were read longest ago; the
        table as it is to be used then."""
        weight = rows.rows + ROWS_OF_A_TABLE
        room = KEPT_ROWS_PER_CHANGE * changes - weight
        if room < 0 or not rows.columns:
            return rows.table()
        while self._rows > room:
            self._drop(next(iter(self._tables)))
        rows.freeze()
        table = rows.table()
        self._tables[round] = _Known(rows, table)
        insort(self._rounds, round)
        self._rows += weight
        return table

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
        self._rows -= self._tables.pop(round).rows.rows + ROWS_OF_A_TABLE
