"""Small random graphs, with loops, parallel edges and vertices without edges, and NetworkX's graphs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx
import pyarrow as pa
from hypothesis import strategies as st

import dlog


@dataclass(frozen=True)
class Sample:
    """Vertices, edges between them, and a weight for each edge."""

    vertices: list[Any]
    edges: list[tuple[Any, Any]]
    weights: list[Any]
    kind: Any

    @property
    def graph(self) -> dlog.Graph:
        return self.directed(True)

    def directed(self, directed: bool) -> dlog.Graph:
        weights = pa.array(self.weights, self.kind)
        edges = {"src": [a for a, _ in self.edges], "dst": [b for _, b in self.edges], "weight": weights}
        return dlog.graph(self.vertices, edges, directed=directed, threads=1)

    def networkx(self, kind: Any = nx.DiGraph) -> Any:
        """NetworkX's graph. With a kind that has no parallel edges the least weight stays."""
        made = kind()
        made.add_nodes_from(self.vertices)
        for (a, b), weight in sorted(zip(self.edges, self.weights, strict=True), key=lambda edge: -edge[1]):
            made.add_edge(a, b, weight=weight)
        return made

    def simple(self) -> Any:
        """NetworkX's graph without directions, parallel edges and loops."""
        made = self.networkx(nx.Graph)
        made.remove_edges_from(list(nx.selfloop_edges(made)))
        return made


@st.composite
def samples(draw: st.DrawFn, vertices: int = 8, edges: int = 20, floats: bool = False) -> Sample:
    """Graphs whose vertices are integers far apart, integers in a row, or strings."""
    ids = draw(st.sampled_from([[2**40 * i - 3 for i in range(vertices)], list(range(vertices)), list("hcadgfbe"[:vertices])]))
    present = ids[: draw(st.integers(1, vertices))]
    pair = st.tuples(st.sampled_from(present), st.sampled_from(present))
    chosen = draw(st.lists(pair, max_size=edges))
    weight = st.integers(0, 8).map(lambda n: n / 4) if floats else st.integers(0, 5)
    weights = draw(st.lists(weight, min_size=len(chosen), max_size=len(chosen)))
    return Sample(draw(st.permutations(present)), chosen, weights, pa.float64() if floats else pa.int64())
