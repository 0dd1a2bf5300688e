"""Parts of bodies that are read through temporaries over rounds.

    p(x) :- n(x), !f(x, _).            becomes    @1(x) :- f(x, _).    p(x) :- n(x), !@1(x).
    p(x) :- e(x, _), f(x, _).          becomes    @1(x) :- e(x, _).    @2(x) :- f(x, _).    p(x) :- @1(x), @2(x).

A row of f that comes or goes says nothing yet about whether f(x, _) holds. And every match of a body counts: rows of e and f
that differ in a column nothing uses would multiply each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import AntiJoin, Insert, LookUp
from dlog.engine.ir.rules import Arg, Kind, Variable
from dlog.engine.plan.joins.delta import Paths
from dlog.engine.plan.query import Condition, Query, Reading, bindable, closure, condition_mask, ids, mask, mask_all, plain
from dlog.engine.plan.static.stages import Stages

REPEATED = 2.0
"""So many rows per value of the columns that are used are worth a temporary of those values."""


class NotIncremental(Exception):
    """Raised for a stratum that must be computed anew in each round that changes what it reads; says why."""


@dataclass(slots=True)
class Projections:
    """The projections of one scope, by relation and columns: rules that ask the same share one."""

    stages: Stages
    names: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Temporaries:
    """Makes the temporaries of one rule; `paths` makes what fills them."""

    paths: Paths
    projections: Projections
    rule: int

    @property
    def stages(self) -> Stages:
        return self.projections.stages

    def projected(self, query: Query) -> Query:
        """The query with all arguments of negated atoms given and, where matches need not be counted, without readings that
        multiply others."""
        if query.conditions:
            whole = [self._whole(c, query) if isinstance(c, AntiJoin) and None in c.args else c for c in query.conditions]
            query = replace(query, conditions=tuple(whole))
        others = sum(isinstance(c, AntiJoin | LookUp) for c in query.conditions)
        if query.bag or len(query.readings) + others < 2:
            return query
        return replace(query, readings=tuple(self._once(r, query) for r in query.readings))

    def fill(self, query: Query) -> Reading:
        """A reading of a new temporary with the distinct rows of the query, whose output are variables."""
        name = self.stages.name()
        output = plain(query.output)
        filling, rows = self.paths.enter(query, Insert(name, query.output), self.rule)
        self.stages.temporary(name, (query.kinds[a.id] for a in output if isinstance(a, Variable)), *filling)
        self.paths.estimator.declare(name, len(output), rows)
        return Reading(name, output)

    def beneath(self, query: Query, readings: Sequence[Reading], conditions: Sequence[Condition]) -> Query:
        """The query with these readings, and those of the conditions that they bind, answered by a temporary: raises
        `NotIncremental` within a recursion."""
        if any(r.relation in self.paths.feedback for r in readings):
            raise NotIncremental("a functor that can stop the run takes its arguments from a join of the recursion")
        inside = evaluable(readings, conditions)
        above = tuple(r for r in query.readings if not any(r is x for x in readings))
        outside = tuple(c for c in query.conditions if not any(c is x for x in inside))
        kinds = list(query.kinds)
        used = mask_all((*query.output, *(a for r in above for a in r.args)))
        for c in outside:
            used |= condition_mask(c)
        if query.bag:
            readings = [self._named(r, kinds) for r in readings]
            used |= mask_all(a for r in readings for a in r.args)
        inner = Query(tuple(readings), inside, (), False, tuple(kinds))
        reading = self.fill(replace(inner, output=tuple(Variable(i) for i in ids(used & bindable(inner)))))
        return replace(query, readings=(reading, *above), conditions=outside, kinds=tuple(kinds))

    def _named(self, reading: Reading, kinds: list[Kind]) -> Reading:
        """The reading with fresh variables for anonymous arguments, so that rows that differ stay different."""
        args: list[Arg] = []
        for arg, kind in zip(reading.args, self.stages.kinds(reading.relation), strict=True):
            if arg is None:
                arg = Variable(len(kinds))
                kinds.append(kind)
            args.append(arg)
        return replace(reading, args=tuple(args))

    def _whole(self, negated: AntiJoin, query: Query) -> AntiJoin:
        args = plain(negated.args)
        return AntiJoin(self._projection(negated.relation, args, query), tuple(a for a in args if a is not None))

    def _once(self, reading: Reading, query: Query) -> Reading:
        """The reading without columns that nothing uses, if it has many rows for the others (or may get them, for all that is
        known), or if an aggregate changes with its rows: each change would meet all of them."""
        estimator = self.paths.estimator
        used = _used(reading, query)
        args = tuple([a if mask(a) & used or not mask(a) else None for a in reading.args])
        columns = _argument_columns(args)
        if reading.relation in self.paths.feedback or len(columns) == len(args):
            return reading
        rows = estimator.rows(reading.relation)
        looked_up = any(isinstance(c, LookUp) and condition_mask(c) & mask_all(args) for c in query.conditions)
        if rows > 0 and not looked_up and rows < REPEATED * estimator.distinct(reading.relation, columns):
            return reading
        name = self._projection(reading.relation, args, query)
        return replace(reading, relation=name, args=tuple(a for a in args if a is not None))

    def _projection(self, relation: str, args: Sequence[Arg], query: Query) -> str:
        """The temporary of the distinct values of the columns whose arguments are given."""
        columns = _argument_columns(args)
        if (known := self.projections.names.get((relation, columns))) is not None:
            return known
        kinds = self.stages.kinds(relation)
        own, free = list(query.kinds), list[Arg]([None] * len(args))
        for column in columns:
            arg = args[column]
            if not isinstance(arg, Variable) or arg in free:
                arg = Variable(len(own))
                own.append(kinds[column])
            free[column] = arg
        output = tuple(a for a in free if a is not None)
        made = self.fill(Query((Reading(relation, tuple(free)),), (), output, False, tuple(own)))
        self.paths.estimator.declare(made.relation, len(columns), self.paths.estimator.distinct(relation, columns))
        self.projections.names[relation, columns] = made.relation
        return made.relation


def _argument_columns(args: Iterable[Arg]) -> tuple[int, ...]:
    return tuple(c for c, a in enumerate(args) if a is not None)


def _used(reading: Reading, query: Query) -> int:
    """The variables that something besides their one place in the reading uses."""
    used = mask_all(query.output) | mask_all(a for r in query.readings if r is not reading for a in r.args)
    for condition in query.conditions:
        used |= condition_mask(condition)
    for column, arg in enumerate(reading.args):
        used |= mask(arg) & mask_all(reading.args[:column])
    return used


def evaluable(readings: Iterable[Reading], conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """The conditions whose variables the readings and the conditions bind."""
    bound = closure(mask_all(a for r in readings for a in r.args), conditions)
    return tuple(c for c in conditions if not condition_mask(c) & ~bound)
