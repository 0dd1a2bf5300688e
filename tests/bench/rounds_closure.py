"""Transitive closure of a graph with a giant component, under single insertions and single removals."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from dlog.engine.values.updates import Updates
from tests.bench.rounds_engine import is_right, load
from tests.bench.rounds_measure import Row, row_of
from tests.bench.rounds_streams import changing_graph
from tests.bench.rounds_twins import closure_rows


def run(nodes: int, edges: int, rounds: int) -> Iterator[Row]:
    """A row for the insertions and one for the removals, which take turns."""
    stream = changing_graph(11, nodes, edges, rounds)
    loaded = load("closure", {"edge": stream.first})
    engine = loaded.engine
    nanos = np.empty((rounds, 2), np.int64)
    for r in range(rounds):
        for turn, (edge, diff) in enumerate(((stream.inserted[r], 1), (stream.removed[r], -1))):
            change = Updates((edge[:1].copy(), edge[1:].copy()), np.array([diff]), np.array([engine.round + 1]))
            start = time.perf_counter_ns()
            engine.commit({"edge": change})
            nanos[r, turn] = time.perf_counter_ns() - start
    right = is_right(engine, "path", stream, lambda rows: closure_rows(nodes, rows))
    used, derived = engine.memory.used, engine.rows("path")
    engine.close()
    bytes_each = f"{loaded.used / derived:.0f}, later {used / derived:.0f} bytes each"
    notes = f"{derived:,} tuples; first {loaded.seconds:.1f} s; {bytes_each}"
    for turn, way in enumerate(("insert", "remove")):
        yield row_of(f"closure {nodes}/{edges}", way, nanos[:, turn].copy(), rounds, used, right, notes)
