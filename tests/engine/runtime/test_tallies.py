"""Counts and sums of fresh reductions with one key: what workers sum up by key is what a walk through the rows gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Shared
from dlog.engine.runtime.incremental.batches import sharing, strata_runner
from dlog.engine.runtime.incremental.batches.sharing import Share
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from tests.engine.runtime.maintaining import EDGES
from tests.engine.runtime.shared_steps import Steps, count_steps, interrupted_after
from tests.examples import examples

PROGRAMS = {
    "count": "n(x, c) :- e(x, _), c = count : { e(x, _) }.\n",
    "sum": "n(x, s) :- e(x, _), s = sum y : { e(x, y) }.\n",
    "of a join": "n(x, c) :- e(x, _), c = count : { e(x, y), e(y, z) }.\n",
    "of products": "n(k, s) :- e(k, _), s = sum y * y - x : { e(k, y), e(y, x) }.\n",
    "computed": "n(k, c) :- e(x, _), k = x / 2, c = count : { e(x2, _), k = x2 / 2 }.\n",
}
AFTER = ".decl after(c: number, k: number)\nafter(c, k) :- n(_, c), k = count : { n(_, c) }.\n"
MIN_CHANGES = 4096


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    """How often steps of each kind have been shared; those of four rows are."""
    counted = count_steps(monkeypatch)
    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 4)
    yield counted


def engine_of(name: str, threads: int, **options: int) -> Maintained:
    text = EDGES + ".decl n(x: number, c: number)\n" + PROGRAMS[name] + AFTER
    return Maintained(compile_source(Source(text)), threads=threads, **options)


def commit(engine: Maintained, gone: np.ndarray, come: np.ndarray) -> None:
    columns = np.ascontiguousarray(np.concatenate([gone, come]).T)
    diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    engine.commit({"e": Updates((columns[0], columns[1]), diffs, np.full(len(diffs), engine.round + 1))})


def rows_of(engine: Maintained, relation: str) -> list[tuple[int, ...]]:
    """In their order."""
    return list(zip(*(column.tolist() for column in engine.table(relation).columns), strict=True))


def naive(name: str, edges: set[tuple[int, int]]) -> dict[int, int]:
    """The rows of `n` by their keys."""
    following: dict[int, list[int]] = {}
    for x, y in edges:
        following.setdefault(x, []).append(y)
    matches = {
        "count": lambda: ((x, 1) for x, _ in edges),
        "sum": lambda: iter(edges),
        "of a join": lambda: ((x, 1) for x, y in edges for _ in following.get(y, ())),
        "of products": lambda: ((k, y * y - x) for k, y in edges for x in following.get(y, ())),
        "computed": lambda: ((-(-x // 2) if x < 0 else x // 2, 1) for x, _ in edges),
    }
    found: Counter[int] = Counter()
    for key, value in matches[name]():
        found[key] += value
    if name in ("of a join", "of products"):
        return {x: found[x] for x in following}
    return dict(found)


def distinct(random: np.random.Generator, keys: np.ndarray, rows: int) -> np.ndarray:
    """Different edges in no order, whose first nodes are drawn from `keys`."""
    edges = np.stack([random.choice(keys, rows), random.integers(-50, 50, rows)], axis=1)
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
    assert len(edges) > MIN_CHANGES or kind == "few of a wide range"
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


def test_groups_stand_in_the_order_of_their_keys_whoever_makes_them(steps: Steps) -> None:
    edges = distinct(np.random.default_rng(1), KEYS["close"], 20_000)
    found = []
    for threads in (1, 2, 3):
        with closing(engine_of("count", threads)) as engine:
            commit(engine, edges[:0], edges)
            found.append(rows_of(engine, "n"))
    assert found[0] == sorted(found[0])
    assert found[0] == found[1] == found[2]
    assert steps[Shared.PATH] > 0


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
            patch.setattr(Share, "run", interrupted_after(Shared.PATH))
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
