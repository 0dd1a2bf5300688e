"""From the moves of an order to the steps of a path.

The steps bind only what a later step or the sink uses, and check what a reading says beyond its index (constants and repeated
variables of a seed, repeated new variables of a join) by filters over fresh variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from dlog.engine.ir.nodes import (
    Accumulate,
    AntiJoin,
    Arrangement,
    Bind,
    Extend,
    Filter,
    Generate,
    HalfJoin,
    Insert,
    LookUp,
    Map,
    Path,
    Proposer,
    Scan,
    SemiJoin,
    Step,
    Unit,
)
from dlog.engine.ir.nodes import UnpackRecord as UnpackStep
from dlog.engine.ir.rules import PAD, Arg, Compare, Constant, Functor, Generator, Kind, Record, Term, Unpack, Variable
from dlog.engine.plan.joins import moves
from dlog.engine.plan.joins.ranges import range_checks
from dlog.engine.plan.query import Condition, Query, Reading, ids, mask, mask_all, solve


def emit(query: Query, order: Sequence[moves.Move], sink: Insert | Accumulate, rule: int, changes: bool = False) -> Path:
    """The path that takes the moves of an order; `changes` says what a seed scans."""
    emitter = _Emitter(query, changes)
    for move in order:
        emitter.take(move)
    path = Path(rule, emitter.seed, tuple(emitter.steps), sink, emitter.variables)
    return _sort_seed(_prune(path, query))


class _Emitter:
    def __init__(self, query: Query, changes: bool) -> None:
        self.query = query
        self.changes = changes
        self.seed: Scan | Unit = Unit()
        self.steps: list[Step] = []
        self.bound = 0
        self.variables = len(query.kinds)

    def take(self, move: moves.Move) -> None:
        match move:
            case moves.Scan(reading=reading):
                self._seed(reading)
            case moves.HalfJoin(reading=reading, rows=rows):
                self._join(reading, rows)
            case moves.SemiJoin(reading=reading):
                args = tuple(a if mask(a) & ~self.bound == 0 else None for a in reading.args)
                self.steps.append(SemiJoin(reading.relation, args, reading.view))
            case moves.Extend(variable=variable, readings=readings, rows=rows):
                self._meet(variable, readings, rows)
            case moves.Filter(condition=condition):
                self._apply(condition)
            case _:
                assert_never(move)

    def _fresh(self) -> int:
        self.variables += 1
        return self.variables - 1

    def _bind(self, columns: Sequence[tuple[int, Arg]]) -> tuple[tuple[Bind, ...], list[Filter]]:
        """Binds for columns that no index has checked, and the filters that check constants and repetitions among them."""
        binds: list[Bind] = []
        checks: list[Filter] = []
        for column, arg in columns:
            match arg:
                case None:
                    pass
                case Variable(id=i) if not self.bound >> i & 1:
                    binds.append((column, i))
                    self.bound |= 1 << i
                case Variable() | Constant():
                    fresh = self._fresh()
                    binds.append((column, fresh))
                    checks.append(Filter(Compare("=", Variable(fresh), arg, self._kind(arg))))
                case _:
                    assert_never(arg)
        return tuple(binds), checks

    def _kind(self, term: Variable | Constant) -> Kind:
        """The kind by which a row's value is compared with the term's: floats by their bits, as joins do."""
        kind = term.kind if isinstance(term, Constant) else self.query.kinds[term.id]
        return Kind.NUMBER if kind is Kind.FLOAT else kind

    def _seed(self, reading: Reading) -> None:
        binds, checks = self._bind(list(enumerate(reading.args)))
        self.seed = Scan(reading.relation, binds, self.changes)
        self.steps.extend(checks)

    def _join(self, reading: Reading, rows: float) -> None:
        key = tuple((c, a) for c, a in enumerate(reading.args) if a is not None and not mask(a) & ~self.bound)
        columns = {c for c, _ in key}
        binds, checks = self._bind([(c, a) for c, a in enumerate(reading.args) if c not in columns])
        arrangement = Arrangement(reading.relation, tuple(c for c, _ in key))
        self.steps.append(HalfJoin(arrangement, tuple(a for _, a in key), binds, reading.view, rows))
        self.steps.extend(checks)

    def _meet(self, variable: int, readings: Sequence[Reading], rows: float) -> None:
        proposers = []
        for reading in readings:
            column = next(c for c, a in enumerate(reading.args) if a == Variable(variable))
            key = tuple((c, a) for c, a in enumerate(reading.args) if c != column and a is not None)
            arrangement = Arrangement(reading.relation, tuple(c for c, _ in key), (column,))
            proposers.append(Proposer(arrangement, tuple(a for _, a in key), column, reading.view))
        self.steps.append(Extend(variable, tuple(proposers), rows))
        self.bound |= 1 << variable

    def _apply(self, condition: Condition) -> None:
        match condition:
            case Compare(left=left, right=right):
                solved = solve(left, right, (mask(left) | mask(right)) & ~self.bound)
                if solved is None:
                    self.steps.append(Filter(condition))
                else:
                    variable, term = solved
                    self.steps.append(Map(variable.id, term))
                    self.bound |= 1 << variable.id
            case Unpack(value=value, type=type, fields=fields):
                if not self.bound >> value.id & 1:
                    self.steps.append(Map(value.id, Record(type, tuple(f for f in fields if f is not None))))
                    self.bound |= 1 << value.id
                    return
                binds, checks = self._bind([(f, a) for f, a in enumerate(fields) if a != PAD])  # the tag says that it is one
                self.steps.append(UnpackStep(value.id, type, binds))
                self.steps.extend(checks)
            case Generator(function=function, args=args, results=results, kind=kind):
                in_range = None if mask_all(results) & ~self.bound else range_checks(condition)
                if in_range is not None:
                    self.steps.extend(in_range)
                    return
                binds, checks = self._bind(list(enumerate(results)))
                self.steps.append(Generate(function, args, binds, kind))
                self.steps.extend(checks)
            case LookUp(variable=variable):
                self._look_up(condition, variable)
            case AntiJoin():
                self.steps.append(condition)
            case _:
                assert_never(condition)

    def _look_up(self, step: LookUp, variable: int) -> None:
        if not self.bound >> variable & 1:
            self.steps.append(step)
            self.bound |= 1 << variable
            return
        fresh = self._fresh()
        self.steps.append(replace(step, variable=fresh))
        self.steps.append(Filter(Compare("=", Variable(variable), Variable(fresh), self._kind(Variable(variable)))))


# ------------------------------------------------------------------------------------------------------------- pruning


def reads(step: Step) -> int:
    """The variables a step needs bound."""
    match step:
        case HalfJoin(key=key) | LookUp(key=key):
            return mask_all(key)
        case Extend(proposers=proposers):
            return mask_all(t for p in proposers for t in p.key)
        case SemiJoin(args=args) | AntiJoin(args=args):
            return mask_all(args)
        case Filter(compare=compare):
            return mask(compare.left) | mask(compare.right)
        case Map(term=term):
            return mask(term)
        case UnpackStep(variable=variable):
            return 1 << variable
        case Generate(args=args):
            return mask_all(args)
        case _:
            assert_never(step)


def binds_of(step: Step) -> int:
    """The variables a step binds."""
    match step:
        case HalfJoin(binds=binds) | UnpackStep(binds=binds) | Generate(binds=binds):
            return sum(1 << v for _, v in binds)
        case Extend(variable=variable) | Map(variable=variable) | LookUp(variable=variable):
            return 1 << variable
        case SemiJoin() | AntiJoin() | Filter():
            return 0
        case _:
            assert_never(step)


def sink_terms(sink: Insert | Accumulate) -> tuple[Term, ...]:
    match sink:
        case Insert(terms=terms, weight=weight):
            return terms if weight is None else (*terms, weight)
        case Accumulate(key=key, value=value):
            return key if value is None else (*key, value)
        case _:
            assert_never(sink)


def _prune(path: Path, query: Query) -> Path:
    """The path without binds that nothing uses, and without steps that only made them."""
    live = mask_all(sink_terms(path.sink))
    arities = {} if query.bag else {r.relation: len(r.args) for r in query.readings}
    kept: list[Step] = []
    for step in reversed(path.steps):
        pruned = _prune_step(step, live, arities)
        if pruned is not None:
            live = live & ~binds_of(pruned) | reads(pruned)
            kept.append(pruned)
    seed = path.seed
    if isinstance(seed, Scan):
        seed = Scan(seed.relation, tuple([b for b in seed.binds if live >> b[1] & 1]), seed.changes)
    return Path(path.rule, seed, tuple(reversed(kept)), path.sink, path.variables)


def _prune_step(step: Step, live: int, arities: dict[str, int]) -> Step | None:
    """`arities` of relations whose rows need not be counted: a join that binds nothing becomes a semijoin."""
    match step:
        case HalfJoin(arrangement=arrangement, binds=binds):
            used = tuple([b for b in binds if live >> b[1] & 1])
            arity = arities.get(arrangement.relation)
            if not used and arity is not None:
                return _as_semijoin(step, arity)
            return step if len(used) == len(binds) else replace(step, binds=used)
        case UnpackStep(binds=binds) | Generate(binds=binds):
            return replace(step, binds=tuple(b for b in binds if live >> b[1] & 1))
        case Map(variable=variable):
            return step if live >> variable & 1 else None
        case LookUp(variable=variable, default=default):
            return step if live >> variable & 1 or default is None else None
        case Extend() | SemiJoin() | AntiJoin() | Filter():
            return step
        case _:
            assert_never(step)


def _as_semijoin(step: HalfJoin, arity: int) -> SemiJoin:
    terms = dict(zip(step.arrangement.key, step.key, strict=True))
    return SemiJoin(step.arrangement.relation, tuple(terms.get(c) for c in range(arity)), step.view)


def _sort_seed(path: Path) -> Path:
    """Asks for the seed's rows grouped by what the first extension looks up first, so that it can reuse a group."""
    seed = path.seed
    if not isinstance(seed, Scan) or seed.changes:
        return path
    column_of = {variable: column for column, variable in seed.binds}
    for step in path.steps:
        match step:
            case Extend(proposers=proposers):
                keys = [tuple(column_of.get(i, -1) for i in ids(mask_all(p.key))) for p in proposers]
                best = min((k for k in keys if k and -1 not in k), default=())
                return replace(path, seed=replace(seed, sorted_by=best))
            case HalfJoin():
                return path
            case SemiJoin() | AntiJoin() | Filter() | Map() | UnpackStep() | Generate() | LookUp():
                pass
    return path


def term_kind(term: Term, kinds: Sequence[Kind]) -> Kind:
    match term:
        case Variable(id=i):
            return kinds[i]
        case Constant(kind=kind) | Functor(result=kind):
            return kind
        case Record():
            return Kind.RECORD
        case _:
            assert_never(term)


def relations_of(step: Step) -> list[str]:
    """The relations that a step looks into."""
    match step:
        case HalfJoin(arrangement=arrangement):
            return [arrangement.relation]
        case Extend(proposers=proposers):
            return [p.arrangement.relation for p in proposers]
        case SemiJoin(relation=relation) | AntiJoin(relation=relation) | LookUp(relation=relation):
            return [relation]
        case Filter() | Map() | UnpackStep() | Generate():
            return []
