"""Relations that rounds feed (`rules.Timed`): each follows the changes of another one, and of the clock. (Those that keep
what rows have met are in `kept.py`.)

They are parts of a program, as strata are (`Layered`), but hold no rules. What a commit does to one is exact at each of its
rounds, and costs what changes in it and what is due.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import numpy as np

from dlog.engine.ir.rules import Program, Timed
from dlog.engine.operators.calendar import Calendar
from dlog.engine.operators.delta import Delta, together
from dlog.engine.plan.incremental.layers import explain_timed
from dlog.engine.rounds_engine import Frames, PlainRounds
from dlog.engine.runtime.incremental.batches.changes import insertions, no_updates
from dlog.engine.values.differences import Columns, difference, words
from dlog.engine.values.table import Table, from_words
from dlog.engine.values.updates import RowUpdates, Updates
from dlog.grammar.diagnostics import InternalError

LAST = 2**63 - 1
"""A round that is never reached."""
MIN_CROWD = 1 << 12
"""What waits of rows that are gone, whatever there is: each of the others has two entries at most."""
FEW = 32
"""Changes up to which lists of rows take less time than arrays."""
Rows = tuple[Columns, int]
Row = tuple[int, ...]


class Fed(PlainRounds, ABC):
    """The only relation of a part."""

    def __init__(self, program: Program, name: str, round: int, passing: bool = False) -> None:
        """With `passing`, nobody asks for more than its changes that come."""
        self.program, self.name, self.round, self.passing = program, name, round, passing
        self.timed: Timed = program.timed[name]
        self.relation = program.relations[name]
        self.last = no_updates(self.relation.arity)
        self.begun = False

    def advance(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> bool:
        """Goes on to a round, with what has changed up to it in what it reads; whether its own rows have. In the first commit
        all of that is new, but for what had come `before`; or nothing, if it had come in this round already (`again`)."""
        self.last = self._changed(share, last, before, again)
        self.round, self.begun = last, True
        return bool(self.last.rows)

    @abstractmethod
    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        """`advance`: what changes in its own rows, by round."""

    @abstractmethod
    def restore(self, rows: Table, round: int) -> None:
        """Goes on from a round before the first commit: with what it showed rows of then, or else with its own rows."""

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        """Nothing but rounds feeds it. Raises InternalError."""
        raise InternalError("commit", f"`{self.name}` goes on with the parts before it (`advance`), and takes no rows")

    def changes(self, relation: str) -> Updates:
        return self.last

    @property
    def touched(self) -> Iterable[str]:
        return (self.name,) if self.last.rows else ()

    def table(self, relation: str) -> Table:
        """The rows now; those that are shown have not been kept here."""
        return self._table((), 0)

    def external(self, relation: str) -> Table:
        return self._table((), 0)

    def rows(self, relation: str) -> int:
        return self.table(relation).rows

    def ranks(self, relation: str) -> np.ndarray | None:
        return np.zeros(self.rows(relation), np.int32)

    def explain(self) -> str:
        return explain_timed(self.name, self.timed)

    def close(self) -> None:
        self.last = no_updates(self.relation.arity)

    def _table(self, columns: Columns, rows: int) -> Table:
        kinds = self.relation.kinds
        found = columns or tuple(np.empty(0, np.int64) for _ in kinds)
        return Table(kinds, tuple(from_words(c, kind) for c, kind in zip(found, kinds, strict=True)), rows)


class Shown(Fed):
    """Rows from the round in their last column but one on, until before that in the last one."""

    def __init__(self, program: Program, name: str, round: int, passing: bool = False) -> None:
        super().__init__(program, name, round, passing)
        self._calendar = Calendar()
        self._rows = 0
        """Those of the source."""
        self.visited = 0
        """Entries of the schedule that have been looked at since they became due."""

    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        updates = share.get(self.timed.source)
        if updates is not None and updates.rows:
            self._schedule(updates)
        due = self._calendar.take(last + 1)
        if not due:
            return no_updates(self.relation.arity)
        delta = together([delta for _, delta in due])
        self.visited += delta.rows
        return by_round(delta.consolidated())

    @property
    def crowded(self) -> bool:
        """Whether most of what waits is of rows that are gone: it had better be scheduled again."""
        return len(self._calendar) > MIN_CROWD + 4 * self._rows

    def restore(self, rows: Table, round: int) -> None:
        self._calendar, self._rows = Calendar(), 0
        columns = tuple(words(column) for column in rows.columns)
        self._schedule(insertions(columns, rows.rows, round), round)

    def _schedule(self, updates: Updates, done: int = -1) -> None:
        """Has changes wait, but for what they did up to a round that is `done`."""
        self._rows += int(updates.diffs.sum())
        first, end = updates.columns[-2:]
        begin = np.maximum(first, updates.rounds)
        come = (end > begin) & (begin > done)
        go = (end > begin) & (end > done) & (end < LAST)
        columns = tuple(np.concatenate((c[come], c[go])) for c in updates.columns)
        times = np.concatenate((begin[come], end[go]))
        if len(times):
            diffs = np.concatenate((updates.diffs[come], -updates.diffs[go]))
            self._calendar.add(0, Delta(columns, times[None], diffs), int(times.max()))


class Changed(Fed):
    """Rows that come or go, with +1 or -1 and the round, in that round only; those that pass are not taken back."""

    def __init__(self, program: Program, name: str, round: int, passing: bool = False) -> None:
        super().__init__(program, name, round, passing)
        self._there: Delta | list[Row] = []
        """Those of the last round; a few as rows."""

    def restore(self, rows: Table, round: int) -> None:
        if not self.passing:
            columns = tuple(words(column) for column in rows.columns)
            self._there = Delta(columns, columns[-1][None], np.ones(rows.rows, np.int64))

    def _changed(self, share: Mapping[str, Updates], last: int, before: Rows | None, again: bool) -> Updates:
        updates = share.get(self.timed.source) or no_updates(self.relation.arity - 2)
        if not self.begun:
            updates = self._beginning(updates, last, before, again)
        if self.passing:
            return _passing(updates, self.relation.arity)
        if self.begun and isinstance(self._there, list) and last == self.round + 1 and is_few((updates,)):
            return self._changed_few(self._there, updates, last)
        came = Delta((*updates.columns, updates.diffs, updates.rounds), updates.rounds[None], np.ones(updates.rows, np.int64))
        before_it = self._delta()
        there = together([before_it, came]) if before_it.rows else came
        ended = there.only(there.rounds < last)
        kept = there.only(there.rounds == last)
        self._there = kept if kept.rows > FEW else list(zip(*[c.tolist() for c in kept.columns], strict=True))
        gone = Delta(ended.columns, ended.times + 1, -ended.diffs)
        found = [part for part in (came, gone) if part.rows]
        return by_round(together(found)) if found else no_updates(self.relation.arity)

    def _beginning(self, updates: Updates, last: int, before: Rows | None, again: bool) -> Updates:
        """What of the first commit's changes is new."""
        if again:
            return no_updates(self.relation.arity - 2)
        if before is None:
            return updates
        columns, diffs = difference(*before, updates.columns, updates.rows)
        return Updates(columns, diffs, np.full(len(diffs), last, np.int64))

    def _changed_few(self, gone: list[Row], updates: Updates, round: int) -> Updates:
        """The same where one round has passed, and few rows have gone by that: as arrays they take longer."""
        self._there = came = [(*row, diff, round) for row, diff in updates.listed()]
        return RowUpdates({**dict.fromkeys(gone, -1), **dict.fromkeys(came, 1)}, self.relation.arity, round)

    def _delta(self) -> Delta:
        there = self._there
        if isinstance(there, Delta):
            return there
        columns = np.array(there, np.int64).reshape(len(there), self.relation.arity).T.copy()
        return Delta(tuple(columns), columns[-1:], np.ones(len(there), np.int64))

    def table(self, relation: str) -> Table:
        there = self._delta()
        return self._table(there.columns, there.rows)


def _passing(updates: Updates, arity: int) -> Updates:
    """Changes as rows that come."""
    if not is_few((updates,)):
        ones = np.ones(updates.rows, np.int64)
        return Updates((*updates.columns, updates.diffs, updates.rounds), ones, updates.rounds)
    if not updates.rows:
        return no_updates(arity)
    round = updates.first
    return RowUpdates({(*row, diff, round): 1 for row, diff in updates.listed()}, arity, round)


def is_few(given: Iterable[Updates]) -> bool:
    """Whether these changes are few, and no two of one relation are of different rounds."""
    rows = 0
    for updates in given:
        count = updates.rows
        if count and updates.first != updates.last:
            return False
        rows += count
    return rows <= FEW


def by_round(delta: Delta) -> Updates:
    """Changes, round by round."""
    found = delta.in_order_of_rounds()
    return Updates(found.columns, found.diffs, found.rounds)
