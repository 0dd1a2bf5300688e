"""The paths of one rule over rounds: one per part of its body that can change (see ir/nodes.py, "Over rounds").

    p(x, z) :- a(x, y), b(y, z), !c(x).      has, with the parts in the order !c, a, b, the paths

    changes !c(x);   a(x, y) at alt;  b(y, z) at alt
    changes a(x, y); if not c(x) at neu; b(y, z) at alt
    changes b(y, z); if not c(x) at neu; a(x, y) at neu

Parts of earlier scopes come before `variables`. While relations go from empty to full at once only the path of the last part
finds anything, all others being read at `neu`; so the last part of a rule without variables is the one from which a full
evaluation is cheapest.

A body that holds while all relations are empty (nothing in it but negations and look-ups with a default) has a first part
besides: the unit, which changes once, from nothing to one row.

A rule with events that pass (`passing`) has one path only, seeded by these, with all other parts at `neu`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import Accumulate, AntiJoin, Arrangement, HalfJoin, Insert, LookUp, Path, Scan, SemiJoin, Step, View
from dlog.engine.ir.rules import Compare, Constant, Generator, Kind, Unpack, Variable
from dlog.engine.plan.incremental.computed import with_computed
from dlog.engine.plan.incremental.implied import without_implied
from dlog.engine.plan.incremental.risks import without_risks
from dlog.engine.plan.incremental.temporaries import Projections, Temporaries
from dlog.engine.plan.joins import moves
from dlog.engine.plan.joins.connected import connected_order
from dlog.engine.plan.joins.delta import Paths
from dlog.engine.plan.joins.moves import Index
from dlog.engine.plan.joins.order import choose_order
from dlog.engine.plan.query import Condition, Query, Reading, condition_mask, mask, mask_all, plain

BodyPart: TypeAlias = Reading | AntiJoin | LookUp

FEW_ROWS = 8
"""Rows of all relations that a body reads up to which any order does that joins what is connected: a plan is made anew when
there are many more."""


@dataclass(slots=True, kw_only=True)
class RoundsPaths(Paths):
    """Makes the paths of one scope over rounds."""

    projections: Projections
    bodies: dict[str, Query] = field(default_factory=dict)
    """What each reduction reduces."""
    derived: list[tuple[str, int, Query]] = field(default_factory=list)
    """What is derived: a sink's relation, the number of the rule, and the query whose matches are counted."""

    def enter(
        self, query: Query, sink: Insert | Accumulate, rule: int, may_repeat: bool = True
    ) -> tuple[tuple[Path, ...], float]:
        """The paths of a query in the order of its parts, and an estimate of its rows. Every match counts, whatever
        `may_repeat` says."""
        if isinstance(sink, Accumulate):
            self.bodies[sink.relation] = query
        query = without_implied(query, self.projections.stages.program, self.feedback, self.bodies)
        query = _without_idle_look_ups(_joining_by_bits(query))
        temporaries = Temporaries(self, self.projections, rule)
        event = self._event(query, sink)
        if event is None:
            query = with_computed(without_risks(query, temporaries), temporaries)
        query = replace(temporaries.projected(query), bag=True)
        self.derived.append((sink.relation, rule, query))
        parts = self._parts(query, event)
        made = _QueryPaths(self, sink, rule)
        if event is not None:
            made.add(_seeded(query, parts, len(parts) - 1), 0)
            return tuple(made.paths), made.rows
        for i in reversed(range(len(parts))):
            # The last part's path is the busiest one: it chooses indexes, the others share them where they can.
            part = parts[i]
            if isinstance(part, LookUp) and part.default is not None:
                made.add(_seeded_by_missing(query, parts, i), 0, missing=True)
            made.add(_seeded(query, parts, i), 0, negated=isinstance(part, AntiJoin))
        if all(isinstance(p, AntiJoin) or (isinstance(p, LookUp) and p.default is not None) for p in parts):
            made.add(_without_part(query, parts, -1), None)
        return tuple(reversed(made.paths)), made.rows

    def cost(self, query: Query) -> tuple[float, float]:
        return Paths.cost(self, replace(query, bag=True))

    def one(self, query: Query, seed: int | None, sink: Insert | Accumulate, rule: int) -> tuple[Path, float]:
        """The path of a query from reading `seed` (None for one empty row), and an estimate of its rows."""
        if self._has_few_rows(query):
            order, rows = connected_order(query, seed, self.indexes), 1.0
        else:
            state = choose_order(query, [seed], self.estimator, self.indexes)
            order, rows = state.moves, state.rows
        path = self._finish(query, order, sink, rule, changes=True)
        if self.feedback:
            steps = tuple(self._counting(s) for s in path.steps)
            advance = int(any(r.relation in self.feedback for r in query.readings))
            path = replace(path, steps=steps, advance=advance)
        return path, rows

    def _counting(self, step: Step) -> Step:
        """A row of a variable has a time at each iteration where it came or went: it is joined, not asked about."""
        if not isinstance(step, SemiJoin) or step.relation not in self.feedback:
            return step
        key = tuple(a for a in step.args if a is not None)
        return HalfJoin(Arrangement(step.relation, tuple(range(len(key)))), key, (), step.view)

    def _event(self, query: Query, sink: Insert | Accumulate) -> str | None:
        """The relation of events that pass whose rule this is."""
        passing = self.projections.stages.program.passing
        return next(r.relation for r in query.readings if r.relation in passing) if sink.relation in passing else None

    def _parts(self, query: Query, last: str | None = None) -> tuple[BodyPart, ...]:
        """The parts in their order, which `Reading.place` tells, too; the reading of `last` is the last one."""
        conditions = dict.fromkeys(c for c in query.conditions if isinstance(c, AntiJoin | LookUp))
        negated = [c for c in conditions if isinstance(c, AntiJoin)]
        look_ups = sorted((c for c in conditions if isinstance(c, LookUp)), key=lambda c: c.default is None)
        imports = [r for r in query.readings if r.relation not in self.feedback]
        variables = [r for r in query.readings if r.relation in self.feedback]
        if last is not None:
            imports.sort(key=lambda reading: reading.relation == last)
        elif len(imports) > 1 and not variables:
            best = 0 if self._has_few_rows(query) else self._best_seed(query)
            imports = [*imports[:best], *imports[best + 1 :], imports[best]]
        ordered: list[BodyPart] = [*negated, *look_ups, *imports, *variables]
        return tuple([Reading(p.relation, p.args, p.view, i) if isinstance(p, Reading) else p for i, p in enumerate(ordered)])

    def _has_few_rows(self, query: Query) -> bool:
        """Whether all relations that are read have hardly any rows; of the planner's own that is not known."""
        read = [r.relation for r in query.readings]
        return not any(name.startswith("@") for name in read) and all(self.estimator.rows(name) <= FEW_ROWS for name in read)

    def _best_seed(self, query: Query) -> int:
        state = choose_order(query, range(len(query.readings)), self.estimator, _EveryIndex())
        seed = state.moves[0]
        assert isinstance(seed, moves.Scan)
        return next(i for i, r in enumerate(query.readings) if r is seed.reading)


@dataclass(slots=True)
class _QueryPaths:
    """The paths of one query, and an estimate of the rows of the first."""

    by: RoundsPaths
    sink: Insert | Accumulate
    rule: int
    paths: list[Path] = field(default_factory=list)
    rows: float = 0.0

    def add(self, query: Query, seed: int | None, negated: bool = False, missing: bool = False) -> None:
        path, rows = self.by.one(query, seed, self.sink, self.rule)
        self.rows = self.rows if self.paths else rows
        if (negated or missing) and isinstance(path.seed, Scan):
            path = replace(path, seed=replace(path.seed, negated=negated, missing=missing))
        self.paths.append(path)


class _EveryIndex(frozenset[Index]):
    """Indexes cost nothing where one seed is compared with another: all parts are seeds, and their paths keep them."""

    def __contains__(self, index: object) -> bool:
        return True


# --------------------------------------------------------------------------------------------------------------- seeds


def _seeded(query: Query, parts: Sequence[BodyPart], seed: int) -> Query:
    """The query with part `seed` as its first reading, the others seen as they are when that part changes."""
    part = parts[seed]
    match part:
        case Reading():
            reading = part
        case AntiJoin(relation=relation, args=args):
            reading = Reading(relation, plain(args), place=seed)
        case LookUp(relation=relation, key=key, variable=variable):
            reading = Reading(relation, (*plain(key), Variable(variable)), place=seed)
        case _:
            assert_never(part)
    return _without_part(query, parts, seed, (reading,))


def _seeded_by_missing(query: Query, parts: Sequence[BodyPart], seed: int) -> Query:
    """The query seeded by the keys that look-up `seed` does not find, for which it gives its default."""
    part = parts[seed]
    assert isinstance(part, LookUp) and part.default is not None
    kind = query.kinds[part.variable]
    value = float(part.default) if kind is Kind.FLOAT else part.default
    given = Compare("=", Variable(part.variable), Constant(value, kind), _by_bits(kind))
    reading = Reading(part.relation, (*plain(part.key), None), place=seed)
    seen = _without_part(query, parts, seed, (reading,))
    return replace(seen, conditions=(*seen.conditions, given))


def _without_part(query: Query, parts: Sequence[BodyPart], seed: int, first: tuple[Reading, ...] = ()) -> Query:
    """The query without part `seed`, with other readings `first`: parts before it at `neu`, those after it at `alt`."""
    views: list[tuple[BodyPart, View]] = [(p, "neu" if i < seed else "alt") for i, p in enumerate(parts) if i != seed]
    readings = [Reading(p.relation, p.args, v, p.place) for p, v in views if isinstance(p, Reading)]
    conditions = tuple(_views(query.conditions, dict(views))) if query.conditions else ()
    return Query((*first, *readings), conditions, query.output, query.bag, query.kinds)


def _views(conditions: Iterable[Condition], views: dict[BodyPart, View]) -> Iterator[Condition]:
    for c in dict.fromkeys(conditions):
        if not isinstance(c, AntiJoin | LookUp):
            yield c
        elif c in views:
            yield replace(c, view=views[c])


# ------------------------------------------------------------------------------------------------------------- queries


def _without_idle_look_ups(query: Query) -> Query:
    """The query without look-ups that always give a value which nothing uses."""
    for c in query.conditions:
        if isinstance(c, LookUp) and c.default is not None:
            others = [x for x in query.conditions if x is not c]
            used = mask_all(query.output) | mask_all(a for r in query.readings for a in r.args) | mask_all(c.key)
            if not any(x >> c.variable & 1 for x in (used, *map(condition_mask, others))):
                return _without_idle_look_ups(replace(query, conditions=tuple(others)))
    return query


def _joining_by_bits(query: Query) -> Query:
    """The query with floats that some paths join and others compare compared as they are joined: bit by bit. Otherwise paths
    could disagree about 0.0 = -0.0, and what one adds another would not take away."""
    if not query.conditions:
        return query
    return replace(query, conditions=tuple(_joined(c, query) for c in query.conditions))


def _joined(condition: Condition, query: Query) -> Condition:
    if not isinstance(condition, Compare) or condition.op != "=" or condition.kind is not Kind.FLOAT:
        return condition
    others = [c for c in query.conditions if c is not condition]
    elsewhere = mask_all(a for r in query.readings for a in r.args)
    for other in others:
        elsewhere |= _bound_by(other)
    sides = (condition.left, condition.right)
    joins = any(isinstance(s, Variable) and mask(s) & elsewhere for s in sides)
    return replace(condition, kind=_by_bits(condition.kind)) if joins else condition


def _bound_by(condition: Condition) -> int:
    """The variables that the condition, or its changes as a seed, may bind."""
    match condition:
        case Compare(op=op, left=left, right=right):
            return mask_all(t for t in (left, right) if op == "=" and isinstance(t, Variable))
        case Unpack() | Generator() | AntiJoin() | LookUp():
            return condition_mask(condition)
        case _:
            assert_never(condition)


def _by_bits(kind: Kind) -> Kind:
    """The kind by which values of `kind` are compared bit by bit."""
    return Kind.NUMBER if kind is Kind.FLOAT else kind
