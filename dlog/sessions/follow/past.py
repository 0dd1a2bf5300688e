"""Past rounds, readable again: the changes since then, undone on the rows of now.

A session that keeps history, or that has open views, notes the changes of every commit. The first change of a row after round
r tells whether it was there at r, so one pass over the noted changes and the present rows gives any relation as of r.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dlog.engine.ir.rules import Relation
from dlog.engine.values.differences import apply_changes, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.sessions.follow.changes import none, typed


@dataclass(frozen=True, slots=True)
class _Commit:
    """The changes of the rounds after `before` up to `last`, of the relations that changed."""

    before: int
    last: int
    changes: Mapping[str, Updates]


class Past:
    """The changes of recent commits, oldest first, without a gap."""

    def __init__(self) -> None:
        self._commits: deque[_Commit] = deque()

    def note(self, before: int, last: int, changes: Mapping[str, Updates]) -> None:
        self._commits.append(_Commit(before, last, changes))

    def forget(self, oldest: int) -> None:
        """Drops what only rounds before `oldest` need."""
        while self._commits and self._commits[0].last <= oldest:
            self._commits.popleft()

    def oldest(self, now: int) -> int:
        """The oldest round that can be read."""
        return self._commits[0].before if self._commits else now

    def since(self, round: int, relation: str, arity: int) -> Updates:
        """The changes of a relation after a round that is readable, in order."""
        commits = [c for c in list(self._commits) if c.last > round and relation in c.changes]
        return joined([c.changes[relation] for c in commits], arity, round)


def joined(parts: Iterable[Updates], arity: int, after: int) -> Updates:
    """The updates of rounds later than `after`; the parts are in order."""
    listed = list(parts)
    if not listed:
        return none(arity)
    rounds = np.concatenate([part.rounds for part in listed])
    low = int(np.searchsorted(rounds, after, "right"))
    columns = tuple(np.concatenate(pieces)[low:] for pieces in zip(*(part.columns for part in listed), strict=True))
    return Updates(columns, np.concatenate([part.diffs for part in listed])[low:], rounds[low:])


def undone(relation: Relation, table: Table, later: Updates) -> Table:
    """The rows before `later` happened to them."""
    if not later.rows:
        return table
    present = tuple(words(column) for column in table.columns)
    backwards = tuple(column[::-1] for column in later.columns)
    columns, rows = apply_changes(present, table.rows, backwards, -later.diffs[::-1])
    marks = np.ones(rows, np.int64)
    return typed(relation.kinds, Updates(columns, marks, marks))
