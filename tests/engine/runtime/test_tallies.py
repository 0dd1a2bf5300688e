"""Counts and sums of fresh reductions with one key: what workers sum up by key is what a walk through the rows gives."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Shared
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from tests.engine.runtime.maintaining import EDGES
from tests.engine.runtime.shared_steps import Steps, interrupt_after, share_from_four_rows
from tests.examples import examples

PROGRAMS = {
    "count": "n(x, c) :- e(x, _), c = count : { e(x, _) }.\n",
    "sum": "n(x, s) :- e(x, _), s = sum y : { e(x, y) }.\n",
    "exclusive or": "n(x, b) :- e(x, _), b = bit_xor y : { e(x, y) }.\n",
    "of a derived relation": ".decl d(x: number, y: number)\nd(x, y) :- e(x, y), y < 200.\n"
    "n(x, c) :- d(x, _), c = count : { d(x, _) }.\n",
}
AFTER = ".decl after(c: number, k: number)\nafter(c, k) :- n(_, c), k = count : { n(_, c) }.\n"
MIN_CHANGES = 4096


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """How often steps of each kind have been shared; those of four rows are."""
    return share_from_four_rows(monkeypatch)


def engine_of(name: str, threads: int) -> Maintained:
    text = EDGES + ".decl n(x: number, c: number)\n" + PROGRAMS[name] + AFTER
    return Maintained(compile_source(Source(text)), threads=threads)


def commit(engine: Maintained, gone: np.ndarray, come: np.ndarray) -> None:
    columns = np.ascontiguousarray(np.concatenate([gone, come]).T)
    diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    engine.commit({"e": Updates((columns[0], columns[1]), diffs, np.full(len(diffs), engine.round + 1))})


def rows_of(engine: Maintained, relation: str) -> list[tuple[int, ...]]:
    """In their order."""
    return list(zip(*(column.tolist() for column in engine.table(relation).columns), strict=True))


def naive(name: str, edges: set[tuple[int, int]]) -> dict[int, int]:
    """The rows of `n` by their keys."""
    found: dict[int, int] = {}
    for key, value in edges:
        if name == "of a derived relation" and value >= 200:
            continue
        before = found.get(key, 0)
        found[key] = before + value if name == "sum" else before ^ value if name == "exclusive or" else before + 1
    return found


def distinct(random: np.random.Generator, keys: np.ndarray, rows: int) -> np.ndarray:
    """Different edges in no order, whose first nodes are drawn from `keys`."""
    edges = np.stack([random.choice(keys, rows), random.integers(-500, 500, rows)], axis=1)
    return random.permutation(np.unique(edges, axis=0))


def as_set(edges: np.ndarray) -> set[tuple[int, int]]:
    return set(map(tuple, edges.tolist()))


KEYS = {
    "close": np.arange(300),
    "negative": np.arange(-200, 100),
    "far from 0": np.arange(10**12, 10**12 + 300),
    "few of a wide range": np.arange(0, 3000, 100),
    "rare ones far away": np.concatenate([np.repeat(np.arange(200), 5), [10**15, -(10**9), 77_777_777]]),
    "as far apart as can be": np.concatenate([np.repeat(np.arange(200), 5), [2**63 - 1, -(2**63), 2**62, -(2**62)]]),
    "all far apart": np.arange(300) * 1_000_003,
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_are_those_of_a_walk_through_the_rows(name: str, kind: str, threads: int) -> None:
    edges = distinct(np.random.default_rng(5), KEYS[kind], 30_000)
    assert len(edges) > 2 * MIN_CHANGES
    with closing(engine_of(name, threads)) as engine:
        commit(engine, edges[:0], edges)
        told = dict(rows_of(engine, "n"))
        expected = naive(name, as_set(edges))
        assert told == expected
        assert dict(rows_of(engine, "after")) == Counter(expected.values())
        gone, come = edges[: len(edges) // 3], np.array([[0, 1000], [5, 1000], [10**6, 2]])
        commit(engine, gone, come)
        expected = naive(name, as_set(edges[len(gone) :]) | as_set(come))
        assert dict(rows_of(engine, "n")) == expected
        assert dict(rows_of(engine, "after")) == Counter(expected.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_stand_in_the_order_of_their_keys_whoever_makes_them(name: str, steps: Steps) -> None:
    """That they do says that there was a table: the rows come in no order."""
    edges = distinct(np.random.default_rng(1), KEYS["close"], 30_000)
    found = []
    for threads in (1, 2, 3):
        with closing(engine_of(name, threads)) as engine:
            commit(engine, edges[:0], edges)
            found.append(rows_of(engine, "n"))
    assert found[0] == sorted(found[0])
    assert found[0] == found[1] == found[2]
    assert steps[Shared.PATH] > 0


SIDES = """.decl out(x: number, c: number)
.decl into(y: number, c: number)
.decl both(x: number, s: number)
.decl outs(c: number, n: number)
.decl intos(c: number, n: number)
out(x, c) :- e(x, _), c = count : { e(x, _) }.
into(y, c) :- e(_, y), c = count : { e(_, y) }.
both(x, s) :- e(x, _), s = sum y : { e(x, y) }.
outs(c, n) :- out(_, c), n = count : { out(_, c) }.
intos(c, n) :- into(_, c), n = count : { into(_, c) }.
"""


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_who_helps_with_one_path_and_then_another_loses_nothing(threads: int) -> None:
    """Paths of several steps, which other workers do the parts of each time."""
    count = 400_000
    edges = np.stack([np.arange(count) % 1000, np.arange(count) // 1000], axis=1)
    for _ in range(4):
        with closing(Maintained(compile_source(Source(EDGES + SIDES)), threads=threads)) as engine:
            commit(engine, edges[:0], edges)
            assert [sum(row[1] for row in rows_of(engine, name)) for name in ("out", "into", "both")] == [
                count,
                count,
                int(edges[:, 1].sum()),
            ]
            assert rows_of(engine, "outs") == [(400, 1000)]
            assert rows_of(engine, "intos") == [(1000, 400)]


def test_what_comes_to_groups_that_are_there_finds_them() -> None:
    edges = distinct(np.random.default_rng(2), KEYS["close"], 30_000)
    half = len(edges) // 2
    with closing(engine_of("sum", 2)) as engine:
        commit(engine, edges[:0], edges[:half])
        commit(engine, edges[:0], edges[half:])
        assert dict(rows_of(engine, "n")) == naive("sum", as_set(edges))


def test_an_interrupted_load_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = distinct(np.random.default_rng(3), KEYS["close"], 20_000)
    with closing(engine_of("count", 2)) as engine:
        commit(engine, edges[:0], edges[:1])
        commit(engine, edges[:1], edges[:0])
        with monkeypatch.context() as patch:
            interrupt_after(patch, Shared.PATH)
            with pytest.raises(KeyboardInterrupt):
                commit(engine, edges[:0], edges)
        assert rows_of(engine, "n") == []
        commit(engine, edges[:0], edges)
        assert dict(rows_of(engine, "n")) == naive("count", as_set(edges))


def limited(threads: int, edges: np.ndarray, limit: int) -> list[tuple[int, ...]] | None:
    """The counts of a load with so many bytes; None where it is refused, and leaves nothing behind."""
    with closing(engine_of("count", threads)) as engine:
        commit(engine, edges[:0], edges[:0])
        before = engine.memory.used
        engine.worker.control[L.control.limit] = before + limit
        try:
            commit(engine, edges[:0], edges)
        except DlogError:
            engine.worker.control[L.control.limit] = 2**62
            assert engine.rows("n") == 0
            return None
        assert not any(control[L.tally.places] for control in tallies(engine))
        return sorted(rows_of(engine, "n"))


def tallies(engine: Maintained) -> list[Struct]:
    controls = [engine.worker.control]
    runner = engine._runner.shared
    controls += [worker.control for worker in runner.workers] if runner is not None else []
    return [control.keep[L.control.tally] for control in controls]  # type: ignore[misc]


def test_where_memory_does_not_suffice_groups_are_found_one_by_one() -> None:
    edges = distinct(np.random.default_rng(4), np.arange(10_000), 40_000)
    expected = sorted(naive("count", as_set(edges)).items())
    limits = range(200_000, 4_000_000, 100_000)
    found = [[limited(threads, edges, limit) for limit in limits] for threads in (1, 2)]
    assert all(rows in (None, expected) for each in found for rows in each)
    refused = [each.count(None) for each in found]
    assert 0 < refused[0] == refused[1] < len(limits)


edges_of = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 400), st.integers(1, 10**6), st.integers(0, 40))


@pytest.mark.parametrize("threads", [1, 2])
@examples(15)
@given(chosen=edges_of)
def test_random_keys(threads: int, chosen: tuple[int, int, int, int]) -> None:
    seed, count, spread, odd = chosen
    random = np.random.default_rng(seed)
    keys = np.concatenate([np.repeat(random.integers(0, spread, count), 20), random.integers(-(2**40), 2**40, odd)])
    edges = distinct(random, keys, 15_000)
    for name in ("count", "sum"):
        with closing(engine_of(name, threads)) as engine:
            commit(engine, edges[:0], edges)
            assert dict(rows_of(engine, "n")) == naive(name, as_set(edges))
            commit(engine, edges[::2], edges[:0])
            assert dict(rows_of(engine, "n")) == naive(name, as_set(edges[1::2]))
