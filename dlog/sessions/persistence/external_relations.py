"""The external rows of all relations of a state, as records of the log and checkpoints change them.

A checkpoint freezes them, and writes what has changed: of a relation `edge` the rows before any bulk change as `edge`, and what
became of rows after bulk change number 3 as `edge/3+` and `edge/3-`, those that came and those that went.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.state.checkpoint import History
from dlog.engine.state.entries import Entries
from dlog.engine.state.files import damaged
from dlog.engine.state.layers import Stored
from dlog.engine.state.log import LoggedRound
from dlog.engine.state.manifest import NAME
from dlog.engine.state.parts import Part
from dlog.engine.values.differences import Columns, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import InternalError
from dlog.sessions.follow.changes import typed
from dlog.sessions.persistence.bulk_files import TABLE, BulkChange, bulk_change_of, ones
from dlog.sessions.persistence.external_relation import Epoch, ExternalRows, FrozenEpoch, applied, with_diff
from dlog.sessions.persistence.stored_history import PAST

DERIVED = "/rows"
"""Ends the names of all rows of relations with rules, as `path/rows`; `path` itself is the external rows."""
FOLLOWING = DERIVED, PAST
"""End the names of what can be done without."""
MAX_BULK_CHANGES = 16
"""Bulk changes of a relation when a session is closed; more are made one: trades writing all rows against reading many
files."""
_AFTER = re.compile(r".*/\d+[+-]\Z")
CheckpointSource = Callable[[], Table | History]
"""A relation for a checkpoint, made when it is written."""


def is_after(name: str) -> bool:
    """Whether what a checkpoint wrote under this name is what became of rows after a bulk change."""
    return _AFTER.match(name) is not None


class ExternalRelations:
    """The external rows of a state, by relation; `entries` are those of all bulk changes, in order."""

    def __init__(self) -> None:
        self.rows: dict[str, ExternalRows] = {}
        self.entries: list[bytes] = []

    @staticmethod
    def of(
        folder: Path, relations: Mapping[str, Stored], tables: Mapping[str, Entries], rounds: Iterable[LoggedRound]
    ) -> ExternalRelations:
        """Reads those of a state: what the last checkpoint wrote, and what has been logged since. Raises DlogError where nobody
        can have written that."""
        found = ExternalRelations()
        external = {name: stored for name, stored in relations.items() if not name.endswith(FOLLOWING)}
        try:
            found.restore(external, tables[TABLE].pieces() if TABLE in tables else [])
            for logged in rounds:
                found.note(logged.changes, logged.tables[TABLE].pieces() if TABLE in logged.tables else [])
                if not all((np.abs(updates.diffs) == 1).all() for updates in logged.changes.values()):
                    raise ValueError("a row neither came nor went")
        except ValueError as error:
            raise damaged(folder / NAME, f"what it says of rows makes no sense ({error})") from None
        return found

    # --------------------------------------------------------------------------------------------------------------- changes

    def restore(self, relations: Mapping[str, Stored], entries: Sequence[bytes]) -> None:
        """Takes in what the last checkpoint wrote: external rows, and bulk changes with what came after each."""
        for name, stored in relations.items():
            if not is_after(name):
                self.rows[name] = ExternalRows(stored)
        bulks = [bulk_change_of(entry) for entry in entries]
        for number, bulk in enumerate(bulks, 1):
            if not any(later.drops and later.relation == bulk.relation for later in bulks[number - 1 :]):
                inserted, deleted = (relations.get(f"{bulk.relation}/{number}{sign}") for sign in "+-")
                self.rows.setdefault(bulk.relation, ExternalRows()).load(bulk, number, inserted, deleted)
        self.entries += entries

    def note(self, changes: Mapping[str, Updates], entries: Sequence[bytes] = ()) -> None:
        """Takes in what a record says: relations that were dropped, then changes, then bulk changes."""
        listed = list(enumerate(map(bulk_change_of, entries), len(self.entries) + 1))
        self.entries += entries
        for _, bulk in listed:
            if bulk.drops:
                self.rows[bulk.relation] = ExternalRows()
        for name, updates in changes.items():
            if name.endswith(PAST):
                continue
            if name not in self.rows or self.rows[name].arity not in (None, len(updates.columns)):
                self.rows[name] = ExternalRows()  # an earlier relation of the name has been dropped
            self.rows[name].add(updates)
        for number, bulk in listed:
            if not bulk.drops:
                self.rows.setdefault(bulk.relation, ExternalRows()).load(bulk, number)

    def dropped(self, relations: Mapping[str, Relation], changed: Iterable[str]) -> list[BulkChange]:
        """Drop records for relations whose earlier namesake had bulk changes of other types."""
        found = []
        for name in sorted(set(changed) & self.rows.keys() & relations.keys()):
            held = [s.bulk.kinds for s in self.rows[name].epochs if s.bulk is not None]
            if held and held[-1] != relations[name].kinds:
                found.append(BulkChange(name, relations[name].kinds, 0, ()))
        return found

    def gather(self, relation: str, piece: Table | BulkChange, kinds: tuple[Kind, ...]) -> None:
        """Puts a piece in the place of all external rows of a relation; the next checkpoint makes it hold."""
        drop = BulkChange(relation, kinds, 0, ())
        if isinstance(piece, BulkChange):
            self.note({}, [drop.entry, piece.entry])
        else:
            every = ones(piece.rows, 1)
            self.note({relation: Updates(tuple(map(words, piece.columns)), every, every)}, [drop.entry])

    # --------------------------------------------------------------------------------------------------------------- reading

    def crowded(self) -> list[str]:
        """The relations that have more bulk changes than is good for reading them."""
        return [name for name, rows in self.rows.items() if len(rows.epochs) > MAX_BULK_CHANGES + 1]

    def parts(self) -> list[Part]:
        """The files of all bulk changes."""
        return [part for rows in self.rows.values() for s in rows.epochs if s.bulk is not None for part in s.bulk.parts]

    def frozen(self) -> FrozenRows:
        """A snapshot of all relations, which later changes leave as it is."""
        return FrozenRows({name: [(s, s.frozen()) for s in rows.epochs] for name, rows in self.rows.items()})


@dataclass(frozen=True, slots=True)
class FrozenRows:
    """All external rows at one time."""

    epochs: Mapping[str, Sequence[tuple[Epoch, FrozenEpoch]]]

    def checkpoint_contents(self, kinds: Mapping[str, tuple[Kind, ...]]) -> dict[str, CheckpointSource]:
        """The contents of a checkpoint, by name. Of relations without kinds, which the program does not have, only the changes
        after bulk changes."""
        found: dict[str, CheckpointSource] = {}
        for name, ((_, first), *others) in self.epochs.items():
            if name in kinds:
                found[name] = _before(first, kinds[name])
            for _, epoch in others:
                for sign, diff in (("+", 1), ("-", -1)):
                    found[f"{name}/{epoch.number}{sign}"] = _after(epoch, diff)
        return found

    def rebase(self, stored: Callable[[str], Stored | None]) -> None:
        """A checkpoint has written all of it: what is there from now on are its files, and later changes."""
        for name, ((first, was), *others) in self.epochs.items():
            first.rebase(stored(name), None, len(was.chunks))
            for epoch, frozen in others:
                inserted, deleted = (stored(f"{name}/{frozen.number}{sign}") for sign in "+-")
                epoch.rebase(inserted, deleted, len(frozen.chunks))


def _before(first: FrozenEpoch, kinds: tuple[Kind, ...]) -> CheckpointSource:
    """The rows before any bulk change; those that have not changed stay in the file they are in."""
    stored = first.inserted
    if stored is not None and stored.kinds == kinds and not first.chunks:
        return lambda: (stored.kinds, stored.batches)
    return lambda: applied([first], kinds, _no_bulk)


def _after(epoch: FrozenEpoch, diff: int) -> CheckpointSource:
    """The same for rows that came or went after a bulk change."""
    stored = epoch.inserted if diff > 0 else epoch.deleted
    if stored is not None and not epoch.chunks:
        return lambda: (stored.kinds, stored.batches)
    assert epoch.bulk is not None
    kinds = epoch.bulk.kinds
    return lambda: typed(kinds, with_diff(epoch.changes(), diff))


def _no_bulk(bulk: BulkChange) -> tuple[Columns, int]:
    raise InternalError("state", f"a bulk change of {bulk.relation} comes before all bulk changes")
