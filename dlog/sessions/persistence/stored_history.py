"""The history of a session in its state: written by checkpoints as batches of changes, logged commit by commit in between.

The changes of a relation `edge` are `edge/past`. Beside them is `/past`: in a checkpoint the oldest rounds that can be read,
and when they were; in a record of the log when it was, and whether all relations that changed are noted. Where anything is
damaged or makes no sense the history begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.state.checkpoint import History as Batches
from dlog.engine.state.layers import Stored
from dlog.engine.state.log import LoggedRound
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.sessions.follow.history import FrozenHistory, History, HistoryEntry, Mark
from dlog.sessions.marks import MARK
from dlog.sessions.marks import RELATION as MARKED

PAST = "/past"
"""Ends the names of changes; alone, what is said of all of them."""
_KINDS = (Kind.NUMBER,) * 3
_MARK, _OWN, _COUNT = 0, 1, 2
"""What a row of `/past` in a checkpoint is: a moment, with its round and time; the oldest round of relations with windows of
their own; how many relations have changes."""
Source = Callable[[], "Table | Batches"]
Check = Callable[[str, Updates], None]
"""Raises ValueError where nobody can have written changes of a relation."""


def entries_of(noted: HistoryEntry, round: int) -> dict[str, Updates]:
    """A commit for the log."""
    about = tuple(np.array([value], np.int64) for value in (noted.time, noted.general))
    head = Updates(about, np.ones(1, np.int64), np.full(1, round, np.int64))
    return {PAST: head} | {name + PAST: updates for name, (_, updates) in noted.changes.items()}


def contents(kept: FrozenHistory | None) -> dict[str, Source]:
    """A history for a checkpoint."""
    if kept is None:
        return {}
    rows = [(_MARK, mark.round, mark.time) for mark in kept.marks] + [(_OWN, kept.own, 0), (_COUNT, len(kept.batches), 0)]
    table = Table(_KINDS, tuple(np.array(column, np.int64) for column in zip(*rows, strict=True)), len(rows))
    found: dict[str, Source] = {PAST: lambda: table}
    for name, stored in kept.batches.items():
        found[name + PAST] = lambda stored=stored: stored  # type: ignore[misc]
    return found


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """The history that a state was left with: what its last checkpoint wrote, after a round, and what was logged since."""

    round: int
    stored: Mapping[str, Stored]
    rounds: tuple[LoggedRound, ...]

    @staticmethod
    def of(round: int, relations: Mapping[str, Stored], rounds: list[LoggedRound]) -> StoredHistory:
        stored = {name: found for name, found in relations.items() if name.endswith(PAST)}
        past = [LoggedRound(r.round, {n: u for n, u in r.changes.items() if n.endswith(PAST)}) for r in rounds]
        return StoredHistory(round, stored, tuple(past))

    def restore(self, history: History, relations: Mapping[str, Relation], check: Check) -> None:
        """Has a history go on from it, as far as it is of these relations and passes a check. Raises ValueError where it makes
        no sense."""
        if PAST in self.stored:
            history.restore(self._frozen(relations, check), self.round)
        else:
            history.begin(self.round)
        before = self.round
        for logged in self.rounds:
            if PAST in logged.changes:
                history.note(before, logged.round, _history_entry(logged, before, relations, check))
            else:
                history.begin(logged.round)
            before = logged.round
        history.forget()

    def _frozen(self, relations: Mapping[str, Relation], check: Check) -> FrozenHistory:
        table = self.stored[PAST].table()
        if table.kinds != _KINDS:
            raise ValueError("it has other columns")
        rows = list(zip(*(column.tolist() for column in table.columns), strict=True))
        marks = tuple(Mark(round, time) for what, round, time in rows if what == _MARK)
        if [count for what, count, _ in rows if what == _COUNT] != [len(self.stored) - 1]:
            raise ValueError("changes of relations are missing")
        own = min((round for what, round, _ in rows if what == _OWN), default=self.round)
        batches = {}
        for name, relation in _kept(relations).items():
            stored = self.stored.get(name + PAST)
            if stored is not None and stored.kinds == relation.kinds:
                for layer in (layer for batch in stored.batches for layer in batch.layers):  # whatever their rounds
                    check(name, Updates(layer.columns(), layer.diffs(), np.zeros(layer.rows, np.int64)))
                batches[name] = stored.kinds, stored.batches
        return FrozenHistory(own, marks, batches)


def _kept(relations: Mapping[str, Relation]) -> dict[str, Relation]:
    """The relations whose changes a history has: those of a program, and marks."""
    return {**relations, MARK: MARKED}


def _history_entry(logged: LoggedRound, before: int, relations: Mapping[str, Relation], check: Check) -> HistoryEntry:
    """A commit from the log, of the rounds after `before`: without relations that there are no more."""
    head = logged.changes[PAST]
    if len(head.columns) != 2 or head.rows != 1:
        raise ValueError("a commit has other columns")
    time, general = (int(column[0]) for column in head.columns)
    found = {}
    for name, relation in _kept(relations).items():
        updates = logged.changes.get(name + PAST)
        if updates is not None and len(updates.columns) == relation.arity and updates.rows:
            if (updates.rounds[1:] < updates.rounds[:-1]).any() or not before < updates.first <= updates.last <= logged.round:
                raise ValueError("rounds do not ascend")
            check(name, updates)
            found[name] = relation.kinds, updates
    return HistoryEntry(bool(general), time, found)
