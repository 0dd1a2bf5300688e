"""The answer of an analysis: a table, and its graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import pyarrow as pa

from dlog.graphs.exchange import to_graphframe
from dlog.graphs.mistakes import mistake
from dlog.graphs.questions import Shape
from dlog.graphs.running import Columns
from dlog.tabular import Tabular

if TYPE_CHECKING:
    import networkx as nx

    from dlog.graphs.names import Codes, Names
    from dlog.graphs.protocols import ArrayGraph


class _Exported(Tabular):
    """Rows of a `table`, in the forms that other libraries have for them."""

    _graph: ArrayGraph
    table: pa.Table

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, which is `table`."""
        return self.table

    @property
    def df(self) -> Any:
        """The rows as a DataFrame of the Spark session that the graph came from, or of the active one. DlogError if there is
        none."""
        return _spark(self._graph.origin).createDataFrame(self.table)


class GraphResult(_Exported):
    """The answer to one question about a graph. Rows that belong to vertices are in the order of their ids.

    `len` counts the rows, and iterating gives them as tuples of Python values."""

    def __init__(self, graph: ArrayGraph, shape: Shape, columns: Columns) -> None:
        self._graph = graph
        self._shape = shape
        self._columns = ordered(columns)

    @cached_property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        return decoded(self._graph.names, self._shape, self._columns)

    @property
    def graphframe(self) -> Any:
        """The graph as a GraphFrame: all edges, and all vertices as `vertices` has them, with the columns of the result.
        DlogError where there is no Spark session or no GraphFrames, whose JVM part the session needs, too."""
        return to_graphframe(_spark(self._graph.origin), self.vertices(), self._graph.edges)

    def vertices(self) -> pa.Table:
        """All vertices with their attributes and the columns of the result, which are null for vertices without a row. A result
        that only names vertices becomes a column `found` of truth values."""
        found = np.full(len(self._graph.names), -1, np.int64)
        found[self._per_vertex()[0]] = np.arange(len(self))
        table = self._graph.vertices
        if len(self._shape.columns) == 1:
            return _appended(table, "found", pa.array(found >= 0))
        places = pa.array(found, mask=found < 0)
        for name in self.table.column_names[1:]:
            table = _appended(table, name, self.table[name].combine_chunks().take(places))
        return table

    def to_networkx(self) -> nx.Graph:
        """The graph as one of NetworkX, with the columns of the result as attributes of the vertices that have a row. Distances
        between pairs are a dict by landmark or source, `distances`; a result that names edges gives the graph of those."""
        ids = self._graph.names.objects()
        graph = self._graph.to_networkx()
        match self._shape.of:
            case "edge":
                pairs = zip(*(column.tolist() for column in self._columns), strict=True)
                return graph.edge_subgraph(_edges_of(graph, [(ids[a], ids[b]) for a, b in pairs])).copy()
            case "pair":
                values = zip(*(column.tolist() for column in self._columns), strict=True)
                for landmark, vertex, distance in values:
                    graph.nodes[ids[vertex]].setdefault("distances", {})[ids[landmark]] = distance
            case "vertex" | "none":
                self._set_attributes(graph, ids)
            case _:
                assert_never(self._shape.of)
        return graph

    def _set_attributes(self, graph: nx.Graph, ids: list[Any]) -> None:
        vertices = self._per_vertex()[0].tolist()
        if len(self._shape.columns) == 1:
            for vertex in vertices:
                graph.nodes[ids[vertex]]["found"] = True
        for (name, holds), column in zip(self._shape.columns[1:], self._columns[1:], strict=True):
            values = column.tolist()
            for vertex, value in zip(vertices, values, strict=True):
                graph.nodes[ids[vertex]][name] = ids[value] if holds == "vertex" else value

    def _per_vertex(self) -> Columns:
        if self._shape.of != "vertex":
            names = ", ".join(name for name, _ in self._shape.columns)
            raise mistake("not-of-vertices", f"the result ({names}) does not have one row for a vertex", "`table` has its rows")
        return self._columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return python_rows(self._graph.names, self._shape, self._columns)

    def _title(self) -> str:
        return title("GraphResult", [name for name, _ in self._shape.columns], len(self))

    def _first(self, rows: int) -> pa.Table | None:
        return decoded(self._graph.names, self._shape, tuple(column[:rows] for column in self._columns))


class Motifs(_Exported):
    """The matches of a motif: a row for each way in which it occurs, with a column for each of its named elements.

    `len` counts the rows, and iterating gives them as tuples of Python values. `held` says of each column what it holds and
    the numbers of that."""

    def __init__(self, graph: ArrayGraph, table: pa.Table, held: Sequence[tuple[str, Codes]]) -> None:
        self._graph = graph
        self._column_numbers = held
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        columns = [self._values(*named) for named in zip(self.table.columns, self._column_numbers, strict=True)]
        return zip(*columns, strict=True) if columns else iter([()] * len(self))

    def _values(self, column: pa.ChunkedArray, held: tuple[str, Codes]) -> list[Any]:
        """The values of a column, with ids as they were given."""
        holds, codes = held
        rows: list[Any] = column.to_pylist()
        if holds == "value":
            return rows
        there = np.where(codes < 0, 0, codes)
        graph, names = self._graph.numbered, self._graph.names
        numbers = {"id": there} if holds == "vertex" else {"src": graph.src[there], "dst": graph.dst[there]}
        ids = zip(*(names.values(ends) for ends in numbers.values()), strict=True)
        return [row and {**row, **dict(zip(numbers, ends, strict=True))} for row, ends in zip(rows, ids, strict=True)]

    def _title(self) -> str:
        return title("Motifs", self.table.column_names, len(self))



def title(kind: str, columns: Sequence[str], rows: int) -> str:
    """A description of an answer, in a line."""
    return f"dlog.graph.{kind} ({', '.join(columns)}), {rows:,} {'row' if rows == 1 else 'rows'}"


def decoded(names: Names, shape: Shape, columns: Columns) -> pa.Table:
    """Columns of numbers as a table of ids and values."""
    return pa.table(
        {
            name: names.decode(column) if holds == "vertex" else pa.array(column)
            for (name, holds), column in zip(shape.columns, columns, strict=True)
        }
    )


def ordered(columns: Columns) -> Columns:
    """Rows in ascending order of the first column, then of the second, and so on."""
    first = columns[0]
    if len(first) < 2 or bool((first[1:] > first[:-1]).all()):
        return columns
    order = np.lexsort(columns[::-1])
    return tuple(column[order] for column in columns)


def python_rows(names: Names, shape: Shape, columns: Columns) -> Iterator[tuple[Any, ...]]:
    """Columns of numbers as tuples of ids, as they were given, and values."""
    held = zip(shape.columns, columns, strict=True)
    return zip(*(names.values(column) if holds == "vertex" else column.tolist() for (_, holds), column in held), strict=True)


def _appended(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """A table with a column more, or with another one of that name."""
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def _edges_of(graph: nx.Graph, pairs: list[tuple[Any, Any]]) -> list[tuple[Any, ...]]:
    """The edges between pairs of vertices, either way round, as `edge_subgraph` takes them."""
    both = [pair for a, b in pairs for pair in ((a, b), (b, a))] if graph.is_directed() else pairs
    there = [pair for pair in both if graph.has_edge(*pair)]
    return [(a, b, key) for a, b in there for key in graph[a][b]] if graph.is_multigraph() else list(there)


def _spark(origin: Any) -> Any:
    if hasattr(origin, "createDataFrame"):
        return origin
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        active = None
    else:
        active = SparkSession.getActiveSession()
    if active is None:
        note = "make the graph from DataFrames, or start a session: SparkSession.builder.getOrCreate()"
        raise mistake("no-spark", "there is no Spark session to make a DataFrame in", note)
    return active
