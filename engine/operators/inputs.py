"""Where updates enter a dataflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dlog.dataclass import dataclass
from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.operator import Function, Operator, joined
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope


@dataclass(frozen=True, slots=True, eq=False)
class HeldColumns:
    """What is done about columns of an input whose words are values that are held for some rounds, each with an address."""

    columns: frozenset[int]
    """All that may be held, by place."""
    kept: Callable[[Function], frozenset[int] | None]
    """Those whose words are read behind a function (None: any). They need words that last, """
    number: Callable[[Iterable[int], Delta], Delta]
    """which they are given by this."""
    release: Callable[[Sequence[int]], object]
    """Ends the holding of values."""


NOTHING_HELD = HeldColumns(frozenset(), lambda function: frozenset(), lambda places, delta: delta, lambda firsts: None)


class Source(Operator):
    """Passes on what has been put in for the rounds of a batch."""

    def __init__(self, scheduler: Scheduler, scope: Scope, held: HeldColumns = NOTHING_HELD) -> None:
        super().__init__(scheduler, scope)
        self.held_columns = held
        self._kept: frozenset[int] | None = None
        self._holds: list[tuple[int, Sequence[int]]] = []
        """The last rounds in which values are needed that are held."""

    @property
    def kept(self) -> frozenset[int]:
        """The columns whose words are read, as far as is known: all, while nobody reads anything."""
        found = [self.held_columns.kept(function) for function, _ in self.edges.values()]
        known = [each for each in found if each is not None]
        return frozenset().union(*known) if found and len(known) == len(found) else self.held_columns.columns

    def put(self, delta: Delta, first: int, last: int, holds: Sequence[int] = ()) -> None:
        """Puts in updates of rounds that are still to be done, from the first to the last one of them; what is held for them is
        released then."""
        self.later.add(0, delta, last, first)
        if holds:
            self._holds.append((last, holds))
        self.scheduler.expect(self)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if self._kept is None:  # now that rounds are done, nobody comes to read it
            self._kept = self.kept
        try:
            if delta is not None:
                self.emit(self.held_columns.number(self._kept, delta) if self._holds else delta)
        finally:
            self._release(self.scheduler.rounds.high)

    def _release(self, high: int) -> None:
        """Ends the holding of values that are not needed from a round on."""
        if self._holds:
            self.held_columns.release([hold for last, holds in self._holds if last < high for hold in holds])
            self._holds = [each for each in self._holds if each[0] >= high]
