"""Triangles by delta queries: no stored intermediate result, single-edge rounds in one call."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.rounds_degrees import batches
from tests.bench.rounds_measure import Row
from tests.bench.rounds_streams import changing_graph, star
from tests.bench.rounds_twins import triangle_rows


def run(nodes: int, edges: int, calls: int = 5, per_call: int = 100_000) -> Iterator[Row]:
    stream = changing_graph(7, nodes, edges, calls * per_call)
    yield batches(f"triangles {nodes}/{edges}", "triangles", "triangle", triangle_rows, stream, per_call)


def run_star(spokes: int, calls: int = 5, per_call: int = 20_000) -> Iterator[Row]:
    stream = star(7, spokes, calls * per_call)
    yield batches(f"triangles, star of {spokes}", "triangles", "triangle", triangle_rows, stream, per_call)
