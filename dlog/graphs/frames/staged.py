"""Changes of a graph's edges that wait as DataFrames, where some are too large for the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.spark.inputs import quoted
from dlog.graphs.frames.numbers import NUMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dlog.graphs.names import Codes

ENDS = ["src", "dst"]


class StagedFrames:
    """Edges that come, and ends of edges that go, in order. True if there are any."""

    def __init__(self, directed: bool) -> None:
        self._directed = directed
        self._next = 0
        """From here on no edge has the number."""
        self._steps: list[tuple[DataFrame, int]] = []
        self._net: tuple[DataFrame | None, DataFrame | None] | None = None
        self.persisted: list[DataFrame] = []
        """What Spark keeps for them."""

    def __bool__(self) -> bool:
        return bool(self._steps)

    def begin(self, edges: DataFrame) -> None:
        """These are the edges that changes are to come to."""
        self._next = 1 + max(-1, _most(edges))

    def add(self, edges: DataFrame) -> None:
        """Edges that come, each with a number of its own."""
        self._step(edges, 1)

    def remove(self, ends: DataFrame) -> None:
        """Edges with these ends go, also those that were staged before; without a direction, either way round."""
        self._step(ends if self._directed else ends.unionAll(ends.select("dst", "src")), -1)

    def _step(self, frame: DataFrame, diff: int) -> None:
        self._steps.append((frame, diff))
        self._net = None

    def fresh(self, edges: int) -> Codes:
        """Numbers for so many edges."""
        self._next += edges
        return np.arange(self._next - edges, self._next)

    def numbered(self, edges: DataFrame, kept: DataFrame) -> DataFrame:
        """Edges with numbers for those that they have, which are from 0 on, as in what Spark keeps of them."""
        from pyspark.sql import functions as F

        first = self._next
        self._next += 1 + _most(kept)
        return edges.withColumn(NUMBER, F.col(quoted(NUMBER)) + F.lit(first))

    def net(self) -> tuple[DataFrame | None, DataFrame | None]:
        """The ends of all edges that go, each pair once, and the edges that came and have not gone again."""
        if self._net is None:
            ends, added = self._netted()
            self._net = None if ends is None else ends.distinct().persist(), None if added is None else added.persist()
            self.persisted += [frame for frame in self._net if frame is not None]
        return self._net

    def _netted(self) -> tuple[DataFrame | None, DataFrame | None]:
        ends: DataFrame | None = None
        added: DataFrame | None = None
        for frame, diff in reversed(self._steps):
            if diff < 0:
                ends = frame if ends is None else ends.unionAll(frame)
                continue
            left = frame if ends is None else frame.join(ends, ENDS, "left_anti")
            added = left if added is None else left.unionByName(added, allowMissingColumns=True)
        return ends, added

    def forget(self) -> None:
        """Drops all changes, and the frames that Spark keeps for them."""
        for frame in self.persisted:
            frame.unpersist()
        self._steps, self._net, self.persisted = [], None, []


def settled(rows: DataFrame) -> DataFrame:
    """The same rows, computed, without the plan that they came by: of a graph that changes again and again it would become ever
    longer, and Spark plans again each time. They are where the application has its checkpoints; if it has none its executors
    keep them, and rows are lost with an executor."""
    if rows.sparkSession.sparkContext.getCheckpointDir() is None:
        return rows.localCheckpoint()
    kept = rows.persist()  # a checkpoint reads them twice
    try:
        return kept.checkpoint()
    finally:
        kept.unpersist()


def _most(edges: DataFrame) -> int:
    """The greatest number of an edge; -1 where there are none."""
    from pyspark.sql import functions as F

    most = edges.agg(F.max(F.col(quoted(NUMBER)))).collect()[0][0]
    return -1 if most is None else int(most)
