"""Rows that are not in this process on their way into a state, and back to an engine.

The engine's workers write them to files; the log names the files, and workers read their shares from there, so that they have
what the state has. Few rows (`MAX_RELAYED_ROWS`) are read here, and logged as any others.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dlog.caches import is_own_place
from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Program, Relation
from dlog.engine.rounds_engine import MAX_RELAYED_ROWS, Frames, RoundsEngine
from dlog.engine.state import parts
from dlog.engine.state.parts import Part
from dlog.engine.values.differences import words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.sessions.follow.changes import typed
from dlog.sessions.persistence.bulk_files import BulkChange, ones, read_parts, rows_in
from dlog.sessions.persistence.external_relation import Chunk, last_changes, with_diff
from dlog.sessions.persistence.folder import State


@dataclass(frozen=True, slots=True)
class _Written:
    """Rows that came (+1) or went (-1), in files of a folder."""

    folder: Path
    rows: int
    diff: int

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{parts.SUFFIX}"))


class Saving:
    """The files that one commit writes to a state. Those that no record of the log names are removed by `forget`."""

    def __init__(self, state: State, engine: RoundsEngine, program: Program) -> None:
        self._state, self._engine, self._program = state, engine, program
        self._round = state.round
        self._parts: list[Part] = []

    def saved(self, frames: Frames, round: int) -> tuple[dict[str, Updates], list[BulkChange]]:
        """Rows as changes of a round where they are few, and bulk changes where they are many. Raises DlogError, before
        anything is written, where others can change the state's folder by now."""
        if not takes_files(self._state):
            raise _open_to_others(self._state)
        few: dict[str, Updates] = {}
        bulks = []
        for name, listed in frames.items():
            relation = self._program.relations[name]
            with ExitStack() as folders:
                written = [self._written(relation, rows, diff, folders) for rows, diff in listed]
                opposite = len({w.diff for w in written}) > 1
                every = sum(w.rows for w in written) if opposite else 0  # bulk changes keep their order among bulk changes only
                large = [w for w in written if w.rows and max(w.rows, every) > MAX_RELAYED_ROWS]
                bulks += [BulkChange(name, relation.kinds, w.diff, self._take_in(w)) for w in large]
                small = [self._read(relation, w) for w in written if w.rows and w not in large]
            if small:
                few[name] = last_changes(small, relation.arity, round)
        return few, bulks

    def _written(self, relation: Relation, rows: Any, diff: int, folders: ExitStack) -> _Written:
        folder = parts.incoming(self._state.path)
        folders.callback(shutil.rmtree, folder, ignore_errors=True)
        written = _Written(folder, self._engine.save(relation, rows, folder), diff)
        if rows_in(written.files) != written.rows:
            raise _elsewhere(relation, self._state)
        return written

    def _read(self, relation: Relation, written: _Written) -> Chunk:
        columns, rows = read_parts(written.files, relation, self._state.decoder)
        return columns, ones(rows, written.diff)

    def _take_in(self, written: _Written) -> tuple[Part, ...]:
        taken = parts.take_in(self._state.path, written.folder)
        self._parts += taken
        return taken

    def forget(self) -> None:
        """Removes what was written, unless the round came."""
        if self._state.round == self._round:
            parts.drop(self._state.path, self._parts)


def takes_files(state: State) -> bool:
    """Whether nobody else can put something in the place of files on their way into a state."""
    return is_own_place(state.path)


def _open_to_others(state: State) -> DlogError:
    message = "the rows of DataFrames are not written to a folder that others can change"
    notes = ("let nobody else write to it; or roll back, and insert the rows again: they come through this process then",)
    return DlogError(Diagnostic("state-file", message, notes=notes, place=str(state.path)))


def _elsewhere(relation: Relation, state: State) -> DlogError:
    message = f"the rows for {relation.name} were written, and not all of them are in the state's folder"
    notes = ("put the state on a path that all executors share",)
    return DlogError(Diagnostic("spark-failed", message, notes=notes, place=str(state.path)))


def frames_of(bulks: Sequence[BulkChange], engine: RoundsEngine, state: State) -> dict[str, list[tuple[Any, int]]]:
    """Bulk changes as rows that an engine takes."""
    found: dict[str, list[tuple[Any, int]]] = {}
    for bulk in bulks:
        found.setdefault(bulk.relation, []).append((_frame(bulk, engine, state), bulk.diff))
    return found


def recovered(
    state: State, relation: Relation, engine: RoundsEngine, round: int
) -> tuple[Updates, list[tuple[Any, int]]] | None:
    """The external rows of a relation with bulk changes, in part as rows that are not here. These come after all that are: each
    bulk change is without the rows to which later changes did the opposite. None where an engine cannot read bulk changes, or
    leave rows out."""
    first, *others = (s for s in state.epochs(relation.name) if s.bulk is None or s.bulk.kinds == relation.kinds)
    if not engine.saves(state.path):
        return None
    before = state.rows_of(relation.name, [first], relation.kinds)
    here = tuple(words(column) for column in before.columns), ones(before.rows, 1)
    later = [state.after_lot(relation.name, stretch) for stretch in others]
    frames = []
    for place, epoch in enumerate(others):
        assert epoch.bulk is not None
        undone = state.believed(
            relation.name, with_diff(last_changes(later[place:], relation.arity, round), -epoch.bulk.diff)
        )
        if undone.rows and any(kind in (Kind.FLOAT, Kind.RECORD) for kind in relation.kinds):
            return None
        frames.append((_frame(epoch.bulk, engine, state, undone), epoch.bulk.diff))
    return state.believed(relation.name, with_diff(last_changes([here, *later], relation.arity, round), 1)), frames


def gathered(state: State, relation: Relation, engine: RoundsEngine, ruled: bool) -> Table | BulkChange:
    """All external rows of a relation in one piece, for the last checkpoint of a session: a bulk change, where the engine has
    them and nothing else, and there are many."""
    saves = takes_files(state) and engine.saves(state.path)
    if ruled or not saves or engine.rows(relation.name) <= MAX_RELAYED_ROWS:
        return state.external(relation.name, relation.kinds)
    folder = parts.incoming(state.path)
    try:
        engine.save(relation, engine.fitting(relation, engine.frame(relation.name)), folder)  # type: ignore[attr-defined]
        return BulkChange(relation.name, relation.kinds, 1, parts.take_in(state.path, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _frame(bulk: BulkChange, engine: RoundsEngine, state: State, undone: Updates | None = None) -> Any:
    relation = state.relations[bulk.relation]
    without = typed(relation.kinds, undone) if undone is not None and undone.rows else None
    return engine.saved(relation, [state.path / part.name for part in bulk.parts], without)
