"""A batch: the updates of an interval of times, immutable, in at most two layers.

The *settled* layer holds rows that are there once since before anything a reader can tell apart; it has neither times nor
diffs. The *open* layer holds all other updates. Only the oldest batch of a trace, whose lower frontier is the least time, parts
the two: there what has accumulated is the collection itself. A row may be in both layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time
from dlog.engine.trace.description import Description
from dlog.engine.trace.layer import Layer, build
from dlog.engine.trace.pages import Pages


@dataclass(slots=True, eq=False)
class Batch:
    """Layers that have rows: settled before open."""

    description: Description
    layers: tuple[Layer, ...]

    @staticmethod
    def of(
        lower: Antichain,
        upper: Antichain,
        columns: Sequence[np.ndarray],
        times: np.ndarray | Time,
        diffs: np.ndarray | int,
        since: Antichain | None = None,
        pages: Pages | None = None,
    ) -> Batch:
        """Sorts and consolidates updates at times between `lower` and `upper`. Columns are int64 (or int32), times (depth, n)
        or one time for all, diffs int64 or one for all. A large batch should go to the pages of its trace when it is spent."""
        return Batch.holding(lower, upper, build(columns, times, diffs, pages), since or Antichain.start(len(times)))

    @staticmethod
    def holding(lower: Antichain, upper: Antichain, layer: Layer | None, since: Antichain) -> Batch:
        """Of a layer, or without updates."""
        return Batch(Description(lower, upper, since), (layer,) if layer else ())

    @property
    def rows(self) -> int:
        return sum(layer.rows for layer in self.layers)

    @property
    def nbytes(self) -> int:
        return sum(layer.nbytes for layer in self.layers)

    @property
    def oldest(self) -> bool:
        """Whether no batch comes before."""
        return any(not any(time) for time in self.description.lower)

    @property
    def parted(self) -> bool:
        """Whether the layers are as a batch has them: one, or in the oldest batch the settled one and the open one."""
        if len(self.layers) < 2:
            return True
        return len(self.layers) == 2 and self.oldest and self.layers[0].settled and not self.layers[1].settled
