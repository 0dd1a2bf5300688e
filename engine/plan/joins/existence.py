"""separate_existence: what a body only asks about is answered once, beside it.

    p(x) :- n(x), e(x, y), e(y, z), s(z).    becomes    @1(y) :- e(y, z), s(z).    p(x) :- n(x), e(x, y), @1(y).

Several readings that hang on the rest of a body by one variable (or none), and bind nothing else that is used, multiply the
matches of the body for nothing. They become a temporary of the distinct values of that variable, where estimates say it pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dlog.engine.ir.nodes import Insert
from dlog.engine.ir.rules import Variable
from dlog.engine.plan.query import Condition, Query, Reading, bindable, canonical, condition_mask, ids, is_partial, mask_all
from dlog.engine.plan.static.aggregates import Aggregates

MAX_CUT_READINGS = 200
"""Readings of a body up to which parts of it that hang on one variable are looked for: for each variable anew."""

MIN_READINGS = 3
"""Readings from which on a body can have a part of two beside another one."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Readings and conditions that share no variable but `variable` with the rest of their body."""

    readings: tuple[Reading, ...]
    conditions: tuple[Condition, ...]
    variable: int | None


def separate_existence(query: Query, rule: int, scope: Aggregates) -> Query:
    """The query with the parts that pay off replaced by readings of temporaries, which `scope` gets."""
    while len(query.readings) >= MIN_READINGS and not query.bag:
        parts = tuple(_parts(query, scope.feedback))
        cost = scope.paths.cost(query)[0] if parts else 0.0
        separated = next((s for part in parts if (s := _separate(query, part, rule, scope, cost))), None)
        if separated is None:
            return query
        query = separated
    return query


def _separate(query: Query, part: _Part, rule: int, scope: Aggregates, whole: float) -> Query | None:
    """The query without the part, if that is cheaper than `whole`, the query's own cost: then a stage fills the temporary that
    takes its place."""
    output = () if part.variable is None else (Variable(part.variable),)
    inner = canonical(replace(query, readings=part.readings, conditions=part.conditions, output=output))
    if mask_all(a for r in part.readings for a in r.args) & ~bindable(inner) or _unbound(inner):
        return None
    estimator, name = scope.paths.estimator, f"@{scope.stages.made + 1}"
    cost, rows = scope.paths.cost(inner)
    estimator.declare(name, len(output), min([rows, *_values(part, scope)]))
    place = min(r.place for r in part.readings)
    outer = canonical(
        replace(
            query,
            readings=(*(r for r in query.readings if r not in part.readings), Reading(name, output, place=place)),
            conditions=tuple(c for c in query.conditions if c not in part.conditions),
        )
    )
    if cost + scope.paths.cost(outer)[0] >= whole:
        return None
    assert scope.stages.name() == name
    inner = separate_existence(inner, rule, scope)
    scope.stages.temporary(name, (query.kinds[v.id] for v in output), *scope.paths.enter(inner, Insert(name, output), rule)[0])
    return outer


def _unbound(query: Query) -> bool:
    """Whether a condition waits for a variable that the query does not bind."""
    bound = bindable(query)
    return any(condition_mask(c) & ~bound for c in query.conditions)


def _values(part: _Part, scope: Aggregates) -> Iterator[float]:
    """Bounds on the number of rows of the part's temporary."""
    if part.variable is None:
        yield 1.0
    for reading in part.readings:
        for column, arg in enumerate(reading.args):
            if arg is not None and arg == Variable(-1 if part.variable is None else part.variable):
                yield scope.paths.estimator.distinct(reading.relation, (column,))


def _parts(query: Query, feedback: frozenset[str]) -> Iterator[_Part]:
    """All parts that could be separated, large ones first."""
    used = mask_all(query.output)
    readings = [(r, mask_all(r.args)) for r in query.readings]
    conditions = [(c, condition_mask(c)) for c in query.conditions]
    masks = [variables for _, variables in (*readings, *conditions)]
    cuts = ids(mask_all(a for r in query.readings for a in r.args)) if len(readings) <= MAX_CUT_READINGS else ()
    found: list[_Part] = []
    for cut in (None, *cuts):
        hidden = 0 if cut is None else 1 << cut
        for members in _components(masks, hidden):
            if members & used:
                continue
            part = _Part(
                tuple(r for r, variables in readings if variables & ~hidden & members),
                tuple(c for c, variables in conditions if variables & ~hidden & members),
                cut,
            )
            if _may_separate(query, part, feedback):
                found.append(part)
    found.sort(key=lambda p: -len(p.readings))
    yield from found


def _may_separate(query: Query, part: _Part, feedback: frozenset[str]) -> bool:
    return (
        2 <= len(part.readings) < len(query.readings)
        and not any(r.relation in feedback for r in part.readings)
        and not any(is_partial(c) for c in part.conditions)
        and (part.variable is None or _outside(query, part))
    )


def _outside(query: Query, part: _Part) -> bool:
    """Whether the part's variable occurs in readings within and without it: else there is nothing to join."""
    bit = 1 << (part.variable or 0)
    inside = any(mask_all(r.args) & bit for r in part.readings)
    return inside and any(mask_all(r.args) & bit for r in query.readings if r not in part.readings)


def _components(masks: Sequence[int], hidden: int) -> list[int]:
    """The sets of variables that readings and conditions, which have these, connect apart from the hidden one."""
    components: list[int] = []
    for variables in masks:
        merged = variables & ~hidden
        if merged:
            rest = []
            for component in components:
                if component & merged:
                    merged |= component
                else:
                    rest.append(component)
            components = [*rest, merged]
    return components
