"""The choice of the engine that maintains a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlog.engine.ir.rules import Program, Rule, Stratum
from dlog.engine.plan.incremental.build import NotIncremental, build_rounds_scope, not_maintained
from dlog.engine.plan.incremental.subsumption import separable
from dlog.engine.plan.incremental.thresholds import pieces
from dlog.engine.plan.incremental.views import View, separate_views
from dlog.engine.plan.query import can_stop
from dlog.engine.rounds_engine import Image, IncompatibleImage, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental.engines import viewed
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.engines.paired import origin_of, paired_engine
from dlog.engine.runtime.incremental.engines.viewed import Viewed
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import DataflowStatistics


def make_engine(
    program: Program,
    *,
    threads: int = 1,
    memory: int | None = None,
    max_iterations: int | None = None,
    old: RoundsEngine | StartingPoint | None = None,
) -> RoundsEngine:
    """The engine for a program: its strata are maintained, but for those that cannot be, which are computed anew, and for
    views, which have no rows.

    `old` is the engine that the program's earlier form had: the new one starts empty but at the same round, and shares its
    symbols and records, so that ids keep their meaning."""
    kept, views = separate_views(program)
    origin = viewed.origin_of(old)
    made = storing_engine(kept, threads=threads, memory=memory, max_iterations=max_iterations, old=origin)
    return _viewed(program, views, made, old)


def storing_engine(
    program: Program,
    *,
    threads: int = 1,
    memory: int | None = None,
    max_iterations: int | None = None,
    old: RoundsEngine | StartingPoint | None = None,
) -> RoundsEngine:
    """`make_engine` without views: all relations have their rows."""
    reasons = unmaintained(program)
    old = origin_of(old)
    if reasons or program.timed:
        return paired_engine(Layered(program, reasons, threads=threads, memory=memory, max_iterations=max_iterations, old=old))
    return paired_engine(Maintained(program, threads=threads, memory=memory, max_iterations=max_iterations, old=old))


def _viewed(
    program: Program, views: Mapping[str, View], made: RoundsEngine, old: RoundsEngine | StartingPoint | None
) -> RoundsEngine:
    """The engine, or one that shows the views of the program; one that goes on from such an engine has to know its views."""
    return Viewed(program, views, made, old) if views or isinstance(old, Viewed) else made


class EmbeddedMaker:
    """See `dlog.engine.rounds_engine.EngineMaker`: engines in this process."""

    elsewhere = False

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __call__(
        self, program: Program, *, old: RoundsEngine | StartingPoint | None, memory: int | None, max_iterations: int | None
    ) -> RoundsEngine:
        return make_engine(program, threads=self._threads, memory=memory, max_iterations=max_iterations, old=old)

    def resumed(
        self, program: Program, image: Image, *, old: StartingPoint, memory: int | None, max_iterations: int | None
    ) -> RoundsEngine:
        if unmaintained(program):
            raise IncompatibleImage("the program cannot be maintained")
        if program.functors:
            raise IncompatibleImage("functors may compute something else by now")
        kept, views = separate_views(program)
        limits: dict[str, Any] = {"threads": self._threads, "memory": memory, "max_iterations": max_iterations, "old": old}
        made = Layered(kept, {}, **limits) if kept.timed else Maintained(kept, **limits)
        made.resume(image)
        return _viewed(program, views, paired_engine(made), old)

    def in_one_thread(self) -> EmbeddedMaker:
        return EmbeddedMaker(1)

    def close(self) -> None:
        """Closes nothing: engines of this process share nothing."""


def is_incremental(program: Program) -> bool:
    """Whether a program is maintained as a whole over rounds: all strata can be, and rounds feed none of its relations."""
    return not program.timed and not unmaintained(program)


def _dominated(stratum: Stratum, program: Program) -> tuple[Rule, ...]:
    return program.retentions[stratum.relations[0]].dominated


def unmaintained(program: Program) -> dict[int, str]:
    """The strata that cannot be maintained over rounds, by number, and why: functors that are stateful or can stop the run,
    relations that do not keep all of their rows, or classes of equivalence relations."""
    found = {}
    for number, stratum in enumerate(program.strata):
        try:
            iterated = not program.iterated.isdisjoint(stratum.relations)
            reason = "" if iterated and separable(stratum, program) else not_maintained(stratum, program)
            if reason:
                found[number] = reason
            elif any(can_stop(rule) for rule in (*stratum.rules, *(_dominated(stratum, program) if iterated else ()))):
                whole, made = pieces(program, stratum)
                for piece in made:
                    build_rounds_scope(piece, whole, DataflowStatistics({}, frozenset(whole.relations)))
        except NotIncremental as why:
            found[number] = str(why)
    return found
