"""Updates of rounds that are still to come, by round: taking what is due costs what is due.

They lie in blocks sorted by round, each less than half as long as the one before, so that there are few; a block shrinks from
its front.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.operators.delta import Delta, together

MANY_NEW = 1 << 10
"""Deltas that wait as they came: each has arrays of its own, which take more memory than a row."""


class _Block:
    """Updates of a port in ascending order of rounds, of which the first have been taken."""

    def __init__(self, delta: Delta) -> None:
        rounds = delta.rounds
        ascend = bool((rounds[:-1] <= rounds[1:]).all())
        self.delta = delta if ascend else delta.only(np.argsort(rounds, kind="stable"))
        self.start = 0

    @property
    def rows(self) -> int:
        return self.delta.rows - self.start

    def _part(self, start: int, end: int) -> Delta:
        return self.delta if end - start == self.delta.rows else self.delta.only(np.arange(start, end))

    def rest(self) -> Delta:
        return self._part(self.start, self.delta.rows)

    def take(self, high: int) -> Delta | None:
        """The updates of rounds before `high`."""
        end = self.start + int(np.searchsorted(self.delta.rounds[self.start :], high))
        taken = self._part(self.start, end) if end > self.start else None
        self.start = end
        return taken


class Calendar:
    """Updates of several ports that wait for their rounds. Those that have come since it was last looked at are as they came:
    most are due at once."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[_Block]] = {}
        self._new: list[tuple[int, Delta, int]] = []

    def __len__(self) -> int:
        return sum(d.rows for _, d, _ in self._new) + sum(b.rows for blocks in self._blocks.values() for b in blocks)

    def __bool__(self) -> bool:
        return bool(self._new or self._blocks)

    def add(self, port: int, delta: Delta, last: int) -> None:
        """Adds updates, `last` the last one of their rounds."""
        self._new.append((port, delta, last))
        if len(self._new) == MANY_NEW:
            new, self._new = self._new, []
            for each in {port for port, _, _ in new}:
                self._arrange(each, together([delta for port, delta, _ in new if port == each]))

    def _arrange(self, port: int, delta: Delta) -> None:
        blocks = self._blocks.setdefault(port, [])
        blocks.append(_Block(delta))
        while len(blocks) > 1 and 2 * blocks[-1].rows > blocks[-2].rows:
            last = blocks.pop()
            blocks[-1] = _Block(together([blocks[-1].rest(), last.rest()]))

    def next_round(self) -> int | None:
        """The first round for which something waits."""
        rounds = [int(b.delta.rounds[b.start]) for blocks in self._blocks.values() for b in blocks if b.rows]
        return min([*rounds, *(int(delta.rounds.min()) for _, delta, _ in self._new)], default=None)

    def take(self, high: int) -> list[tuple[int, Delta]]:
        """What waits for rounds before `high`, by port."""
        new, self._new = self._new, []
        due = [(port, delta) for port, delta, last in new if last < high]
        for port, delta, last in new:
            if last >= high:
                self._arrange(port, delta)
        if self._blocks:
            taken = [(port, block.take(high)) for port, blocks in self._blocks.items() for block in blocks]
            self._blocks = {port: left for port, blocks in self._blocks.items() if (left := [b for b in blocks if b.rows])}
            due += [(port, delta) for port, delta in taken if delta is not None]
        return due
