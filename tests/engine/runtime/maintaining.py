"""Engines of small programs over an input `e(x: number, y: number)`, as tests drive and read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.optimize.classes import with_classes
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.runtime.incremental.batches.changes import batches
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.engines.choice import is_incremental, make_engine, unmaintained
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.engines.paired import paired_engine
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import DataflowStatistics, StatisticChange
from dlog.engine.runtime.incremental.plan_changes.replanning import PlanWatch, Replanning
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.engine.plan.interpret import Random

EDGES = ".decl e(x: number, y: number)\n.input e\n"
COUNTS = EDGES + ".decl n(x: number, c: number)\n.output n\nn(x, c) :- e(x, _), c = count : { e(x, _) }.\n"


class Fusing(Maintained):
    """Goes through many rounds of one input in batches of two."""

    def _rounds_to_fuse(self, flow: Dataflow, given: Mapping[str, Updates]) -> int:
        return 2 if flow.started and len(given) == 1 and all(u.columns for u in given.values()) else 0


def fused_rounds(program: Program, **options: Any) -> RoundsEngine:
    """The engine for a program, with short batches where it is maintained."""
    return Fusing(program, **options) if is_incremental(program) else make_engine(program, **options)


def layered_rounds(program: Program, **options: Any) -> RoundsEngine:
    """An engine that computes every second stratum anew, as if it could not be maintained."""
    ruled = [number for number, stratum in enumerate(program.strata) if stratum.rules]
    return Layered(program, dict.fromkeys(ruled[::2], "a test says so") | unmaintained(program), **options)


class Fickle(PlanWatch):
    """Takes the figures of all strata for others before each commit, and plans at once or, every third time, bit by bit."""

    asked = 0

    def replanned(self, flow: Dataflow, now: DataflowStatistics) -> Replanning | None:
        self.asked += 1
        found, self._replanning = self._replanning, None
        if found is None or found.flow is not flow:
            found = Replanning(flow, self.out_of_range(flow, now))
        if found.go_on(now, None if self.asked % 3 else 4):
            return found
        self._replanning = found
        return None

    def planned(self, flow: Dataflow) -> None:
        self.work = self.due = 0

    def soon(self) -> None:
        self.due = 0

    def out_of_range(self, flow: Dataflow, now: DataflowStatistics) -> dict[int, StatisticChange]:
        return {number: StatisticChange("rows", "e", (), None, 1.0) for number in flow.scopes}

    def give_up(self, strata: object) -> None:
        """They may change the next time."""


class Replanned(Maintained):
    """Plans all strata anew before each commit, and between the batches of one, for other figures each time."""

    def __init__(self, program: Program, **options: Any) -> None:
        super().__init__(program, **options)
        self._watched = Fickle()
        self.planned = 0

    def _statistics_now(self, flow: Dataflow, waiting: Mapping[str, Updates]) -> Any:
        self.planned += 1
        return Random(self.planned)

    def _batches_of(self, flow: Dataflow, given: Mapping[str, Updates], first: int, last: int) -> Iterable[tuple[int, int]]:
        return batches([u.rounds for u in given.values()], first, last, 2)


def replanned_rounds(program: Program, **options: Any) -> RoundsEngine:
    """The engine for a program, with plans that change all the time where it is maintained."""
    return Replanned(program, **options) if is_incremental(program) else make_engine(program, **options)


class Anew(Maintained):
    """Begins anew with each commit of one round."""

    def _begins_anew(self, flow: Dataflow, given: Mapping[str, Updates], coming: int) -> bool:
        return not self._reused


def anew_rounds(program: Program, **options: Any) -> RoundsEngine:
    """The engine for a program, which begins anew all the time where it is maintained."""
    return Anew(program, **options) if is_incremental(program) else make_engine(program, **options)


class Beside(Maintained):
    """Runs the strata of every batch side by side, on several threads, which also share the steps of each."""

    def __init__(self, program: Program, **options: Any) -> None:
        super().__init__(program, **{"threads": 3} | options)
        self._runner.few = 0
        if self._runner.shared is not None and self._runner.share is not None:
            self._runner.shared.least = 0
            for share in (self._runner.share, *(worker.share for worker in self._runner.shared.workers)):
                share.least = 1
                share.allow(True)


def beside_rounds(program: Program, **options: Any) -> RoundsEngine:
    """The engine for a program, on three threads where it is maintained."""
    return Beside(program, **options) if is_incremental(program) else make_engine(program, **options)


def with_classes_kept(make: Callable[..., RoundsEngine]) -> Callable[..., RoundsEngine]:
    """Engines that keep equivalence relations by their classes."""

    def made(program: Program, **options: Any) -> RoundsEngine:
        return paired_engine(make(with_classes(program, frozenset(program.relations)), **options))

    return made


@contextmanager
def engine_of(text: str, make: Callable[..., Maintained] = Maintained, **options: Any) -> Iterator[Maintained]:
    engine = make(compile_source(Source(text)), **options)
    try:
        yield engine
    finally:
        engine.close()


def commit(engine: Maintained, *changes: tuple[int, int, int, int]) -> None:
    """Changes (round, diff, x, y); rounds are counted from the next one on."""
    rounds, diffs, x, y = (np.array(column, np.int64) for column in zip(*changes, strict=True))
    engine.commit({"e": Updates((x, y), diffs, rounds + engine.round + 1)})


def rows(engine: Maintained, relation: str = "n") -> set[tuple[float, ...]]:
    return set(zip(*(column.tolist() for column in engine.table(relation).columns), strict=True))
