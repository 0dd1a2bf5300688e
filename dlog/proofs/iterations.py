"""The rows that a stratum had at any time where its relations do not keep all of them: what a row follows from may have left.

The stratum is evaluated once more, and every relation logged, as `debug_delta` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dlog.codec import Codec
from dlog.engine.compile.strata.dependencies import relations_asked
from dlog.engine.ir.rules import Kind, Program, Relation, Retention, Stratum, Type
from dlog.engine.values.differences import words
from dlog.engine.values.table import Table
from dlog.proofs.solve import Relations
from dlog.proofs.stored import Stored

_LOG = "%log"


def derive_iterated(
    stratum: Stratum, program: Program, lower: Relations, given: Mapping[str, Stored], codec: Codec
) -> dict[str, Stored]:
    """By relation all rows that came, with the iteration at which each first did; `given` are those from outside."""
    from dlog.engine.runtime.static.executor import Executor

    executor = Executor(_logged(stratum, program))
    executor.catalog.symbols, executor.catalog.records = codec.symbols, codec.records  # type: ignore[assignment]
    for name in relations_asked(program, stratum).difference(stratum.relations):
        executor.load(name, _table(program, name, lower(name)))
    for name in stratum.relations:
        if given[name].rows:
            executor.load(name, _table(program, name, given[name]))
    executor.run()
    return {name: _first_of_each(executor.table(name + _LOG)) for name in stratum.relations}


def _logged(stratum: Stratum, program: Program) -> Program:
    """The program of the stratum alone."""
    read = {*relations_asked(program, stratum), *stratum.relations}
    logs = [_log_of(program.relations[name]) for name in stratum.relations]
    kept = {name: replace(program.retentions.get(name, Retention()), logs=(name + _LOG,)) for name in stratum.relations}
    return replace(
        program,
        relations={name: program.relations[name] for name in read} | {log.name: log for log in logs},
        strata=(Stratum((*stratum.relations, *(log.name for log in logs)), stratum.rules, stratum.recursive),),
        facts={},
        io=tuple(io for io in program.io if io.action == "limitsize" and io.relation in read),
        lattices={},
        retentions=kept,
    )


def _log_of(relation: Relation) -> Relation:
    iteration = ("iteration", Type(Kind.UNSIGNED.value, Kind.UNSIGNED))
    return Relation(relation.name + _LOG, (*relation.attributes, iteration))


def _table(program: Program, name: str, rows: Stored) -> Table:
    return Table(program.relations[name].kinds, rows.columns, rows.rows)


def _first_of_each(log: Table) -> Stored:
    """The rows without their iterations, each once; iterations ascend."""
    *columns, iterations = map(words, log.columns)
    if not columns:
        return Stored((), min(log.rows, 1), iterations[:1].astype(np.int32))
    _, first = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
    first.sort()
    return Stored([c[first] for c in columns], len(first), iterations[first].astype(np.int32))
