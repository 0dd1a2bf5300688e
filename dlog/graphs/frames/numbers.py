"""Numbers for the vertices of a graph in Spark.

Programs know vertices by numbers. Integers are numbers already and pass as they are. Other ids are numbered 0, 1, 2 ... in
their order, where they are, so that the least number of some vertices is that of the least id, as in graphs of arrays: strings
by the workers where one run gives the answer (`asking`), all others here: Spark sorts them, and of each partition the driver
learns how many it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dlog.engine.spark.inputs import quoted
from dlog.graphs.frames.source_frames import SourceFrames, VertexIds, checked
from dlog.graphs.mistakes import bad_weight, missing_column, negative_weight, unknown_vertex
from dlog.graphs.numbered import Form

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from dlog.graphs.names import Codes
    from dlog.graphs.sources import IdColumns

FLOATS = ("float", "double", "decimal")
NUMBER = "@number"
"""The column of edges that have numbers of their own."""
PLACES = 33
"""Bits that `monotonically_increasing_id` has for the place in a partition."""


class Numbers:
    """A graph as the relations that programs of the library read, as DataFrames. `integers`: ids are the numbers.

    `sound`: nothing is wrong with the rows. They are looked at when something is first asked."""

    def __init__(self, spark: SparkSession, given: SourceFrames, columns: IdColumns, directed: bool) -> None:
        self.spark = spark
        self.source = given
        self.columns = columns
        self.directed = directed
        self.sound = False
        self._persisted: list[DataFrame] = []

    @cached_property
    def vertex_ids(self) -> VertexIds:
        """The vertices, which Spark has looked at. Raises DlogError where the rows make no graph."""
        known = checked(self.source, self.columns)
        self._persisted.append(known.ids)
        self.sound = True
        return known

    def look(self) -> None:
        """Raises DlogError where the rows make no graph, unless they were looked at before."""
        if not self.sound:
            _ = self.vertex_ids

    @property
    def counted(self) -> bool:
        """Whether `vertex_ids` is at hand."""
        return "vertex_ids" in self.__dict__

    @property
    def integers(self) -> bool:
        return self.source.integers

    @cached_property
    def names(self) -> DataFrame:
        """`id` and `number`, ascending alike, 0, 1, 2 ...: kept by Spark."""
        return self._keep(*dense(self.vertex_ids.ids.select("id"), "id"))

    @cached_property
    def edges(self) -> DataFrame:
        """The edges with numbers for `src` and `dst`."""
        if self.integers:
            return self.source.edges
        return self._keep(renumbered(self.source.edges, self.names, ("src", "dst")))

    @cached_property
    def numbered_edges(self) -> DataFrame:
        """The same with a number for each edge, `NUMBER`: kept, as Spark might number them otherwise the next time."""
        from pyspark.sql import functions as F

        return self._keep(self.edges.withColumn(NUMBER, F.monotonically_increasing_id()))

    def _keep(self, *frames: DataFrame) -> DataFrame:
        from pyspark import StorageLevel

        last = frames[-1].persist(StorageLevel.MEMORY_AND_DISK)
        self._persisted += [*frames[:-1], last]
        return last

    def release(self) -> None:
        """Gives back what Spark keeps; the numbers must not be used afterwards."""
        for frame in self._persisted:
            frame.unpersist()

    # --------------------------------------------------------------------------------------------------------- relations

    def vertex(self) -> DataFrame:
        """The relation of vertices, `x`."""
        from pyspark.sql import functions as F

        if not self.integers:
            return self.names.select(F.col("number").alias("x"))
        given = self.source.vertices
        return (self.vertex_ids.ids if given is None or self.counted else given).select(F.col("id").alias("x"))

    def edge(self, form: Form, weight: str | None = None, floats: bool = False) -> DataFrame:
        """The relation of edges, with a column of weights if one is named."""
        return edge_columns(self.edges, form, weight, floats)

    def float_weights(self, column: str) -> bool:
        """Whether a column of weights has floats; DlogError if they are none, or negative."""
        return float_weights(self.source.edges, column)

    # ------------------------------------------------------------------------------------------------------ ids, numbers

    def encode(self, ids: Iterable[Any], where: str) -> Codes:
        """The numbers of some ids, in any order; DlogError for the first that is no vertex."""
        import numpy as np

        wanted = self.possible(ids, where)
        found = self.find(dict.fromkeys(wanted))
        for value in wanted:
            if value not in found:
                raise unknown_vertex(value, where)
        return np.array(list(found.values()), np.int64)

    def possible(self, ids: Iterable[Any], where: str) -> list[Any]:
        """Ids as Python values; DlogError for the first that cannot be a vertex, by its type."""
        wanted = values_of(ids)
        for value in wanted:
            if not may_be(value, self.source.type):
                raise unknown_vertex(value, where)
        return wanted

    def find(self, ids: Iterable[Any]) -> dict[Any, int]:
        """The numbers of those ids that are vertices; all might be, by their type."""
        return find(self.vertex_ids.ids.select("id") if self.integers else self.names, ids, self.source.type)

    def decoded(self, rows: DataFrame, columns: Iterable[str]) -> DataFrame:
        """Rows with the ids of numbers in some columns."""
        return rows if self.integers else renumbered(rows, self.names, columns, "number", "id")


def edge_columns(edges: DataFrame, form: Form, weight: str | None, floats: bool) -> DataFrame:
    """The relation of edges in numbers."""
    from pyspark.sql import functions as F

    columns: list[Column] = [F.col("src"), F.col("dst")]
    if form == "numbered":
        numbered = F.col(quoted(NUMBER)) if NUMBER in edges.columns else F.monotonically_increasing_id()
        columns.insert(0, numbered.alias("number"))
    if weight is not None:
        type = "double" if floats else "bigint"
        columns.append(F.col(quoted(weight)).cast(type).alias("weight"))
    return edges.select(*columns)


def float_weights(edges: DataFrame, column: str) -> bool:
    """Whether a column of weights has floats; DlogError if they are none, or negative."""
    from pyspark.sql import functions as F

    types = dict(edges.drop("src", "dst", NUMBER).dtypes)
    if column not in types:
        raise missing_column("edge", column, types)
    type = types[column].partition("(")[0]
    floats = type in FLOATS
    if not floats and type not in ("tinyint", "smallint", "int", "bigint"):
        raise bad_weight(column, f"is of type {types[column]}")
    values = F.col(quoted(column))
    strange = F.isnan(values.cast("double"))
    counts = F.count(F.when(values.isNull(), True)), F.count(F.when(strange, True)), F.min(values)
    nulls, strangers, least = edges.agg(*counts).collect()[0]
    if nulls:
        raise bad_weight(column, "has nulls")
    if strangers:
        raise bad_weight(column, "has values that are not numbers")
    if least is not None and least < 0:
        raise negative_weight(column, float(least) if floats else least)
    return floats


def dense(ids: DataFrame, *by: str | Column) -> tuple[DataFrame, DataFrame]:
    """Rows, which Spark keeps from now on, and the same with `number`, their place in an order, from 0 on."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    place = F.monotonically_increasing_id()
    cut = [F.shiftright(place, PLACES).alias("part"), place.bitwiseAND((1 << PLACES) - 1).alias("place")]
    placed = ids.orderBy(*by).select("*", *cut).persist(StorageLevel.MEMORY_AND_DISK)
    counted = sorted((row["part"], row["count"]) for row in placed.groupBy("part").count().collect())
    first, starts = 0, []
    for part, rows in counted:
        starts.append((part, first))
        first += rows
    offsets = ids.sparkSession.createDataFrame(starts, "part bigint, first bigint")
    numbered = placed.join(F.broadcast(offsets), "part")
    return placed, numbered.select(*ids.columns, (F.col("first") + F.col("place")).alias("number"))


def find(names: DataFrame, ids: Iterable[Any], type: str) -> dict[Any, int]:
    """The numbers of those ids that are among `names`: `id`, and `number` where that is another."""
    from pyspark.sql import functions as F

    from dlog.engine.spark.application import need_context

    need_context(names.sparkSession)
    asked = names.sparkSession.createDataFrame([(value,) for value in ids], f"id {type}")
    return {row[0]: row[-1] for row in names.join(F.broadcast(asked), "id", "left_semi").collect()}


def renumbered(rows: DataFrame, names: DataFrame, columns: Iterable[str], old: str = "id", new: str = "number") -> DataFrame:
    """Rows with the `new` of names for the `old` ones in some columns."""
    from pyspark.sql import functions as F

    for column in columns:
        told = names.select(F.col(old).alias("@old"), F.col(new).alias("@new"))
        there = rows.join(told, F.col(quoted(column)) == F.col("`@old`"))
        rows = there.select(*(F.col("`@new`").alias(column) if c == column else F.col(quoted(c)) for c in rows.columns))
    return rows


def values_of(ids: Iterable[Any]) -> list[Any]:
    """Ids as Python values."""
    import numpy as np
    import pyarrow as pa

    if isinstance(ids, pa.Array | pa.ChunkedArray):
        return list(ids.to_pylist())
    return [value.item() if isinstance(value, np.generic) else value for value in ids]


def may_be(value: Any, type: str) -> bool:
    """Whether a value could be an id of a type of Spark's, as far as it is easily said."""
    if type == "bigint":
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if type == "string":
        return isinstance(value, str)
    return value is not None
