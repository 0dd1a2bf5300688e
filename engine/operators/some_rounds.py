"""Operators at totally ordered times that work off some rounds of a batch at once: what they read is read once for each."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from dlog.engine.operators.delta import Delta, Moment
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Reading

ROUNDS_AT_ONCE = 16


class SomeRounds(Operator):
    """Takes changes some rounds at a time."""

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is None:
            return
        one = self.rounds.high - self.rounds.low == 1
        rounds = delta.rounds[:1] if one else np.unique(delta.rounds)
        for start in range(0, len(rounds), ROUNDS_AT_ONCE):
            low, following = int(rounds[start]), rounds[start + ROUNDS_AT_ONCE :]
            end = int(following[0]) if len(following) else self.rounds.high
            some = delta if one else delta.only((delta.rounds >= low) & (delta.rounds < end))
            self._run_until(end, some, moment)

    def _before(self, reading: Reading, end: int) -> Reading:
        """What a reading of all that has come has of rounds before one."""
        return reading if end == self.rounds.high else reading.below(end)

    @abstractmethod
    def _run_until(self, end: int, delta: Delta, moment: Moment) -> None:
        """Works off changes of rounds before one; those of rounds before theirs have been."""
