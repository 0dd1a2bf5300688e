"""One worker of a session: the engines it keeps, and what it answers.

A worker maintains its share of a program with an incremental engine like that of a session in one process, or one that goes
through a program together with those of the other workers (`dlog.engine.cluster.maintained`); the first one maintains what
cannot be shared with another (`dlog.engine.plan.exchange.decomposable`). Rounds are the session's; an engine counts
rounds of its own, since a commit of many rounds may hold few that concern this worker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.cluster.blocks import rows_of
from dlog.engine.cluster.dictionary import Definitions, Dictionary
from dlog.engine.cluster.exchange import RowExchange, Rows
from dlog.engine.cluster.maintained import SharedMaintained
from dlog.engine.cluster.reused_inputs import ReusedInput
from dlog.engine.cluster.worker_group import PeerFailed, WorkerGroup
from dlog.engine.ir.rules import Kind, Program, Relation
from dlog.engine.plan.column_types import ColumnType, declared
from dlog.engine.plan.exchange.decomposable import Maintainer
from dlog.engine.plan.exchange.pivots import PivotPlan
from dlog.engine.rounds_engine import RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental.engines.choice import storing_engine
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.differences import difference, last_of_each, words
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates, joined
from dlog.grammar.diagnostics import Diagnostic, DlogError

DRIVER = 0
"""The one peer of a worker's dictionary."""


@dataclass
class SentColumns:
    """Updates by part and relation, with the meaning of the ids in them. `rounds` are those in which anything changes, on any
    worker, or the last one."""

    updates: dict[tuple[Maintainer, str], Updates]
    definitions: Definitions | None = None
    rounds: np.ndarray | None = None
    received: bool = False
    """Whether the blocks that were received last belong to this commit."""
    reused_inputs: tuple[ReusedInput, ...] = ()


@dataclass
class _SessionEngine:
    """An engine, and how far the session's rounds are ahead of its own."""

    engine: RoundsEngine
    ahead: int
    before: int = 0
    inputs: tuple[str, ...] = ()


ECHO = "peer-failed"
"""The code of what a worker says whose engine went back because another one's failed."""


class Failed(Exception):
    """A commit that failed on this worker; its state is as before."""

    def __init__(self, error: DlogError) -> None:
        super().__init__(str(error))
        self.error = error


Fetch = Callable[[Collection[str]], Mapping[str, Any]]
"""Blocks by their names."""


@dataclass(frozen=True, slots=True)
class DeliveredBlock:
    """Rows that come (+1) or go (-1) of a relation, which reach a worker on another way than through the driver."""

    part: Maintainer
    relation: str
    diff: int
    name: str


class SessionWorker:
    """The worker. Each method is a command of the driver's."""

    def __init__(self, limits: Mapping[str, Any], worker_group: WorkerGroup, fetch: Fetch | None = None) -> None:
        self._limits = dict(limits)
        self._fetch = fetch
        self._received: list[tuple[Maintainer, str, int, Rows]] = []
        self._symbols = SymbolTable()
        self._records = RecordTables(Memory(None))
        self._row_exchange = RowExchange(worker_group, Dictionary(self._symbols, self._records, {}, worker_group.size))
        self._sessions: dict[int, dict[Maintainer, _SessionEngine]] = {}
        self._dictionary = Dictionary(self._symbols, self._records, {}, 1)

    def meet(self) -> None:
        """A driver that has been told nothing, and has told nothing."""
        self._dictionary = Dictionary(self._symbols, self._records, self._dictionary.types, 1)

    def open(self, number: int, programs: Mapping[Maintainer, Program | PivotPlan], round: int) -> None:
        """Begins with a program, or with another form of one, at a round; earlier ones stay until they are closed."""
        origin = StartingPoint(self._symbols, self._records, 0)
        kept: dict[Maintainer, _SessionEngine] = {}
        for part, program in programs.items():
            kept[part] = _SessionEngine(self._engine(program, origin), round)
        self._sessions[number] = kept

    def _engine(self, program: Program | PivotPlan, origin: StartingPoint) -> RoundsEngine:
        if isinstance(program, PivotPlan):
            dictionary = self._row_exchange.dictionary
            self._dictionary.types = dictionary.types = {**self._dictionary.types, **program.program.types}
            return SharedMaintained(program, self._row_exchange, old=origin, **self._limits)
        self._dictionary.types = {**self._dictionary.types, **program.types}
        return storing_engine(program, old=origin, **self._limits)

    def close(self, number: int) -> None:
        for kept in self._sessions.pop(number).values():
            kept.engine.close()

    # --------------------------------------------------------------------------------------------------------------- rounds

    def receive(self, number: int, blocks: Sequence[DeliveredBlock]) -> None:
        """Takes in blocks for the last round of the next commit."""
        assert self._fetch is not None
        found = self._fetch({block.name for block in blocks})
        self._received = []
        for block in blocks:
            program = self._sessions[number][block.part].engine.program
            rows = rows_of(found[block.name], program.relations[block.relation], program.types, self._symbols, self._records)
            self._received.append((block.part, block.relation, block.diff, rows))

    def commit(self, number: int, message: SentColumns, last: int) -> None:
        """Applies this worker's share of the changes up to round `last`, with the blocks received for it. Raises Failed."""
        if message.definitions is not None:
            self._dictionary.learn(DRIVER, message.definitions)
        session = self._sessions[number]
        received, self._received = self._received if message.received else [], []
        done: list[_SessionEngine] = []
        for part, kept in session.items():
            given = {n: u for (p, n), u in message.updates.items() if p == part}
            own = {old.feed.name: self._reused_input(old, last) for old in message.reused_inputs if old.feed.part == part}
            try:
                if isinstance(kept.engine, SharedMaintained):
                    assert message.rounds is not None
                    kept.engine.agenda = message.rounds - kept.ahead
                self._commit(kept, own, given, _of_blocks(received, part, last), last)
            except PeerFailed as failed:
                raise Failed(DlogError(Diagnostic(ECHO, str(failed)))) from None
            except DlogError as error:
                for other in done:
                    self._undo(other, last)
                raise Failed(error) from None
            done.append(kept)

    def _reused_input(self, reused_input: ReusedInput, last: int) -> Updates:
        """The rows of a reused input, of which this worker has more than its share where they were everywhere."""
        engine = self._sessions[reused_input.number][reused_input.source.part].engine
        table, place = engine.external(reused_input.source.name), reused_input.feed.place
        columns = tuple(words(column) for column in table.columns)
        rows = table.rows
        if place >= 0 and reused_input.source.place != place:
            type = types_of(engine.program.relations[reused_input.source.name])[place]
            worker_group = self._row_exchange.worker_group
            mine = self._dictionary.owners(type, table.columns[place], worker_group.size) == worker_group.rank
            columns, rows = tuple(column[mine] for column in columns), int(mine.sum())
        return Updates(columns, np.ones(rows, np.int64), np.full(rows, last))

    def _commit(
        self,
        kept: _SessionEngine,
        own: Mapping[str, Updates],
        given: Mapping[str, Updates],
        blocks: Mapping[str, Updates],
        last: int,
    ) -> None:
        engine = kept.engine
        relations = engine.program.relations
        inputs = {n: _ahead(u, kept.ahead) for n, u in own.items()}
        for name, updates in given.items():
            told = self._own(relations[name], updates, kept.ahead)
            inputs[name] = _one_sign(joined([inputs[name], told])) if name in inputs else told
        for name, updates in blocks.items():
            come = _ahead(updates, kept.ahead)
            inputs[name] = _one_sign(joined([inputs[name], come]) if name in inputs else come)
        kept.engine.commit(inputs)
        kept.before, kept.ahead, kept.inputs = kept.ahead, last - engine.round, tuple(inputs)

    def _own(self, relation: Relation, updates: Updates, ahead: int) -> Updates:
        """The driver's updates with this worker's ids and rounds."""
        columns = tuple(
            words(self._dictionary.translate(DRIVER, t, c) if t.kind in (Kind.SYMBOL, Kind.RECORD) else c)
            for t, c in zip(types_of(relation), updates.columns, strict=True)
        )
        return Updates(columns, updates.diffs, updates.rounds - ahead)

    def undo(self, number: int, last: int) -> None:
        """Takes the last commit back: another worker could not do its part."""
        for kept in self._sessions[number].values():
            self._undo(kept, last)

    def _undo(self, kept: _SessionEngine, last: int) -> None:
        engine = kept.engine
        derived = {n for s in engine.program.strata if s.rules for n in s.relations}
        if derived.intersection(kept.inputs):
            message = "a round failed on some workers after others had finished it, and cannot be taken back"
            raise DlogError(Diagnostic("torn-round", message, notes=("open the session again",)))
        back = {}
        for name in kept.inputs:
            changes = engine.changes(name)
            net = _net(changes)
            back[name] = Updates(net.columns, -net.diffs, np.full(net.rows, engine.round + 1))
        engine.commit(back)
        kept.ahead, kept.inputs = last - engine.round, ()

    # -------------------------------------------------------------------------------------------------------------- reading

    def changes(self, number: int, part: Maintainer, name: str) -> SentColumns:
        """The changes of a relation by the last commit."""
        kept = self._sessions[number][part]
        found = kept.engine.changes(name)
        return self._reply(kept, part, name, Updates(found.columns, found.diffs, found.rounds + kept.before))

    def rows_of(self, number: int, part: Maintainer, name: str, external: bool = False) -> SentColumns:
        """The rows of a relation, or only those from outside."""
        kept = self._sessions[number][part]
        table = kept.engine.external(name) if external else kept.engine.table(name)
        columns = tuple(words(c) for c in table.columns)
        return self._reply(kept, part, name, Updates(columns, np.ones(table.rows, np.int64), np.zeros(table.rows, np.int64)))

    def between(
        self, number: int, part: Maintainer, name: str, before: int, old_part: Maintainer, old_name: str
    ) -> SentColumns:
        """The difference between a relation in an earlier engine and in this one."""
        kept = self._sessions[number][part]
        tables = self._sessions[before][old_part].engine.table(old_name), kept.engine.table(name)
        old, new = (tuple(words(column) for column in table.columns) for table in tables)
        columns, diffs = difference(old, tables[0].rows, new, tables[1].rows)
        return self._reply(kept, part, name, Updates(columns, diffs, np.zeros(len(diffs), np.int64)))

    def count(self, number: int, part: Maintainer, name: str) -> int:
        return self._sessions[number][part].engine.rows(name)

    def table(self, number: int, part: Maintainer, name: str) -> tuple[Relation, Table, Dictionary]:
        """The rows, for whoever writes them out here."""
        engine = self._sessions[number][part].engine
        return engine.program.relations[name], engine.table(name), self._dictionary

    def explain(self, number: int) -> dict[Maintainer, str]:
        return {part: kept.engine.explain() for part, kept in self._sessions[number].items()}

    def _reply(self, kept: _SessionEngine, part: Maintainer, name: str, updates: Updates) -> SentColumns:
        types = types_of(kept.engine.program.relations[name])
        return SentColumns({(part, name): updates}, definitions_for(self._dictionary, DRIVER, types, updates))


def types_of(relation: Relation) -> tuple[ColumnType, ...]:
    return tuple(declared(type) for _, type in relation.attributes)


def definitions_for(dictionary: Dictionary, peer: int, types: tuple[ColumnType, ...], updates: Updates) -> Definitions | None:
    """The definitions that a peer needs for these updates."""
    pairs = [(t, c) for t, c in zip(types, updates.columns, strict=True) if t.kind in (Kind.SYMBOL, Kind.RECORD)]
    return dictionary.define(peer, pairs) if pairs else None


def _of_blocks(received: Sequence[tuple[Maintainer, str, int, Rows]], part: Maintainer, last: int) -> dict[str, Updates]:
    """The rows received for a part, as changes of a round; with this worker's ids."""
    found: dict[str, list[Updates]] = {}
    for of, name, diff, rows in received:
        if of == part:
            every = np.ones(rows.height, np.int64)
            columns = tuple(words(c) for c in rows.columns)
            found.setdefault(name, []).append(Updates(columns, every * diff, every * last))
    return {name: joined(parts) for name, parts in found.items()}


def _ahead(updates: Updates, ahead: int) -> Updates:
    """The same in rounds of an engine that is so many behind."""
    return Updates(updates.columns, updates.diffs, updates.rounds - ahead)


def _one_sign(updates: Updates) -> Updates:
    """Changes of one round: of a row that comes and goes the last one counts."""
    if not updates.rows or updates.diffs.min() == updates.diffs.max():
        return updates
    places = last_of_each(updates.columns, updates.rows)
    return Updates(tuple(c[places] for c in updates.columns), updates.diffs[places], updates.rounds[places])


def _net(updates: Updates) -> Updates:
    """One update for each row that is there at the end and was not before, or the other way round."""
    from dlog.engine.values.differences import row_groups

    order, starts = row_groups(updates.columns, updates.rows)
    if not updates.rows:
        return updates
    sums = np.add.reduceat(updates.diffs[order], starts)
    places = order[starts[sums != 0]]
    diffs = sums[sums != 0]
    return Updates(tuple(c[places] for c in updates.columns), diffs, np.zeros(len(places), np.int64))
