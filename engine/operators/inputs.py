"""Where updates enter a dataflow."""

from __future__ import annotations

from collections.abc import Callable

from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.operator import Function, Operator, joined
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope


class Source(Operator):
    """Passes on what has been put in for the rounds of a batch. That may have columns of values in place of words, which
    `number` makes words of, unless all functions that read them take values (`takes_values`)."""

    def __init__(
        self, scheduler: Scheduler, scope: Scope, number: Function, takes_values: Callable[[Function], bool]
    ) -> None:
        super().__init__(scheduler, scope)
        self.number, self.takes_values = number, takes_values
        self._as_values: bool | None = None

    @property
    def read_as_values(self) -> bool:
        return bool(self.edges) and all(self.takes_values(function) for function, _ in self.edges.values())

    def put(self, delta: Delta, first: int, last: int) -> None:
        """Puts in updates of rounds that are still to be done, from the first to the last one of them."""
        self.later.add(0, delta, last, first)
        self.scheduler.expect(self)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if self._as_values is None:  # now that rounds are done, nobody comes to read it
            self._as_values = self.read_as_values
        if delta is not None:
            self.emit(delta if self._as_values else self.number(delta))
