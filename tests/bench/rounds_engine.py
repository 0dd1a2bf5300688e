"""Driving the incremental engine: the first load, single rounds through three doors, and many rounds in one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Status
from dlog.engine.kernels.incremental.loop import rounds as kernels
from dlog.engine.runtime.incremental.batches.runner import BULK_ROWS, input_of
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from dlog.sessions.core import Session
from tests.bench.inputs import Rows
from tests.bench.rounds_measure import WINDOW
from tests.bench.rounds_streams import Stream, diffs
from tests.bench.rounds_twins import same_rows

PROGRAMS = Path(__file__).parent / "programs" / "rounds"
WARM = 200
"""Rounds before the first one that counts."""

MANY = 100_000
"""Rounds of a call where only their result counts."""

Nanos = NDArray[np.int64]
Twin = Callable[[Rows], Rows]
"""From the edges to the rows of the relation that is maintained."""


class WrongAnswer(Exception):
    """A maintained relation is not what its twin is."""


def text_of(program: str) -> str:
    return (PROGRAMS / f"{program}.dl").read_text(encoding="ascii")


@dataclass(frozen=True, slots=True)
class Loaded:
    engine: Maintained
    seconds: float
    used: int
    """Bytes after the first round."""

    def close(self) -> None:
        self.engine.close()


def load(program: str, inputs: Mapping[str, Rows]) -> Loaded:
    """A program after a first round with these rows."""
    compiled = compile_source(Source(text_of(program), program))
    warm_up(compiled, inputs)
    engine = Maintained(compiled)
    given = {name: insertions(rows, 1) for name, rows in inputs.items()}
    start = time.perf_counter()
    engine.commit(given)
    return Loaded(engine, time.perf_counter() - start, engine.memory.used)


def warm_up(program: Program, inputs: Mapping[str, Rows]) -> None:
    """Brings the kernels that a program needs into the process: linking cached machine code takes longer than small rounds."""
    engine = Maintained(program)
    for rows in (BULK_ROWS, 2):
        engine.commit({name: insertions(given[:rows], engine.round + 1) for name, given in inputs.items()})
    engine.close()


def insertions(rows: Rows, round: int) -> Updates:
    columns = rows if rows.ndim == 2 else rows[:, None]
    count = len(columns)
    return Updates(
        tuple(np.ascontiguousarray(columns[:, c]) for c in range(columns.shape[1])),
        np.ones(count, np.int64),
        np.full(count, round, np.int64),
    )


def changes(stream: Stream, first: int, last: int, round: int) -> Updates:
    """The changes of rounds [first, last) of a stream, as rounds from `round` on."""
    each, count = stream.per_round, last - first
    rows = stream.changed[first * each : last * each]
    columns = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
    return Updates(columns, diffs(len(rows), first * each), np.repeat(np.arange(round, round + count), each))


# ---------------------------------------------------------------------------------------------------------- single rounds


def native_rounds(engine: Maintained, stream: Stream) -> Nanos:
    """Each round as one call of compiled code with an array that is ready; what surrounds it in a commit is left out."""
    flow = engine._flow
    assert flow is not None
    work, control = flow.work, engine.worker.control
    target = input_of(flow, "edge").address
    each = stream.per_round
    staged = np.zeros((stream.rounds, each, 4), np.int64)
    staged[:, :, :2] = stream.changed.reshape(-1, each, 2)
    staged[:, :, 2] = diffs(stream.rounds * each).reshape(-1, each)
    nanos, at, step = np.empty(stream.rounds, np.int64), int(staged.ctypes.data), staged.strides[0]
    clock, commit, resume = time.perf_counter_ns, kernels.commit_one, kernels.run_batch
    going_on, done = int(Status.YIELD), int(Status.DONE)  # looked up here, as that is no compiled code
    for r in range(stream.rounds):
        control[L.control.running] = control[L.control.work] = work[L.work.has_begun] = 0
        start = clock()
        status = commit(work.address, control.address, target, at + r * step, 0, 0, each, 1)
        while status == going_on:
            status = resume(work.address, control.address)
        nanos[r] = clock() - start
        if status != done:
            raise WrongAnswer(f"round {r} ends with status {status}")
    return nanos[WARM:]


def engine_rounds(engine: Maintained, stream: Stream) -> Nanos:
    """Each round as one commit of an engine."""
    nanos, clock = np.empty(stream.rounds, np.int64), time.perf_counter_ns
    for r in range(stream.rounds):
        given = changes(stream, r, r + 1, engine.round + 1)
        start = clock()
        engine.commit({"edge": given})
        nanos[r] = clock() - start
    return nanos[WARM:]


def session_of(program: str, inputs: Mapping[str, Rows]) -> Session:
    """A session after a first round with these rows."""
    facts = {name: rows if rows.ndim == 2 else rows[:, None] for name, rows in inputs.items()}
    return Session(text_of(program), facts, threads=1)


def session_rounds(session: Session, stream: Stream, read: str | None = None) -> Nanos:
    """Each round as a user of Python writes it; `read` names a relation whose changes are looked at, too."""
    nanos, clock = np.empty(stream.rounds, np.int64), time.perf_counter_ns
    each = stream.per_round
    listed = list(zip(map(tuple, stream.changed.tolist()), diffs(stream.rounds * each).tolist(), strict=True))
    for r in range(stream.rounds):
        start = clock()
        for edge, diff in listed[r * each : (r + 1) * each]:
            session.insert("edge", edge) if diff > 0 else session.remove("edge", edge)
        done = session.commit()
        if read is not None:
            len(done.changes(read).rows)
        nanos[r] = clock() - start
    return nanos[WARM:]


def after_all(run: Callable[[Stream], Nanos], back: Callable[[Stream], None], stream: Stream) -> Nanos | None:
    """After all rounds of a stream its first ones again, from the same edges: what else takes longer is the engine. None where
    there are too few rounds for that."""
    if stream.rounds < WARM + 4 * WINDOW:
        return None
    back(stream.undone())
    return run(stream.until(WARM + WINDOW))


def engine_back(engine: Maintained, stream: Stream) -> None:
    """Goes through a stream in few commits."""
    for first in range(0, stream.rounds, MANY):
        given = changes(stream, first, min(first + MANY, stream.rounds), engine.round + 1)
        engine.commit({"edge": given})


def session_back(session: Session, stream: Stream) -> None:
    """Goes through a stream in few calls."""
    for first in range(0, stream.rounds, MANY):
        given = changes(stream, first, min(first + MANY, stream.rounds), session.round + 1)
        x, y = given.columns
        session.commit_rounds({"edge": {"x": x, "y": y, "diff": given.diffs, "round": given.rounds}})


# ------------------------------------------------------------------------------------------------------------ many rounds


@dataclass(frozen=True, slots=True)
class Batches:
    """`nanos` per call with reading the changes, `reading` what of it that took; `changes` are the outputs' of all calls, with
    rounds from 1 on."""

    nanos: Nanos
    reading: Nanos
    changes: Updates


def batched_rounds(engine: Maintained, stream: Stream, per_call: int, relation: str) -> Batches:
    """The rounds of a stream, so many per call, with each round's exact changes of a relation."""
    before = engine.round
    calls = stream.rounds // per_call
    nanos, reading, parts = np.empty(calls, np.int64), np.empty(calls, np.int64), []
    for call in range(calls):
        given = changes(stream, call * per_call, (call + 1) * per_call, engine.round + 1)
        start = time.perf_counter_ns()
        engine.commit({"edge": given})
        middle = time.perf_counter_ns()
        found = engine.changes(relation)
        nanos[call] = time.perf_counter_ns() - start
        reading[call] = nanos[call] - (middle - start)
        parts.append(_copied(found))
        del found
    arity = len(parts[0].columns)
    columns = tuple(np.concatenate([p.columns[c] for p in parts]) for c in range(arity))
    diffs, rounds = (np.concatenate([getattr(p, name) for p in parts]) for name in ("diffs", "rounds"))
    return Batches(nanos, reading, Updates(columns, diffs, rounds - before))


def _copied(updates: Updates) -> Updates:
    """What is kept of a call's changes until all is over: new arrays each time would have the system find new memory for the
    next ones, within their time."""
    return Updates(tuple(c.copy() for c in updates.columns), updates.diffs.copy(), updates.rounds.copy())


# -------------------------------------------------------------------------------------------------------------- answers


def rows_of(engine: Maintained, relation: str) -> Rows:
    return np.stack(engine.table(relation).columns, 1).astype(np.int64)


def is_right(engine: Maintained, relation: str, stream: Stream, twin: Twin) -> bool:
    """Whether a relation is what it must be after all rounds of a stream."""
    return same_rows(rows_of(engine, relation), twin(stream.last))


def history_is_right(before: Rows, changes: Updates, stream: Stream, twin: Twin) -> bool:
    """Whether what a relation was and its changes give what it must be, after some rounds on the way."""
    rng, samples = np.random.default_rng(stream.rounds), 3 if len(stream.first) < 1_000_000 else 1
    chosen = {stream.rounds, *rng.integers(1, max(stream.rounds, 2), samples).tolist()}
    return all(same_rows(rolled(before, changes, rounds), twin(stream.at(rounds))) for rounds in chosen)


def rolled(before: Rows, changes: Updates, rounds: int) -> Rows:
    """Rows after the changes of so many rounds; raises `WrongAnswer` if one came twice or went without being there."""
    end = int(np.searchsorted(changes.rounds, rounds, side="right"))
    rows = np.concatenate([before, np.stack([c[:end] for c in changes.columns], 1)])
    diffs = np.concatenate([np.ones(len(before), np.int64), changes.diffs[:end]])
    base = int(rows.max(initial=0)) + 1
    code = np.zeros(len(rows), np.int64)
    for c in range(rows.shape[1]):
        code = code * base + rows[:, c]
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    sums = np.bincount(place, diffs).astype(np.int64)
    if len(sums) and not (sums.min() >= 0 and sums.max() <= 1):
        raise WrongAnswer("changes do not add up to a set")
    return rows[first[sums > 0]]
