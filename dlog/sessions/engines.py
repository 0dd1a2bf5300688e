"""The maker of a session's engines, one after the other, within the session's limits.

Engines execute a program that passes have rewritten; every relation of the one that was written is among theirs."""

from __future__ import annotations

from dlog.engine.ir.rules import Program
from dlog.engine.rounds_engine import EngineMaker, Image, RoundsEngine, StartingPoint
from dlog.pipeline import readable


class Engines:
    """See `dlog.engine.rounds_engine.EngineMaker`."""

    def __init__(self, maker: EngineMaker, memory: int | None, max_iterations: int | None) -> None:
        self._maker, self._memory, self._iterations = maker, memory, max_iterations

    @property
    def elsewhere(self) -> bool:
        """Whether they keep their rows in other processes."""
        return self._maker.elsewhere

    def make(self, program: Program, old: RoundsEngine | StartingPoint | None = None) -> RoundsEngine:
        """An engine without rows that goes on from `old`."""
        program = readable(program, program.plain_eqrels, classes=not self.elsewhere)
        return self._maker(program, old=old, memory=self._memory, max_iterations=self._iterations)

    def resumed(self, program: Program, image: Image, old: StartingPoint) -> RoundsEngine | None:
        """An engine that has everything an image has; None where engines keep no images. Raises IncompatibleImage."""
        program = readable(program, {*image.head["given"], *program.plain_eqrels}, classes=not self.elsewhere)
        return self._maker.resumed(program, image, old=old, memory=self._memory, max_iterations=self._iterations)

    def beside(self) -> Engines | None:
        """The maker of an engine that works beside the session's: in one thread, with half of the memory. None where engines
        are in other processes."""
        maker = self._maker.in_one_thread()
        return None if maker is None else Engines(maker, None if self._memory is None else self._memory // 2, self._iterations)

    def close(self) -> None:
        """Gives back what the engines share."""
        self._maker.close()
