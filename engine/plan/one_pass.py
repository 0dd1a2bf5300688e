"""in_one_pass: aggregates over the same matches are filled by one path.

    stage 1: scan f(y, z); join e[1](x, y); accumulate @1[x] with count
    stage 2: scan f(y', z'); join e[1](x, y'); accumulate @2[x] with sum z'

becomes

    stage 1: scan f(y, z); join e[1](x, y); accumulate @1[x] with count; accumulate @2[x] with sum z

Two paths find the same matches if they take the same steps, whatever columns each of them binds on the way. Reductions are
merged as a whole: all paths of one go along with those of another. This is for one process: exchanges among workers are planned
by sink.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field, replace
from typing import TypeVar, assert_never

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import (
    Accumulate,
    AntiJoin,
    Bind,
    Extend,
    Filter,
    Generate,
    HalfJoin,
    LookUp,
    Map,
    Path,
    Scan,
    Scope,
    SemiJoin,
    Step,
    Unit,
    UnpackRecord,
)
from dlog.engine.ir.rules import Functor, Record, Term, Variable
from dlog.engine.plan.joins.emit import sink_terms

Stage = tuple[Path, ...]


def in_one_pass(scope: Scope) -> Scope:
    """The same scope; a path fills all reductions of what it finds."""
    stages: list[Stage] = []
    alike: dict[Hashable, list[int]] = {}
    for stage in scope.stages:
        if not all(isinstance(path.sink, Accumulate) and not _is_stateful(path) for path in stage):
            stages.append(stage)
            continue
        places = alike.setdefault(tuple(_outline(path) for path in stage), [])
        for place in places:
            merged = _merged(stages[place], stage)
            if merged is not None:
                stages[place] = merged
                break
        else:
            places.append(len(stages))
            stages.append(stage)
    return scope if len(stages) == len(scope.stages) else replace(scope, stages=tuple(stages))


def _merged(one: Stage, other: Stage) -> Stage | None:
    """The paths of a stage, which fill the reduction of the other as well; None where they do not find what its paths find."""
    found: list[Path] = []
    for path, also in zip(one, other, strict=True):
        merged = _Merging.of(path, also)
        if merged is None:
            return None
        found.append(merged)
    return tuple(found)


def _outline(path: Path) -> Hashable:
    """What paths that find the same matches agree in: most that do not are told apart by it."""
    return path.rule if path.advance or path.delayed != "no" else None, type(path.seed), tuple(map(type, path.steps))


def _is_stateful(path: Path) -> bool:
    """Whether the path computes what may be another value when it is computed again."""
    terms = [*sink_terms(path.sink), *(t for step in path.steps for t in _computed(step))]
    return any(_has_state(term) for term in terms)


def _computed(step: Step) -> Sequence[Term]:
    match step:
        case Filter(compare=compare):
            return compare.left, compare.right
        case Map(term=term):
            return (term,)
        case Generate(args=args):
            return args
        case _:
            return ()


def _has_state(term: Term) -> bool:
    match term:
        case Functor(args=args, stateful=stateful):
            return stateful or any(map(_has_state, args))
        case Record(args=args):
            return any(map(_has_state, args))
        case _:
            return False


class _Different(Exception):
    """The paths do not find the same matches."""


S = TypeVar("S", bound=Step)


def _of_type(one: S, other: Step) -> S:
    """The other path's step, which has to be of the same type."""
    if not isinstance(other, type(one)):
        raise _Different
    return other


@dataclass(slots=True)
class _Merging:
    """The merging of a path into another one, step by step."""

    variables: int
    """How many variable ids the merged path has."""
    used_variables: set[int]
    """Those in use; a variable of the other path keeps its id where it is free."""
    names: dict[int, int] = field(default_factory=dict)
    """The variables of the other path in the merged one."""

    @classmethod
    def of(cls, one: Path, other: Path) -> Path | None:
        """The first path, which does what the other does as well."""
        assert isinstance(other.sink, Accumulate)
        merging = cls(max(one.variables, other.variables), set(_bound_variables(one)))
        try:
            seed = merging.seed(one.seed, other.seed)
            steps = tuple([merging.step(a, b) for a, b in zip(one.steps, other.steps, strict=True)])
        except _Different:
            return None
        sink, named = other.sink, merging.named
        value = None if sink.value is None else named(sink.value)
        also = replace(sink, key=tuple(map(named, sink.key)), value=value)
        return replace(one, seed=seed, steps=steps, also=(*one.also, also), variables=merging.variables)

    def seed(self, one: Scan | Unit, other: Scan | Unit) -> Scan | Unit:
        if not isinstance(one, Scan) or not isinstance(other, Scan):
            return one
        self.require(replace(one, binds=()) == replace(other, binds=()))
        return replace(one, binds=self.binds(one.binds, other.binds))

    def step(self, one: Step, other: Step) -> Step:
        """The step of the merged path."""
        match one:
            case HalfJoin():
                join = _of_type(one, other)
                self.require(one.arrangement == join.arrangement and one.view == join.view)
                self.require_same(one.key, join.key)
                return replace(one, binds=self.binds(one.binds, join.binds))
            case UnpackRecord():
                unpack = _of_type(one, other)
                self.require(one.type == unpack.type and self.names.get(unpack.variable) == one.variable)
                return replace(one, binds=self.binds(one.binds, unpack.binds))
            case Generate():
                generate = _of_type(one, other)
                self.require(one.function == generate.function and one.kind is generate.kind)
                self.require_same(one.args, generate.args)
                return replace(one, binds=self.binds(one.binds, generate.binds))
            case Extend():
                extend = _of_type(one, other)
                self.require(len(one.proposers) == len(extend.proposers))
                for p, q in zip(one.proposers, extend.proposers, strict=True):
                    self.require(replace(p, key=()) == replace(q, key=()))
                    self.require_same(p.key, q.key)
                self.names[extend.variable] = one.variable
            case Map():
                computed = _of_type(one, other)
                self.require_same((one.term,), (computed.term,))
                self.names[computed.variable] = one.variable
            case LookUp():
                look_up = _of_type(one, other)
                self.require(replace(one, key=(), variable=0) == replace(look_up, key=(), variable=0))
                self.require_same(one.key, look_up.key)
                self.names[look_up.variable] = one.variable
            case SemiJoin() | AntiJoin():
                member = _of_type(one, other)
                self.require(one.relation == member.relation and one.view == member.view)
                self.require_same(one.args, member.args)
            case Filter(compare=compare):
                compared = _of_type(one, other).compare
                self.require(compare.op == compared.op and compare.kind is compared.kind)
                self.require_same((compare.left, compare.right), (compared.left, compared.right))
            case _:
                assert_never(one)
        return one

    def binds(self, one: tuple[Bind, ...], other: tuple[Bind, ...]) -> tuple[Bind, ...]:
        """What both bind, by column."""
        bound = dict(one)
        for column, variable in other:
            if column not in bound:
                bound[column] = self.fresh(variable)
            self.names[variable] = bound[column]
        return tuple(bound.items())

    def fresh(self, variable: int) -> int:
        if variable in self.used_variables:
            variable, self.variables = self.variables, self.variables + 1
        self.used_variables.add(variable)
        return variable

    def require(self, same: bool) -> None:
        if not same:
            raise _Different

    def require_same(self, one: Sequence[Term | None], other: Sequence[Term | None]) -> None:
        self.require(len(one) == len(other) and all(map(self.is_same, one, other)))

    def is_same(self, one: Term | None, other: Term | None) -> bool:
        """Whether terms of the two paths have the same value, wherever they stand in the text."""
        match one, other:
            case Variable(id=a), Variable(id=b):
                return self.names.get(b) == a
            case Functor(), Functor():
                alike = (one.op, one.kind, one.result, len(one.args)) == (other.op, other.kind, other.result, len(other.args))
                return alike and all(map(self.is_same, one.args, other.args))
            case Record(), Record():
                alike = one.type == other.type and len(one.args) == len(other.args)
                return alike and all(map(self.is_same, one.args, other.args))
            case _:
                return one == other

    def named(self, term: Term) -> Term:
        """A term of the other path in the merged one."""
        match term:
            case Variable(id=id):
                return replace(term, id=self.names[id])
            case Functor(args=args) | Record(args=args):
                return replace(term, args=tuple(map(self.named, args)))
            case _:
                return term


def _bound_variables(path: Path) -> list[int]:
    """The variables that a path binds."""
    found = [variable for _, variable in path.seed.binds] if isinstance(path.seed, Scan) else []
    for step in path.steps:
        match step:
            case HalfJoin(binds=binds) | UnpackRecord(binds=binds) | Generate(binds=binds):
                found += [variable for _, variable in binds]
            case Extend(variable=variable) | Map(variable=variable) | LookUp(variable=variable):
                found.append(variable)
            case SemiJoin() | AntiJoin() | Filter():
                pass
    return found
