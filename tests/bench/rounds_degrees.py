"""Degrees and their distribution, and what the total order of rounds is worth: operators that need no history of a group
against those that recursion needs, on the same relation in the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tests.bench.inputs import Rows
from tests.bench.rounds_engine import batched_rounds, history_is_right, is_right, load, rows_of
from tests.bench.rounds_measure import Row, row_of
from tests.bench.rounds_streams import Stream, changing_graph
from tests.bench.rounds_twins import distribution_rows, least_rows, source_rows

PER_CALL = 100_000
PAIRS: dict[str, tuple[str, Callable[[int, Rows], Rows]]] = {"least": ("least", least_rows), "sources": ("leaves", source_rows)}
"""Programs with their relation and its twin; `<program>_general` says the same in terms of recursion."""


def run(nodes: int, edges: int, calls: int = 5, per_call: int = PER_CALL) -> Iterator[Row]:
    """Batches of rounds of degrees and their distribution: in a round an edge comes or goes, or one is replaced."""
    for way, stream in _ways(nodes, edges, calls * per_call):
        yield batches(f"degrees {nodes}/{edges}, {way} a round", "degrees", "distribution", distribution_rows, stream, per_call)


def _ways(nodes: int, edges: int, rounds: int) -> tuple[tuple[str, Stream], ...]:
    stream = changing_graph(3, nodes, edges, rounds)
    return ("a change", stream.one_by_one().until(rounds)), ("an edge replaced", stream)


def run_general(nodes: int, edges: int, calls: int = 15, per_call: int = PER_CALL) -> Iterator[Row]:
    """The same for least successors (a minimum) and sources (a projection), in the total model and by what recursion needs."""
    for way, stream in _ways(nodes, edges, calls * per_call):
        for program, (relation, twin) in PAIRS.items():
            for model in (program, f"{program}_general"):
                yield batches(f"{model} {nodes}/{edges}, {way} a round", model, relation, twin, stream, per_call)


def batches(
    name: str, program: str, relation: str, twin: Callable[[int, Rows], Rows], stream: Stream, per_call: int
) -> Row:
    loaded = load(program, {"edge": stream.first})
    engine = loaded.engine
    before = rows_of(engine, relation)
    done = batched_rounds(engine, stream, per_call, relation)

    def rows(edges: Rows) -> Rows:
        return twin(stream.nodes, edges)

    right = is_right(engine, relation, stream, rows) and history_is_right(before, done.changes, stream, rows)
    used, edges = engine.memory.used, len(stream.first)
    engine.close()
    notes = f"load {edges / loaded.seconds / 1e6:.1f} M edges/s; {used / edges:.0f} bytes per edge; "
    notes += f"{done.changes.rows / stream.rounds:.1f} changes a round; reading them {np.median(done.reading) / 1e6:.1f} ms"
    return row_of(name, f"{per_call:,} a call", done.nanos, stream.rounds, used, right, notes)
