"""W10: reachability, distances and components on 100,000 nodes with 300,000 edges, and the same in Pathway where it is found.

The changes are inserted row by row through the Python API, and what they change is read as Python values: as the rival is used.
Batches also come as arrays, for which the rival has no way in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.bench import inputs, rounds_rival
from tests.bench.inputs import Rows
from tests.bench.process import NotMeasured
from tests.bench.rounds_engine import Nanos, rows_of, session_of
from tests.bench.rounds_measure import Row, figures, resident_mb
from tests.bench.rounds_streams import w10
from tests.bench.rounds_twins import component_rows, distance_rows, reached_rows, same_rows

Twin = Callable[[int, Rows, int], Rows]
QUERIES: dict[str, tuple[str, Twin]] = {
    "reach": ("reach", reached_rows),
    "bfs": ("dist", distance_rows),
    "components": ("component", lambda nodes, edges, source: component_rows(nodes, edges)),
}
"""Programs with their relation and its twin."""


def run(
    rounds: dict[str, int] | None = None,
    recipe: inputs.Recipe = w10,
    queries: tuple[str, ...] = tuple(QUERIES),
    rival_rounds: dict[str, int] | None = None,
) -> Iterator[Row]:
    """Single-change rounds and batches; `rounds` has how many of each, `rival_rounds` how many the rival is given."""
    rounds = {"single": 1000, "batch": 100} if rounds is None else rounds
    folder = inputs.prepare("W10", recipe) if recipe is w10 else None
    data = recipe() if folder is None else read(folder)
    for query in queries:
        for kind, count in rounds.items():
            changes = data[kind][data[kind][:, 0] < count]
            yield ours(query, kind, changes, data)
            if kind == "batch":
                yield ours(query, kind, changes, data, arrays=True)
            theirs = changes[changes[:, 0] < (rival_rounds or rounds)[kind]]
            if len(theirs):
                yield from rival(query, kind, theirs, data)


def read(folder: Path) -> dict[str, Rows]:
    import pyarrow.parquet

    tables = {path.stem: pyarrow.parquet.read_table(path) for path in folder.glob("*.parquet")}
    arrays = {name: np.stack([c.to_numpy() for c in table.columns], 1) for name, table in tables.items()}
    return arrays | {"source": arrays["source"][:, 0]}


def ours(query: str, kind: str, changes: Rows, data: dict[str, Rows], arrays: bool = False) -> Row:
    relation, twin = QUERIES[query]
    nodes, source = int(data["edge"].max()) + 1, int(data["source"][0])
    given = {"edge": data["edge"]} | ({"node": np.arange(nodes)} if query == "components" else {"root": data["source"]})
    start = time.perf_counter()
    with session_of(query, given) as session:
        loaded = time.perf_counter() - start
        nanos = (rounds_of_arrays if arrays else rounds_of)(session, relation, changes)
        right = same_rows(rows_of(session._engine, relation), twin(nodes, after(data["edge"], changes), source))
        used = session._engine.memory.used / 2**20
    notes = f"load {loaded:.2f} s; {len(changes) / (nanos.sum() / 1e9):,.0f} changes/s"
    way = f"{kind}, as arrays" if arrays else kind
    count = len(nanos)
    return Row(f"W10 {query}", way, count, count, figures(nanos), None, used, resident_mb(), right, notes)


def rounds_of(session, relation: str, changes: Rows) -> Nanos:
    """Commits the changes round by round and reads what they change."""
    bounds = _bounds(changes)
    rows, diffs = [tuple(row) for row in changes[:, 2:].tolist()], changes[:, 1].tolist()
    nanos = np.empty(len(bounds) - 1, np.int64)
    for r, (low, high) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        start = time.perf_counter_ns()
        for row, diff in zip(rows[low:high], diffs[low:high], strict=True):
            (session.insert if diff > 0 else session.remove)("edge", row)
        len(session.commit().changes(relation).rows)
        nanos[r] = time.perf_counter_ns() - start
    return nanos


def rounds_of_arrays(session, relation: str, changes: Rows) -> Nanos:
    """The same with two arrays a round: what comes and what goes."""
    bounds = _bounds(changes)
    nanos = np.empty(len(bounds) - 1, np.int64)
    for r, (low, high) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        start = time.perf_counter_ns()
        diffs, rows = changes[low:high, 1], changes[low:high, 2:]
        session.insert("edge", rows[diffs > 0])
        session.remove("edge", rows[diffs < 0])
        len(session.commit().changes(relation).rows)
        nanos[r] = time.perf_counter_ns() - start
    return nanos


def _bounds(changes: Rows) -> Rows:
    """Where rounds begin, and where the last one ends."""
    return np.flatnonzero(np.diff(changes[:, 0], prepend=-1, append=-1))


def after(edges: Rows, changes: Rows) -> Rows:
    """The edges when all changes are made."""
    there = {tuple(row) for row in edges.tolist()}
    for _, diff, x, y in changes.tolist():
        (there.add if diff > 0 else there.remove)((x, y))
    return np.array(sorted(there), np.int64)


def rival(query: str, kind: str, changes: Rows, data: dict[str, Rows]) -> Iterator[Row]:
    try:
        told = rounds_rival.measured(query, data, changes)
    except NotMeasured as reason:
        print(f"W10 {query}, {kind}: pathway: {reason}")
        return
    nodes, source = int(data["edge"].max()) + 1, int(data["source"][0])
    right = same_rows(told.rows, QUERIES[query][1](nodes, after(data["edge"], changes), source))
    notes = f"load {told.load_seconds:.2f} s; {len(changes) / told.nanos.sum() * 1e9:,.0f} changes/s"
    count = len(told.nanos)
    yield Row(f"W10 {query}", f"{kind}, pathway", count, count, figures(told.nanos), None, None, told.rss_mb, right, notes)
