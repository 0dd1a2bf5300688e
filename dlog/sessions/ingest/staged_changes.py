"""The staged changes of a session, by relation, and the reader of rows of each relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from dlog.arguments import text
from dlog.codec import Codec
from dlog.engine.compile.past import is_declared, moment
from dlog.engine.interruption import delayed
from dlog.engine.ir.rules import Io, Program
from dlog.engine.rounds_engine import Frames, RoundsEngine
from dlog.engine.runtime.storage.key_index import KeyIndex
from dlog.engine.runtime.storage.memory import over_limit
from dlog.engine.values.differences import Columns, apply_changes, words
from dlog.engine.values.sizes import byte_size
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.pipeline import load_inputs, stage
from dlog.relation import unknown_relation
from dlog.sessions.ingest.keys import key_columns
from dlog.sessions.ingest.row_reader import RowReader
from dlog.sessions.ingest.staged_relation import Staged, Words, bytes_of, columns_of
from dlog.sessions.mistakes import derived_relation, mistake

if TYPE_CHECKING:
    from dlog.engine.formats.records import RecordTables
    from dlog.engine.runtime.static.executor import Executor
    from dlog.engine.values.symbols import SymbolTable

Diff = Literal[1, -1]


class StagedChanges:
    """The staged changes of one session over one engine, which take so many bytes at most, where there is a limit; what would
    take more is not staged."""

    def __init__(self, engine: RoundsEngine, codec: Codec, memory: int | None = None) -> None:
        self.staged: dict[str, Staged] = {}
        self._engine = engine
        self._codec = codec
        self._memory = memory
        self._row_readers: dict[str, RowReader] = {}
        self._indexes: dict[str, KeyIndex] = {}

    @property
    def _program(self) -> Program:
        return self._codec.program

    # ------------------------------------------------------------------------------------------------------------- changes

    def stage(self, relation: str, rows: Any, diff: Diff) -> None:
        """Rows that are to come (+1) or to go (-1)."""
        row_reader = self._row_readers.get(relation) if type(relation) is str else None
        if row_reader is None:
            row_reader = self.row_reader(relation)
        few = row_reader.few(rows)
        if few is None:
            self._stage_many(row_reader, rows, diff)
        elif few:
            self.stage_words(relation, few, diff)

    def stage_words(self, relation: str, few: Sequence[Words], diff: Diff) -> None:
        """The same for a few rows of words, one at least."""
        staged = self.staged.get(relation)
        if staged is None:
            staged = self.staged[relation] = Staged(self.row_reader(relation).arity)
        if self._memory is not None:
            self.check_room(staged.bytes_with(len(few)) - staged.bytes_with(0))
        if staged.frames or self._indexes:
            self._stage_few(relation, staged, few, diff)
        elif len(few) == 1:
            staged.single[few[0]] = diff
        else:
            staged.single.update(dict.fromkeys(few, diff))  # at once, whatever interrupts

    def check_room(self, size: int) -> None:
        """Raises DlogError where so many bytes more are too many."""
        if self._memory is None:
            return
        held = sum(staged.bytes_with(0) for staged in self.staged.values())
        if held + size > self._memory:
            raise over_limit(self._memory, f"changes that are staged take {byte_size(held)}, and a commit makes room")

    @delayed
    def _stage_few(self, relation: str, staged: Staged, rows: Sequence[Words], diff: Diff) -> None:
        if not staged.takes_rows(diff):
            self._fetch(relation)
        if relation in self._indexes:
            self._follow(relation, columns_of([(*row, diff) for row in rows]))
        staged.single.update(dict.fromkeys(rows, diff))

    @property
    def elsewhere(self) -> bool:
        """Whether workers have the rows, and take DataFrames without this process."""
        return self._engine.elsewhere

    def _stage_many(self, row_reader: RowReader, rows: Any, diff: Diff) -> None:
        """Rows in columns; a DataFrame as it is where the workers of the engine can have its rows without this process."""
        name = row_reader.relation.name
        frame = self._engine.fitting(row_reader.relation, rows)
        if frame is None:
            if (block := row_reader.block(rows)) is not None:
                self._stage_block(name, block, diff)
                return
            columns, count = row_reader.own_columns(rows)
        elif not self.staged.get(name, Staged(row_reader.arity)).takes_frame(diff):
            columns, count = row_reader.fetched(frame)
        else:
            self.staged.setdefault(name, Staged(row_reader.arity)).put_frame(frame, diff)
            self._indexes.pop(name, None)
            return
        self.stage_columns(name, columns, np.full(count, diff, np.int64), diff)

    def _fetch(self, relation: str) -> None:
        """Brings rows that wait elsewhere here: others of the same relation are to come after them."""
        staged = self.staged.get(relation)
        if staged is not None and staged.frames:
            row_reader = self.row_reader(relation)
            found = [(row_reader.fetched(rows), diff) for rows, diff in staged.frames]
            staged.frames = []
            for (columns, count), diff in found:
                staged.put_many(columns, np.full(count, diff, np.int64), diff)

    @delayed
    def stage_columns(self, relation: str, columns: Columns, diffs: np.ndarray, diff: Diff | None = None) -> None:
        """The same for rows as columns of words. `diff` is that of all, where it is known."""
        if not len(diffs):
            return
        self.check_room(bytes_of(columns, diffs))
        self._fetch(relation)
        if relation in self._indexes:
            self._follow(relation, np.array((*columns, diffs), np.int64))
        if relation not in self.staged:
            self.staged[relation] = Staged(len(columns))
        self.staged[relation].put_many(columns, diffs, diff)

    @delayed
    def _stage_block(self, relation: str, block: np.ndarray, diff: Diff) -> None:
        """The same for rows in a block with room for diffs and rounds."""
        if not block.shape[1]:
            return
        self.check_room(block.nbytes)
        self._fetch(relation)
        block[-2] = diff
        if relation in self._indexes:
            self._follow(relation, block[:-1])
        if relation not in self.staged:
            self.staged[relation] = Staged(len(block) - 2)
        self.staged[relation].put_block(block, diff)

    def upsert(self, relation: str, rows: Any, key: Any) -> None:
        """Rows that are to take the place of those with the same key."""
        row_reader = self.row_reader(relation)
        places = key_columns(row_reader.relation, key)
        few = row_reader.few(rows)
        if few is None:
            self._upsert(row_reader, np.array(row_reader.columns(rows)[0], np.int64), places, False)
        elif few:
            self._upsert(row_reader, columns_of(few), places, True)

    @delayed
    def _upsert(self, row_reader: RowReader, columns: np.ndarray, key: tuple[int, ...], few: bool) -> None:
        name = row_reader.relation.name
        if not columns.size:
            return
        self._fetch(name)
        index = self._index(name, key)
        staged = self.staged[name] if name in self.staged else Staged(row_reader.arity)
        try:
            changes = index.replace(columns)
            self.check_room(staged.bytes_with(len(changes)) - staged.bytes_with(0) if few else changes.nbytes)
        except BaseException:
            del self._indexes[name]  # nothing is staged, but it has the rows
            raise
        self.staged[name] = staged
        if few:
            staged.single.update({tuple(row): diff for *row, diff in changes.tolist()})
        else:
            *found, diffs = changes.T.copy()
            staged.put_many(tuple(found), diffs)

    def _index(self, relation: str, key: tuple[int, ...]) -> KeyIndex:
        """The index of rows by key, the staged changes included. It is made at the first upsert with its key, and follows what
        is staged; a rollback, a failed commit, or as many changes at once as there are rows drop it."""
        found = self._indexes.get(relation)
        if found is None or found.key != key:
            found = self._indexes[relation] = KeyIndex(key, *self._present(relation))
        return found

    def _follow(self, relation: str, changes: np.ndarray) -> None:
        """Has the relation's index follow changes that are staged: columns of values, and one of diffs."""
        index = self._indexes.pop(relation)
        if changes.shape[1] < len(index):
            index.follow(changes)
            self._indexes[relation] = index

    def _present(self, relation: str) -> tuple[Columns, int]:
        """The external rows with the staged changes applied."""
        table = self._engine.external(relation)
        columns = tuple(words(column) for column in table.columns)
        staged = self.staged.get(relation)
        if not staged:
            return columns, table.rows
        updates = staged.updates(0)
        return apply_changes(columns, table.rows, updates.columns, updates.diffs)

    def _existing_reader(self, name: Any) -> RowReader | None:
        return self._row_readers.get(name) if isinstance(name, str) else None

    def row_reader(self, name: str) -> RowReader:
        """The reader of the relation's rows; raises where it takes none."""
        if (known := self._existing_reader(name)) is not None:
            return known
        program = self._program
        relation = program.relations.get(name) if isinstance(name, str) else None
        if relation is not None and moment(name) is not None:
            raise mistake("past-atom", f"`{name}` is a past round: it stays as it is")
        if relation is None or not is_declared(name):
            raise unknown_relation(name, filter(is_declared, program.relations), program.inline)
        given = program.inputs | program.plain_eqrels
        if name not in given and any(name in stratum.relations and stratum.rules for stratum in program.strata):
            raise derived_relation(name)
        made = self._row_readers[name] = RowReader(relation, self._codec)
        return made

    # --------------------------------------------------------------------------------------------------------------- files

    def load(self, relation: str, path: Path, parameters: Mapping[str, str], threads: int) -> None:
        """The rows of one file, read as the relation's `.input` would read it but for the parameters given."""
        from dlog.engine.formats import load
        from dlog.engine.formats.budget import Budget

        row_reader = self.row_reader(relation)
        declared = next((io for io in self._program.io if io.action == "input" and io.relation == relation), None)
        kept = {} if declared is None else {k: v for k, v in declared.params if k not in ("IO", "filename", "name")}
        chosen = kept | dict(parameters) | {"filename": str(path.absolute())}
        for name, value in parameters.items():
            text(name, value, f'text, as in `.input {relation}({name}="...")`')
        if not path.exists():
            raise mistake("missing-file", f"cannot open {path}: there is no such file")
        if path.is_dir():
            raise mistake("missing-file", f"cannot open {path}: it is a folder")
        io = Io("input", relation, tuple(chosen.items()), row_reader.relation.span)
        with stage(f"loading {relation}"):
            symbols, records = self._engine.symbols, self._engine.records
            table = load(io, row_reader.relation, self._program, symbols, records, Path(), threads, Budget(self._memory))
        self.take(relation, table)

    def load_inputs(self, folder: str, threads: int, on_spark: bool, spark: Any = None, memory: int | None = None) -> None:
        """The files of all `.input`s and, of a session `on_spark`, what Spark reads for them."""
        program = self._program
        if on_spark:
            from dlog.spark import is_spark, spark_inputs, started

            with stage("loading"):
                for name, rows in spark_inputs(spark or started(), program).items():
                    self.stage(name, rows, 1)
            program = replace(program, io=tuple(io for io in program.io if not is_spark(io)))
        load_inputs(cast("Executor", _Receiver(self)), program, folder, threads, memory=memory)

    def take(self, relation: str, table: Table) -> None:
        """A table's rows are to come."""
        self.stage_columns(relation, tuple(words(column) for column in table.columns), np.ones(table.rows, np.int64), 1)

    # -------------------------------------------------------------------------------------------------------------- rounds

    def updates(self, round: int) -> dict[str, Updates]:
        """All that is staged here as the changes of one round."""
        return {name: staged.updates(round) for name, staged in self.staged.items()}

    def frames(self) -> Frames:
        """The staged rows that are elsewhere."""
        return {name: staged.frames for name, staged in self.staged.items() if staged.frames}

    def copied(self) -> dict[str, Staged]:
        """A copy of what is staged now, for `restore`."""
        return {name: staged.copy() for name, staged in self.staged.items()}

    def restore(self, staged: dict[str, Staged]) -> None:
        """Puts this in the place of what is staged."""
        self.staged = staged
        self._indexes.clear()

    def forget_indexes(self) -> None:
        """Drops the indexes, after changes that were not staged here."""
        self._indexes.clear()


class _Receiver:
    """The part of an executor that `load_inputs` needs."""

    def __init__(self, staged_changes: StagedChanges) -> None:
        self.load = staged_changes.take
        self.symbols: SymbolTable = staged_changes._engine.symbols
        self.records: RecordTables = staged_changes._engine.records
