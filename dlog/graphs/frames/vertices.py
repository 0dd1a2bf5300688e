"""The vertices that changes of a graph in Spark are about.

Of the ids that small changes name, Spark says once which it knows, and the driver keeps them; those of large DataFrames stay
with Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dlog.dataclass import dataclass
from dlog.graphs.frames.numbers import Numbers, dense, find, may_be, renumbered, values_of
from dlog.graphs.frames.source_frames import VertexIds
from dlog.graphs.frames.staged import settled
from dlog.graphs.mistakes import mistake, unknown_vertex
from dlog.graphs.names import Codes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Many:
    """Vertices that came in a DataFrame: `id` and `number`; how many there are, and the least id."""

    names: DataFrame
    count: int
    least: Any


class VertexMark(NamedTuple):
    """The numbers of vertices, and of DataFrames of them, that had come at one time."""

    few: int
    many: int


NONE = VertexMark(0, 0)


@dataclass(frozen=True, slots=True)
class AddedVertices:
    """Vertices that came later: pairs of an id and its number, and DataFrames of them."""

    few: Sequence[tuple[Any, int]]
    many: Sequence[Many]

    @property
    def count(self) -> int:
        return len(self.few) + sum(many.count for many in self.many)

    @property
    def numbers(self) -> Codes:
        """The numbers of the few."""
        return np.array([number for _, number in self.few], np.int64)

    def with_names(self, names: DataFrame) -> DataFrame:
        """`id` and `number` of these vertices and of others."""
        if self.few:
            type = dict(names.dtypes)["id"]
            names = names.unionAll(names.sparkSession.createDataFrame(list(self.few), f"id {type}, number bigint"))
        return reduce(lambda a, b: a.unionAll(b), (many.names for many in self.many), names)

    def with_vertex_ids(self, known: VertexIds) -> VertexIds:
        """The same of vertices of which only the ids matter."""
        if not self.count:
            return known
        least = [known.least, *(id for id, _ in self.few), *(many.least for many in self.many)]
        ids = self.with_names(known.ids.selectExpr("id", "0L as number")).select("id")
        return VertexIds(ids, known.count + self.count, min(id for id in least if id is not None))


class Vertices:
    """All of them. One that a small change names has a *place*, in the order in which they were named. The number of an id that
    is an integer is the id, others go on where those of the beginning end."""

    def __init__(self, beginning: Numbers) -> None:
        self._beginning = beginning
        (_, self.type), *_ = beginning.vertex_ids.ids.dtypes
        self._places: dict[Any, int] = {}
        self._numbers: list[int] = []
        self._few: list[tuple[Any, int]] = []
        self._many: list[Many] = []

    # --------------------------------------------------------------------------------------------------------- those that came

    @property
    def mark(self) -> VertexMark:
        """How many have come until now."""
        return VertexMark(len(self._few), len(self._many))

    def between(self, until: VertexMark, since: VertexMark = NONE) -> AddedVertices:
        """The vertices that came between two times."""
        return AddedVertices(self._few[since.few : until.few], self._many[since.many : until.many])

    def _names(self) -> DataFrame:
        """`id` and `number` of all, those included that no commit has seen yet."""
        return self.between(self.mark).with_names(self._names_of_beginning())

    def _names_of_beginning(self) -> DataFrame:
        return (
            self._beginning.vertex_ids.ids.selectExpr("id", "id as number")
            if self._beginning.integers
            else self._beginning.names
        )

    # ------------------------------------------------------------------------------------------------------------------- few

    def add(self, ids: Any) -> None:
        """Makes vertices of those that are none."""
        wanted = values_of(ids)
        for value in wanted:
            if not may_be(value, self.type):
                raise mistake("bad-vertex", f"vertices have ids of type {self.type}, and {value!r} cannot be one")
        self._learn(wanted)
        for value in wanted:
            if value not in self._places:
                number = int(value) if self._beginning.integers else self._next()
                self._note(value, number)
                self._few.append((value, number))

    def places(self, ids: Any, where: str) -> Codes:
        """DlogError for the first that is no vertex."""
        wanted = values_of(ids)
        self._learn([value for value in wanted if may_be(value, self.type)])
        for value in wanted:
            if not may_be(value, self.type) or value not in self._places:
                raise unknown_vertex(value, where)
        return np.array([self._places[value] for value in wanted], np.int64)

    def numbers(self, places: Codes) -> Codes:
        """The numbers of places."""
        return np.array(self._numbers, np.int64)[places]

    def _next(self) -> int:
        """The number of the next id that is no integer."""
        return self._beginning.vertex_ids.count + self.between(self.mark).count

    def _learn(self, ids: Iterable[Any]) -> None:
        """Asks Spark for the numbers of those that have no place yet."""
        asked = [value for value in dict.fromkeys(ids) if value not in self._places]
        if asked:
            names = AddedVertices((), self._many).with_names(self._names_of_beginning())
            for value, number in find(names, asked, self.type).items():
                self._note(value, number)

    def _note(self, value: Any, number: int) -> None:
        self._places[value] = len(self._numbers)
        self._numbers.append(number)

    # ------------------------------------------------------------------------------------------------------------------ many

    def add_many(self, ids: DataFrame) -> None:
        """The same as `add` for a DataFrame with a column `id`, which has no nulls."""
        from pyspark.sql import functions as F

        new = ids.distinct().join(self._names(), "id", "left_anti")
        if self._beginning.integers:
            names = settled(new.select("id", F.col("id").alias("number")))
        else:
            placed, numbered = dense(new, "id")
            names = settled(numbered.withColumn("number", F.col("number") + self._next()))
            placed.unpersist()
        figures = names.agg(F.count("id").alias("vertices"), F.min("id").alias("least")).collect()[0]
        if figures["vertices"]:
            self._many.append(Many(names, figures["vertices"], figures["least"]))

    def in_numbers(self, edges: DataFrame, where: Sequence[str] = ()) -> DataFrame:
        """Edges with numbers in the place of ids. DlogError for an end that is no vertex, in some columns."""
        from pyspark.sql import functions as F

        names = self._names()
        for column in where:
            ids = edges.select(F.col(column).alias("id"))
            stray = ids.join(names, "id", "left_anti").agg(F.min("id")).collect()[0][0]
            if stray is not None:
                raise unknown_vertex(stray, column)
        return edges if self._beginning.integers else renumbered(edges, names, ("src", "dst"))
