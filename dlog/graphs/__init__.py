"""Graphs: `dlog.graph` makes one, and its methods run the programs of `programs/graph` on it."""

from __future__ import annotations

from typing import Any

from dlog import arguments
from dlog.graphs.core import Graph
from dlog.graphs.frames import SparkGraph, SparkGraphResult, SparkLive, SparkLiveResult, SparkMotifs, frames_of
from dlog.graphs.live import Live, LiveResult
from dlog.graphs.results import GraphResult, Motifs
from dlog.graphs.running import Running
from dlog.graphs.sources import IdColumns, read

__all__ = [
    "Graph",
    "GraphResult",
    "Live",
    "LiveResult",
    "Motifs",
    "SparkGraph",
    "SparkGraphResult",
    "SparkLive",
    "SparkLiveResult",
    "SparkMotifs",
    "graph",
]


def graph(
    data: Any,
    edges: Any = None,
    *,
    directed: bool | None = None,
    id: str = "id",
    src: str = "src",
    dst: str = "dst",
    engine: str | None = None,
    threads: int | None = None,
) -> Graph | SparkGraph:
    """Makes a graph. One of DataFrames of Spark stays in Spark, unless the engine is the embedded one.

    Parameters
    ----------
    data
        The edges: a table with the columns `src` and `dst` (of pyarrow, pandas, polars, DuckDB or Spark, or a dict of columns),
        a pair of NumPy arrays, an array of shape (edges, 2), or tuples (src, dst) or (src, dst, weight). Or a graph of NetworkX
        or GraphFrames. Vertices are the ends of the edges; further columns are attributes. Any hashable value can be a vertex.
    edges
        The edges, if `data` are the vertices: a table with the column `id`, or ids. Then all ends must be among them.
    directed
        Whether edges have a direction. Default: what a graph of NetworkX says; all others are directed.
    id, src, dst
        What the columns of ids are called.
    engine, threads
        What runs the programs: "embedded", with how many threads (default: one per core), or "spark". Default: "spark" for
        DataFrames of Spark and for GraphFrames, "embedded" for all else.

    Raises
    ------
    DlogError
        A column is missing or has nulls; an end of an edge is no vertex; a vertex is there twice.

    >>> import dlog
    >>> g = dlog.graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> g
    <dlog.Graph, directed, 4 vertices, 4 edges>
    >>> g.strongly_connected_components().table.column_names
    ['id', 'component']
    """
    columns, cores = IdColumns(id, src, dst), arguments.threads(threads)
    frames = frames_of(data, edges)
    if frames is not None and engine in (None, "spark"):
        return SparkGraph(*frames, directed is not False, columns)
    given = read(data, edges, columns)
    if directed is not None:
        given = given.with_direction(directed)
    return Graph(given, Running(engine or "embedded", cores), columns)
