"""A graph in Spark that changes: Spark has what it began with, the driver what has come and gone since.

What a change costs the driver goes with the change. Of the ids that changes name, Spark says once which it knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dlog.graphs.changing import ChangingEdges
from dlog.graphs.frames.given import Frames, Known
from dlog.graphs.frames.numbers import NUMBER, Numbers, edge_columns, may_be, values_of
from dlog.graphs.mistakes import mistake, unknown_vertex
from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered
from dlog.graphs.questions import Rules
from dlog.graphs.running import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Vertices:
    """The vertices that changes are about. Each has a *place*, in the order in which they were named, and its number in the
    graph: that of an id that is an integer is the id, others go on where those of the beginning end."""

    def __init__(self, beginning: Numbers) -> None:
        self._beginning = beginning
        (_, self._type), *_ = beginning.known.ids.dtypes
        self._places: dict[Any, int] = {}
        self._numbers: list[int] = []
        self.later: list[Any] = []
        """Those that the graph did not begin with, in the order in which they came."""

    def add(self, ids: Any) -> None:
        """Makes vertices of those that are none."""
        wanted = values_of(ids)
        for value in wanted:
            if not may_be(value, self._type):
                raise mistake("bad-vertex", f"vertices have ids of type {self._type}, and {value!r} cannot be one")
        self._learn(wanted)
        for value in wanted:
            if value not in self._places:
                self._note(value, self.number(len(self.later), value))
                self.later.append(value)

    def number(self, place: int, value: Any) -> int:
        """The number of the vertex at a place among the later ones."""
        return int(value) if self._beginning.integers else self._beginning.known.count + place

    def places(self, ids: Any, where: str) -> Codes:
        """DlogError for the first that is no vertex."""
        wanted = values_of(ids)
        self._learn([value for value in wanted if may_be(value, self._type)])
        for value in wanted:
            if not may_be(value, self._type) or value not in self._places:
                raise unknown_vertex(value, where)
        return np.array([self._places[value] for value in wanted], np.int64)

    def numbers(self, places: Codes) -> Codes:
        """The numbers of places."""
        return np.array(self._numbers, np.int64)[places]

    def _learn(self, ids: Iterable[Any]) -> None:
        """Asks Spark for the numbers of those that have no place yet."""
        asked = [value for value in dict.fromkeys(ids) if value not in self._places]
        for value, number in self._beginning.find(asked).items() if asked else ():
            self._note(value, number)

    def _note(self, value: Any, number: int) -> None:
        self._places[value] = len(self._numbers)
        self._numbers.append(number)


class Edited:
    """What a commit removes and adds: the edges with certain ends that the graph began with, and some that came later."""

    def __init__(self, beginning: DataFrame, ends: Columns, removed: Numbered, added: Numbered) -> None:
        self._beginning, self._ends = beginning, ends
        self._removed, self._added = removed, added

    def added(self, rules: Rules) -> Columns:
        return _edge(rules, self._added)

    def removed(self, rules: Rules) -> Columns:
        """As rules read edges. Those of the beginning are looked for in Spark where their ends do not say all."""
        later = _edge(rules, self._removed)
        if not len(self._ends[0]):
            return later
        found = self._ends if rules.form == "plain" and rules.weight is None else self._found(rules)
        return tuple(np.concatenate(pair) for pair in zip(found, later, strict=True))

    def _found(self, rules: Rules) -> Columns:
        rows = edge_columns(having(self._beginning, self._ends), rules.form, rules.weight, rules.floats).toArrow()
        return tuple(np.asarray(column.to_numpy()) for column in rows.columns)


class ChangingFrame:
    """The edges of a graph that began as a DataFrame, with numbers: which of them have gone, and those that came later."""

    def __init__(self, beginning: Numbers, vertices: Vertices) -> None:
        self._beginning, self._vertices = beginning, vertices
        self._frame = beginning.numbered_edges
        self._later = ChangingEdges(_none(beginning.directed))
        self._gone: list[Codes] = []
        """Places of the ends, two columns each time."""
        self._committed = 0

    def add(self, src: Codes, dst: Codes, attributes: pa.Table) -> None:
        """Edges between places."""
        self._later.add(src, dst, attributes)

    def remove(self, src: Codes, dst: Codes) -> None:
        """All edges with these ends, which are places."""
        self._later.remove(src, dst)
        self._gone.append(np.stack((src, dst)))
        if not self._beginning.directed:
            self._gone.append(np.stack((dst, src)))

    def rollback(self) -> None:
        """Takes back what has happened since the last `settle`."""
        self._later.rollback()
        del self._gone[self._committed :]

    def edited(self) -> Edited:
        """What has happened since the last `settle`."""
        edited = self._later.edited()
        ends = self._ends(self._gone[self._committed :])
        return Edited(self._frame, ends, self._in_numbers(edited.removed), self._in_numbers(edited.added))

    def settle(self) -> None:
        """Forgets what has happened."""
        self._later.settle()
        self._committed = len(self._gone)

    def later(self) -> Numbered:
        """The edges that came later and are there as of the last `settle`."""
        return self._in_numbers(self._later.numbered(0))

    def frame(self) -> DataFrame:
        """All edges as of the last `settle`, with numbers for vertices and of their own."""
        edges, later = self._frame, self.later()
        ends = self._ends(self._gone[: self._committed])
        if len(ends[0]):
            edges = having(edges, ends, "left_anti")
        if not len(later.src):
            return edges
        came = later.attributes if later.attributes.num_columns else pa.table({NUMBER: later.numbers})
        for name, column in (("src", later.src), ("dst", later.dst), (NUMBER, later.numbers)):
            came = came.append_column(name, pa.array(column)) if name not in came.column_names else came
        return edges.unionByName(self._beginning.spark.createDataFrame(came), allowMissingColumns=True)

    def _ends(self, gone: Sequence[Codes]) -> Columns:
        src, dst = np.unique(np.concatenate([np.empty((2, 0), np.int64), *gone], axis=1), axis=1)
        return self._vertices.numbers(src), self._vertices.numbers(dst)

    def _in_numbers(self, edges: Numbered) -> Numbered:
        """Edges between places as edges of the graph; their own numbers are none that an edge of the beginning has."""
        src, dst = self._vertices.numbers(edges.src), self._vertices.numbers(edges.dst)
        return Numbered(0, src, dst, -1 - edges.numbers, edges.attributes, edges.directed)


class ChangedNumbers(Numbers):
    """The graph as of the last commit, in numbers."""

    def __init__(self, beginning: Numbers, later: Sequence[tuple[Any, int]], edges: DataFrame) -> None:
        given = Frames(edges.drop(NUMBER), None, beginning.integers)
        super().__init__(beginning.spark, given, beginning.columns, beginning.directed)
        self._beginning, self._later, self._edges = beginning, later, edges

    @cached_property
    def known(self) -> Known:
        return _known(self._beginning, [id for id, _ in self._later])

    @cached_property
    def edges(self) -> DataFrame:
        return self._edges

    @cached_property
    def names(self) -> DataFrame:
        if not self._later:
            return self._beginning.names
        (_, type), *_ = self.known.ids.dtypes
        return self._beginning.names.unionAll(self.spark.createDataFrame(list(self._later), f"id {type}, number bigint"))


def _edge(rules: Rules, edges: Numbered) -> Columns:
    """Edges as rules read them. Where there are none there may be no column of weights either."""
    if len(edges.src) or rules.weight is None:
        return rules.edge(edges)
    return *edges.edge(rules.form), np.empty(0, np.float64 if rules.floats else np.int64)


def having(edges: DataFrame, ends: Columns, how: str = "left_semi") -> DataFrame:
    """The edges that have some ends, few enough to be sent to all tasks; or those that have others."""
    from pyspark.sql import functions as F

    few = edges.sparkSession.createDataFrame(pa.table({"src": ends[0], "dst": ends[1]}))
    return edges.join(F.broadcast(few), ["src", "dst"], how)


def _known(beginning: Numbers, later: Sequence[Any]) -> Known:
    known = beginning.known
    if not later:
        return known
    (_, type), *_ = known.ids.dtypes
    ids = known.ids.select("id").unionAll(beginning.spark.createDataFrame([(id,) for id in later], f"id {type}"))
    least = reduce(min, later, known.least if known.least is not None else later[0])
    return Known(ids, known.count + len(later), least)


def _none(directed: bool) -> Numbered:
    none = np.empty(0, np.int64)
    return Numbered(0, none, none, none, pa.table({"_": pa.nulls(0)}).drop_columns(["_"]), directed)
