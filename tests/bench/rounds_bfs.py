"""Distances from a root in a graph of which, in every round, one edge comes or goes, or one is replaced by another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tests.bench.rounds_engine import (
    after_all,
    batched_rounds,
    engine_back,
    engine_rounds,
    history_is_right,
    is_right,
    load,
    native_rounds,
    rows_of,
    session_back,
    session_of,
    session_rounds,
)
from tests.bench.rounds_measure import Row, row_of
from tests.bench.rounds_streams import Stream, rooted_graph
from tests.bench.rounds_twins import distance_rows

CALLS = {1000: 100, 100_000: 5}
"""How many calls of so many rounds each."""


def run(nodes: int, edges: int, rounds: int, calls: dict[int, int] | None = None) -> Iterator[Row]:
    calls = CALLS if calls is None else calls
    rounds += rounds % 2  # what comes and goes in turn leads back in pairs only
    most = max([rounds, *(per_call * count for per_call, count in calls.items())])
    stream, root = rooted_graph(1, nodes, edges, most)
    replacing = _Bench(f"bfs {nodes}/{edges}, an edge replaced a round", stream, root)
    single = _Bench(f"bfs {nodes}/{edges}, a change a round", stream.one_by_one(), root)
    for bench in (single, replacing):
        yield bench.native(rounds)
    yield single.by_engine(rounds)
    yield single.by_session(rounds, None)
    yield single.by_session(rounds, "dist")
    for bench in (single, replacing):
        for per_call, count in calls.items():
            yield bench.batches(per_call, count)


class _Bench:
    def __init__(self, name: str, stream: Stream, root: int) -> None:
        self.name = name
        self.stream = stream
        self.root = root
        self.inputs = {"edge": stream.first, "root": np.array([root])}

    def twin(self, edges: np.ndarray) -> np.ndarray:
        return distance_rows(self.stream.nodes, edges, self.root)

    def native(self, rounds: int) -> Row:
        stream, loaded = self.stream.until(rounds), load("bfs", self.inputs)
        engine, edges = loaded.engine, len(stream.first)
        nanos = native_rounds(engine, stream)
        right = is_right(engine, "dist", stream, self.twin)
        used = engine.memory.used
        notes = f"load {edges / loaded.seconds / 1e6:.1f} M edges/s; {used / edges:.0f} bytes per edge"
        again = after_all(partial(native_rounds, engine), partial(engine_back, engine), stream)
        engine.close()
        return row_of(self.name, "native", nanos, len(nanos), used, right, notes, again)

    def by_engine(self, rounds: int) -> Row:
        stream, engine = self.stream.until(rounds), load("bfs", self.inputs).engine
        nanos = engine_rounds(engine, stream)
        right = is_right(engine, "dist", stream, self.twin)
        used = engine.memory.used
        again = after_all(partial(engine_rounds, engine), partial(engine_back, engine), stream)
        engine.close()
        return row_of(self.name, "engine", nanos, len(nanos), used, right, again=again)

    def by_session(self, rounds: int, read: str | None) -> Row:
        stream = self.stream.until(rounds)
        with session_of("bfs", self.inputs) as session:
            nanos = session_rounds(session, stream, read)
            right = is_right(session._engine, "dist", stream, self.twin)
            used = session._engine.memory.used
            again = after_all(partial(session_rounds, session, read=read), partial(session_back, session), stream)
        way = "session, read" if read else "session"
        return row_of(self.name, way, nanos, len(nanos), used, right, again=again)

    def batches(self, per_call: int, count: int) -> Row:
        stream, engine = self.stream.until(per_call * count), load("bfs", self.inputs).engine
        before = rows_of(engine, "dist")
        done = batched_rounds(engine, stream, per_call, "dist")
        right = is_right(engine, "dist", stream, self.twin)
        right = right and history_is_right(before, done.changes, stream, self.twin)
        used = engine.memory.used
        engine.close()
        share = done.reading.sum() / done.nanos.sum()
        notes = f"{done.changes.rows / stream.rounds:.1f} changes a round; reading them {share:.0%}"
        return row_of(self.name, f"{per_call:,} a call", done.nanos, stream.rounds, used, right, notes)
