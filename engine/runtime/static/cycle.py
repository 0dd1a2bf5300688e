"""A cycle: moves that are planned and lowered once and made again and again by the machine (kernels/machine.py), without Python
where a move does not ask for it.

Relations that the moves change keep their structs, shapes and kinds of sets; indexes of them grow as rows come, and are emptied
with them. Of all others there are sorted indexes, as of any scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Kind, Program, Stratum
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Move as Do
from dlog.engine.kernels.codes import SetKind, Status
from dlog.engine.kernels.combine import Combine
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.static.iterations import MARK
from dlog.engine.runtime.lowering.external import evaluate
from dlog.engine.runtime.lowering.lower import PathLowering
from dlog.engine.runtime.lowering.lowered import ExternalCall, LoweredPath, Tables
from dlog.engine.runtime.static.moves import Add, Begin, Call, Count, Empty, Evaluate, Move, Where, copied, renamed
from dlog.engine.runtime.static.moving import MovingStatistics
from dlog.engine.runtime.static.scope import (
    RuleCosts,
    ScopeRun,
    finish_reduction,
    is_mean,
    needed_columns,
    shape_reduction,
    sink_width,
)
from dlog.engine.runtime.static.thread_pool import BULK_ROWS, ThreadPool
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.extent import Extent, Extents, infer_extents
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation


@dataclass(frozen=True)
class First:
    """Of the rows of a key only the first shall be kept, by the order of these columns."""

    key: tuple[int, ...]
    compared: tuple[tuple[int, Combine], ...]
    symbols: np.ndarray
    """Those that precede all others, by id: their places from 1 on."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What cycles of one stratum have in common."""

    program: Program
    catalog: Catalog
    thread_pool: ThreadPool
    pause: Callable[[], None]
    moving: frozenset[str]
    """The relations that moves change."""
    firsts: Mapping[str, First]
    limits: Mapping[str, int]


@dataclass(slots=True)
class _Made:
    """A move of the machine, in the making."""

    kind: Do
    relation: str = ""
    paths: Sequence[nodes.Path] = ()
    numbers: tuple[int, ...] = ()
    """For the rules of the paths, those of the stratum."""
    derives: bool = False
    further: int = 0
    call: Callable[[], None] | None = None


class Cycle:
    """Moves in one order, planned for what relations hold now; `run`, once, makes them."""

    def __init__(self, moves: Iterable[Move], setting: Setting, looping: bool) -> None:
        self.setting = setting
        self.catalog = setting.catalog
        self.looping = looping
        self.scopes: dict[str, nodes.Scope] = {}
        """The plans, by step."""
        self.costs: dict[int, RuleCosts] = {}
        self.moves: list[_Made] = []
        self._grown: tuple[tuple[str, str], ...] = ()
        self._own: dict[str, nodes.Reduction | None] = {}
        """Relations of the planner's own; how those of aggregates are reduced."""
        self._flows: list[nodes.Path] = []
        """How rows come that Python brings, for their extents."""
        self._unknown: dict[str, tuple[Kind, ...]] = {}
        self._tested: set[str] = set()
        self._lowered: list[list[LoweredPath]] = []
        self._growing: dict[nodes.Arrangement, StoredArrangement] = {}
        self._tables = Tables()
        self._kept: list[Struct] = []
        self._running: tuple[ScopeRun, tuple[int, ...]] | None = None
        for move in moves:
            self._make(move)

    # ------------------------------------------------------------------------------------------------------------ moves

    def _make(self, move: Move) -> None:
        match move:
            case Evaluate():
                self._evaluate(move)
            case Empty(relation=name):
                self._emit(Do.EMPTY, name)
            case Add(relation=name, of=of):
                self._run([copied(name, of, self.catalog.relations[name].arity)])
                self._emit(Do.ARRANGE, name)
            case Where(relation=name, moves=inner, again=again):
                self._where(name, inner, again)
            case Count(relation=name):
                self._emit(Do.COUNT, name)
                self._emit(Do.ARRANGE, name)
            case Call(function=function, flows=flows):
                self._flows += flows
                self.moves.append(_Made(Do.CALL, call=function))
            case Begin(grown=grown):
                self._grown = grown
                self.moves.append(_Made(Do.BEGIN))

    def _emit(self, kind: Do, *names: str) -> None:
        self.moves += (_Made(kind, name) for name in names)

    def _run(self, paths: Sequence[nodes.Path], numbers: tuple[int, ...] = (), derives: bool = False) -> None:
        self.moves.append(_Made(Do.RUN, paths=paths, numbers=numbers, derives=derives))

    def _where(self, name: str, inner: Iterable[Move], again: bool) -> None:
        test, start = _Made(Do.UNLESS, name), len(self.moves)
        self.moves.append(test)
        for move in inner:
            self._make(move)
        if again:
            self.moves.append(_Made(Do.UNLESS, further=start - len(self.moves) - 1))
        test.further = len(self.moves) - start - 1

    def _evaluate(self, move: Evaluate) -> None:
        self._emit(Do.EMPTY, *move.into)
        if not move.rules:
            return
        scope = self._planned(move)
        numbers = tuple(number for _, number in move.rules)
        if scope.folds or scope.nested:
            self._apart(scope, numbers, move.derives)
        else:
            self._evaluate_scope(scope, numbers, move.derives)
        self._emit(Do.ARRANGE, *move.into)

    def _planned(self, move: Evaluate) -> nodes.Scope:
        """The plan of a step, whose own relations have names that no other step has."""
        stratum = Stratum(move.into, tuple(rule for rule, _ in move.rules), False)
        statistics = MovingStatistics(self.catalog, self.setting.moving, self.looping)
        scope = self.scopes[move.step] = build_scope(stratum, self.setting.program, statistics)
        self._tested |= set(_tested(_all_paths(scope)))
        own = [r.relation for made in (scope.temporaries, scope.reductions, scope.folds) for r in made]
        names = {name: f"{name}{MARK}{len(self.scopes)}" for name in own}
        if not names:
            return scope
        whole = replace(scope, stages=(), enter=tuple(renamed(p, names) for p in scope.enter))
        self._unknown |= {names[fold.relation]: fold.columns for fold in scope.folds}
        if scope.folds or scope.nested:
            self._flows += (*(renamed(p, names) for stage in scope.stages for p in stage), *whole.enter)
            return scope
        return replace(
            whole,
            stages=tuple(tuple(renamed(p, names) for p in stage) for stage in scope.stages),
            temporaries=tuple(replace(t, relation=names[t.relation]) for t in scope.temporaries),
            reductions=tuple(replace(r, relation=names[r.relation]) for r in scope.reductions),
        )

    def _evaluate_scope(self, scope: nodes.Scope, numbers: tuple[int, ...], derives: bool) -> None:
        for temporary in scope.temporaries:
            self._own[temporary.relation] = None
            self.catalog.add(temporary.relation, [Kind(k) for k in temporary.kinds])
        for reduction in scope.reductions:
            self._own[reduction.relation] = reduction
            self.catalog.add(reduction.relation, list(reduction.columns))
        for stage in scope.stages:
            made = list(dict.fromkeys(path.sink.relation for path in stage))
            self._emit(Do.EMPTY, *made)
            self._run(stage, numbers)
            for reduction in (r for r in scope.reductions if r.relation in made and is_mean(r)):
                finish = partial(finish_reduction, self.catalog.relations[reduction.relation], reduction)
                self.moves.append(_Made(Do.CALL, call=finish))
            self._emit(Do.ARRANGE, *made)
        self._run(scope.enter, numbers, derives)

    def _apart(self, scope: nodes.Scope, numbers: tuple[int, ...], derives: bool) -> None:
        """A step that asks Python for relations of its own is lowered anew each time."""
        scope = replace(scope, enter=tuple(_distinct(path) for path in scope.enter))
        self._tested |= set(scope.relations)
        self.moves.append(_Made(Do.CALL, call=partial(self._run_apart, scope, numbers, derives)))

    def _run_apart(self, scope: nodes.Scope, numbers: tuple[int, ...], derives: bool) -> None:
        control = self.setting.thread_pool.workers[0].control
        iteration = control[L.control.iteration]
        run = _StepRun(scope, self.catalog, self.setting.thread_pool, self.setting.pause, moving=self.setting.moving)
        self._running = run, numbers
        run.run()
        self._running = None
        control[L.control.iteration] = iteration
        self.setting.thread_pool.prepare(self._tables)
        for at, costs in run.costs.items():
            self.costs.setdefault(numbers[at], RuleCosts()).add(costs.cycles, costs.derived, costs.new if derives else 0)

    # ------------------------------------------------------------------------------------------------------------ shape

    def _shape(self) -> None:
        """Gives every relation that moves change its widths and its set, for all that may come."""
        catalog, paths = self.catalog, [path for move in self.moves for path in move.paths]
        self._needed = needed_columns(paths)
        sunk = [*paths, *self._flows]
        made = {path.sink.relation: sink_width(path) for path in sunk}
        start = {name: _extents(catalog.relations[name]) for name in made if name in catalog.relations and catalog.holds(name)}
        extents = infer_extents(sunk, made, self._known, start)
        distinct = {path.sink.relation for path in paths if isinstance(path.sink, nodes.Insert) and path.sink.distinct}
        for name in {*self.setting.moving, *self._own}:
            relation = catalog.relations[name]
            columns = extents.get(name) or (relation.extents if relation.rows else [])
            columns = [*columns, *[None] * (relation.arity - len(columns))]
            catalog.renew(name)
            reduction = self._own.get(name)
            if reduction is not None:
                shape_reduction(relation, reduction, columns)
            else:
                relation.shape(columns)
                self._take_set(relation, name in distinct or name in self._tested)
            relation.pinned = True

    def _take_set(self, relation: StoredRelation, distinct: bool) -> None:
        first = self.setting.firsts.get(relation.name)
        if first is not None:
            relation.clear()
            relation.keep_first(first.key, first.compared, first.symbols)
        elif distinct:
            relation.ensure_set()

    def _known(self, name: str) -> Extents:
        if name in self._unknown:
            return [None] * len(self._unknown[name])
        return self.catalog.extents(name)

    # -------------------------------------------------------------------------------------------------------- lowering

    def _lower(self) -> Struct:
        """The cycle as the machine makes it."""
        for move in self.moves:
            self._lowered.append([self._lowered_path(path) for path in move.paths])
        indexes: dict[str, list[StoredArrangement]] = {}
        for wanted, index in self._growing.items():
            index.take_up()
            indexes.setdefault(wanted.relation, []).append(index)
        moves = [
            (int(move.kind), *self._operands(move, paths, indexes.get(move.relation, ())), move.further)
            for move, paths in zip(self.moves, self._lowered, strict=True)
        ]
        cycle = Struct(L.cycle.size)
        cycle.point(L.cycle.moves, words(word for move in moves for word in move))
        cycle[L.cycle.move_count] = len(moves)
        relations = self.catalog.relations
        cycle.point(L.cycle.grown, words(relations[name].address for name, _ in self._grown))
        cycle.point(L.cycle.deltas, words(relations[delta].address for _, delta in self._grown))
        cycle[L.cycle.relation_count] = len(self._grown)
        for name, _ in self._grown:
            relations[name].struct[L.relation.limit] = self.setting.limits.get(name, 0)
        return cycle

    def _operands(
        self, move: _Made, paths: Sequence[LoweredPath], indexes: Sequence[StoredArrangement]
    ) -> tuple[int, int, int, int, int]:
        relation = self.catalog.relations[move.relation].address if move.relation else 0
        listed, arranged = words(p.address for p in paths), words(a.address for a in indexes)
        self._kept += (listed, arranged)
        return relation, listed.address, len(paths), arranged.address, len(indexes)

    def _lowered_path(self, path: nodes.Path) -> LoweredPath:
        if self.relation(path.sink.relation).set_kind != SetKind.NONE:
            path = _distinct(path)
        made = PathLowering(path, self, self._tables).lower()
        made.struct[L.path.divisible] = int(made.shareable and len(path.steps) > 0)
        return made

    # ------------------------------------------------------------------------------------------------------------- run

    def run(self) -> int:
        """Makes the moves, until there is nothing to go on from. Returns how many iterations were begun."""
        pool = self.setting.thread_pool
        try:
            self._shape()
            cycle = self._lower()
            pool.prepare(self._tables)
            self._drive(cycle)
        finally:
            self._clean()
        return pool.workers[0].control[L.control.iteration]

    def _drive(self, cycle: Struct) -> None:
        pool = self.setting.thread_pool
        control = pool.workers[0].control
        control[L.control.path] = control[L.control.running] = control[L.control.iteration] = control[L.control.changes] = 0
        control[L.control.bulk] = BULK_ROWS if pool.size > 1 else 2**62
        while (status := pool.workers[0].run_cycle(cycle, self._external, self.setting.pause)) != Status.DONE:
            move = self.moves[cycle[L.cycle.at]]
            if status == Status.CALL:
                assert move.call is not None
                move.call()
                cycle[L.cycle.at] += 1
            else:
                pool.run_path(self._lowered[cycle[L.cycle.at]][control[L.control.path]], self, self.setting.pause)
                pool.free_shares()  # their bits would keep rows that are taken out of the relation
                control[L.control.path] += 1

    def _external(self, call: ExternalCall, args: Sequence[np.ndarray], rows: int) -> np.ndarray:
        return evaluate(call, args, rows, self.catalog)

    def replace(self, name: str, columns: Sequence[np.ndarray], rows: int) -> None:
        """Other rows for a relation, in the middle of the moves."""
        indexes = [index for wanted, index in self._growing.items() if wanted.relation == name]
        for index in indexes:
            index.empty()
        self.catalog.relations[name].refill(columns, rows)
        for index in indexes:
            index.take_up()

    def _clean(self) -> None:
        for index in self._growing.values():
            index.free()
        for name in self._own:
            self.catalog.remove(name)
        for name in self.setting.moving:
            self.catalog.forget(name)
        for lowered, move in zip(self._lowered, self.moves, strict=False):
            for path in lowered if move.numbers else ():
                new = path.struct[L.path.added] if move.derives else 0
                costs = self.costs.setdefault(move.numbers[path.path.rule], RuleCosts())
                costs.add(path.struct[L.path.cycles], path.struct[L.path.derived], new)

    def current_rule(self) -> int:
        """The rule that was evaluated last, -1 if none."""
        if self._running is not None:
            run, numbers = self._running
            return _number(numbers, run.current_rule())
        controls = [worker.control for worker in self.setting.thread_pool.workers]
        failed = [control[L.control.error_path] for control in controls if control[L.control.error_path]]
        address = failed[0] if failed else controls[0][L.control.run_path]
        for lowered, move in zip(self._lowered, self.moves, strict=False):
            for path in lowered:
                if path.address == address:
                    return _number(move.numbers, path.path.rule)
        return -1

    # ------------------------------------------------------------------------------------------- storage, for lowering

    def relation(self, name: str) -> StoredRelation:
        return self.catalog.relations[name]

    def arrangement(self, wanted: nodes.Arrangement) -> StoredArrangement:
        if wanted.relation not in self.setting.moving and wanted.relation not in self._own:
            return self.catalog.arrangement(wanted, self._needed.get(wanted, ()))
        if wanted not in self._growing:
            relation, items = self.relation(wanted.relation), sorted(self._needed.get(wanted, ()))
            made = self._growing[wanted] = StoredArrangement(relation, wanted.key, wanted.order, growing=True)
            made.start(items[0] if len(items) == 1 and relation.widths[items[0]] == 4 and not relation.keyed else -1)
        return self._growing[wanted]

    def set_of(self, name: str) -> StoredRelation:
        relation = self.relation(name)
        relation.ensure_set()
        return relation

    def records(self, arity: int) -> StoredRelation:
        return self.catalog.records.table(arity)

    def field_kinds(self, record_type: str) -> tuple[Kind, ...]:
        return self.catalog.field_kinds(record_type)

    def encode(self, constant: Constant) -> int:
        return self.catalog.encoder.word(constant)


@dataclass
class _StepRun(ScopeRun):
    """One run of a step apart from the others. It fills relations as they are shaped, and leaves no index of them."""

    moving: frozenset[str] = frozenset()

    def _shape_relation(self, relation: StoredRelation, columns: Extents, distinct: bool) -> None:
        if relation.name not in self.moving:
            super()._shape_relation(relation, columns, distinct)

    def _clean(self) -> None:
        super()._clean()
        self.catalog.complete.difference_update(self.moving)
        for wanted in [wanted for wanted in self.catalog.arrangements if wanted.relation in self.moving]:
            self.catalog.arrangements.pop(wanted).free()


def _all_paths(scope: nodes.Scope) -> Iterator[nodes.Path]:
    for stage in scope.stages:
        yield from stage
    yield from (*scope.enter, *scope.loop)
    for nested in scope.nested:
        yield from _all_paths(nested.scope)


def _tested(paths: Iterable[nodes.Path]) -> Iterator[str]:
    """Relations that are asked for whole rows."""
    for path in paths:
        for step in path.steps:
            match step:
                case nodes.SemiJoin(relation=name, args=args) | nodes.AntiJoin(relation=name, args=args) if None not in args:
                    yield name
                case nodes.Extend(proposers=proposers):
                    yield from (p.arrangement.relation for p in proposers)
                case _:
                    pass


def _distinct(path: nodes.Path) -> nodes.Path:
    """The path with a sink that looks whether a row is there, and so keeps the set up to date."""
    return replace(path, sink=replace(path.sink, distinct=True)) if isinstance(path.sink, nodes.Insert) else path


def _number(numbers: Sequence[int], rule: int) -> int:
    return numbers[rule] if 0 <= rule < len(numbers) else -1


def _extents(relation: StoredRelation) -> Extents:
    """Of the values that are there."""
    found: Extents = []
    for number, kind in enumerate(relation.kinds):
        column = relation.column(number)
        found.append(None if kind is Kind.FLOAT else Extent(int(column.min()), int(column.max())))
    return found
