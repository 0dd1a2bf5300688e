"""Strata of a bulk batch that run side by side on several threads."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Barrier

import numpy as np
import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error
from dlog.engine.runtime.incremental.batches import strata_runner
from dlog.engine.runtime.incremental.batches.runner import BatchRunner
from dlog.engine.runtime.incremental.batches.strata import strata_of
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from tests.engine.runtime.maintaining import EDGES, Beside

REACH = """
.decl near(x: number)
.decl back(x: number)
near(1).
near(y) :- near(x), e(x, y).
back(1).
back(x) :- back(y), e(x, y).
"""
SEVERAL = f"""{EDGES}{REACH}
.decl out(x: number, n: number)
.decl least(y: number, x: number)
.decl both(x: number)
.decl name(x: number, s: symbol)
out(x, n) :- e(x, _), n = count : {{ e(x, _) }}.
least(y, x) :- e(_, y), x = min z : {{ e(z, y) }}.
both(x) :- near(x), back(x), !out(x, 1).
name(x, cat("n", to_string(x))) :- both(x).
.output name
"""
MORE = """
.decl twice(x: number, z: number)
.decl lone(x: number)
twice(x, z) :- e(x, y), e(y, z), both(x).
lone(x) :- out(x, 1).
"""


def _edges(rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 3000, (rows, 2))


def _commit(engine: Maintained, gone: np.ndarray, come: np.ndarray) -> None:
    columns = np.ascontiguousarray(np.concatenate([gone, come]).T)
    diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    engine.commit({"e": Updates((columns[0], columns[1]), diffs, np.full(len(diffs), engine.round + 1))})


def _tables(engine: Maintained) -> Mapping[str, list[list[int]]]:
    return {name: [c.tolist() for c in engine.table(name).columns] for name in engine.program.relations}


def _rows(engine: Maintained) -> Mapping[str, list[tuple[int, ...]]]:
    return {name: sorted(zip(*columns, strict=True)) for name, columns in _tables(engine).items()}


def _story(threads: int) -> list[object]:
    """All tables, row by row, after a load, a large batch, and rules that are added."""
    edges = _edges(30_000, 1)
    found: list[object] = []
    engine = Maintained(compile_source(Source(SEVERAL)), threads=threads)
    _commit(engine, edges[:0], edges)
    found.append(_tables(engine))
    _commit(engine, edges[:15_000], _edges(15_000, 2))
    found += [_tables(engine), sorted(engine.touched), engine.changes("both").diffs.tolist()]
    followed = Maintained(compile_source(Source(SEVERAL + MORE)), threads=threads, old=engine)
    followed.commit({})
    found.append(_tables(followed))
    _commit(followed, edges[15_000:], edges[:9_000])
    found.append(_tables(followed))
    followed.close()
    return found


def test_several_threads_make_the_same_rows_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 1000)
    alone = _story(1)
    assert _story(2) == alone
    assert _story(3) == alone


def test_strata_wait_for_what_they_read() -> None:
    engine = Maintained(compile_source(Source(SEVERAL)))
    _commit(engine, _edges(0, 1), _edges(10, 1))
    flow = engine._flow
    assert flow is not None
    numbers = list(dict.fromkeys(flow.scheduled_strata))
    names = [flow.program.strata[number].relations[0] for number in numbers]
    found = dict(zip(names, strata_of(flow), strict=True))
    waits = {name: {names[place] for place in stratum.waits} for name, stratum in found.items()}
    assert waits == {
        "near": set(),
        "back": set(),
        "out": set(),
        "least": set(),
        "both": {"near", "back", "out"},
        "name": {"both"},
    }
    assert {name for name, stratum in found.items() if stratum.alone} == {"name"}
    assert found["near"].entered & found["back"].entered
    engine.close()


DIVISION = EDGES + ".decl n(x: number)\n.decl m(x: number)\n.output n\n.output m\nn(6 / x) :- e(x, _).\nm(y) :- e(_, y).\n"


def test_a_mistake_on_a_thread_is_told_and_the_round_taken_back() -> None:
    engine = Beside(compile_source(Source(DIVISION)))
    _commit(engine, _edges(0, 1), np.array([[1, 2], [3, 4]]))
    before = _tables(engine)
    with pytest.raises(DlogError, match="division by zero"):
        _commit(engine, _edges(0, 1), np.array([[0, 7], [5, 6]]))
    assert _tables(engine) == before
    _commit(engine, _edges(0, 1), np.array([[2, 9]]))
    assert sorted(_tables(engine)["n"][0]) == [2, 3, 6]
    engine.close()


def test_iterations_are_limited_on_threads_too() -> None:
    engine = Beside(compile_source(Source(EDGES + REACH)), max_iterations=5)
    chain = np.column_stack([np.arange(1, 20), np.arange(2, 21)])
    with pytest.raises(DlogError, match="more than 5 iterations"):
        _commit(engine, chain[:0], chain)
    engine.close()


def _yielding() -> Beside:
    """An engine whose workers come back every few rows, after a first round."""
    engine = Beside(compile_source(Source(SEVERAL)))
    assert engine._runner.shared is not None
    for worker in engine._runner.shared.workers:
        worker.control[L.control.budget] = 100
    _commit(engine, _edges(0, 1), _edges(9000, 1))
    return engine


def test_readers_get_their_turn_while_all_workers_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Maintained(compile_source(Source(SEVERAL)))
    _commit(alone, _edges(0, 1), _edges(9000, 1))
    _commit(alone, _edges(9000, 1)[:4000], _edges(4000, 3))
    engine = _yielding()
    seen: list[bool] = []
    before = engine.rows("out")
    monkeypatch.setattr(BatchRunner, "_is_waited_for", lambda self: len(seen) < 3)
    monkeypatch.setattr(engine._access, "yield_turn", lambda: seen.append(all_stand_still(engine)))
    _commit(engine, _edges(9000, 1)[:4000], _edges(4000, 3))
    assert seen == [True] * 3 and before > 0
    assert _tables(engine) == _tables(alone)
    engine.close()
    alone.close()


def all_stand_still(engine: Maintained) -> bool:
    """Whether no worker runs: the pool takes a task on each of its threads at once."""
    shared = engine._runner.shared
    assert shared is not None
    barrier = Barrier(len(shared.workers))
    return all(f.result(60) >= 0 for f in [shared.pool.submit(barrier.wait, 30) for _ in shared.workers])


def test_an_interruption_takes_the_round_back(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _yielding()
    before = _rows(engine)

    def interrupt(self: BatchRunner) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(BatchRunner, "_is_waited_for", interrupt)
        _commit(engine, _edges(9000, 1)[:4000], _edges(4000, 3))
    assert _rows(engine) == before
    _commit(engine, _edges(9000, 1)[:4000], _edges(4000, 3))
    assert engine.round == 2
    engine.close()


def test_memory_that_does_not_suffice_takes_the_round_back() -> None:
    refused = 0
    for more in range(0, 400_000, 23_456):
        engine = Beside(compile_source(Source(SEVERAL)))
        _commit(engine, _edges(0, 1), _edges(3000, 1))
        before = _rows(engine)
        assert engine._runner.shared is not None
        limit = engine.memory.used + more
        engine.worker.control[L.control.limit] = limit
        try:
            _commit(engine, _edges(3000, 1)[:1000], _edges(9000, 3))
        except DlogError:
            refused += 1
            engine.worker.control[L.control.limit] = 2**62
            assert _rows(engine) == before
        engine.close()
        assert engine.memory.used == 0
    assert refused > 3


def test_what_is_wrong_with_several_strata_at_once_is_told_once() -> None:
    counts = "n(x, c) :- e(x, _), c = count : { e(x, _) }.\nm(y, c) :- e(_, y), c = count : { e(_, y) }.\n"
    program = compile_source(Source(EDGES + ".decl n(x: number, c: number)\n.decl m(y: number, c: number)\n" + counts))
    edges = np.unique(np.random.default_rng(0).integers(0, 30_000, (100_000, 2)), axis=0)
    engine = Maintained(program, threads=2)
    assert engine._runner.shared is not None
    engine.worker.control[L.control.limit] = 2_000_000
    with pytest.raises(DlogError, match="out of memory"):
        _commit(engine, edges[:0], edges)
    for worker in engine._runner.shared.workers:
        worker.control[L.control.error] = Error.MEMORY  # as it is where both lack it before one is told of
    engine.worker.control[L.control.limit] = 2**62
    _commit(engine, edges[:0], edges)
    _commit(engine, edges[:50_000], edges[:0])
    assert sum(count for _, count in _rows(engine)["n"]) == len(edges) - 50_000
    engine.close()
