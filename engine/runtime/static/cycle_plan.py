"""The plan of a cycle: its moves in one order, each as the machine makes it, with the paths of those that run some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind, Program, Stratum
from dlog.engine.kernels.codes import Move as Do
from dlog.engine.kernels.combine import Combine
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.static.iterations import MARK
from dlog.engine.runtime.static.iteration_statistics import IterationStatistics
from dlog.engine.runtime.static.moves import Add, Begin, Call, Count, Empty, Evaluate, Move, Where, copied, renamed
from dlog.engine.runtime.static.scope import finish_reduction, is_mean
from dlog.engine.runtime.static.thread_pool import ThreadPool
from dlog.engine.runtime.storage.catalog import Catalog


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
class PlannedMove:
    """A move of the machine, in the making."""

    kind: Do
    relation: str = ""
    paths: Sequence[nodes.Path] = ()
    numbers: tuple[int, ...] = ()
    """For the rules of the paths, those of the stratum."""
    derives: bool = False
    further: int = 0
    call: Callable[[], None] | None = None
    apart: nodes.Scope | None = None
    """A step that asks Python for relations of its own, which is lowered anew each time."""


class CyclePlan:
    """Moves in one order, planned for what relations hold now."""

    def __init__(self, moves: Iterable[Move], setting: Setting, looping: bool) -> None:
        self.setting = setting
        self.catalog = setting.catalog
        self.looping = looping
        self.scopes: dict[str, nodes.Scope] = {}
        """The plans, by step."""
        self.moves: list[PlannedMove] = []
        self.grown: tuple[tuple[str, str], ...] = ()
        self.own: dict[str, nodes.Reduction | None] = {}
        """Relations of the planner's own; how those of aggregates are reduced."""
        self.flows: list[nodes.Path] = []
        """How rows come that Python brings, for their extents."""
        self.unknown: dict[str, tuple[Kind, ...]] = {}
        """Relations of steps apart, of whose values nothing is known."""
        self.tested: set[str] = set()
        """Relations that are asked for whole rows."""
        for move in moves:
            self._make(move)

    @property
    def paths(self) -> list[nodes.Path]:
        """Those of all moves."""
        return [path for move in self.moves for path in move.paths]

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
                self.flows += flows
                self.moves.append(PlannedMove(Do.CALL, call=function))
            case Begin(grown=grown):
                self.grown = grown
                self.moves.append(PlannedMove(Do.BEGIN))

    def _emit(self, kind: Do, *names: str) -> None:
        self.moves += (PlannedMove(kind, name) for name in names)

    def _run(self, paths: Sequence[nodes.Path], numbers: tuple[int, ...] = (), derives: bool = False) -> None:
        self.moves.append(PlannedMove(Do.RUN, paths=paths, numbers=numbers, derives=derives))

    def _where(self, name: str, inner: Iterable[Move], again: bool) -> None:
        test, start = PlannedMove(Do.UNLESS, name), len(self.moves)
        self.moves.append(test)
        for move in inner:
            self._make(move)
        if again:
            self.moves.append(PlannedMove(Do.UNLESS, further=start - len(self.moves) - 1))
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
        statistics = IterationStatistics(self.catalog, self.setting.moving, self.looping)
        scope = self.scopes[move.step] = build_scope(stratum, self.setting.program, statistics)
        self.tested |= set(_tested(_all_paths(scope)))
        own = [r.relation for made in (scope.temporaries, scope.reductions, scope.folds) for r in made]
        names = {name: f"{name}{MARK}{len(self.scopes)}" for name in own}
        if not names:
            return scope
        whole = replace(scope, stages=(), enter=tuple(renamed(p, names) for p in scope.enter))
        self.unknown |= {names[fold.relation]: fold.columns for fold in scope.folds}
        if scope.folds or scope.nested:
            self.flows += (*(renamed(p, names) for stage in scope.stages for p in stage), *whole.enter)
            return scope
        return replace(
            whole,
            stages=tuple(tuple(renamed(p, names) for p in stage) for stage in scope.stages),
            temporaries=tuple(replace(t, relation=names[t.relation]) for t in scope.temporaries),
            reductions=tuple(replace(r, relation=names[r.relation]) for r in scope.reductions),
        )

    def _evaluate_scope(self, scope: nodes.Scope, numbers: tuple[int, ...], derives: bool) -> None:
        for temporary in scope.temporaries:
            self.own[temporary.relation] = None
            self.catalog.add(temporary.relation, [Kind(k) for k in temporary.kinds])
        for reduction in scope.reductions:
            self.own[reduction.relation] = reduction
            self.catalog.add(reduction.relation, list(reduction.columns))
        for stage in scope.stages:
            made = list(dict.fromkeys(path.sink.relation for path in stage))
            self._emit(Do.EMPTY, *made)
            self._run(stage, numbers)
            for reduction in (r for r in scope.reductions if r.relation in made and is_mean(r)):
                finish = partial(finish_reduction, self.catalog.relations[reduction.relation], reduction)
                self.moves.append(PlannedMove(Do.CALL, call=finish))
            self._emit(Do.ARRANGE, *made)
        self._run(scope.enter, numbers, derives)

    def _apart(self, scope: nodes.Scope, numbers: tuple[int, ...], derives: bool) -> None:
        """A step that asks Python for relations of its own is lowered anew each time."""
        scope = replace(scope, enter=tuple(distinct(path) for path in scope.enter))
        self.tested |= set(scope.relations)
        self.moves.append(PlannedMove(Do.CALL, numbers=numbers, derives=derives, apart=scope))


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


def distinct(path: nodes.Path) -> nodes.Path:
    """The path with a sink that looks whether a row is there, and so keeps the set up to date."""
    return replace(path, sink=replace(path.sink, distinct=True)) if isinstance(path.sink, nodes.Insert) else path
