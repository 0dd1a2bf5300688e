"""Aggregates become reduced relations that are filled before the rules run, and looked up by the rules.

    p(x, c) :- q(x), c = count : { r(x, y), s(y) }.

becomes the reduction `@1(x; count)`, filled by `@1(x) <- r(x, y), s(y)`, and `p(x, c) :- q(x), @1[x] = c`. An aggregate whose
body does not bind all its outer variables, `c = count : { r(y), y < x }`, first gets them from a temporary `@1(x) :- q(x)`
that joins its body. Several alternatives first collect their distinct matches in a temporary.

A user's functor folds values, `c = @@f v : i, { r(x, v) }`: of the temporary `@1(x, i) :- q(x), ...` of all groups, and of
`@2(x, i, v) :- r(x, v), @1(x, i)`, the executor makes `@3(x, i, c)`, which the rule reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import NoReturn, TypeAlias, assert_never

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.thresholds import mentioned
from dlog.engine.ir.aggregates import AGGREGATES, dominance_of, functor_of, is_user_aggregate
from dlog.engine.ir.nodes import Accumulate, AntiJoin, Fold, Insert, LookUp, Nested, Path, Reduction, Temporary
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Generator,
    Kind,
    Literal,
    Negation,
    Program,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.plan.joins.delta import Paths
from dlog.engine.plan.joins.emit import term_kind
from dlog.engine.plan.joins.unify import signature, unify
from dlog.engine.plan.query import Condition, Query, Reading, bindable, canonical, closure, condition_mask, ids, mask_all
from dlog.engine.plan.static.stages import Stages
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError, Label

Lowered: TypeAlias = Reading | Condition

RESTRICTABLE = 100_000.0
"""A cheaper aggregate is computed for all groups, whoever asks."""

GROUPS = 100.0
"""Groups that are taken to come at once where only the recursion says which."""

RESTRICTED = 0.5
"""An aggregate is restricted to the groups that are asked for if that is estimated to cost at most this share."""

TRIAL = "@0"
"""Stands for a temporary that may not come to be."""


@dataclass(slots=True)
class Aggregates:
    """Collects what the aggregates of a scope need."""

    program: Program
    paths: Paths
    stages: Stages
    feedback: frozenset[str]
    reductions: dict[tuple[str, int, Query], str] = field(default_factory=dict)
    """Reductions by what they reduce: rules that ask the same share one."""

    def lower(self, rule: Rule, number: int) -> tuple[Lowered, ...]:
        """The body of `rule`, its aggregates replaced by look-ups of reductions that `stages` fill."""
        return _Lowering(self, rule, number, rule.kinds).lower(rule.body, ())


@dataclass(slots=True)
class _Lowering:
    """Lowers the aggregates of one rule, which share its variables."""

    scope: Aggregates
    rule: Rule
    number: int
    kinds: tuple[Kind, ...]
    """Those of the rule's variables, and of the planner's own."""

    def lower(self, body: Sequence[Literal], context: tuple[Lowered, ...]) -> tuple[Lowered, ...]:
        """`context` is what surrounds the body: where its outer variables may be bound."""
        lowered: list[Lowered] = [_lowered(x, i) for i, x in enumerate(body) if not isinstance(x, Aggregate)]
        waiting = [x for x in body if isinstance(x, Aggregate)]
        while waiting:
            results = mask_all(a.result for a in waiting)
            ready = next((a for a in waiting if not self._depends(a, waiting)), None)
            if ready is None:
                bound = self._binds((*lowered, *context))
                ready = next((a for a in waiting if not mask_all(a.outer) & ~bound), None)
            if ready is None:
                raise InternalError("plan", f"aggregates depend on each other: {self.rule.text}")
            waiting.remove(ready)
            without = [x for x in lowered if not _variables(x) & results]
            lowered.append(self._reduce(ready, (*without, *context), (*lowered, *context)))
        return tuple(lowered)

    def _depends(self, aggregate: Aggregate, waiting: Sequence[Aggregate]) -> bool:
        return bool(mask_all(aggregate.outer) & mask_all(a.result for a in waiting if a is not aggregate))

    def _reduce(self, aggregate: Aggregate, near: tuple[Lowered, ...], wide: tuple[Lowered, ...]) -> Lowered:
        """The look-up of a new reduction for `aggregate`; the bodies around it bind its outer variables, `near` without other
        aggregates' results if it can."""
        outer = tuple(sorted(aggregate.outer, key=lambda v: v.id))
        surrounding = self._surrounding(outer, near, wide)
        if surrounding is None and self._needs_groups(aggregate, outer):
            return self._nested(aggregate, outer)
        bodies = [self.lower(a, wide) for a in aggregate.alternatives]
        if is_user_aggregate(aggregate.op):
            groups = None if surrounding is None or not outer else self._outer_bindings(outer, surrounding)
            return self._fold(aggregate, outer, bodies, groups)
        unbound = any(mask_all(outer) & ~self._binds(b) for b in bodies)
        if surrounding is not None and (unbound or self._restricting_pays(aggregate, outer, bodies, surrounding)):
            bindings = self._outer_bindings(outer, surrounding)
            bodies = [(*b, bindings) for b in bodies]
        if len(bodies) > 1 or counts_bindings(aggregate):
            return self._accumulate(aggregate, outer, *self._distinct_matches(aggregate, outer, bodies))
        return self._accumulate(aggregate, outer, bodies[0], aggregate.target, self.rule.kinds)

    def _needs_groups(self, aggregate: Aggregate, outer: tuple[Variable, ...]) -> bool:
        """Whether an aggregate cannot be computed before its outer variables have values."""
        if not outer or is_user_aggregate(aggregate.op):
            return bool(outer)
        plain = ([_lowered(x, i) for i, x in enumerate(a) if not isinstance(x, Aggregate)] for a in aggregate.alternatives)
        return any(mask_all(outer) & ~self._binds(body) for body in plain)

    def _nested(self, agg: Aggregate, outer: tuple[Variable, ...]) -> Generator:
        """The call of an aggregate of which only the recursion says for what it is computed."""
        if self.scope.feedback & mentioned((agg,)):
            self._refuse(agg)
        name, groups = self.scope.stages.name(), self.scope.stages.name()
        given = Temporary(groups, tuple(self.kinds[v.id].value for v in outer))
        paths = self.scope.paths
        paths.estimator.declare(groups, len(outer), GROUPS)
        stages = Stages(self.scope.program, temporary_count=self.scope.stages.temporary_count, prefilled=(given,))
        inner = Aggregates(self.scope.program, Paths(paths.estimator, frozenset()), stages, frozenset())
        found = _Lowering(inner, self.rule, self.number, self.kinds).of_groups(agg, outer, Reading(groups, outer))
        self.scope.stages.temporary_count = stages.temporary_count
        default = found.default if isinstance(found, LookUp) else None
        self.scope.stages.nested.append(Nested(name, given, stages.scope(), found.relation, agg.kind.value, default))
        return Generator(name, outer, (agg.result,), agg.kind, agg.span)

    def of_groups(self, aggregate: Aggregate, outer: tuple[Variable, ...], groups: Reading) -> LookUp | Reading:
        """What gives the value of an aggregate for groups that are known."""
        bodies = [(*self.lower(a, (groups,)), groups) for a in aggregate.alternatives]
        if is_user_aggregate(aggregate.op):
            return self._fold(aggregate, outer, bodies, groups)
        if len(bodies) > 1 or counts_bindings(aggregate):
            return self._accumulate(aggregate, outer, *self._distinct_matches(aggregate, outer, bodies))
        return self._accumulate(aggregate, outer, bodies[0], aggregate.target, self.rule.kinds)

    def _fold(
        self, agg: Aggregate, outer: tuple[Variable, ...], bodies: list[tuple[Lowered, ...]], groups: Reading | None
    ) -> Reading:
        """The reading of a new relation that a user's functor fills."""
        bodies = [b if groups is None or groups in b else (*b, groups) for b in bodies]
        if len(bodies) == 1 and not counts_bindings(agg):
            bodies = [self._with_named_rows(bodies[0])]
        matches = self._collected(self._columns(agg, outer, bodies), bodies)
        name, kinds = self.scope.stages.name(), self.rule.kinds
        init = outer.index(agg.init) if isinstance(agg.init, Variable) else agg.init
        assert init is not None
        of_groups, keys = None if groups is None else groups.relation, tuple(kinds[v.id].value for v in outer)
        self.scope.stages.folds.append(Fold(name, functor_of(agg.op), of_groups, matches, keys, agg.kind.value, init))
        estimator = self.scope.paths.estimator
        estimator.declare(name, len(outer) + 1, 1.0 if groups is None else estimator.rows(groups.relation))
        return Reading(name, (*outer, agg.result))

    def _with_named_rows(self, body: tuple[Lowered, ...]) -> tuple[Lowered, ...]:
        """The body with variables for what is anonymous in its atom, each of whose rows counts."""
        first = next((x for x in body if isinstance(x, Reading)), None)
        if first is None or None not in first.args:
            return body
        kinds, args = self.scope.stages.kinds(first.relation), list[Arg]()
        for arg, kind in zip(first.args, kinds, strict=True):
            if arg is None:
                arg, self.kinds = Variable(len(self.kinds)), (*self.kinds, kind)
            args.append(arg)
        return tuple(replace(x, args=tuple(args)) if x is first else x for x in body)

    def _accumulate(
        self, agg: Aggregate, outer: tuple[Variable, ...], body: Sequence[Lowered], target: Term | None, kinds: tuple[Kind, ...]
    ) -> LookUp:
        """Fills the reduction of `agg` with the values of `target` over all matches of `body`; `kinds` are those of the
        body's variables."""
        row = AGGREGATES[agg.op]
        output: tuple[Term, ...] = outer if target is None else (*outer, target)
        query = self._query(body, output, row.dominance is None, kinds)
        kind = agg.kind if target is None else term_kind(target, kinds)
        key = (agg.op, len(outer), signature(query))
        if (made := self.scope.reductions.get(key)) is not None:
            return LookUp(made, outer, agg.result.id, row.identity)
        self.scope.reductions[key] = name = self.scope.stages.name()
        keys = tuple(self.rule.kinds[v.id].value for v in outer)
        filling, rows = self.scope.paths.enter(query, Accumulate(name, outer, target), self.number)
        self.scope.stages.reduction(Reduction(name, keys, agg.op, kind.value), *filling)
        self.scope.paths.estimator.declare(name, len(outer) + 1, rows)
        return LookUp(name, outer, agg.result.id, row.identity)

    def _surrounding(self, outer: tuple[Variable, ...], near: tuple[Lowered, ...], wide: tuple[Lowered, ...]) -> Query | None:
        """The distinct bindings that the bodies around an aggregate give its outer variables, without recursion."""
        for literals in (near, wide):
            usable = [x for x in literals if not (isinstance(x, Reading) and x.relation in self.scope.feedback)]
            if not mask_all(outer) & ~self._binds(usable):
                return self._query(_possible(usable), outer, False, self.rule.kinds)
        return None

    def _restricting_pays(
        self, agg: Aggregate, outer: tuple[Variable, ...], bodies: Sequence[Sequence[Lowered]], surrounding: Query
    ) -> bool:
        """Whether the groups that are asked for are so few that it is cheaper to find them first."""
        if not outer:
            return False
        paths, output = self.scope.paths, outer if agg.target is None else (*outer, agg.target)
        queries = [self._query(b, output, True, self.rule.kinds) for b in bodies]
        whole = sum(paths.cost(q)[0] for q in queries)
        if whole < RESTRICTABLE:
            return False
        cost, rows = paths.cost(surrounding)
        paths.estimator.declare(TRIAL, len(outer), rows)
        restricted = cost + sum(paths.cost(_restricted(q, len(outer)))[0] for q in queries)
        return restricted < whole * RESTRICTED

    def _outer_bindings(self, outer: tuple[Variable, ...], surrounding: Query) -> Reading:
        """A temporary with the rows of `surrounding`."""
        name = self.scope.stages.name()
        filling, rows = self.scope.paths.enter(surrounding, Insert(name, outer), self.number, may_repeat=False)
        self.scope.stages.temporary(name, (self.rule.kinds[v.id] for v in outer), *filling)
        self.scope.paths.estimator.declare(name, len(outer), rows)
        return Reading(name, outer)

    def _refuse(self, aggregate: Aggregate) -> NoReturn:
        message = "not supported yet: an aggregate in a recursive rule whose variables are bound by the recursion only"
        raise DlogError(Diagnostic("unsupported", message, (Label(aggregate.span),), source=self.scope.program.source))

    def _distinct_matches(
        self, agg: Aggregate, outer: tuple[Variable, ...], bodies: Sequence[Sequence[Lowered]]
    ) -> tuple[tuple[Lowered, ...], Term | None, tuple[Kind, ...]]:
        """A temporary with the distinct values of the outer variables, of the variables that all alternatives share, and of
        the target: the body that reads it, the target in it, and the kinds of that body's variables."""
        columns = self._columns(agg, outer, bodies)
        name = self._collected(columns, bodies)
        if agg.target is None:
            return (Reading(name, tuple(c for c in columns if isinstance(c, Variable))),), None, self.rule.kinds
        target = Variable(len(self.rule.kinds))
        args = (*outer, *(None for _ in columns[len(outer) : -1]), target)
        return (Reading(name, args),), target, (*self.rule.kinds, term_kind(agg.target, self.rule.kinds))

    def _columns(self, agg: Aggregate, outer: tuple[Variable, ...], bodies: Sequence[Sequence[Lowered]]) -> tuple[Term, ...]:
        """The outer variables, those that all alternatives share, and the target."""
        shared = -1
        for body in bodies:
            shared &= self._binds(body)
        columns: tuple[Term, ...] = (*outer, *(Variable(i) for i in ids(shared & ~mask_all(outer))))
        return columns if agg.target is None else (*columns, agg.target)

    def _collected(self, columns: tuple[Term, ...], bodies: Sequence[Sequence[Lowered]]) -> str:
        """A temporary of the distinct values of the columns in the matches of all bodies."""
        name = self.scope.stages.name()
        filling: list[Path] = []
        total = 0.0
        for body in bodies:
            query = self._query(body, columns, False, self.kinds)
            paths, rows = self.scope.paths.enter(query, Insert(name, columns), self.number)
            filling += paths
            total += rows
        self.scope.stages.temporary(name, (term_kind(t, self.kinds) for t in columns), *filling)
        self.scope.paths.estimator.declare(name, len(columns), total)
        return name

    def _query(self, body: Sequence[Lowered], output: tuple[Term, ...], bag: bool, kinds: tuple[Kind, ...]) -> Query:
        readings, conditions = split(body)
        return canonical(unify(Query(readings, conditions, output, bag, kinds)))

    def _binds(self, body: Sequence[Lowered]) -> int:
        readings, conditions = split(body)
        return bindable(Query(readings, conditions, (), False, self.kinds))


def counts_bindings(aggregate: Aggregate) -> bool:
    """Whether the matches of a body are the distinct bindings of its named variables, not its combinations of rows.

    Souffle evaluates a body of several atoms, with a repeated variable, with another aggregate or a table function, as a
    relation over the named variables; only the rows of a plain single atom count each, whatever its anonymous arguments hold.
    """
    if dominance_of(aggregate.op) is not None:
        return False
    body = aggregate.alternatives[0]
    atoms = [x for x in body if isinstance(x, Atom)]
    taken_apart = (x.fields if isinstance(x, Unpack) else x.results for x in body if isinstance(x, Unpack | Generator))
    anonymous = any(None in x.args for x in atoms) or any(None in columns for columns in taken_apart)
    named = [[a for a in x.args if isinstance(a, Variable)] for x in atoms]
    repeated = any(len(set(arguments)) < len(arguments) for arguments in named)
    return anonymous and (len(atoms) != 1 or repeated or any(isinstance(x, Aggregate | Generator) for x in body))


def _lowered(literal: Atom | Negation | Compare | Unpack | Generator, place: int) -> Lowered:
    match literal:
        case Atom(relation=relation, args=args):
            return Reading(relation, args, place=place)
        case Negation(atom=atom):
            return AntiJoin(atom.relation, atom.args)
        case Compare() | Unpack() | Generator():
            return literal
        case _:
            assert_never(literal)


def split(body: Sequence[Lowered]) -> tuple[tuple[Reading, ...], tuple[Condition, ...]]:
    return tuple(x for x in body if isinstance(x, Reading)), tuple(x for x in body if not isinstance(x, Reading))


def _possible(body: Sequence[Lowered]) -> list[Lowered]:
    """The body without conditions on variables that it does not bind: those say something about other bodies."""
    readings, conditions = split(body)
    bound = closure(mask_all(a for r in readings for a in r.args), conditions)
    return [x for x in body if isinstance(x, Reading) or not condition_mask(x) & ~bound]


def _restricted(query: Query, keys: int) -> Query:
    """The query for an aggregate, restricted by a trial temporary of its keys."""
    outer = tuple(t for t in query.output[:keys] if isinstance(t, Variable))
    return replace(query, readings=(*query.readings, Reading(TRIAL, outer)))


def _variables(part: Lowered) -> int:
    return mask_all(part.args) if isinstance(part, Reading) else condition_mask(part)
