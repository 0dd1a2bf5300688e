"""A graph as one of NetworkX, or of GraphFrames."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.graphs.mistakes import mistake

if TYPE_CHECKING:
    import networkx as nx
    import pyarrow as pa

    from dlog.graphs.protocols import ArrayGraph


def to_networkx(graph: ArrayGraph) -> nx.Graph:
    """All vertices and edges with their attributes; values that are null are left out."""
    import networkx as nx

    ids, edges = graph.names.objects(), graph.numbered
    parallel = len(np.unique(edges.src * len(graph) + edges.dst)) < len(edges.src)
    if not graph.directed and not parallel:
        low, high = np.minimum(edges.src, edges.dst), np.maximum(edges.src, edges.dst)
        parallel = len(np.unique(low * len(graph) + high)) < len(low)
    kinds = {(True, False): nx.DiGraph, (True, True): nx.MultiDiGraph, (False, False): nx.Graph, (False, True): nx.MultiGraph}
    made = kinds[graph.directed, parallel]()
    made.add_nodes_from(zip(ids, _attributes(graph.vertices.drop_columns(["id"])), strict=True))
    pairs = zip(edges.src.tolist(), edges.dst.tolist(), _attributes(graph.edges.drop_columns(["src", "dst"])), strict=True)
    made.add_edges_from((ids[a], ids[b], attributes) for a, b, attributes in pairs)
    return made


def to_graphframe(spark: Any, vertices: pa.Table, edges: pa.Table) -> Any:
    """A GraphFrame in a Spark session; vertices have a column `id`, edges `src` and `dst`. Raises DlogError where GraphFrames
    is missing."""
    return graphframe_of(spark.createDataFrame(vertices), spark.createDataFrame(edges))


def graphframe_of(vertices: Any, edges: Any) -> Any:
    """The same of DataFrames of Spark."""
    try:
        frames = import_module("graphframes")
    except ImportError:
        raise mistake(
            "no-graphframes", "there is no GraphFrames", "pip install graphframes-py brings its Python part"
        ) from None
    return frames.GraphFrame(vertices, edges)


def _attributes(table: Any) -> list[dict[str, Any]]:
    if not table.num_columns:
        return [{} for _ in range(table.num_rows)]
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
