"""A check that DataFrames still have the rows that they had.

Spark loses what it keeps with an executor, and computes it again from its source. Usually that gives the same rows, but files
may have been written over meanwhile, and functions may give other values each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from dlog.engine.spark.inputs import quoted
from dlog.graphs.frames.numbers import NUMBER
from dlog.graphs.mistakes import mistake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dlog.graphs.frames.numbers import Numbers

RowsDigest: TypeAlias = tuple[int, Decimal | None]
"""How many rows there are, and the sum of their hashes."""


class Origin:
    """The vertices and edges of a graph, as they were when this was made."""

    def __init__(self, numbers: Numbers) -> None:
        self._frames: Sequence[Callable[[], DataFrame]] = (
            lambda: numbers.vertex_ids.ids.select("id"),
            lambda: numbers.numbered_edges.drop(NUMBER),
        )
        self._figures = self._now()

    def _now(self) -> list[RowsDigest]:
        return [_figures(frame()) for frame in self._frames]

    def check(self) -> None:
        """DlogError where they are others now."""
        if self._now() != self._figures:
            message = "Spark lost rows of a graph, and those that it read again are not what they were"
            notes = ("make the graph anew and ask again", "write DataFrames that change to files, or checkpoint them, before")
            raise mistake("other-rows", message, *notes)


def _figures(rows: DataFrame) -> RowsDigest:
    """The same whatever the order of the rows. Spark hashes no maps: they are left out."""
    from pyspark.sql import functions as F

    hashed = F.xxhash64(*(F.col(quoted(name)) for name, type in rows.dtypes if "map<" not in type and type != "variant"))
    found = rows.agg(F.count(F.lit(1)), F.sum(hashed.cast("decimal(20,0)"))).collect()[0]
    return int(found[0]), found[1]
