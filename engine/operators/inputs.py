"""Where updates enter a dataflow."""

from __future__ import annotations

from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.operator import Operator, joined


class Source(Operator):
    """Passes on what has been put in for the rounds of a batch."""

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is not None:
            self.emit(delta)
