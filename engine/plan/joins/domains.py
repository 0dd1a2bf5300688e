"""Bounds on the distinct values in columns of a stratum's own relations, from the relations that the values come from.

    path(x, y) :- edge(x, y).    path(x, z) :- path(x, y), edge(y, z).

A value of path's first column is one of edge's first column, so there are at most as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from dlog.engine.ir.rules import Constant, Term, Variable
from dlog.engine.plan.query import Query
from dlog.engine.plan.statistics import Estimator

Domains: TypeAlias = dict[str, list[float | None]]

ROUNDS = 4
"""Values that come through longer chains of rules than this may be missed: these are estimates."""


def domains(heads: Sequence[tuple[str, Query]], own: frozenset[str], estimator: Estimator) -> Domains:
    """For each relation of `own` and each column the largest number of values that a rule of it can produce there; `None` where
    a value is computed, or nothing bounds it. `heads` are the rules: a relation and the query whose output are its rows and,
    perhaps, their weight."""
    found: Domains = {r: [0.0] * estimator.arity(r) for r in own}
    for _ in range(ROUNDS):
        before = {r: list(c) for r, c in found.items()}
        for relation, query in heads:
            columns = found[relation]
            for column, term in enumerate(query.output[: len(columns)]):
                columns[column] = _larger(columns[column], _values(term, query, found, estimator))
        if found == before:
            break
    return {r: [c or None for c in columns] for r, columns in found.items()}


def _larger(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


def _values(term: Term, query: Query, found: Domains, estimator: Estimator) -> float | None:
    """The fewest values that a reading of the term's variable allows; 0 while that is not known yet."""
    if isinstance(term, Constant):
        return 1.0
    if not isinstance(term, Variable):
        return None
    allowed: list[float] = []
    for reading in query.readings:
        for column, arg in enumerate(reading.args):
            if type(arg) is Variable and arg.id == term.id:
                own = found.get(reading.relation)
                bound = own[column] if own is not None else estimator.distinct(reading.relation, (column,))
                allowed += [bound] if bound is not None else []
    return min(allowed, default=None)
