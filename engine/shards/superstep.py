"""One task's part of a superstep (`dlog.engine.plan.supersteps`): blocks in, blocks out; and the loop over supersteps, for
whoever can run tasks and move blocks between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from dlog.engine.embedded.executor import Executor
from dlog.engine.plan.places import ROOT, Place
from dlog.engine.plan.supersteps import Step, Supersteps
from dlog.engine.program.rules import Kind, Program, Relation
from dlog.engine.shards.blocks import blocks, cut_everywhere, rows_of
from dlog.engine.shards.dictionary import Dictionary
from dlog.engine.shards.post import Rows, joined
from dlog.engine.values.table import Table

PIECE_ROWS = 1 << 20
"""Rows of a block at most."""
Piece = tuple[Literal["kept", "sent"], str, int, bytes]
"""Rows that a task leaves, or sends: of which relation, whose they are, and the block."""
Figures = dict[str, tuple[int, int]]
"""By relation, how many rows there are and a number that depends on what they are."""


def evaluated(
    step: Step, homes: Mapping[str, Place], given: Iterable[tuple[str, Any]], rank: int, tasks: int, **options: Any
) -> tuple[list[Piece], Figures]:
    """Evaluates a step on the blocks of relations that a task has. Raises DlogError."""
    executor = Executor(step.program, **options)
    parts: dict[str, list[Rows]] = {}
    for name, block in given:
        relation = step.program.relations[name]
        parts.setdefault(name, []).append(rows_of(block, relation, step.program.types, executor.symbols, executor.records))
    for name, listed in parts.items():
        executor.load(name, table_of(step.program.relations[name], listed))
    executor.run()
    pieces: list[Piece] = []
    figures: Figures = {}
    for name in step.relations:
        relation, table = step.program.relations[name], executor.table(name, copy=False)
        pieces += [("kept", name, rank, block) for _, block in _pieces(executor, relation, table, ROOT, tasks)]
        figures[name] = table.rows, _dictionary(executor, tasks).fingerprint(relation, table)
    for out, name in step.sent.items():
        relation, table = step.program.relations[out], executor.table(out, copy=False)
        pieces += [("sent", name, owner, block) for owner, block in _pieces(executor, relation, table, homes[name], tasks)]
    return pieces, figures


def _dictionary(executor: Executor, tasks: int) -> Dictionary:
    """One that has told nobody anything: blocks say all that their ids mean."""
    return Dictionary(executor.symbols, executor.catalog.records, executor.program.types, tasks)


def _pieces(executor: Executor, relation: Relation, table: Table, place: Place, tasks: int) -> Iterator[tuple[int, bytes]]:
    for start in range(0, table.rows, PIECE_ROWS):
        rows = min(PIECE_ROWS, table.rows - start)
        part = Table(table.kinds, tuple(c[start : start + rows] for c in table.columns), rows)
        yield from cut_everywhere(relation, part, place, _dictionary(executor, tasks), tasks)


def table_of(relation: Relation, parts: Sequence[Rows]) -> Table:
    """Rows of blocks in the types that relations are loaded with."""
    rows = joined([Rows(tuple(c.astype(np.int64, copy=False) for c in part.columns), part.height) for part in parts])
    views: dict[Kind, Any] = {Kind.UNSIGNED: np.uint64, Kind.FLOAT: np.float64}
    columns = (
        c.astype(np.int32) if kind in (Kind.SYMBOL, Kind.RECORD) else np.ascontiguousarray(c).view(views.get(kind, np.int64))
        for kind, c in zip(relation.kinds, rows.columns, strict=True)
    )
    return Table(relation.kinds, tuple(columns), rows.height)


def blocks_of_facts(program: Program, plan: Supersteps, tasks: int) -> Iterator[tuple[str, int, bytes]]:
    """The facts of a program's text: relation, owner, block."""
    from dlog.engine.embedded.catalog import Catalog
    from dlog.engine.embedded.relation import Memory
    from dlog.engine.plan.together import HERE

    catalog = Catalog(program, Memory(None))
    for name, facts in program.facts.items():
        relation = program.relations[name]
        for held in plan.held[name] if facts else ():
            table = table_of(relation, [Rows(tuple(catalog.fact_columns(name)), len(facts))])
            dictionary = Dictionary(catalog.symbols, catalog.records, program.types, tasks)
            for owner, block in cut_everywhere(relation, table, plan.homes[held], dictionary, tasks):
                yield held, owner, block
    if not plan.alone:
        here = plan.program.relations[HERE]
        nothing = Dictionary(catalog.symbols, catalog.records, program.types, tasks)
        for owner, block in blocks(here, Table((), (), 1), ROOT, nothing, tasks):
            yield HERE, owner, block


# -------------------------------------------------------------------------------------------------------------------- the loop


@dataclass(frozen=True, slots=True)
class Lot:
    """Blocks that somebody holds: those kept, or sent, of some relations in what a superstep left (None: what is given)."""

    of: Any
    kind: Literal["kept", "sent"]
    relations: tuple[str, ...]


class Stage(Protocol):
    """Runs tasks."""

    def superstep(self, step: Step, number: int, lots: Sequence[Lot]) -> tuple[Any, Figures]:
        """Runs a superstep on blocks. Returns what it left and the figures of all tasks together; raises DlogError."""
        ...


def run(plan: Supersteps, given: Any, stage: Stage) -> tuple[dict[str, Lot], Figures]:
    """Evaluates a program on blocks that are given. Returns where each relation's rows are, and how many there are."""
    held: dict[str, Lot] = {}
    figures: Figures = {}
    for step in plan.steps:
        below = [Lot(held[name].of, "kept", (name,)) for name in step.reads]
        base = [*below, Lot(given, "kept", step.relations)]
        left, now = stage.superstep(step, 1, base)
        before: Figures | None = None
        number = 1
        while step.sent and now != before:
            number, before = number + 1, now
            left, now = stage.superstep(step, number, [*base, Lot(left, "sent", tuple(step.sent.values()))])
            if not any(s.recursive for s in step.program.strata):
                break
        held |= {name: Lot(left, "kept", (name,)) for name in step.relations}
        figures |= now
    return held, figures


def together_of(parts: Iterable[Figures]) -> Figures:
    """The figures of all tasks."""
    found: Figures = {}
    for part in parts:
        for name, (rows, mark) in part.items():
            others = found.get(name, (0, 0))
            found[name] = others[0] + rows, (others[1] + mark) & (2**64 - 1)
    return found
