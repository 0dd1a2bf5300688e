"""Rows with numbers that come and go in commits whose rows workers seek together; indexes that they build after a round."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels.codes import Shared
from dlog.engine.kernels.incremental.inputs import loading
from dlog.engine.runtime.incremental.batches import runner, strata_runner
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.engine.runtime.shared_steps import Steps, share_from_four_rows
from tests.examples import examples

WIDE = """
.decl e(x: number, y: number, z: number)
.input e
.decl t(x: number, z: number)
.output t
t(x, z) :- e(x, y, _), e(_, x, z), !e(z, _, y).
"""
NARROW = """
.decl e(x: number, y: number)
.input e
.decl t(x: number, z: number)
.output t
t(x, z) :- e(x, y), e(y, z).
"""
CLOSURE = """
.decl e(x: number, y: number)
.input e
.decl p(x: number, y: number)
.output p
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
.decl q(x: number, y: number)
.output q
q(x, y) :- e(x, y), p(y, x).
"""
Rows = list[tuple[int, ...]]


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    """How often steps of each kind have been shared; changes of four rows are sought together."""
    counted = share_from_four_rows(monkeypatch)
    monkeypatch.setattr(runner, "BULK_ROWS", 4)
    yield counted


def _commit(engine: Maintained, rows: Rows, diffs: list[int]) -> None:
    columns = tuple(np.array(column, np.int64) for column in zip(*rows, strict=True))
    rounds = np.full(len(rows), engine.round + 1)
    engine.commit({"e": Updates(columns, np.array(diffs, np.int64), rounds)})


def _table(engine: Maintained, name: str) -> set[tuple[int, ...]]:
    found = list(zip(*(c.tolist() for c in engine.table(name).columns), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


def _derived(arity: int, there: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    if arity == 2:
        return {(x, z) for x, y in there for other, z in there if other == y}
    some = {(x, y) for x, y, _ in there}
    pairs = {(x, z, y) for x, y in some for _, other, z in there if other == x}
    barred = {(z, y) for z, _, y in there}
    return {(x, z) for x, z, y in pairs if (z, y) not in barred}


@examples(60)
@given(arity=st.sampled_from([2, 3]), threads=st.integers(2, 4), wide=st.booleans(), data=st.data())
def test_changes_that_are_sought_together_are_those_of_a_set(arity: int, threads: int, wide: bool, data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    low = 2**40 if wide else 0
    there = {tuple(row) for row in random.integers(0, 25, (300, arity)).tolist()}
    engine = Maintained(compile_source(Source(NARROW if arity == 2 else WIDE)), threads=threads)
    moved = [(*row[:-1], row[-1] + low) if arity == 3 else row for row in sorted(there)]
    there = set(moved)
    _commit(engine, moved, [1] * len(moved))
    for _ in range(3):
        count = data.draw(st.integers(4, 60))
        known = sorted(there)
        picked = [known[i] for i in random.integers(0, len(known), count)]
        others = random.integers(0, 40, (count, arity)).tolist()  # some behind the base
        changes = [(picked[i], -1) if random.random() < 0.5 else (tuple(others[i]), 1) for i in range(count)]
        changes += [(row, -diff) for row, diff in changes[::3]] + [(row, 1) for row, _ in changes[::5]]
        _commit(engine, [row for row, _ in changes], [diff for _, diff in changes])
        for row, diff in changes:
            if diff > 0:
                there.add(row)
            else:
                there.discard(row)
        assert _table(engine, "e") == there
        assert _table(engine, "t") == _derived(arity, there)
    engine.close()
    assert engine.memory.used == 0


@pytest.mark.parametrize("threads", [2, 3])
def test_the_rows_of_many_changes_are_sought_by_all_workers(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sought = []
    seek = loading.seek_rows

    def noting(control: int, collection: int, columns: int, first: int, last: int, found: int) -> bool:
        sought.append((first, last))
        return bool(seek(control, collection, columns, first, last, found))

    monkeypatch.setattr(strata_runner.loading, "seek_rows", noting)
    rows = [(x, (7 * x + y) % 500) for x in range(500) for y in range(3)]
    engine = Maintained(compile_source(Source(NARROW)), threads=threads)
    _commit(engine, rows, [1] * len(rows))
    assert not sought
    _commit(engine, [*rows[:100], (3, 499), (1, 400)], [-1] * 100 + [1, 1])
    assert sorted(sought)[0][0] == 0 and max(sought)[1] == 102 and len(sought) == threads
    assert _table(engine, "e") == {*rows[100:], (3, 499), (1, 400)}
    engine.close()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_index_that_no_iteration_reads_is_built_by_all_workers_when_the_round_is_over(threads: int, steps: Steps) -> None:
    nodes = 40
    rows = [(x, (x + 1) % nodes) for x in range(nodes)] + [(x, (3 * x + 2) % nodes) for x in range(nodes)]
    engine = Maintained(compile_source(Source(CLOSURE)), threads=threads)
    _commit(engine, rows, [1] * len(rows))
    built = steps[Shared.FILL_INDEX]
    every = {(x, y) for x in range(nodes) for y in range(nodes)}
    assert _table(engine, "p") == every
    assert _table(engine, "q") == set(rows)
    assert (built > 0) == (threads > 1)
    gone = rows[nodes - 1 : nodes]  # the ring is open
    _commit(engine, gone + rows[nodes:], [-1] * (1 + nodes))
    assert _table(engine, "p") == {(x, y) for x in range(nodes) for y in range(x + 1, nodes)}
    assert _table(engine, "q") == set()
    engine.close()
    assert engine.memory.used == 0


REACHED = """
.decl e(x: number, y: number)
.input e
.decl f(x: number)
.input f
.decl r(x: number)
.output r
r(x) :- f(x).
r(y) :- r(x), e(x, y).
"""
MORE = ".decl n(x: number)\n.output n\nn(x) :- f(x), !e(x, _).\n"


def test_what_one_engine_noted_in_shared_steps_is_given_back_when_another_one_follows_it() -> None:
    engine = Maintained(compile_source(Source(REACHED)), threads=3)
    _commit(engine, [(x, y) for x in range(12) for y in range(12) if (x + y) % 3], [1] * 96)
    some = Updates((np.array([1], np.int64),), np.ones(1, np.int64), np.full(1, engine.round + 1))
    engine.commit({"f": some})
    memory = engine.memory
    followed = Maintained(compile_source(Source(REACHED + MORE)), threads=3, old=engine)
    followed.commit({})
    assert _table(followed, "r") == {(x,) for x in range(12)}
    followed.close()
    del engine
    gc.collect()
    assert memory.used == 0
