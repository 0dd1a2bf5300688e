"""The relations of one round, for proofs, and the iterations at which their rows appear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import numpy as np

from dlog.codec import Codec
from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import dependencies
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.values.differences import words
from dlog.engine.values.table import Table
from dlog.proofs.stored import Stored


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`table` reads a relation as of the round, whenever it is asked. What only the present round knows was read at once, for
    the relations that the proof may come to: rows with `ranks`, and the facts of relations that have rules too. `lock` is held
    while terms are evaluated, which may make records."""

    program: Program
    codec: Codec
    table: Callable[[str], Table]
    ranked: Mapping[str, Stored]
    facts: Mapping[str, Stored]
    lock: AbstractContextManager[object]


def snapshot(
    engine: RoundsEngine, codec: Codec, table: Callable[[str], Table], lock: AbstractContextManager[object], relation: str
) -> Snapshot:
    """All that proofs about one relation need of the present round. The lock is held by whoever calls."""
    program = codec.program
    strata = [s for s in needed_strata(program, relation) if s.rules]
    ranked: dict[str, Stored] = {}
    facts: dict[str, Stored] = {}
    for stratum in strata:
        for name in stratum.relations:
            ranks = engine.ranks(name) if stratum.recursive else None
            if ranks is not None:
                ranked[name] = stored(engine.table(name), ranks)
            facts[name] = stored(engine.external(name))
    return Snapshot(program, codec, table, ranked, facts, lock)


def needed_strata(program: Program, relation: str) -> list[Stratum]:
    """The strata that a relation is computed from, its own included."""
    needed = {relation}
    found = []
    for stratum in reversed(program.strata):
        if needed & set(stratum.relations):
            needed |= {d.on for rule in stratum.rules for d in dependencies(rule)}
            needed |= {program.timed[name].source for name in needed if name in program.timed}
            found.append(stratum)
    return found[::-1]


def stored(table: Table, ranks: np.ndarray | None = None) -> Stored:
    return Stored(tuple(words(column) for column in table.columns), table.rows, ranks)
