"""Functors that can stop the run see only what holds, over rounds.

    p(x, z) :- e(x, y), !n(y), z = x / y.    becomes    @1(x, y) :- e(x, y), !n(y).    p(x, z) :- @1(x, y), z = x / y.

A path meets other relations as they were before or as they are after a change, together as they never were: e(1, 0) may come
with n(0). But the rows of any one relation, a temporary too, hold or have held.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlog.engine.ir.functors import may_stop
from dlog.engine.ir.nodes import AntiJoin, LookUp
from dlog.engine.plan.incremental.temporaries import NotIncremental, Temporaries, evaluable
from dlog.engine.plan.query import Condition, Query, Reading, closure, condition_mask, is_partial, mask_all, targets


def without_risks(query: Query, temporaries: Temporaries) -> Query:
    """The query with a temporary beneath functors that can stop the run; raises `NotIncremental` where none can be.

    Those whose values readings need get their arguments from a temporary of the other readings, if that has them; all others
    from one of all readings."""
    risks = [c for c in query.conditions if is_partial(c)]
    in_output = any(map(may_stop, query.output))
    if not (risks or in_output) or _one_relation(query.readings, query.conditions):
        return query
    needed = [c for c in risks if _reach(c, query.conditions) & _read_variables(query)]
    below = [r for r in query.readings if not mask_all(r.args) & _reach_of_all(needed, query.conditions)]
    given = closure(mask_all(a for r in below for a in r.args), [c for c in query.conditions if not isinstance(c, LookUp)])
    early = [c for c in needed if not condition_mask(c) & ~(given | targets(c))]
    if in_output or len(early) < len(risks):
        conditions = [c for c in query.conditions if c in early or c not in risks]
        above = temporaries.beneath(query, query.readings, conditions)
        if not _one_relation(above.readings, above.conditions):
            raise NotIncremental("a functor that can stop the run takes an argument that depends on the result of another one")
        return above
    conditions = [c for c in query.conditions if c not in early]
    return query if _one_relation(below, evaluable(below, conditions)) else temporaries.beneath(query, below, conditions)


def _one_relation(readings: Sequence[Reading], conditions: Sequence[Condition]) -> bool:
    """Whether the rows of one relation (or of none) are all there is to see."""
    others = [c for c in conditions if isinstance(c, AntiJoin | LookUp)]
    if readings:
        return len(readings) == 1 and not others
    return not others or (len(others) == 1 and isinstance(others[0], LookUp) and others[0].default is None)


def _read_variables(query: Query) -> int:
    """The variables of what the query reads and looks up."""
    asked = mask_all(a for r in query.readings for a in r.args)
    for c in query.conditions:
        asked |= condition_mask(c) if isinstance(c, AntiJoin | LookUp) else 0
    return asked


def _reach(condition: Condition, conditions: Sequence[Condition]) -> int:
    """The variables whose values may follow from the condition's."""
    reach = targets(condition)
    for _ in conditions:
        for other in conditions:
            if other is not condition and condition_mask(other) & reach:
                reach |= targets(other)
    return reach


def _reach_of_all(some: Sequence[Condition], conditions: Sequence[Condition]) -> int:
    reach = 0
    for c in some:
        reach |= _reach(c, conditions)
    return reach
