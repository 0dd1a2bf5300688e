"""A graph in Spark."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from dlog.engine.spark.application import need_running
from dlog.graphs.analyses import Analyses
from dlog.graphs.core import Graph
from dlog.graphs.frames.numbers import Numbers
from dlog.graphs.frames.question_run import is_named_beside, ruled
from dlog.graphs.frames.results import SparkGraphResult, SparkMotifs
from dlog.graphs.frames.running import SparkRunning
from dlog.graphs.frames.source_frames import arranged
from dlog.graphs.names import Codes, one_or_many
from dlog.graphs.questions import Computation, Question, Rules
from dlog.graphs.running import Running
from dlog.graphs.sources import IdColumns, read

if TYPE_CHECKING:
    import networkx as nx
    from pyspark.sql import DataFrame, SparkSession

    from dlog.graphs.frames.live import SparkLive


class SparkGraph(Analyses[SparkGraphResult]):
    """Vertices and edges that stay in Spark, with their attributes, and everything that can be asked about them. Made by
    `dlog.graph` of DataFrames, which checks columns and types; rows are checked when something is first asked. `release` gives
    back what Spark keeps for it.

    `len` is the number of vertices."""

    def __init__(self, vertices: DataFrame | None, edges: DataFrame, directed: bool, columns: IdColumns) -> None:
        self._source_frames = vertices, edges
        self.columns = columns
        self.running = SparkRunning(edges.sparkSession)
        need_running(self.origin)
        self.numbers = Numbers(self.origin, arranged(vertices, edges, columns), columns, directed)

    @property
    def directed(self) -> bool:
        return self.numbers.directed

    @property
    def origin(self) -> SparkSession:
        """The session of the DataFrames."""
        return self.running.spark

    @property
    def vertices(self) -> DataFrame:
        """The vertices: `id`, then their attributes."""
        given = self.numbers.source.vertices
        return self.numbers.vertex_ids.ids.select("id") if given is None else given

    @property
    def edges(self) -> DataFrame:
        """The edges: `src`, `dst`, then their attributes."""
        return self.numbers.source.edges

    def find(self, motif: str) -> SparkMotifs:
        """Every way in which a motif occurs: see `dlog.Graph.find`. Vertices and edges are structs of their columns."""
        from dlog.graphs.frames.motifs import find

        return find(self, motif)

    @cached_property
    def local(self) -> Graph:
        """The same graph with all vertices and edges on the driver."""
        vertices, edges = self._source_frames
        given = read(edges, None, self.columns) if vertices is None else read(vertices, edges, self.columns)
        return Graph(given.with_direction(self.directed), Running("spark"), self.columns)

    def live(self) -> SparkLive:
        """The same graph, made to change: what is asked of it follows. Its vertices and edges stay in Spark, the driver keeps
        what changes; it must not be released meanwhile."""
        from dlog.graphs.frames.live import SparkLive

        need_running(self.origin)
        return SparkLive(self)

    def to_networkx(self) -> nx.Graph:
        """The graph as one of NetworkX with all attributes, on the driver."""
        return self.local.to_networkx()

    def release(self) -> None:
        """Gives back what Spark keeps for the graph: answers that were not read yet are lost."""
        self.numbers.release()

    def _answer(self, question: Question) -> SparkGraphResult:
        need_running(self.origin)
        match question:
            case Rules(on_spark=None):
                answer = ruled(question, self.numbers, self.running)
            case Rules(on_spark=compute) | Computation(on_spark=compute):
                assert compute is not None
                self.numbers.look()
                answer = compute(self.numbers, self.running)
            case _:
                assert_never(question)
        return SparkGraphResult(self, question.shape, answer)

    def _codes(self, ids: Any, where: str) -> Codes:
        """The codes of ids; the ids themselves where the question checks beside that the graph has them."""
        if not is_named_beside(self.numbers):
            return self.numbers.encode(one_or_many(ids), where)
        return np.array(self.numbers.possible(one_or_many(ids), where), np.int64 if self.numbers.integers else np.object_)

    def _float_weights(self, column: str) -> bool:
        return self.numbers.float_weights(column)

    def __len__(self) -> int:
        return self.numbers.vertex_ids.count

    def __repr__(self) -> str:
        counted = f", {len(self)} vertices" if self.numbers.counted else ""
        return f"<dlog.graph.SparkGraph, {'directed' if self.directed else 'undirected'}{counted}>"
