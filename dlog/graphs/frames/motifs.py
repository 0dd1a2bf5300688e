"""Motifs in a graph in Spark: rows of numbers from the workers, joined with what these are the numbers of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlog.engine.spark.inputs import quoted
from dlog.graphs.frames.numbers import renumbered
from dlog.graphs.frames.results import SparkMotifs
from dlog.graphs.frames.running import Answer
from dlog.graphs.motifs.parser import parse
from dlog.graphs.motifs.rules import ABSENT, compile_motif

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dlog.graphs.frames.protocols import FrameGraph


def find(graph: FrameGraph, motif: str) -> SparkMotifs:
    """All occurrences of a motif; DlogError with the place if it is none."""
    compiled = compile_motif(motif, parse(motif), graph.directed)
    ids = _Ids(graph)
    facts = {name: ids.relation(name) for name in compiled.inputs}
    done = graph.running.run_source(compiled.text, facts, ("motif",))
    found = done["motif"]
    rows = found.df.toDF(*(c.name for c in compiled.columns))
    for column in compiled.columns:
        if column.holds != "value":
            rows = ids.decoded(rows, column.name, column.holds)
    return SparkMotifs(rows, Answer(rows, (done,), found.rows))


class _Ids:
    """The numbers of vertices: those of the graph, unless one of them means that there is none (`ABSENT`)."""

    def __init__(self, graph: FrameGraph) -> None:
        self.graph = graph
        numbers = graph.numbers
        self.as_they_are = numbers.integers and (numbers.vertex_ids.least is None or numbers.vertex_ids.least > ABSENT)

    def relation(self, name: str) -> DataFrame:
        """A relation that programs of motifs read."""
        from pyspark.sql import functions as F

        numbers = self.graph.numbers
        if name == "vertex":
            return numbers.vertex() if self.as_they_are else numbers.names.select("number")
        number = [F.col("`@number`")] if name == "edge" else []
        edges = (numbers.numbered_edges if name == "edge" else numbers.edges).select(*number, "src", "dst")
        if numbers.integers and not self.as_they_are:
            edges = renumbered(edges, numbers.names, ("src", "dst"))
        turned = edges.select(*number, F.col("dst").alias("src"), F.col("src").alias("dst"))
        return edges if self.graph.directed else edges.unionAll(turned)

    def decoded(self, rows: DataFrame, column: str, holds: str) -> DataFrame:
        """Rows with structs for the numbers in a column, null where there is none."""
        from pyspark.sql import functions as F

        told = (self._vertices() if holds == "vertex" else self._edges()).withColumnRenamed("@what", f"@{column}")
        joined = rows.join(told, F.col(quoted(column)) == F.col("`@key`"), "left")
        names = [F.col(quoted(f"@{c}")).alias(c) if c == column else F.col(quoted(c)) for c in rows.columns]
        return joined.select(*names)

    def _vertices(self) -> DataFrame:
        graph = self.graph
        key = [] if self.as_they_are else ["number"]
        table = graph.vertices if self.as_they_are else graph.vertices.join(graph.numbers.names, "id")
        return _structs(table, graph.vertices.columns, key[0] if key else "id")

    def _edges(self) -> DataFrame:
        """With the ids that the numbered edges have numbers of."""
        numbers = self.graph.numbers
        return _structs(numbers.decoded(numbers.numbered_edges, ("src", "dst")), self.graph.edges.columns, "@number")


def _structs(table: DataFrame, columns: list[str], key: str) -> DataFrame:
    from pyspark.sql import functions as F

    fields: list[Any] = [F.col(quoted(c)) for c in columns]
    return table.select(F.col(quoted(key)).alias("@key"), F.struct(*fields).alias("@what"))
