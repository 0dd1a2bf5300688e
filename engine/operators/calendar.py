"""Updates of rounds that are still to come, by round: taking what is due costs what is due, and no step costs what waits.

They lie in runs, each sorted by round and cut into chunks, on levels: level k takes runs of up to 2^k updates. A second run on
a level starts a merge there, whose result moves up. Merging a large level takes long, so it is paid for in small steps: adding
some updates does so much work on each merge under way that it is done before its level is needed again. What is due is taken
from the fronts of runs, of those that are being merged, too. Order among updates of one round does not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from dlog.engine.operators.delta import Delta, together
from dlog.grammar.diagnostics import InternalError

MANY_NEW = 1 << 6
"""Deltas that wait as they came, most of which are due at once: each has arrays of its own, which take more than rows."""
CHUNK = 1 << 11
"""Updates of a chunk at most: a merge does as many at once."""
WORK = 4
"""Updates of each merge that are merged for each that comes."""
NEVER = 2**63
"""After any round."""


class _Run:
    """Updates in ascending order of rounds, of which the first have been taken."""

    __slots__ = ("chunks", "first", "rows")

    def __init__(self, chunks: Iterable[Delta] = ()) -> None:
        self.chunks = deque(chunks)
        self.rows = sum(chunk.rows for chunk in self.chunks)
        self.first = self._first()
        """The first round of an update."""

    @staticmethod
    def of(delta: Delta) -> _Run:
        return _Run(_cut(delta.in_order_of_rounds(), CHUNK))

    def _first(self) -> int:
        return int(self.chunks[0].rounds[0]) if self.chunks else NEVER

    @property
    def front_last(self) -> int:
        """The last round in the front chunk."""
        return int(self.chunks[0].rounds[-1])

    def append(self, chunk: Delta) -> None:
        """Adds updates that are not before any here."""
        self.chunks.append(chunk)
        self.rows += chunk.rows
        if self.rows == chunk.rows:
            self.first = self._first()

    def extend(self, other: _Run) -> None:
        """The same of all of another run."""
        self.chunks.extend(other.chunks)
        self.rows += other.rows
        self.first = self._first()

    def take_front(self, last: int) -> Delta:
        """The updates of the front chunk, some of which there are, of rounds up to `last`."""
        front = self.chunks.popleft()
        end = int(np.searchsorted(front.rounds, last, side="right"))
        if end < front.rows:
            self.chunks.appendleft(_part(front, end, front.rows))
            front = _part(front, 0, end)
        self.rows -= end
        self.first = self._first()
        return front

    def take(self, high: int) -> Iterator[Delta]:
        """All updates of rounds before `high`."""
        while self.first < high:
            yield self.take_front(high - 1)

    def work(self, fuel: int) -> bool:
        """Whether there is something to be put on another level: nothing is merged here."""
        return False


class _Merge:
    """Two runs that become one, a little at a time: what has been merged is before what is left of both."""

    __slots__ = ("_credit", "left", "merged", "right")

    def __init__(self, left: _Run, right: _Run) -> None:
        self.left, self.right, self.merged = left, right, _Run()
        self._credit = 0

    @property
    def rows(self) -> int:
        return self.merged.rows + self.left.rows + self.right.rows

    @property
    def first(self) -> int:
        return min(self.merged.first, self.left.first, self.right.first)

    def take(self, high: int) -> Iterator[Delta]:
        for run in (self.merged, self.left, self.right):
            yield from run.take(high)

    def work(self, fuel: int) -> bool:
        """Merges about so many updates, those that earlier work was short of included; whether all is done."""
        self._credit += fuel
        while self._credit > 0 and self.left.rows and self.right.rows:
            self._credit -= self._step()
        return not (self.left.rows and self.right.rows)

    def _step(self) -> int:
        """Merges the front chunks, as far as nothing behind them comes before; how many updates these are."""
        left, right = self.left, self.right
        last = min(left.front_last, right.front_last)
        parts = [run.take_front(last) for run in (left, right) if run.first <= last]
        found = together(parts).in_order_of_rounds() if len(parts) > 1 else parts[0]
        for chunk in _cut(found, CHUNK):
            self.merged.append(chunk)
        return found.rows

    def result(self) -> _Run:
        """The run, worked out to the end if need be."""
        self.work(NEVER >> 1)
        for rest in (self.left, self.right):
            if rest.rows:
                self.merged.extend(rest)
        return self.merged


class _Schedule:
    """The runs of a port."""

    def __init__(self) -> None:
        self.levels: list[_Run | _Merge | None] = []
        self.first = NEVER
        """The first round of an update."""

    @property
    def rows(self) -> int:
        return sum(at.rows for at in self.levels if at is not None)

    def add(self, delta: Delta) -> None:
        self._work(WORK * delta.rows)
        self._place(_Run.of(delta))
        self._find_first()

    def take(self, high: int) -> Iterator[Delta]:
        """All updates of rounds before `high`."""
        if self.first < high:
            for level, at in enumerate(self.levels):
                if at is not None and at.first < high:
                    yield from at.take(high)
                    if not at.rows:
                        self.levels[level] = None
            self._find_first()

    def _find_first(self) -> None:
        self.first = min((at.first for at in self.levels if at is not None), default=NEVER)

    def _work(self, fuel: int) -> None:
        """Does so much work on each merge; what is done moves up, where it is worked on, too."""
        for level, at in enumerate(self.levels):
            if at is not None and at.work(fuel):
                self._complete(level)

    def _complete(self, level: int) -> None:
        """Finishes the merge of a level and puts the result where it belongs by size."""
        merge, self.levels[level] = self.levels[level], None
        assert isinstance(merge, _Merge)
        self._place(merge.result())

    def _place(self, run: _Run) -> None:
        """Puts a run on its level; a merge that is still under way there has to be finished first."""
        if not run.rows:
            return
        level = (run.rows - 1).bit_length()
        self.levels += [None] * (level + 1 - len(self.levels))
        if isinstance(self.levels[level], _Merge):
            self._complete(level)
        at = self.levels[level]
        if isinstance(at, _Merge):
            raise InternalError("dataflow", f"level {level} of a calendar is taken twice")
        self.levels[level] = run if at is None else _Merge(at, run)


class Calendar:
    """Updates of several ports that wait for their rounds. Those that have come since it was last looked at are as they came:
    most are due at once."""

    def __init__(self) -> None:
        self._schedules: dict[int, _Schedule] = {}
        self._new: list[tuple[int, Delta, int, int]] = []
        """By port some updates, and their first and last rounds."""
        self._new_rows = self._apart_rows = 0
        """How many these are, and those of several rounds, which may be due apart from each other."""

    def __len__(self) -> int:
        return self._new_rows + sum(schedule.rows for schedule in self._schedules.values())

    def __bool__(self) -> bool:
        return bool(self._new or self._schedules)

    def add(self, port: int, delta: Delta, last: int, first: int | None = None) -> None:
        """Adds updates, `first` and `last` those of their rounds."""
        if first is None:
            first = int(np.minimum.reduce(delta.rounds))
        self._new.append((port, delta, first, last))
        self._new_rows += delta.rows
        self._apart_rows += delta.rows if first < last else 0
        if len(self._new) >= MANY_NEW or self._apart_rows >= CHUNK:
            new, self._new = self._new, []
            self._new_rows = self._apart_rows = 0
            self._arrange(new)

    def _arrange(self, new: Iterable[tuple[int, Delta, int, int]]) -> None:
        by_port: dict[int, list[Delta]] = {}
        for port, delta, _, _ in new:
            by_port.setdefault(port, []).append(delta)
        for port, deltas in by_port.items():
            self._schedule(port).add(together(deltas))

    def _schedule(self, port: int) -> _Schedule:
        return self._schedules.setdefault(port, _Schedule())

    def next_round(self) -> int | None:
        """The first round for which something waits."""
        rounds = [schedule.first for schedule in self._schedules.values()]
        return min([*rounds, *(first for _, _, first, _ in self._new)], default=None)

    def take(self, high: int) -> list[tuple[int, Delta]]:
        """What waits for rounds before `high`, by port."""
        new, self._new = self._new, []
        due = [(port, delta) for port, delta, _, last in new if last < high]
        if len(due) == len(new) and not self._schedules:
            self._new_rows = self._apart_rows = 0
            return due
        self._arrange(each for each in new if each[2] < high <= each[3])
        self._new = [each for each in new if each[2] >= high]
        self._new_rows = sum(delta.rows for _, delta, _, _ in self._new)
        self._apart_rows = sum(delta.rows for _, delta, first, last in self._new if first < last)
        for port, schedule in self._schedules.items():
            due += [(port, delta) for delta in schedule.take(high)]
        self._schedules = {port: schedule for port, schedule in self._schedules.items() if schedule.first < NEVER}
        return due


def _part(delta: Delta, start: int, end: int) -> Delta:
    """Adjacent updates, in the same arrays."""
    return Delta(tuple(c[start:end] for c in delta.columns), delta.times[:, start:end], delta.diffs[start:end])


def _cut(delta: Delta, most: int) -> Iterator[Delta]:
    """Updates in parts of so many at most, about as long as each other."""
    parts = -(-delta.rows // most)
    if parts == 1:
        yield delta
        return
    ends = [delta.rows * part // parts for part in range(parts + 1)]
    for start, end in pairwise(ends):
        yield _part(delta, start, end)
