"""A commit of many rounds of one input, in short batches that kernels go through on their own (kernels/stretches.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.embedded.batches import net
from dlog.engine.embedded.collection import Collection
from dlog.engine.embedded.native import Struct, words
from dlog.engine.kernels import layout as L
from dlog.engine.values.updates import Updates


class Stretch:
    """Changes of an input; batches of so many rounds leave what they change with the collections `kept`."""

    def __init__(self, given: Collection, updates: Updates, rounds: int, kept: Sequence[Collection]) -> None:
        self.given = given
        self.columns = [np.ascontiguousarray(c, np.int64) for c in (*updates.columns, updates.diffs, updates.rounds)]
        self.struct = Struct(L.ST_SIZE)
        self.struct[L.ST_INPUT] = given.address
        self.struct.point(L.ST_COLUMNS, words(c.ctypes.data for c in self.columns))
        self.struct.point(L.ST_BATCH, Struct(len(self.columns)))
        self.struct[L.ST_COUNT] = updates.rows
        self.struct[L.ST_ROUNDS] = rounds
        for collection in kept:
            collection.keep_changes()

    @property
    def address(self) -> int:
        return self.struct.address

    @property
    def is_over(self) -> bool:
        return self.struct[L.ST_AT] == self.struct[L.ST_COUNT] and not self.is_begun

    @property
    def is_begun(self) -> bool:
        """Whether a batch has begun of which the changes are not kept yet."""
        return bool(self.struct[L.ST_BEGUN])

    @property
    def has_changed(self) -> bool:
        """Whether a batch is over."""
        return self.struct[L.ST_FIRST] != 0 and not (self.is_begun and self.struct[L.ST_FIRST] == self.columns[-1][0])

    def changes(self, collection: Collection) -> Updates:
        """What the batches that are over have changed."""
        updates = collection.kept()
        if collection is not self.given or not self.struct[L.ST_REPEATED]:
            return updates
        rows = np.unique(np.stack(updates.columns), axis=1, return_inverse=True)[1].reshape(-1)
        places, diffs = net(rows, updates.rounds, updates.diffs)
        return Updates(tuple(column[places] for column in updates.columns), diffs, updates.rounds[places])
