"""A graph in Spark that changes: Spark has what it began with, the driver what has come and gone since in small changes.

What a change costs the driver goes with the change, unless it is a large DataFrame: then Spark makes all edges anew of those
that were there and those that were staged, and the graph goes on from these as from a beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from dlog.graphs.changing import ChangingEdges
from dlog.graphs.frames.numbers import NUMBER, Numbers, edge_columns, float_weights
from dlog.graphs.frames.source_frames import SourceFrames, VertexIds
from dlog.graphs.frames.staged import ENDS, StagedFrames, settled
from dlog.graphs.frames.vertices import AddedVertices, Vertices
from dlog.graphs.mistakes import bad_weight
from dlog.graphs.names import Codes
from dlog.graphs.numbered import Numbered
from dlog.graphs.questions import Rules
from dlog.graphs.running import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GROWTH = 4
"""All edges, when Spark makes them anew, are in at most about so many times the partitions of the beginning."""
Rows: TypeAlias = "Columns | DataFrame | None"
"""Rows of a relation, here or with Spark; none at all."""


class EditedEnds:
    """The removals and additions of a commit: the edges with certain ends that the graph began with, and some that came
    later."""

    def __init__(self, beginning: DataFrame, ends: Columns, removed: Numbered, added: Numbered) -> None:
        self._beginning, self._ends = beginning, ends
        self._removed, self._added = removed, added

    def added(self, rules: Rules) -> Columns:
        return _edge(rules, self._added)

    def removed(self, rules: Rules) -> Columns:
        """The removed edges as rules read them. Those of the beginning are looked for in Spark where their ends do not say
        all."""
        later = _edge(rules, self._removed)
        if not len(self._ends[0]):
            return later
        found = self._ends if rules.form == "plain" and rules.weight is None else self._read_edges(rules)
        return tuple(np.concatenate(pair) for pair in zip(found, later, strict=True))

    def _read_edges(self, rules: Rules) -> Columns:
        rows = edge_columns(having(self._beginning, self._ends), rules.form, rules.weight, rules.floats).toArrow()
        return tuple(np.asarray(column.to_numpy()) for column in rows.columns)


class EditedFrames:
    """The same of DataFrames: `edges` are those before, of which go all with certain `ends`, and others come."""

    def __init__(self, edges: DataFrame, ends: DataFrame | None, added: DataFrame | None) -> None:
        self._edges, self._ends, self._added = edges, ends, added

    def added(self, rules: Rules) -> Rows:
        """The added edges as rules read them. DlogError if their weights do not do."""
        added, weight = self._added, rules.weight
        if added is None or (weight is not None and weight not in added.columns and added.isEmpty()):
            return None
        if weight is not None and float_weights(added, weight) and not rules.floats:
            raise bad_weight(weight, "is of floats, after weights that are integers")
        return edge_columns(added, rules.form, weight, rules.floats)

    def removed(self, rules: Rules) -> Rows:
        """The same; of edges that are only their ends, those too that are not there."""
        if self._ends is None or (rules.form == "plain" and rules.weight is None):
            return self._ends
        found = self._edges.join(self._ends, ENDS, "left_semi")
        return edge_columns(found, rules.form, rules.weight, rules.floats)

    def after(self) -> DataFrame:
        """All edges afterwards."""
        left = self._edges if self._ends is None else self._edges.join(self._ends, ENDS, "left_anti")
        return left if self._added is None else left.unionByName(self._added, allowMissingColumns=True)


class ChangingFrame:
    """The edges of a graph that began as a DataFrame, with numbers: which of them have gone, and those that came later."""

    def __init__(self, beginning: Numbers, vertices: Vertices) -> None:
        self._beginning, self._vertices = beginning, vertices
        self._frame = beginning.numbered_edges
        self._partitions = _partitions(self._frame)
        self._later = ChangingEdges(_none(beginning.directed))
        self._numbered = 0
        """How many edges had come in small changes when all edges were made anew."""
        self._removed_ends: list[Codes] = []
        """Places of the ends, two columns each time."""
        self._committed = 0
        self._many = StagedFrames(beginning.directed)

    def add(self, src: Codes, dst: Codes, attributes: pa.Table) -> None:
        """Edges between places."""
        if self._many:
            edges = self._in_numbers(Numbered(0, src, dst, src, attributes))
            self._many.add(self._as_frame(replace(edges, numbers=self._many.fresh(len(src)))))
        else:
            self._later.add(src, dst, self._later.with_attributes(attributes))

    def remove(self, src: Codes, dst: Codes) -> None:
        """All edges with these ends, which are places."""
        if self._many:
            self._many.remove(self._ends_frame([np.stack((src, dst))]))
            return
        self._later.remove(src, dst)
        self._removed_ends.append(np.stack((src, dst)))
        if not self._beginning.directed:
            self._removed_ends.append(np.stack((dst, src)))

    def add_many(self, edges: DataFrame, kept: DataFrame) -> None:
        """Edges in numbers, each with a number that is none of another one of them; made of what Spark keeps."""
        self._gather()
        self._many.persisted.append(kept)
        self._many.add(self._many.numbered(edges, kept))

    def remove_many(self, edges: DataFrame, kept: DataFrame) -> None:
        """All edges with the ends of these, which are in numbers."""
        self._gather()
        self._many.persisted.append(kept)
        self._many.remove(edges.select(*ENDS))

    def _gather(self) -> None:
        """Makes DataFrames of all that is staged."""
        if self._many:
            return
        self._many.begin(self._frame)
        edited = self._later.edited()
        if len(self._removed_ends) > self._committed:
            self._many.remove(self._ends_frame(self._removed_ends[self._committed :]))
        if len(edited.added.src):
            self._many.add(self._as_frame(self._in_numbers(edited.added)))

    def rollback(self) -> None:
        """Takes back what has happened since the last `settle`."""
        self._later.rollback()
        del self._removed_ends[self._committed :]
        self._many.forget()

    def edited(self) -> EditedEnds | EditedFrames:
        """The edits since the last `settle`."""
        if self._many:
            return EditedFrames(self.frame(), *self._many.net())
        edited = self._later.edited()
        ends = self._ends(self._removed_ends[self._committed :])
        return EditedEnds(self._frame, ends, self._in_numbers(edited.removed), self._in_numbers(edited.added))

    def settle(self, edited: EditedEnds | EditedFrames) -> list[DataFrame]:
        """Forgets what has happened. Returns what Spark need not keep any more when nobody reads `edited`."""
        if isinstance(edited, EditedEnds):
            self._later.settle()
            self._committed = len(self._removed_ends)
            return []
        self._frame = settled(self._fewer(edited.after()))
        spent, self._many = self._many.persisted, StagedFrames(self._beginning.directed)
        self._numbered += self._later.rows
        self._later, self._removed_ends, self._committed = ChangingEdges(_none(self._beginning.directed)), [], 0
        return spent

    def _fewer(self, edges: DataFrame) -> DataFrame:
        """Edges in not too many partitions: a union has those of all its parts, which would become ever more."""
        return edges.coalesce(self._partitions) if _partitions(self._frame) > GROWTH * self._partitions else edges

    def later(self) -> Numbered:
        """The edges that came in small changes and are there as of the last `settle`."""
        return self._in_numbers(self._later.numbered(0))

    def frame(self) -> DataFrame:
        """All edges as of the last `settle`, with numbers for vertices and of their own."""
        edges, later = self._frame, self.later()
        ends = self._ends(self._removed_ends[: self._committed])
        if len(ends[0]):
            edges = having(edges, ends, "left_anti")
        return edges.unionByName(self._as_frame(later), allowMissingColumns=True) if len(later.src) else edges

    def _as_frame(self, edges: Numbered) -> DataFrame:
        """Edges in numbers, with their attributes, which Spark gets from here."""
        came = edges.attributes if edges.attributes.num_columns else pa.table({NUMBER: edges.numbers})
        for name, column in (("src", edges.src), ("dst", edges.dst), (NUMBER, edges.numbers)):
            came = came.append_column(name, pa.array(column)) if name not in came.column_names else came
        return self._beginning.spark.createDataFrame(came)

    def _ends_frame(self, gone: Sequence[Codes]) -> DataFrame:
        src, dst = self._ends(gone)
        return self._beginning.spark.createDataFrame(pa.table({"src": src, "dst": dst}))

    def _ends(self, gone: Sequence[Codes]) -> Columns:
        src, dst = np.unique(np.concatenate([np.empty((2, 0), np.int64), *gone], axis=1), axis=1)
        return self._vertices.numbers(src), self._vertices.numbers(dst)

    def _in_numbers(self, edges: Numbered) -> Numbered:
        """Edges between places as edges of the graph; their own numbers are none that an edge of the beginning has."""
        src, dst = self._vertices.numbers(edges.src), self._vertices.numbers(edges.dst)
        return Numbered(0, src, dst, -1 - self._numbered - edges.numbers, edges.attributes, edges.directed)

    def release(self) -> None:
        """Gives back what Spark keeps for changes."""
        self._many.forget()


class ChangedNumbers(Numbers):
    """The graph as of the last commit, in numbers."""

    def __init__(self, beginning: Numbers, later: AddedVertices, edges: DataFrame) -> None:
        given = SourceFrames(edges.drop(NUMBER), None, beginning.integers)
        super().__init__(beginning.spark, given, beginning.columns, beginning.directed)
        self._beginning, self._later, self._edges = beginning, later, edges

    @cached_property
    def vertex_ids(self) -> VertexIds:
        return self._later.with_vertex_ids(self._beginning.vertex_ids)

    @cached_property
    def edges(self) -> DataFrame:
        return self._edges

    @cached_property
    def names(self) -> DataFrame:
        return self._later.with_names(self._beginning.names)


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


def _partitions(rows: DataFrame) -> int:
    return max(int(rows.rdd.getNumPartitions()), 1)


def _none(directed: bool) -> Numbered:
    none = np.empty(0, np.int64)
    return Numbered(0, none, none, none, pa.table({"_": pa.nulls(0)}).drop_columns(["_"]), directed)
