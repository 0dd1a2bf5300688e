"""Reading: a cursor over the batches that a trace had when it was made.

Batches never change, so a cursor stays valid whatever is inserted and merged afterwards, in this thread or another. It reads at
times in advance of `since` only, since earlier times may have been compacted away, and not in advance of `upper`, since updates
at such times may still come.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.times import columns as T
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.description import Description, strictly_before
from dlog.engine.trace.layer import Layer
from dlog.engine.trace.merge import Merge
from dlog.grammar.diagnostics import Diagnostic, DlogError


@dataclass(frozen=True, slots=True, eq=False)
class TimedUpdates:
    """Updates as arrays of equal length: columns int64, times (depth, n), diffs int64."""

    columns: tuple[np.ndarray, ...]
    times: np.ndarray
    diffs: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.diffs)

    def only(self, chosen: np.ndarray) -> TimedUpdates:
        columns = tuple(c[chosen] for c in self.columns)
        return TimedUpdates(columns, self.times[:, chosen], self.diffs[chosen])


class Cursor:
    """Batches from the oldest to the newest, contiguous. `skipped` counts layers that reads could leave out."""

    def __init__(self, arity: int, depth: int, batches: tuple[Batch, ...], since: Antichain, upper: Antichain) -> None:
        self.arity, self.depth, self.batches, self.since, self.upper = arity, depth, batches, since, upper
        self.skipped = 0

    @property
    def rows(self) -> int:
        """Updates stored: no less than rows present at any time."""
        return sum(batch.rows for batch in self.batches)

    # ------------------------------------------------------------------------------------------------------- whole contents

    def read_at(self, time: Time) -> TimedUpdates:
        """The collection at `time`: its rows in order, each once, with how often it is there as diff (never 0)."""
        self.check_readable(time)
        merged = self._merged(Antichain((time,)), time)
        layers = [layer for layer in merged if T.less_equal(T.one(layer.latest), T.one(time)).all()]
        if len(layers) == 1 and len(merged) == 1:
            return _all_of(layers[0], time)
        found = joined([_all_of(layer, None) for layer in merged], self.arity, self.depth)
        found = found.only(T.less_equal(found.times, T.one(time)))
        found = found.only(np.lexsort(found.columns[::-1])) if found.columns and len(merged) > 1 else found
        return TimedUpdates(found.columns, np.repeat(T.one(time), found.rows, axis=1), found.diffs)

    def updates_between(self, lower: Antichain, upper: Antichain) -> TimedUpdates:
        """The updates at times in advance of `lower` and not of `upper`, in order. Merging must not have moved earlier updates
        there: `since` has to lie strictly before `lower`."""
        self._check_told_apart(lower)
        self._check_complete(upper)
        chosen = [b for b in self.batches if b.description.may_lie_between(lower, upper)]
        self.skipped += sum(len(b.layers) for b in self.batches) - sum(len(b.layers) for b in chosen)
        found = joined([_all_of(layer, None) for b in chosen for layer in b.layers], self.arity, self.depth)
        first, last = T.pack(lower, self.depth), T.pack(upper, self.depth)
        found = found.only(T.in_advance(found.times, first) & ~T.in_advance(found.times, last))
        return found.only(np.lexsort([*found.columns[::-1], *found.times[::-1]]))

    def _merged(self, since: Antichain, time: Time | None) -> tuple[Layer, ...]:
        """All that may matter at `time` in one batch, times advanced to `since`. The newest, being small, are merged first."""
        start, end = Antichain.start(self.depth), Antichain.of([])
        chosen = [b for b in self.batches if b.layers and (time is None or b.description.may_reach(time))]
        self.skipped += sum(len(b.layers) for b in self.batches) - sum(len(b.layers) for b in chosen)
        if not chosen:
            return ()
        # Not all batches are there, so their descriptions touch no longer: these are made for this merge only.
        parts = [Batch(Description(start, start, since), b.layers) for b in chosen]
        merged = reduce(lambda later, earlier: Merge((earlier, later), since).result, reversed(parts[:-1]), parts[-1])
        if len(parts) == 1 and not (len(merged.layers) == 1 and merged.layers[0].settled):
            merged = Merge((merged, Batch(Description(start, end, since), ())), since).result
        return merged.layers

    # ------------------------------------------------------------------------------------------------------------- what may

    def check_readable(self, time: Time) -> None:
        """Refuses a time that has been compacted away or is not complete."""
        if not self.since.dominates(time):
            raise DlogError(_compacted(f"time {_time_text(time)} can no longer be read", self.since))
        if self.upper.dominates(time):
            raise DlogError(
                Diagnostic(
                    "time-incomplete",
                    f"time {_time_text(time)} is not complete yet",
                    notes=(f"updates may still come at times from {self.upper} on",),
                )
            )

    def _check_told_apart(self, lower: Antichain) -> None:
        for time in lower:
            if any(time) and not strictly_before(self.since, time):
                raise DlogError(_compacted(f"changes from time {_time_text(time)} on are no longer told apart", self.since))

    def _check_complete(self, upper: Antichain) -> None:
        if not upper.precedes(self.upper):
            raise DlogError(incomplete(upper, self.upper))


def _compacted(message: str, since: Antichain) -> Diagnostic:
    return Diagnostic("time-compacted", message, notes=(f"history has been compacted to {since}: read there or later",))


def incomplete(wanted: Antichain, upper: Antichain) -> Diagnostic:
    """The mistake that all before a frontier is asked for, and a trace has only what is before `upper`."""
    notes = (f"complete: before {upper}",)
    return Diagnostic("time-incomplete", f"times before {wanted} are not complete yet", notes=notes)


def _time_text(time: Time) -> str:
    return f"({', '.join(map(str, time))})"


def _all_of(layer: Layer, time: Time | None) -> TimedUpdates:
    """All updates of a layer, at one time where it is given."""
    columns, times, diffs = layer.updates()
    return TimedUpdates(columns, times if time is None else np.repeat(T.one(time), layer.rows, axis=1), diffs)


def joined(parts: list[TimedUpdates], arity: int, depth: int) -> TimedUpdates:
    """The updates of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = np.empty(0, np.int64)
        return TimedUpdates((none,) * arity, np.empty((depth, 0), np.int64), none)
    return TimedUpdates(
        tuple(np.concatenate(pieces) for pieces in zip(*(p.columns for p in parts), strict=True)),
        np.concatenate([p.times for p in parts], axis=1),
        np.concatenate([p.diffs for p in parts]),
    )
