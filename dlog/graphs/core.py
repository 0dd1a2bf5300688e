"""A graph that stays as it is."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.graphs.analyses import ArrayAnalyses
from dlog.graphs.mistakes import mistake
from dlog.graphs.names import ArrowNames, Codes, ObjectNames, number_columns, number_objects
from dlog.graphs.numbered import Numbered
from dlog.graphs.questions import Question
from dlog.graphs.results import GraphResult, Motifs
from dlog.graphs.running import Running
from dlog.graphs.sources import IdColumns, SourceGraph

if TYPE_CHECKING:
    import networkx as nx

    from dlog.graphs.live import Live


class Graph(ArrayAnalyses[GraphResult]):
    """Vertices and edges, with their attributes, and everything that can be asked about them. Made by `dlog.graph`.

    `len` is the number of vertices."""

    def __init__(self, given: SourceGraph, running: Running, columns: IdColumns) -> None:
        self._source = given
        self.columns = columns
        self.running = running
        self._names, self._numbered, self._order = _numbered(given)

    @property
    def names(self) -> ArrowNames | ObjectNames:
        return self._names

    @property
    def numbered(self) -> Numbered:
        return self._numbered

    @property
    def origin(self) -> Any:
        """The Spark session, or the graph of NetworkX, that the graph came from; None for all else."""
        return self._source.origin

    @cached_property
    def vertices(self) -> pa.Table:
        """The vertices as a table, in the order of their ids: `id`, then their attributes."""
        ids = self.names.decode(np.arange(len(self.names)))
        attributes = self._source.vertex_attributes
        table = pa.table({"id": ids})
        if attributes is None or self._order is None:
            return table
        for name in attributes.column_names:
            table = table.append_column(name, attributes[name].take(pa.array(self._order)))
        return table

    @cached_property
    def edges(self) -> pa.Table:
        """The edges as a table, in the order they were given: `src`, `dst`, then their attributes."""
        graph, attributes = self.numbered, self._source.edge_attributes
        table = pa.table({"src": self.names.decode(graph.src), "dst": self.names.decode(graph.dst)})
        for name in attributes.column_names:
            table = table.append_column(name, attributes[name])
        return table

    def find(self, motif: str) -> Motifs:
        """Every way in which a motif occurs, as GraphFrames' `find` does: a column for each named vertex and edge, in the order
        of their names in the motif. Vertices are structs of `id` and their attributes, edges of `src`, `dst` and theirs.

        - `(a)-[e]->(b)` is an edge from `a` to `b`; `(a)<-[e]-(b)` one from `b`; `(a)-[e]-(b)` one either way; `(a)<-[e]->(b)`
          is two, `e1` and `e2`. Edges of an undirected graph go both ways.
        - `;` joins them. The same name is the same vertex; two names may be one vertex.
        - `()` and `[]` are vertices and edges without a name.
        - `!(a)-[]->(b)` says that there is no such edge. Vertices named in such terms only are any vertices.
        - `(a)-[e*2]->(b)` is a path of two edges `_e1` and `_e2` and a vertex `_ab1` between them; `(a)-[e*1..3]->(b)` one of
          one to three edges, and `_hop` says how many. `(a)-[*1..3]->(b)` asks for ends and length only, `(a)-[*]->(b)` for
          the ends of paths of any length, `(a)-[*2..]->(b)` of two edges or more.

        Rows are in no particular order. Each is there once, also where GraphFrames repeats it for elements without a name, and
        there are no columns `_pattern` and `_direction`. What GraphFrames does not join, paths of several lengths with other
        terms, is joined.

        Raises
        ------
        DlogError
            The motif is none, or breaks a rule of GraphFrames: an edge without any name, a name for an edge that is not there,
            one name for two edges or for an edge and a vertex.

        >>> import dlog
        >>> g = dlog.graph([("a", "b"), ("b", "a"), ("b", "c")])
        >>> list(g.find("(x)-[]->(y); !(y)-[]->(x)"))
        [({'id': 'b'}, {'id': 'c'})]
        """
        from dlog.graphs.motifs import find

        return find(self, motif)

    def live(self) -> Live:
        """The same graph, made to change: what is asked of it follows."""
        from dlog.graphs.live import Live

        return Live(self)

    def to_networkx(self) -> nx.Graph:
        """The graph as one of NetworkX with all attributes: a copy of the one it came from, or a Graph or DiGraph (with
        parallel edges a MultiGraph or MultiDiGraph)."""
        if hasattr(self.origin, "adjacency"):
            return self.origin.copy()
        from dlog.graphs.exchange import to_networkx

        return to_networkx(self)

    def _answer(self, question: Question) -> GraphResult:
        return GraphResult(self, question.shape, question.answer(self.numbered, self.running))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"<dlog.Graph, {kind}, {len(self)} vertices, {len(self.numbered.src)} edges>"


def _numbered(given: SourceGraph) -> tuple[ArrowNames | ObjectNames, Numbered, Codes | None]:
    """Names, the graph in numbers, and the row of each vertex in the table of vertices."""
    names, order = _named(given)
    if names is None:
        columns = [given.src, given.dst]
        names, codes = number_columns(columns) if isinstance(given.src, pa.Array) else number_objects(columns)
    else:
        codes = [names.encode(given.src, "`src` of the edges"), names.encode(given.dst, "`dst` of the edges")]
    src, dst = codes
    edges = Numbered(len(names), src, dst, np.arange(len(src)), given.edge_attributes, given.directed)
    return names, edges, order


def _named(given: SourceGraph) -> tuple[ArrowNames | ObjectNames | None, Codes | None]:
    """The names in the table of vertices, ascending where they have an order, and the row of each."""
    if given.id is None:
        return None, None
    if isinstance(given.id, pa.Array):
        order = pc.sort_indices(given.id).to_numpy().astype(np.int64)
        ids = given.id.take(pa.array(order))
        if len(ids) > 1 and (same := pc.equal(ids[1:], ids[:-1])).true_count:
            raise _repeated(ids[1:].filter(same)[0].as_py())
        return ArrowNames(ids), order
    names, (codes,) = number_objects([given.id])
    if len(names) < len(codes):
        values, counts = np.unique(codes, return_counts=True)
        raise _repeated(names.ids[values[counts > 1][0]])
    return ObjectNames(names.ids), np.argsort(codes)


def _repeated(value: object) -> Exception:
    return mistake("repeated-vertex", f"the vertex table has {value!r} twice", "ids of vertices are unique")
