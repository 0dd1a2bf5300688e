"""Rounds beside differential dataflow in Rust: one stream of changes to a graph, a change a round, for a session, its engine,
differential dataflow with one worker and with two, and FlowLog with one where its compiler is found, in turn.

All look at each round's changes of the result: the session as a user of Python has them, by rows where a round is committed by
itself and as arrays where many are. Each run is a process of its own; what counts is the time from a call to the answer. Rows,
a checksum of them and the number of changes must be the same everywhere.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlog.sessions.core import Session
from tests.bench import rounds_flowlog
from tests.bench.engine_rust import binary
from tests.bench.inputs import Rows, cache_folder
from tests.bench.process import NotMeasured, Options, measure
from tests.bench.report import console, save, show
from tests.bench.rounds_engine import WARM, Maintained, WrongAnswer, changes, load, rows_of, session_of
from tests.bench.rounds_measure import duration
from tests.bench.rounds_streams import Stream, changing_graph, diffs, rooted_graph
from tests.bench.rounds_twins import checksum

PHASES = ((1, 2000), (1000, 50), (100_000, 3))
"""Rounds of a call, and how many calls, one phase after the other."""
SLOW = 20.0
"""Seconds of a run that is not repeated."""
ROUNDS = sum(per_call * calls for per_call, calls in PHASES)


@dataclass(frozen=True, slots=True)
class Case:
    """A program of `programs/rounds`, the relation whose changes are read, and its graph."""

    relation: str
    nodes: int
    edges: int


CASES = {
    "reach": Case("reach", 1000, 2000),
    "bfs": Case("dist", 1000, 2000),
    "components": Case("component", 1000, 2000),
    "degrees": Case("distribution", 10_000, 50_000),
}
WORKLOADS = tuple(CASES)


@dataclass(frozen=True, slots=True)
class Run:
    """Median and 99th percentile of a call's seconds, by phase, and what the run ended with."""

    median: list[float]
    slow: list[float]
    load: float
    answer: tuple[int, int, int]

    @staticmethod
    def of(told: dict[str, Any]) -> Run:
        counted = [calls[WARM:] if len(calls) > 2 * WARM else calls for calls in told["calls"]]
        median, slow = ([float(np.percentile(calls, q)) / 1e9 for calls in counted] for q in (50, 99))
        return Run(median, slow, told["load"], (told["rows"], told["check"], told["changes"]))


def run(options: Options) -> bool:
    """Measures, prints and saves; false where answers differ."""
    found = {name: best_of(name, options) for name in options.workloads}
    header = ["program", "rounds a call", *WAYS, "DD / session"]
    show("rounds beside differential dataflow: median (99th percentile) of a call", header, _lines(found))
    right = True
    for name, runs in found.items():
        answers = {run.answer for run in runs.values() if isinstance(run, Run)}
        right &= len(answers) == 1
        console.print(f"{name}: {'all answers are the same' if len(answers) == 1 else f'ANSWERS DIFFER: {answers}'}")
    save("rounds-rivals", {name: {way: _plain(r) for way, r in runs.items()} for name, runs in found.items()}, options.json)
    return right


def best_of(name: str, options: Options) -> dict[str, Run | str]:
    """Each way's run with the best medians, or why there is none."""
    folder, root = written(name)
    found: dict[str, Run | str] = {}
    slow: set[str] = set()
    for _ in range(options.repeats):
        for way, command in WAYS.items():
            best = found.get(way)
            if isinstance(best, str) or way in slow:
                continue
            try:
                cost = measure(command(name, folder, root), options.timeout)
                run = Run.of(json.loads(cost.stdout.splitlines()[-1]))
            except NotMeasured as reason:
                found[way] = str(reason)
                continue
            found[way] = run if best is None else _better(best, run)
            slow |= {way} if cost.seconds > SLOW else set()
    return found


def _better(one: Run, other: Run) -> Run:
    """The best of each figure. Raises WrongAnswer where two runs of one way end differently."""
    if one.answer != other.answer:
        raise WrongAnswer(f"answers differ between runs: {one.answer} and {other.answer}")
    median, slow = ([*map(min, a, b)] for a, b in ((one.median, other.median), (one.slow, other.slow)))
    return Run(median, slow, min(one.load, other.load), one.answer)


def _lines(found: dict[str, dict[str, Run | str]]) -> Iterator[list[str]]:
    for name, runs in found.items():
        for at, (per_call, _) in enumerate(PHASES):
            cells = [r if isinstance(r, str) else f"{duration(r.median[at])} ({duration(r.slow[at])})" for r in runs.values()]
            session, rivals = runs["session"], [r.median[at] for r in (runs["dd -w1"], runs["dd -w2"]) if isinstance(r, Run)]
            ratio = f"{min(rivals) / session.median[at]:.1f}" if rivals and isinstance(session, Run) else "-"
            yield [name, f"{per_call:,}", *cells, ratio]


def _plain(run: Run | str) -> object:
    return run if isinstance(run, str) else {"median": run.median, "p99": run.slow, "load": run.load, "answer": run.answer}


# --------------------------------------------------------------------------------------------------------------- streams


def stream_of(name: str) -> tuple[Stream, int]:
    """A case's stream, and its root or, of components, how many nodes there are."""
    case = CASES[name]
    if name in ("reach", "bfs"):
        stream, root = rooted_graph(1, case.nodes, case.edges, ROUNDS)
    else:
        stream, root = changing_graph(3, case.nodes, case.edges, ROUNDS), case.nodes
    return stream.one_by_one().until(ROUNDS), root


def written(name: str) -> tuple[Path, int]:
    """The stream as files for the program in Rust."""
    stream, root = stream_of(name)
    folder = cache_folder() / f"rounds-{name}-{ROUNDS}"
    if not (folder / "changes.i32").exists():
        folder.mkdir(parents=True, exist_ok=True)
        stream.first.astype("<u4").tofile(folder / "first.u32")
        rows = np.column_stack([np.arange(ROUNDS), diffs(ROUNDS), stream.changed])
        rows.astype("<i4").tofile(folder / "changes.i32")
    return folder, root


# ------------------------------------------------------------------------------------------------------------------ dlog


def by_session(name: str) -> dict[str, Any]:
    """All phases through a session; prints what a run tells."""
    stream, root = stream_of(name)
    relation, inputs = CASES[name].relation, _inputs(name, stream, root)
    load(name, inputs).close()  # brings the kernels in
    start = time.perf_counter()
    with session_of(name, inputs) as session:
        seconds = time.perf_counter() - start
        calls, seen = _calls(lambda first, last: _session_call(session, stream, first, last, relation))
        return _told(session._engine, seconds, calls, seen, relation)  # type: ignore[arg-type]


def _session_call(session: Session, stream: Stream, first: int, last: int, relation: str) -> Callable[[], int]:
    if last - first == 1:
        edge, present = tuple(stream.changed[first].tolist()), first % 2 == 1

        def one() -> int:
            (session.insert if present else session.remove)("edge", edge)
            return len(session.commit().changes(relation).rows)

        return one
    given = changes(stream, first, last, session.round + 1)
    columns = {"x": given.columns[0], "y": given.columns[1], "diff": given.diffs, "round": given.rounds}
    return lambda: len(session.commit_rounds({"edge": columns}).changes(relation).to_numpy()["diff"])


def by_engine(name: str) -> dict[str, Any]:
    """All phases through the engine of a session, from arrays that are ready to arrays."""
    stream, root = stream_of(name)
    relation, loaded = CASES[name].relation, load(name, _inputs(name, stream, root))
    engine = loaded.engine

    def call(first: int, last: int) -> Callable[[], int]:
        given = {"edge": changes(stream, first, last, engine.round + 1)}

        def commit() -> int:
            engine.commit(given)
            return engine.changes(relation).rows

        return commit

    calls, seen = _calls(call)
    return _told(engine, loaded.seconds, calls, seen, relation)


def _inputs(name: str, stream: Stream, root: int) -> dict[str, Rows]:
    others = {"degrees": {}, "components": {"node": np.arange(root)}}.get(name, {"root": np.array([root])})
    return {"edge": stream.first, **others}


def _calls(prepare: Callable[[int, int], Callable[[], int]]) -> tuple[list[list[int]], int]:
    """Nanoseconds of each call by phase, and how many changes they read."""
    at, seen, found = 0, 0, []
    for per_call, count in PHASES:
        nanos = []
        for _ in range(count):
            call = prepare(at, at + per_call)
            start = time.perf_counter_ns()
            read = call()
            nanos.append(time.perf_counter_ns() - start)
            seen, at = seen + read, at + per_call
        found.append(nanos)
    return found, seen


def _told(engine: Maintained, seconds: float, calls: list[list[int]], seen: int, relation: str) -> dict[str, Any]:
    rows = rows_of(engine, relation)
    return {"load": seconds, "calls": calls, "rows": len(rows), "check": checksum(rows), "changes": seen}


def _in_python(way: str) -> Callable[[str, Path, int], list[str]]:
    return lambda name, folder, root: [sys.executable, "-m", "tests.bench.rounds_rivals", name, way]


def _in_rust(workers: int) -> Callable[[str, Path, int], list[str]]:
    return lambda name, folder, root: [
        binary("differential", "dd_rounds"), name, str(folder), str(root), _phases(), "-w", str(workers)
    ]  # fmt: skip


def _phases() -> str:
    return ",".join(f"{per_call}x{calls}" for per_call, calls in PHASES)


WAYS: dict[str, Callable[[str, Path, int], list[str]]] = {
    "session": _in_python("session"),
    "engine": _in_python("engine"),
    "dd -w1": _in_rust(1),
    "dd -w2": _in_rust(2),
    "flowlog": lambda name, folder, root: rounds_flowlog.command(name, folder, root, _phases()),
}


if __name__ == "__main__":
    print(json.dumps({"session": by_session, "engine": by_engine}[sys.argv[2]](sys.argv[1])))
