"""Tables of past rounds that are kept: rounds around them are found from these."""

from __future__ import annotations

from bisect import bisect_left, insort

from dlog.dataclass import dataclass
from dlog.engine.trace.undoing import StoredRows
from dlog.engine.values.table import Table

KEPT_ROWS_PER_CHANGE = 24
"""Rows of past tables that are kept, by the changes of their relation, while somebody reads its past. To add up a change takes
as long as to read some dozens of rows: so the changes between two such tables take no longer than a table."""
ROWS_OF_A_TABLE = 64
"""Rows that a table counts for besides its own: it is some objects."""
MIN_STEP = 1024
"""Changes at least after which a table is kept on the way to an older one: adding up half as many takes no longer than the rest
of reading a table of few rows."""
CHANGES_PER_READ = 1 << 9
"""Changes that are added up in the time that it takes to read a relation of few rows."""
MANY_CHANGES, ROWS_PER_CHANGE = 3 << 7, 64
"""So many changes, and one at least for so many rows, take as long to undo as it takes to copy the rows."""
ROWS_OF_A_COPY = 1 << 13
"""Rows that are copied in the time that it takes to ask for a copy."""
READ_OF_LATE = 128
"""Rounds for which it counts at least, and for less than twice as many, that somebody has read a past one."""


@dataclass(slots=True)
class _Known:
    rows: StoredRows
    table: Table


class KnownTables:
    """Tables of past rounds that somebody has read, that lay on the way, or that were kept when they were the present ones, the
    last of these at the end: where much has changed since, others are found from them."""

    def __init__(self, begin: int) -> None:
        self._tables: dict[int, _Known] = {}
        self._rounds: list[int] = []
        """Theirs, ascending."""
        self._rows = 0
        """What all of them count for."""
        self._reach = self._reach_before = -1
        """How many rounds back somebody has read since the round `_since`, and for some rounds before it; -1: nobody has."""
        self._since = self._kept = begin
        """And the last round whose rows were kept when it was the present one."""
        self._size = self._copied = 0
        """Rows of the table that was read last; and what has been kept since then without being read counts for."""

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
        self._tables[round] = known = self._tables.pop(round)
        return known

    def keep(self, round: int, rows: StoredRows, changes: int) -> Table:
        """Keeps the rows of a round that is not known, of a relation with so many changes, in the place of those that were read
        longest ago; the table as it is to be used then."""
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

    def note_read(self, back: int, rows: int) -> None:
        """Notes that somebody has read a table of so many rows, as of so many rounds before the last one."""
        self._reach, self._size, self._copied = max(self._reach, back), rows, 0

    def has_use(self, changes: int, all: int) -> bool:
        """Whether the rows after a commit of so many changes, of so many in all, are worth keeping. Between two reads of past
        rounds all such copies take no longer than to undo the changes takes once."""
        is_many = changes >= MANY_CHANGES and self._copied + self._size <= ROWS_PER_CHANGE * changes
        return is_many and self._size + ROWS_OF_A_TABLE <= KEPT_ROWS_PER_CHANGE * all and self.reach >= 0

    @property
    def reach(self) -> int:
        """How many rounds back somebody has read of late; -1: nobody has."""
        return max(self._reach, self._reach_before)

    def keep_present(self, round: int, rows: StoredRows, changes: int) -> None:
        """Keeps the rows of the round that is the last one now, and gives up those of rounds that nobody reads any more."""
        self.forget(self._kept - self.reach)
        self._kept = round
        self._copied += rows.rows + ROWS_OF_A_COPY
        if round not in self._tables:
            self.keep(round, rows, changes)

    def age(self, last: int) -> None:
        """Gives up what is far from all that somebody has read of late, now that `last` is the last round."""
        if last - self._since >= READ_OF_LATE:
            self._reach_before, self._reach, self._since = self._reach, -1, last
        self.forget(last - 2 * self.reach - 1)

    def _drop(self, round: int) -> None:
        del self._rounds[bisect_left(self._rounds, round)]
        self._rows -= self._tables.pop(round).rows.rows + ROWS_OF_A_TABLE
