"""separate_existence: what a body only asks about is answered once, beside it.

    p(x) :- n(x), e(x, y), e(y, z), s(z).    becomes    @1(y) :- e(y, z), s(z).    p(x) :- n(x), e(x, y), @1(y).

Several readings that hang on the rest of a body by one variable (or none), and bind nothing else that is used, multiply the
matches of the body for nothing. They become a temporary of the distinct values of that variable, where estimates say it pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import Insert
from dlog.engine.ir.rules import Variable
from dlog.engine.plan.joins.order import MAX_EXHAUSTIVE_READINGS
from dlog.engine.plan.query import Condition, Query, Reading, bindable, canonical, condition_mask, ids, is_partial, mask_all
from dlog.engine.plan.static.aggregates import Aggregates

MAX_CUT_READINGS = 200
"""Connected readings up to which parts of them that hang on one variable are looked for: for each variable anew."""

MAX_PARTS_TRIED = 8
"""Parts of a body whose orders are not all considered (`choose_order`) that are tried, the largest ones."""

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
        parts = _parts(query, scope.feedback)
        if len(query.readings) > MAX_EXHAUSTIVE_READINGS:
            parts = parts[:MAX_PARTS_TRIED]
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
    estimator, name = scope.paths.estimator, f"@{scope.stages.temporary_count + 1}"
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


def _parts(query: Query, feedback: frozenset[str]) -> list[_Part]:
    """All parts that could be separated, large ones first."""
    found: list[_Part] = []
    used = mask_all(query.output)
    for whole in _connected(query):
        if not whole.variables & used:
            found.append(_Part(tuple(r for r, _ in whole.readings), tuple(c for c, _ in whole.conditions), None))
        if MIN_READINGS <= len(whole.readings) <= MAX_CUT_READINGS:
            found.extend(
                part for cut in ids(mask_all(a for r, _ in whole.readings for a in r.args)) for part in whole.cut(cut, used)
            )
    return sorted((p for p in found if _may_separate(query, p, feedback)), key=lambda p: -len(p.readings))


@dataclass(slots=True)
class _Connected:
    """Readings and conditions that variables connect, each with its variables."""

    variables: int
    readings: list[tuple[Reading, int]]
    conditions: list[tuple[Condition, int]]

    def cut(self, cut: int, used: int) -> Iterator[_Part]:
        """What falls apart without a variable, but for what has one of the used ones."""
        hidden = 1 << cut
        for members in _components([variables for _, variables in (*self.readings, *self.conditions)], hidden):
            if not members & used:
                yield _Part(
                    tuple(r for r, variables in self.readings if variables & ~hidden & members),
                    tuple(c for c, variables in self.conditions if variables & ~hidden & members),
                    cut,
                )


def _connected(query: Query) -> list[_Connected]:
    readings = [(r, mask_all(r.args)) for r in query.readings]
    conditions = [(c, condition_mask(c)) for c in query.conditions]
    found = [_Connected(members, [], []) for members in _components([v for _, v in (*readings, *conditions)], 0)]
    whole = {variable: one for one in found for variable in ids(one.variables)}
    for reading, variables in readings:
        if variables:
            whole[next(ids(variables))].readings.append((reading, variables))
    for condition, variables in conditions:
        if variables:
            whole[next(ids(variables))].conditions.append((condition, variables))
    return found


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
