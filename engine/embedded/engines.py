"""Which engine maintains a program."""

from __future__ import annotations

from dlog.engine.embedded.figures import Figures
from dlog.engine.embedded.maintained import Maintained
from dlog.engine.embedded.recompute import Recompute
from dlog.engine.plan.rounds import NotIncremental, build_rounds_scope
from dlog.engine.program.rules import Program, with_inputs
from dlog.engine.rounds import Beginning, Image, RoundsEngine, Unfit


def make_engine(
    program: Program,
    *,
    threads: int = 1,
    memory: int | None = None,
    max_iterations: int | None = None,
    old: RoundsEngine | Beginning | None = None,
) -> RoundsEngine:
    """The engine for a program: it is maintained where every stratum can be, else computed anew in each round.

    `old` is the engine that the program's earlier form had: the new one starts empty but at the same round, and shares its
    symbols and records, so that ids keep their meaning."""
    engine = Maintained if is_incremental(program) else Recompute
    return engine(program, threads=threads, memory=memory, max_iterations=max_iterations, old=old)


class EmbeddedMaker:
    """See `dlog.engine.rounds.EngineMaker`: engines in this process."""

    elsewhere = False

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __call__(
        self, program: Program, *, old: RoundsEngine | Beginning | None, memory: int | None, max_iterations: int | None
    ) -> RoundsEngine:
        return make_engine(program, threads=self._threads, memory=memory, max_iterations=max_iterations, old=old)

    def resumed(
        self, program: Program, image: Image, *, old: Beginning, memory: int | None, max_iterations: int | None
    ) -> RoundsEngine:
        if not is_incremental(program):
            raise Unfit("the program cannot be maintained")
        whole = with_inputs(program, image.head["given"])
        made = Maintained(whole, threads=self._threads, memory=memory, max_iterations=max_iterations, old=old)
        made.resume(image)
        return made

    def close(self) -> None:
        """Nothing is shared."""


def is_incremental(program: Program) -> bool:
    """Whether all strata of a program can be maintained over rounds."""
    try:
        for stratum in program.strata:
            if stratum.rules:
                build_rounds_scope(stratum, program, Figures({}, frozenset(program.relations)))
    except NotIncremental:
        return False
    return True
