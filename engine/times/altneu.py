"""Each time twice: `Alt t`, just before the changes at t take place, and `Neu t`, just after.

Changes at one time to several inputs of a join would be counted once for each pair that changes. A collection nudged to `neu`
is seen by changes at `alt` only from the next time on, so every combination is claimed by exactly one of its changes. The
order: `Alt t < Neu t`, and different times compare as they always do, whatever the nudge. This is a lattice whose joins and
meets are those of the times; where the result is the time of neither argument it is `Alt` for a join and `Neu` for a meet.

Differentiating with these times and integrating again is exact on totally ordered times only. On partially ordered ones an
update at `(0, 1)` and one at `(1, 0)` never see each other, though their match belongs to `(1, 1)`; there joins compare times
in the lexicographic order instead (half-joins).

Where times are rounds, `Alt r` and `Neu r` are the rounds 2r and 2r + 1 of a scope that has twice as many.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from dlog.dataclass import dataclass
from dlog.engine.times import lattice
from dlog.engine.times.lattice import Time
from dlog.grammar.diagnostics import Diagnostic, DlogError


class _Written(type):
    """How times are not written: `neu` is what a time has, and makes none."""

    @property
    def alt(cls) -> Callable[..., NoReturn]:
        return partial(_refuse_call, "alt", "AltNeu((3,))")

    @property
    def neu(cls) -> Callable[..., NoReturn] | bool:
        default = cls.__dict__.get("neu")  # while the class is being made
        return default if isinstance(default, bool) else partial(_refuse_call, "neu", "AltNeu((3,), True)")


@dataclass(frozen=True, slots=True)
class AltNeu(metaclass=_Written):
    """The time `time`, before (`neu` false) or after its changes."""

    time: Time
    neu: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.time, tuple):
            raise _refused("time", "a tuple of the coordinates of a time, such as (3,)", self.time)
        if not isinstance(self.neu, bool):
            raise _refused("neu", "True or False", self.neu)

    def less_equal(self, other: AltNeu) -> bool:
        """
        >>> AltNeu((1,)).less_equal(AltNeu((1,), True)), AltNeu((1,), True).less_equal(AltNeu((2,)))
        (True, True)
        """
        self._check_like(other)
        if self.time == other.time:
            return self.neu <= other.neu
        return lattice.less_equal(self.time, other.time)

    def join(self, other: AltNeu) -> AltNeu:
        """The least time at or after both."""
        self._check_like(other)
        time = lattice.join(self.time, other.time)
        return AltNeu(time, (self.neu and self.time == time) or (other.neu and other.time == time))

    def meet(self, other: AltNeu) -> AltNeu:
        """The greatest time at or before both."""
        self._check_like(other)
        time = lattice.meet(self.time, other.time)
        return AltNeu(time, (self.neu or self.time != time) and (other.neu or other.time != time))

    def _check_like(self, other: object) -> None:
        if not isinstance(other, AltNeu) or len(other.time) != len(self.time):
            raise _refused("other", f"an AltNeu of {len(self.time)} coordinates", other)


def _refuse_call(name: str, meant: str, *given: object) -> NoReturn:
    shown = ", ".join(map(reprlib.repr, given))
    raise DlogError(Diagnostic("bad-argument", f"`AltNeu.{name}({shown})` makes no time: write `{meant}`"))


def _refused(name: str, meant: str, given: object) -> DlogError:
    return DlogError(Diagnostic("bad-argument", f"`{name}` must be {meant}, not {reprlib.repr(given)}"))
