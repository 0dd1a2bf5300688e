"""Relations with values computed from their rows, over rounds, where other parts of a body ask for those values.

    p(x) :- e(x, y), z = x * y, n(z).    becomes    @1(x, z) :- e(x, y), z = x * y.    p(x) :- @1(x, z), n(z).

A row of n that comes or goes finds the rows of @1 by an index; those of e it could only find by computing z for all of them.
"""

from __future__ import annotations

from dlog.engine.ir.nodes import AntiJoin, LookUp
from dlog.engine.plan.incremental.temporaries import Temporaries
from dlog.engine.plan.joins.computed import MIN_INDEXED_ROWS
from dlog.engine.plan.query import Condition, Query, Reading, closure, condition_mask, mask_all


def with_computed(query: Query, temporaries: Temporaries) -> Query:
    """The query with temporaries for the relations that some change could only scan."""
    conditions = [c for c in query.conditions if not isinstance(c, AntiJoin | LookUp)]
    for reading in query.readings:
        own = mask_all(reading.args)
        computed = closure(own, conditions) & ~own
        if _is_scanned(reading, computed, query, temporaries):
            return with_computed(temporaries.beneath(query, [reading], conditions), temporaries)
    return query


def _is_scanned(reading: Reading, computed: int, query: Query, temporaries: Temporaries) -> bool:
    if reading.relation in temporaries.paths.feedback or temporaries.paths.estimator.rows(reading.relation) <= MIN_INDEXED_ROWS:
        return False
    others = [r for r in query.readings if r is not reading]
    asking = [mask_all(r.args) for r in others]
    asking += [condition_mask(c) for c in query.conditions if isinstance(c, AntiJoin | LookUp)]
    return any(part & computed and not _finds(reading, part, others, query.conditions) for part in asking)


def _finds(reading: Reading, bound: int, others: list[Reading], conditions: tuple[Condition, ...]) -> bool:
    """Whether a change that binds these variables comes by the reading through other readings and what they bind."""
    while True:
        bound = closure(bound, conditions)
        if mask_all(reading.args) & bound:
            return True
        further = [r for r in others if mask_all(r.args) & bound and mask_all(r.args) & ~bound]
        if not further:
            return False
        for r in further:
            bound |= mask_all(r.args)
