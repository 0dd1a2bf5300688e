"""Answers that stay in Spark."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dlog.engine.spark.inputs import quoted
from dlog.graphs.exchange import graphframe_of
from dlog.graphs.frames.running import Answer
from dlog.graphs.mistakes import mistake
from dlog.graphs.questions import Shape
from dlog.graphs.results import GraphResult, title
from dlog.spark import first_of
from dlog.tabular import Tabular

if TYPE_CHECKING:
    import networkx as nx
    from pyspark.sql import DataFrame

    from dlog.graphs.frames.protocols import FrameGraph


class _Fetched(Tabular):
    """Rows of a DataFrame `df`, and in the forms that have them on the driver."""

    df: DataFrame
    """The rows as a DataFrame."""
    _answer: Answer

    @property
    def table(self) -> pa.Table:
        """All rows, brought to the driver, as an Arrow table."""
        return self._table

    @cached_property
    def _table(self) -> pa.Table:
        return self.df.toArrow()

    def to_arrow(self) -> pa.Table:
        """All rows, brought to the driver, as an Arrow table."""
        return self.table

    def release(self) -> None:
        """Gives back the room that the rows take with Spark; `df` must not be used afterwards."""
        self._answer.release()

    def _first(self, rows: int) -> pa.Table | None:
        return self.table.slice(0, rows) if "_table" in self.__dict__ else first_of(self.df, rows)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return self.df.count() if self._answer.count is None else self._answer.count


class SparkGraphResult(_Fetched):
    """The answer to one question about a graph in Spark.

    `len` counts the rows. Iterating gives them as tuples of Python values, and `table` as an Arrow table, in the order of their
    ids: that brings them to the driver."""

    def __init__(self, graph: FrameGraph, shape: Shape, answer: Answer) -> None:
        self._graph = graph
        self._shape = shape
        self._answer = answer
        named = [name for name, _ in shape.columns]
        held = [name for name, holds in shape.columns if holds == "vertex"]
        rows = answer.rows.toDF(*named)
        self.df = rows if answer.named else graph.numbers.decoded(rows, held)

    @cached_property
    def _table(self) -> pa.Table:
        table = self.df.toArrow()
        return table.sort_by([(name, "ascending") for name in table.column_names])

    @property
    def graphframe(self) -> Any:
        """The graph as a GraphFrame: all edges, and all vertices as `vertices` has them, with the columns of the result.
        DlogError where there is no GraphFrames, whose JVM part the session needs, too."""
        return graphframe_of(self.vertices(), self._graph.edges)

    def vertices(self) -> DataFrame:
        """All vertices with their attributes and the columns of the result, which are null for vertices without a row. A result
        that only names vertices becomes a column `found` of truth values."""
        from pyspark.sql import functions as F

        self._need_vertices()
        vertices, names = self._graph.vertices, self.df.columns[1:] or ["found"]
        found = self.df.select("id", *(F.col(c).alias(f"@{c}") for c in self.df.columns[1:]))
        if len(self._shape.columns) == 1:
            found = found.withColumn("@found", F.lit(True))
        joined = vertices.join(found, "id", "left")
        kept = [F.col(quoted(c)) for c in vertices.columns if c not in names]
        values = [F.col(quoted(f"@{c}")) if c != "found" else F.coalesce(F.col("`@found`"), F.lit(False)) for c in names]
        return joined.select(*kept, *(value.alias(c) for value, c in zip(values, names, strict=True)))

    def to_networkx(self) -> nx.Graph:
        """The graph as one of NetworkX, on the driver: see `dlog.graph.Result.to_networkx`."""
        local = self._graph.local
        columns = zip(self._shape.columns, self.table.columns, strict=True)
        codes = (local.names.encode(c, name) if holds == "vertex" else c.to_numpy() for (name, holds), c in columns)
        return GraphResult(local, self._shape, tuple(codes)).to_networkx()

    def _need_vertices(self) -> None:
        if self._shape.of != "vertex":
            names = ", ".join(name for name, _ in self._shape.columns)
            raise mistake("not-of-vertices", f"the result ({names}) does not have one row for a vertex", "`df` has its rows")

    def _title(self) -> str:
        return title("SparkGraphResult", self.df.columns, len(self))


class SparkMotifs(_Fetched):
    """The matches of a motif: a DataFrame `df` with a row for each way in which the motif occurs, and a column for each named
    element of it.

    `len` counts the rows; iterating, and `table`, bring them to the driver, in no particular order."""

    def __init__(self, df: DataFrame, answer: Answer) -> None:
        self.df = df
        self._answer = answer

    def _title(self) -> str:
        return title("SparkMotifs", self.df.columns, len(self))
