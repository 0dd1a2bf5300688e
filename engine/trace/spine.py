"""A spine: batches of geometrically decreasing size, merged progressively.

Batches lie on levels; level k takes batches of up to 2^k updates (more where merging did not shrink them), older ones on
higher levels. A second batch on a level starts a merge there, whose result moves up. Merging a large level takes long, so it is
paid for in small steps: each insert of a batch of level k does `effort * 8 * 2^k` updates' worth of work on *every* merge under
way, which is enough for each to be done before its level is needed again: no insert ever waits for a large merge. Readers see
the two batches until their merge is done. Batches are immutable and held by reference: a cursor keeps those it has. Small ones
wait until there are some of them, and go to a level as one.

`since` says from when on times are told apart. It only moves forward, and only merges act on it: a merge compacts to what
`since` was when it began. `exert` merges and compacts while there is nothing else to do. `effort` 0 finishes a merge at once.

A reader may also ask that batches are kept apart from a frontier on, so that it can read what was there through the end of
any of them: these are merged with nothing until all such readers have moved on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from threading import RLock

from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.description import Description
from dlog.engine.trace.handle import TraceHandle, too_late
from dlog.engine.trace.merge import ALL, Merge
from dlog.engine.trace.pages import RELEASE_BYTES, Pages
from dlog.grammar.diagnostics import DlogError, InternalError

Level = Batch | Merge | None

WAITING_BATCHES = 8
"""Small batches after which they are merged: a merge costs as much as many lookups in so small a layer."""
WAITING_ROWS = 512
"""Updates that wait in all. A batch of more than half as many does not."""


class Spine:
    """The trace of one collection. Inserting is for one thread at a time; handles and cursors are for any."""

    def __init__(self, arity: int, depth: int, effort: int = 2) -> None:
        self.arity, self.depth, self.effort = arity, depth, effort
        self.upper = self.since = Antichain.start(depth)
        self._levels: list[Level] = []
        self._waiting: list[Batch] = []  # the newest ones,
        self._waiting_rows = 0  # and their updates
        self._apart: deque[Batch] = deque()  # newer ones, which readers want kept apart,
        self._merges_to: Antichain | None = None  # those that end beyond this
        self.merged_to = self.upper
        """Where the newest batch ends that is not kept apart."""
        self.handles: set[TraceHandle] = set()
        self.abandoned: list[TraceHandle] = []
        self.pages = Pages()
        """Where large blocks go that no one reads any more; have large batches built with it."""
        self.lock = RLock()

    # ------------------------------------------------------------------------------------------------------------- reading

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All batches that have rows, the oldest first; those being merged one by one."""
        with self.lock:
            return (*self._mergeable, *self._apart)

    @property
    def _mergeable(self) -> list[Batch]:
        """Those that nobody wants kept apart."""
        found: list[Batch] = []
        for level in reversed(self._levels):
            if isinstance(level, Merge):
                found += level.batches
            elif level is not None:
                found.append(level)
        return found + self._waiting

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)

    @property
    def nbytes(self) -> int:
        return sum(batch.nbytes for batch in self.batches)

    @property
    def merging(self) -> bool:
        return Merge in map(type, self._levels)

    def handle(self, frontier: Antichain | None = None) -> TraceHandle:
        """A reader of its own, which keeps times from `frontier` (by default `since`) on apart."""
        with self.lock:
            start = self.since if frontier is None else frontier
            if not self.since.precedes(start):
                raise DlogError(too_late(start, self.since))
            made = TraceHandle(self, start)
            self.handles.add(made)
            self.move_since()
            return made

    # ------------------------------------------------------------------------------------------------------------- writing

    def insert(self, batch: Batch) -> None:
        """Adds the updates of the times from `upper` on. Its lower frontier must be this trace's upper one."""
        with self.lock:
            if batch.description.lower != self.upper:
                raise InternalError("trace", f"batch {batch.description} does not follow a trace that ends at {self.upper}")
            self.upper = batch.description.upper
            while self.abandoned:
                self.abandoned.pop().drop()
            if batch.layers and self._merges_to is None:
                self._join(batch)
            elif batch.layers:
                self._apart.append(batch)
                self._join_apart()

    def _join_apart(self) -> None:
        """Has batches that nobody wants kept apart any longer join the others."""
        apart, limit = self._apart, self._merges_to
        while apart and (limit is None or apart[0].description.upper.precedes(limit)):
            self._join(apart.popleft())

    def _join(self, batch: Batch) -> None:
        if batch.description.lower != self.merged_to:
            batch = _from(batch, self.merged_to)  # nothing happened in between
        self.merged_to = batch.description.upper
        rows = batch.rows
        self._work_on_all(8 * self.effort << _level_of(rows) if self.effort else ALL)
        waits = self.effort > 0 and 2 * rows <= WAITING_ROWS
        if not waits or self._waiting_rows + rows > WAITING_ROWS:
            self._introduce_waiting()
        if waits:
            self._waiting.append(batch)
            self._waiting_rows += rows
            if len(self._waiting) < WAITING_BATCHES:
                return
            self._introduce_waiting()
        else:
            self._introduce(batch)
        if self.effort == 0:
            self._work_on_all(ALL)
        self._lower_top()
        self.pages.give_back(max(RELEASE_BYTES, 16 * batch.nbytes))

    def _introduce_waiting(self) -> None:
        """Has the batches that wait become one of a level."""
        if self._waiting:
            waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
            self._introduce(Merge(waiting, self.since, self.pages).result if len(waiting) > 1 else waiting[0])

    def exert(self, fuel: int = 1 << 16) -> bool:
        """Merges while there is nothing else to do: about `fuel` updates. False when it is one batch, compacted to `since`."""
        with self.lock:
            self._introduce_waiting()
            if not self.merging and not self._start_idle_merge():
                return False
            self._work_on_all(fuel)
            self._lower_top()
            self.pages.give_back(64 * fuel)
            return self.merging or self._wants_merging()

    def settle(self) -> None:
        """Merges all there is."""
        while self.exert(ALL):
            pass

    # -------------------------------------------------------------------------------------------------------------- levels

    def _work_on_all(self, fuel: int) -> None:
        """Does so much work on each merge, from the newest to the oldest; what is done moves up."""
        for level, at in enumerate(self._levels):  # grows on the way; what moves up is worked on there
            if type(at) is Merge and at.work(fuel):
                self._complete(level)

    def _complete(self, level: int) -> None:
        """Finishes the merge of a level and puts the result where it belongs by size: here or one level up."""
        merge = self._levels[level]
        assert isinstance(merge, Merge)
        self._levels[level] = None
        batch = merge.result
        self._place(batch, level if batch.rows <= 1 << level else level + 1)

    def _place(self, batch: Batch, level: int) -> None:
        """Puts a batch on a level, newer than what is there; a merge still under way there has to be finished first."""
        while len(self._levels) <= level:
            self._levels.append(None)
        if isinstance(self._levels[level], Merge):
            self._complete(level)
        at = self._levels[level]
        if isinstance(at, Merge):  # what was completed met another batch one level up, or came back to this one
            raise InternalError("trace", f"level {level} is taken twice")
        self._levels[level] = batch if at is None else Merge((at, batch), self.since, self.pages)

    def _introduce(self, batch: Batch) -> None:
        """Makes room by merging everything on lower levels, which is at most as large as the batch, and puts the batch on its
        level: lower levels hold newer batches."""
        level = _level_of(batch.rows)
        rolled: Batch | None = None
        for below in range(min(level, len(self._levels))):
            if rolled is not None:
                self._place(rolled, below)
                rolled = None
            at = self._levels[below]
            if at is not None:
                rolled = at.result if isinstance(at, Merge) else at
                self._levels[below] = None
        if rolled is not None:
            self._place(rolled, level)
        if level < len(self._levels) and isinstance(self._levels[level], Merge):
            self._complete_upwards(level)
        self._place(batch, level)

    def _complete_upwards(self, level: int) -> None:
        """Finishes the merge of a level and moves the result up, whatever its size, so that the level is free."""
        merge = self._levels[level]
        assert isinstance(merge, Merge)
        self._levels[level] = None
        self._place(merge.result, level + 1)

    def _lower_top(self) -> None:
        """Moves the oldest batch down where merging has shrunk it, unless a lower level is in the way."""
        while self._levels and self._levels[-1] is None:
            self._levels.pop()
        while len(self._levels) > 1:
            top, below = self._levels[-1], self._levels[-2]
            if not isinstance(top, Batch) or below is not None or top.rows > 1 << (len(self._levels) - 2):
                return
            self._levels.pop()
            self._levels[-1] = top

    # ---------------------------------------------------------------------------------------------------------- idle merges

    def _wants_merging(self) -> bool:
        found = self._mergeable
        return len(found) > 1 or (len(found) == 1 and not _compact(found[0], self.since))

    def _start_idle_merge(self) -> bool:
        """Starts merging the two newest batches, or the only one with nothing, where that compacts it."""
        if not self._wants_merging():
            return False
        taken = [k for k, level in enumerate(self._levels) if level is not None]
        oldest = self._levels[taken[1] if len(taken) > 1 else taken[0]]
        assert isinstance(oldest, Batch)
        if len(taken) == 1:
            end = oldest.description.upper
            newest = Batch(Description(end, end, oldest.description.since), ())
        else:
            newest = self._levels[taken[0]]  # type: ignore[assignment]
            self._levels[taken[0]] = None
        self._levels[taken[-1] if len(taken) == 1 else taken[1]] = Merge(
            (oldest, newest), self.since, self.pages
        )
        return True

    # -------------------------------------------------------------------------------------------------------------- readers

    def move_merging(self) -> None:
        """Batches are kept apart from where the slowest reader wants that."""
        wanted = [handle.apart.elements for handle in self.handles if handle.apart is not None]
        self._merges_to = Antichain.of(time for elements in wanted for time in elements) if wanted else None
        self._join_apart()

    def move_since(self) -> None:
        """`since` is where the slowest readers are; without readers it stays."""
        if len(self.handles) == 1:
            (handle,) = self.handles
            self.since = handle.frontier
        elif self.handles:
            frontiers = {handle.frontier.elements for handle in self.handles}
            self.since = Antichain.of(time for elements in frontiers for time in elements)


def _level_of(rows: int) -> int:
    return max(0, (rows - 1).bit_length())


def _from(batch: Batch, lower: Antichain) -> Batch:
    """The batch, starting earlier: nothing happened in between."""
    return replace(batch, description=replace(batch.description, lower=lower))


def _compact(batch: Batch, since: Antichain) -> bool:
    """Whether merging the batch with nothing would leave it as it is."""
    settled = all(layer.settled for layer in batch.layers)
    return settled or batch.description.since == since
