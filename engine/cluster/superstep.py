"""One task's part of a superstep (`dlog.engine.plan.exchange.supersteps`): blocks in, blocks out; and the loop over supersteps,
for whoever can run tasks and move blocks between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.cluster.blocks import blocks, cut_everywhere, rows_of
from dlog.engine.cluster.dictionary import Dictionary
from dlog.engine.cluster.exchange import Rows, joined
from dlog.engine.ir.rules import Kind, Program, Relation
from dlog.engine.plan.exchange.increments import held_name, new_name, received_name
from dlog.engine.plan.exchange.places import ROOT, Place
from dlog.engine.plan.exchange.supersteps import Superstep, Supersteps
from dlog.engine.runtime.static.executor import Executor
from dlog.engine.runtime.storage.extent import Extent, Extents
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.table import Table, from_words

PIECE_ROWS = 1 << 20
"""Rows of a block at most."""
BLOCKS_MAX = 64
"""Blocks in which a task hands on rows of a relation that it was given, those that are full aside; more become one."""
Kept = Literal["kept", "sent"]
InputBlock = tuple[Kept, str, Any]
"""A block that a task is given, of rows that were kept, or sent to it, of which relation."""
OutputBlock = tuple[Kept, str, int, bytes]
"""Rows that a task leaves, or sends: of which relation, whose they are, and the block."""
RowCounts = dict[str, int]
"""By relation, how many rows there are; of those that grow in later supersteps, how many more; of those to be sent, how many
left."""


def evaluated(
    step: Superstep, number: int, homes: Mapping[str, Place], given: Iterable[InputBlock], rank: int, tasks: int, **options: Any
) -> tuple[list[OutputBlock], RowCounts]:
    """Evaluates superstep `number` of a step on the blocks that a task has. Raises DlogError."""
    task = _Task(step, homes, list(given), rank, tasks, options)
    return task.begin() if number == 1 else task.go_on()


@dataclass(frozen=True)
class _Task:
    step: Superstep
    homes: Mapping[str, Place]
    blocks: list[InputBlock]
    rank: int
    tasks: int
    options: Mapping[str, Any]

    def begin(self) -> tuple[list[OutputBlock], RowCounts]:
        """The first superstep: everything that can be derived from what is there."""
        step = self.step
        executor = self._executor(step.program, [(name, block) for _, name, block in self.blocks], step.reads)
        pieces = [piece for name in step.relations for piece in self._keep(executor, name, name)]
        counts = {name: executor.rows(name) for name in step.relations}
        return self._sending(executor, step.outgoing, pieces, counts)

    def go_on(self) -> tuple[list[OutputBlock], RowCounts]:
        """A later one: everything that can be derived from what was sent, and is new."""
        step, had = self.step, self._blocks_of_growing()
        assert step.increment is not None
        if all(kind == "kept" for kind, _, _ in self.blocks):
            return [piece for name in step.growing for piece in self._handed_on(name, had[name])], {}
        arrived = [(received_name(name) if kind == "sent" else name, block) for kind, name, block in self.blocks]
        executor = self._executor(step.increment, arrived, {name for kind, name, _ in self.blocks if kind == "kept"})
        pieces: list[OutputBlock] = []
        counts: RowCounts = {}
        for name in step.growing:
            counts[name], grown = self._grown(executor, name, had[name])
            pieces += grown
        sent = {out: name for out, name in step.outgoing.items() if name in step.growing}
        return self._sending(executor, sent, pieces, counts)

    def _executor(self, program: Program, given: Iterable[tuple[str, Any]], distinct: Collection[str]) -> Executor:
        """Has evaluated a program on blocks; those of the relations named by `distinct` have no row twice."""
        executor = Executor(program, **self.options)
        parts: dict[str, list[Rows]] = {}
        for name, block in given:
            rows = rows_of(block, program.relations[name], program.types, executor.symbols, executor.records)
            parts.setdefault(name, []).append(rows)
        for name, listed in parts.items():
            if name in distinct:
                _assign(executor.catalog.relations[name], listed)
            else:
                executor.load(name, table_of(program.relations[name], listed))
        executor.run()
        return executor

    def _blocks_of_growing(self) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {name: [] for name in self.step.growing}
        for kind, name, block in self.blocks:
            if kind == "kept" and name in found:
                found[name].append(block)
        return found

    def _handed_on(self, name: str, blocks: Iterable[bytes]) -> list[OutputBlock]:
        return [("kept", name, self.rank, block) for block in blocks]

    def _grown(self, executor: Executor, name: str, had: list[bytes]) -> tuple[int, list[OutputBlock]]:
        """How many rows a relation has more, and all of them: those from before as they came, where no new ones replace any."""
        fresh = list(self._keep(executor, new_name(name), name))
        more = executor.rows(new_name(name))
        if fresh and held_name(name) in executor.program.relations:
            more -= executor.rows(name) - executor.rows(held_name(name))
            return more, [*self._keep(executor, held_name(name), name), *fresh]
        if len(had) > BLOCKS_MAX + executor.rows(name) // PIECE_ROWS:
            return more, [*self._keep(executor, name, name), *fresh]
        return more, [*self._handed_on(name, had), *fresh]

    def _keep(self, executor: Executor, of: str, name: str) -> Iterator[OutputBlock]:
        """The rows that a relation has here, to be kept as rows of another."""
        for _, block in _pieces(executor, of, ROOT, self.tasks):
            yield "kept", name, self.rank, block

    def _sending(
        self, executor: Executor, sent: Mapping[str, str], pieces: list[OutputBlock], counts: RowCounts
    ) -> tuple[list[OutputBlock], RowCounts]:
        for out, name in sent.items():
            pieces += [("sent", name, owner, block) for owner, block in _pieces(executor, out, self.homes[name], self.tasks)]
            counts[out] = executor.rows(out)
        return pieces, counts


def _assign(relation: StoredRelation, parts: Sequence[Rows]) -> None:
    """Fills a relation with rows that are distinct."""
    extents: Extents = []
    for kind, columns in zip(relation.kinds, zip(*(p.columns for p in parts), strict=True), strict=True):
        values = Extent(min(int(c.min()) for c in columns), max(int(c.max()) for c in columns))
        extents.append(None if kind is Kind.FLOAT else values)
    relation.shape(extents)
    relation.assign_parts([p.columns for p in parts], [p.height for p in parts])


def _dictionary(executor: Executor, tasks: int) -> Dictionary:
    """One that has told nobody anything: blocks say all that their ids mean."""
    return Dictionary(executor.symbols, executor.catalog.records, executor.program.types, tasks)


def _pieces(executor: Executor, name: str, place: Place, tasks: int) -> Iterator[tuple[int, bytes]]:
    relation, table = executor.program.relations[name], executor.table(name, copy=False)
    for start in range(0, table.rows, PIECE_ROWS):
        rows = min(PIECE_ROWS, table.rows - start)
        part = Table(table.kinds, tuple(c[start : start + rows] for c in table.columns), rows)
        yield from cut_everywhere(relation, part, place, _dictionary(executor, tasks), tasks)


def table_of(relation: Relation, parts: Sequence[Rows]) -> Table:
    """Rows of blocks in the types that relations are loaded with."""
    rows = joined([Rows(tuple(c.astype(np.int64, copy=False) for c in part.columns), part.height) for part in parts])
    columns = tuple(map(from_words, rows.columns, relation.kinds))
    return Table(relation.kinds, columns, rows.height)


def blocks_of_facts(program: Program, plan: Supersteps, tasks: int) -> Iterator[tuple[str, int, bytes]]:
    """The facts of a program's text: relation, owner, block."""
    from dlog.engine.plan.exchange.pivots import HERE
    from dlog.engine.runtime.storage.fact_encoder import FactEncoder
    from dlog.engine.runtime.storage.memory import Memory
    from dlog.engine.runtime.storage.records import RecordTables
    from dlog.engine.values.symbols import SymbolTable

    symbols, records = SymbolTable(), RecordTables(Memory(None))
    encoder = FactEncoder(symbols, records)
    for name, facts in program.facts.items():
        relation = program.relations[name]
        for held in plan.stored_names[name] if facts else ():
            table = table_of(relation, [Rows(encoder.columns(program, name), len(facts))])
            dictionary = Dictionary(symbols, records, program.types, tasks)
            for owner, block in cut_everywhere(relation, table, plan.homes[held], dictionary, tasks):
                yield held, owner, block
    if not plan.alone:
        here = plan.program.relations[HERE]
        nothing = Dictionary(symbols, records, program.types, tasks)
        for owner, block in blocks(here, Table((), (), 1), ROOT, nothing, tasks):
            yield HERE, owner, block


# -------------------------------------------------------------------------------------------------------------------- the loop


@dataclass(frozen=True, slots=True)
class TaskRows:
    """Blocks that somebody holds: those kept, or sent, of some relations in what a superstep left, or in what is given."""

    of: Any
    kind: Kept
    relations: tuple[str, ...]


class Stage(Protocol):
    """Runs tasks."""

    def superstep(self, step: Superstep, number: int, inputs: Sequence[TaskRows]) -> tuple[Any, RowCounts]:
        """Runs a superstep on blocks. Returns what it left and the counts of all tasks together; raises DlogError."""
        ...


def run(plan: Supersteps, given: Any, stage: Stage) -> tuple[dict[str, TaskRows], RowCounts]:
    """Evaluates a program on blocks that are given. Returns where each relation's rows are, and how many there are."""
    held: dict[str, TaskRows] = {}
    counts: RowCounts = {}
    before: Any = None
    for step in plan.steps:
        inputs = [*_task_rows(held, step.reads), *_task_rows(held, step.settled)]
        inputs += [TaskRows(given, "kept", step.external)] if step.external else []
        inputs += [TaskRows(before, "sent", step.settled)] if step.settled else []
        before, now = stage.superstep(step, 1, inputs)
        held |= {name: TaskRows(before, "kept", (name,)) for name in step.relations}
        counts |= now
        if step.increment is not None:
            _until_nothing_is_sent(step, before, held, counts, stage)
    return held, counts


def _until_nothing_is_sent(step: Superstep, before: Any, held: dict[str, TaskRows], counts: RowCounts, stage: Stage) -> None:
    """The later supersteps of a step."""
    assert step.increment is not None
    below = [rows for name, rows in held.items() if name in step.increment.relations and name not in step.growing]
    outs = [out for out, name in step.outgoing.items() if name in step.growing]
    number = 1
    while any(counts[out] for out in outs):
        number += 1
        inputs = [*below, TaskRows(before, "kept", step.growing), TaskRows(before, "sent", step.growing)]
        before, now = stage.superstep(step, number, inputs)
        counts |= {name: counts[name] + now.get(name, 0) for name in step.growing}
        counts |= {out: now.get(out, 0) for out in outs}
    held |= {name: TaskRows(before, "kept", (name,)) for name in step.growing}


def _task_rows(held: Mapping[str, TaskRows], names: Iterable[str]) -> list[TaskRows]:
    return [held[name] for name in names]


def together_of(parts: Iterable[tuple[str, int]]) -> RowCounts:
    """The counts of all tasks."""
    found: RowCounts = {}
    for name, rows in parts:
        found[name] = found.get(name, 0) + rows
    return found
