"""A commit that brings many times the rows that there are begins anew, and nobody can tell but by the time it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.batches.changes import insertions
from dlog.engine.runtime.incremental.batches.runner import BatchRunner
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.plan_changes.rebuilding import MIN_REBUILD_ROWS, MIN_REBUILD_ROWS_PER_RULE
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from tests.engine.runtime.maintaining import EDGES, Anew, engine_of, rows

CLOSURE = EDGES + """.decl p(x: number, y: number)
.decl n(x: number, c: number)
.output p, n
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
n(x, c) :- e(x, _), c = count : { p(x, _) }.
"""
DIVIDED = EDGES + ".decl p(x: number)\n.output p\np(1000 / (x - 7)) :- e(x, _).\n"
Pairs = set[tuple[int, ...]]


def commit(engine: Maintained, come: Pairs, go: Pairs = frozenset()) -> None:  # type: ignore[assignment]
    listed = np.array([*come, *go], np.int64).reshape(-1, 2)
    diffs = np.repeat([1, -1], [len(come), len(go)])
    engine.commit({"e": Updates((listed[:, 0], listed[:, 1]), diffs, np.full(len(listed), engine.round + 1))})


def told(engine: Maintained, relation: str) -> list[tuple[int, ...]]:
    found = engine.changes(relation)
    return sorted(zip(*(c.tolist() for c in (*found.columns, found.diffs, found.rounds)), strict=True))


def chain(first: int, last: int) -> Pairs:
    return {(x, x + 1) for x in range(first, last)}


@pytest.mark.slow
@given(st.lists(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9), min_size=2, max_size=6))
def test_each_round_tells_what_one_that_does_not_begin_anew_tells(graphs: list[Pairs]) -> None:
    with engine_of(CLOSURE, Anew) as anew, engine_of(CLOSURE) as plain:
        before: Pairs = set()
        for edges in graphs:
            for engine in (anew, plain):
                commit(engine, edges - before, before - edges)
            before = edges
            for relation in ("e", "p", "n"):
                assert told(anew, relation) == told(plain, relation)
                assert rows(anew, relation) == rows(plain, relation)
            changed = {relation for relation in ("e", "p", "n") if told(plain, relation)}
            assert set(anew.touched) >= changed


def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds that begin anew from here on."""
    found: list[int] = []
    genuine = Maintained._begin_anew

    def begin(self: Maintained, old: Dataflow, given: dict[str, Updates], round: int) -> bool:
        found.append(round)
        return genuine(self, old, given, round)

    monkeypatch.setattr(Maintained, "_begin_anew", begin)
    return found


def test_rows_that_come_twice_or_are_there_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = begun(monkeypatch)
    with engine_of(CLOSURE) as engine:
        commit(engine, chain(10, 12))
        come = sorted(chain(10, 14) | {(2 * x, 1) for x in range(50, 50 + MIN_REBUILD_ROWS)})
        twice = np.array([*come, *come], np.int64)
        engine.commit({"e": insertions((twice[:, 0], twice[:, 1]), len(twice), 2)})
        assert found == [2]
        assert rows(engine, "e") == set(come)
        assert told(engine, "e") == [(x, y, 1, 2) for x, y in come if (x, y) not in chain(10, 12)]
        assert {row for row in rows(engine, "n") if row[0] < 20} == {(10, 4), (11, 3), (12, 2), (13, 1)}
        commit(engine, set(), {(10, 11)})
        assert {row for row in rows(engine, "n") if row[0] < 20} == {(11, 3), (12, 2), (13, 1)}


def test_only_rounds_that_bring_many_times_what_there_is_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = begun(monkeypatch)
    with engine_of(DIVIDED) as engine:
        commit(engine, chain(10, 12))
        commit(engine, chain(20, 30))
        commit(engine, chain(100, 100 + MIN_REBUILD_ROWS))
        commit(engine, chain(10_000, 10_000 + MIN_REBUILD_ROWS), chain(100, 100 + MIN_REBUILD_ROWS))
        assert found == [3]
        assert len(rows(engine, "e")) == MIN_REBUILD_ROWS + 12


def test_many_rules_are_not_planned_anew_for_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = begun(monkeypatch)
    rules = range(2 * MIN_REBUILD_ROWS // MIN_REBUILD_ROWS_PER_RULE)
    text = ".decl e(x: number, y: number)\n" + "".join(
        f".decl p{k}(x: number, y: number)\np{k}(x, y) :- e(x, y), x % {k + 2} = 0, e(y, _).\n" for k in rules
    )
    with engine_of(text) as engine:
        commit(engine, chain(10, 12))
        commit(engine, chain(100, 100 + MIN_REBUILD_ROWS))
        assert found == []
    with engine_of(text) as engine:
        commit(engine, chain(10, 12))
        commit(engine, chain(100, 100 + 2 * MIN_REBUILD_ROWS))
        assert found == [2]


def test_a_round_that_fails_leaves_what_there_was() -> None:
    with engine_of(DIVIDED) as engine:
        commit(engine, chain(10, 12))
        with pytest.raises(DlogError, match="division by zero"):
            commit(engine, chain(0, MIN_REBUILD_ROWS))
        assert (engine.round, rows(engine, "e"), rows(engine, "p")) == (1, chain(10, 12), {(333,), (250,)})
        commit(engine, {(8, 8)}, {(10, 11)})
        assert (told(engine, "p"), rows(engine, "p")) == ([(333, -1, 2), (1000, 1, 2)], {(250,), (1000,)})
        commit(engine, chain(20, 20 + MIN_REBUILD_ROWS))
        assert rows(engine, "e") == {(8, 8), (11, 12)} | chain(20, 20 + MIN_REBUILD_ROWS)


def test_a_reader_between_or_after_a_failure_is_not_told_another_round_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    resume = BatchRunner._resume

    def ask(self: BatchRunner, flow: Dataflow) -> int:
        with pytest.raises(DlogError, match="no longer kept"):
            engine._changes(engine._flow, "p")
        asked.append(engine.round)
        return resume(self, flow)

    asked: list[int] = []
    with engine_of(CLOSURE, Anew) as engine, monkeypatch.context() as patched:
        engine.worker.control[L.control.budget] = 100
        commit(engine, chain(0, 10))
        patched.setattr(BatchRunner, "_resume", ask)
        commit(engine, chain(10, 100))
        assert len(asked) > 1
        assert len(told(engine, "p")) == 5050 - 55
    with engine_of(DIVIDED, Anew) as engine:
        commit(engine, chain(10, 12))
        with pytest.raises(DlogError, match="division by zero"):
            commit(engine, chain(0, 9))
        with pytest.raises(DlogError, match="no longer kept"):
            engine.changes("p")
        assert set(engine.touched) == {"e", "p"}
        commit(engine, {(20, 21)})
        assert told(engine, "p") == [(76, 1, 2)]


REACH = EDGES + ".decl r(x: number)\n.output r\nr(0).\nr(y) :- r(x), e(x, y).\n"


def random_edges(seed: int, count: int) -> Pairs:
    drawn = np.random.default_rng(seed).integers(0, 4000, (count, 2))
    return set(map(tuple, drawn.tolist()))


def reached(edges: Pairs) -> Pairs:
    found, new = {0}, {0}
    while new:
        new = {y for x, y in edges if x in new} - found
        found |= new
    return {(x,) for x in found}


@pytest.mark.slow
def test_memory_that_churn_took_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    found, batch = begun(monkeypatch), MIN_REBUILD_ROWS
    with engine_of(REACH) as engine:
        edges = random_edges(0, 10 * batch)
        commit(engine, edges)
        fresh = engine.memory.used / len(edges)
        for seed in range(1, 14):
            gone = set(sorted(edges)[seed % 10 :: 10])
            came = random_edges(seed, batch) - edges
            worn = engine.memory.used / len(edges)
            commit(engine, came, gone)
            edges = edges - gone | came
            assert (len(rows(engine, "e")), rows(engine, "r")) == (len(edges), reached(edges))
            if engine.round in found:
                assert worn > 1.5 * fresh
                assert engine.memory.used / len(edges) < 1.3 * fresh
        assert 1 <= len(found) <= 4


def test_where_there_is_no_memory_for_both_the_rows_change() -> None:
    edges = random_edges(5, 4 * MIN_REBUILD_ROWS)
    with engine_of(REACH, Anew) as engine:
        commit(engine, edges)
        before = engine._flow
        for control in (engine.worker.control, engine.memory.control):
            control[L.control.limit] = engine.memory.used * 3 // 2
        commit(engine, {(9000, 0)}, {min(edges)})
        edges = edges - {min(edges)} | {(9000, 0)}
        assert engine._flow is before
        assert (len(rows(engine, "e")), rows(engine, "r")) == (len(edges), reached(edges))
