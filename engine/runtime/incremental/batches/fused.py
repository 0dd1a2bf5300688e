"""A commit of many rounds of one input, in short batches that kernels go through on their own
(kernels/incremental/loop/fused_batches.py); and what batches have changed, fused or not."""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.batches.changes import net
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.values.updates import Updates


class FusedBatches:
    """Changes of an input, for batches of so many rounds."""

    def __init__(self, given: Collection, updates: Updates, rounds: int) -> None:
        self.input = given
        self.columns = [np.ascontiguousarray(c, np.int64) for c in (*updates.columns, updates.diffs, updates.rounds)]
        self.struct = Struct(L.fused.size)
        self.struct[L.fused.input] = given.address
        self.struct.point(L.fused.columns, words(c.ctypes.data for c in self.columns))
        self.struct.point(L.fused.batch, Struct(len(self.columns)))
        self.struct[L.fused.count] = updates.rows
        self.struct[L.fused.rounds] = rounds

    @property
    def address(self) -> int:
        return self.struct.address

    @property
    def is_over(self) -> bool:
        return self.struct[L.fused.at] == self.struct[L.fused.count] and not self.is_begun

    @property
    def is_begun(self) -> bool:
        """Whether a batch has begun of which the changes are not kept yet."""
        return bool(self.struct[L.fused.is_open])

    @property
    def has_changed(self) -> bool:
        """Whether a batch is over."""
        return self.struct[L.fused.first] != 0 and not (self.is_begun and self.struct[L.fused.first] == self.columns[-1][0])

    def changes(self, collection: Collection) -> Updates:
        """The changes of the batches that are over."""
        updates = collection.fused_changes()
        if collection is not self.input or not self.struct[L.fused.repeated]:
            return updates
        rows = np.unique(np.stack(updates.columns), axis=1, return_inverse=True)[1].reshape(-1)
        places, diffs = net(rows, updates.rounds, updates.diffs)
        return Updates(tuple(column[places] for column in updates.columns), diffs, updates.rounds[places])


def take_changes(flow: Dataflow, fused: FusedBatches | None, first: int) -> dict[str, Updates]:
    """The changes of a batch that begins at round `first`, or of the fused batches that it was, by collection."""
    changed = flow.touched() if fused is None else flow.touched_by_fused_batches()
    return {name: batch_changes(flow.observed[name], fused, first) for name in changed}


def batch_changes(collection: Collection, fused: FusedBatches | None, first: int) -> Updates:
    """`take_changes` of one collection."""
    if fused is not None:
        return fused.changes(collection)
    updates = collection.updates(first)
    if collection.role is Role.INPUT and updates.rows > 1 and collection.may_repeat():
        rows, rounds, _ = collection.changes()  # of the log itself, which the next batch writes over
        places, diffs = net(rows, rounds, updates.diffs)
        columns = tuple(column[places] for column in updates.columns)
        return Updates(columns, diffs, updates.rounds[places])
    return updates
