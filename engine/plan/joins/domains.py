"""Bounds on the distinct values in columns of a stratum's own relations, from the relations that the values come from.

    path(x, y) :- edge(x, y).    path(x, z) :- path(x, y), edge(y, z).

A value of path's first column is one of edge's first column, so there are at most as many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Constant, Variable
from dlog.engine.plan.query import Query
from dlog.engine.plan.statistics import Estimator

Domains: TypeAlias = dict[str, list[float | None]]

ROUNDS = 4
"""Values that come through longer chains of rules than this may be missed: these are estimates."""


@dataclass(slots=True)
class _Source:
    """What bounds the values in a column of a rule's head: the least of what is known, None if nothing is, and of columns of
    own relations."""

    relation: str
    column: int
    known: float | None
    own: list[tuple[str, int]]


def domains(heads: Sequence[tuple[str, Query]], own: frozenset[str], estimator: Estimator) -> Domains:
    """For each relation of `own` and each column the largest number of values that a rule of it can produce there; `None` where
    a value is computed, or nothing bounds it. `heads` are the rules: a relation and the query whose output are its rows and,
    perhaps, their weight."""
    found: Domains = {r: [0.0] * estimator.arity(r) for r in own}
    sources = [s for relation, query in heads for s in _sources(relation, len(found[relation]), query, own, estimator)]
    for _ in range(ROUNDS):
        changed = False
        for source in sources:
            columns, column = found[source.relation], source.column
            before = columns[column]
            columns[column] = after = _larger(before, _values(source, found))
            changed |= before != after
        if not changed:
            break
    return {r: [c or None for c in columns] for r, columns in found.items()}


def _sources(relation: str, arity: int, query: Query, own: frozenset[str], estimator: Estimator) -> Iterator[_Source]:
    """What the columns of a head come from."""
    for column, term in enumerate(query.output[:arity]):
        source = _Source(relation, column, 1.0 if isinstance(term, Constant) else None, [])
        if isinstance(term, Variable):
            _note_readings(source, term.id, query, own, estimator)
        yield source


def _note_readings(source: _Source, variable: int, query: Query, own: frozenset[str], estimator: Estimator) -> None:
    for reading in query.readings:
        for column, arg in enumerate(reading.args):
            if type(arg) is Variable and arg.id == variable:
                if reading.relation in own:
                    source.own.append((reading.relation, column))
                else:
                    bound = estimator.distinct(reading.relation, (column,))
                    source.known = bound if source.known is None else min(source.known, bound)


def _larger(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


def _values(source: _Source, found: Domains) -> float | None:
    """The fewest values that a reading of the column's variable allows; 0 while that is not known yet."""
    fewest = source.known
    for relation, column in source.own:
        bound = found[relation][column]
        if bound is not None and (fewest is None or bound < fewest):
            fewest = bound
    return fewest
