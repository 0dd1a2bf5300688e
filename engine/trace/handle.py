"""Readers of a trace, each with frontiers of its own that hold compaction back."""

from __future__ import annotations

from threading import RLock
from typing import Protocol

from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.cursor import Cursor, TimedUpdates, incomplete
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError


class Held(Protocol):
    """What a trace is to its readers."""

    arity: int
    depth: int
    lock: RLock
    upper: Antichain
    merged_to: Antichain
    handles: set[TraceHandle]
    abandoned: list[TraceHandle]
    """Handles that nobody uses any more, which are dropped with the next insert."""

    @property
    def batches(self) -> tuple[Batch, ...]: ...
    def move_since(self) -> None: ...
    def move_merging(self) -> None: ...


class TraceHandle:
    """A reader with a frontier of its own: it may read from there on, and what it has given up may be compacted away as soon as
    no other reader needs it. From `apart` on, if that is set, batches are not merged."""

    def __init__(self, spine: Held, frontier: Antichain) -> None:
        self._spine: Held | None = spine
        self.frontier = frontier
        self.apart: Antichain | None = None

    def set_logical_compaction(self, frontier: Antichain) -> None:
        """Gives up all times not in advance of `frontier`, which its own must precede."""
        spine = self._open()
        with spine.lock:
            if not self.frontier.precedes(frontier):
                raise DlogError(too_late(frontier, self.frontier))
            self.frontier = frontier
            spine.move_since()

    def set_physical_compaction(self, frontier: Antichain) -> None:
        """Has batches merged that end at `frontier` or before, and those beyond kept apart. It only moves forward; the first
        time, no further back than to what has been merged."""
        spine = self._open()
        with spine.lock:
            if self.apart is None:
                frontier = frontier.join(spine.merged_to)
            elif not self.apart.precedes(frontier):
                raise DlogError(_merged(frontier, self.apart))
            self.apart = frontier
            spine.move_merging()

    def drop(self) -> None:
        """Ends reading; cursors taken before stay valid."""
        if self._spine is not None:
            spine, self._spine = self._spine, None
            with spine.lock:
                spine.handles.discard(self)
                spine.move_since()
                if self.apart is not None:
                    spine.move_merging()

    def abandon(self) -> None:
        """Has it dropped later: whoever calls may be in the midst of anything, as the garbage collector is."""
        if self._spine is not None:
            self._spine.abandoned.append(self)

    def cursor(self) -> Cursor:
        """The trace as it is now."""
        spine = self._open()
        with spine.lock:
            return Cursor(spine.arity, spine.depth, spine.batches, self.frontier, spine.upper)

    def cursor_through(self, frontier: Antichain) -> Cursor:
        """The trace as it was when it ended at `frontier`, which has to be between two batches: no update is at a time in
        advance of it, though compaction may have moved times there."""
        spine = self._open()
        with spine.lock:
            if not frontier.precedes(spine.upper):
                raise DlogError(incomplete(frontier, spine.upper))
            chosen = tuple(batch for batch in spine.batches if not frontier.precedes(batch.description.lower))
            for batch in chosen:
                if not batch.description.upper.precedes(frontier):
                    raise DlogError(_merged(frontier, batch.description.upper))
            return Cursor(spine.arity, spine.depth, chosen, self.frontier, frontier)

    def read_at(self, time: Time) -> TimedUpdates:
        """The collection at `time`."""
        return self.cursor().read_at(time)

    def updates_between(self, lower: Antichain, upper: Antichain) -> TimedUpdates:
        """The updates at times from `lower` on and not from `upper` on."""
        return self.cursor().updates_between(lower, upper)

    def _open(self) -> Held:
        if self._spine is None:
            raise InternalError("trace", "a dropped handle is used")
        return self._spine

    def __enter__(self) -> TraceHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.drop()


def _merged(wanted: Antichain, through: Antichain) -> Diagnostic:
    return Diagnostic(
        "batches-merged",
        f"batches that end at {wanted} are no longer kept apart",
        notes=(f"they may have been merged up to {through}: `set_physical_compaction` says from where on they are not",),
    )


def too_late(wanted: Antichain, held: Antichain) -> Diagnostic:
    """The mistake that a reader wants to start where history has been given up."""
    return Diagnostic(
        "time-compacted",
        f"times from {wanted} on are no longer kept apart",
        notes=(f"history has been compacted to {held}: read there or later",),
    )
