"""Relations with values computed from their rows, where a path could only scan them to find those values.

    len(l, n + 1) :- list(l), l = [_, r], len(r, n).    becomes
    @1(l, r) :- list(l), l = [_, r].                    len(l, n + 1) :- @1(l, r), len(r, n).

A change of len binds r, which no column of list holds: each would meet all of list. The rows of @1 it finds by an index.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlog.engine.ir.nodes import AntiJoin, LookUp
from dlog.engine.ir.rules import Constant
from dlog.engine.plan.incremental.temporaries import Projections, Temporaries
from dlog.engine.plan.joins.delta import Paths
from dlog.engine.plan.query import Condition, Query, Reading, canonical, closure, is_partial, mask_all
from dlog.engine.plan.static.stages import Stages

MIN_INDEXED_ROWS = 16.0
"""Rows below which a relation may as well be scanned."""


def with_computed(query: Query, rule: int, paths: Paths, stages: Stages) -> Query:
    """The query with temporaries for the relations that its paths could only scan. What can stop the run is computed for no
    other rows than before."""
    conditions = [c for c in query.conditions if not isinstance(c, AntiJoin | LookUp) and not is_partial(c)]
    for reading in _scanned(query, conditions, paths):
        temporaries = Temporaries(paths, Projections(stages), rule)
        return with_computed(canonical(temporaries.beneath(query, [reading], conditions)), rule, paths, stages)
    return query


def _scanned(query: Query, conditions: Sequence[Condition], paths: Paths) -> list[Reading]:
    """The readings of complete relations that some path scans, though it has bound values that are computed from their rows:
    a path of every reading that can change or, where none can, the path with the fewest of them."""
    computed = [_computed(r, conditions) for r in query.readings]
    if not any(computed):
        return []
    changing = [r for r in query.readings if r.relation in paths.feedback]
    each = [_missed(query, computed, seed) for seed in changing or query.readings]
    missed = [r for found in each for r in found] if changing else min(each, key=len, default=[])
    return [r for r in missed if r.relation not in paths.feedback and paths.estimator.rows(r.relation) > MIN_INDEXED_ROWS]


def _missed(query: Query, computed: Sequence[int], seed: Reading) -> list[Reading]:
    """The readings that no look-up finds from the rows of `seed`, though it binds values `computed` from theirs."""
    bound = closure(mask_all(seed.args), query.conditions)
    left = [(r, values) for r, values in zip(query.readings, computed, strict=True) if r is not seed]
    while found := [r for r, _ in left if _is_found(r, bound)]:
        left = [one for one in left if not _is_found(one[0], bound)]
        bound = closure(bound | mask_all(a for r in found for a in r.args), query.conditions)
    return [r for r, values in left if values & bound]


def _is_found(reading: Reading, bound: int) -> bool:
    """Whether the reading has a column to look up, or only one row of it can matter."""
    columns = mask_all(reading.args)
    return bool(columns & bound) or not columns or any(isinstance(a, Constant) for a in reading.args)


def _computed(reading: Reading, conditions: Sequence[Condition]) -> int:
    """The variables that a row of the reading and the conditions bind, but for its columns."""
    own = mask_all(reading.args)
    return closure(own, conditions) & ~own
