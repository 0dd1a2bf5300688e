"""Rows of fresh collections that several threads find, number and write: they are those that one makes, in its order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Shared
from dlog.engine.runtime.incremental.batches import runner
from dlog.engine.runtime.incremental.batches.sharing import Share
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.storage.native import view
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from tests.engine.runtime.maintaining import EDGES
from tests.engine.runtime.shared_steps import DoStep, Pool, Steps, interrupt_after, look_at_steps, share_from_four_rows
from tests.examples import examples

CLAIMS = {Shared.CLAIM, Shared.NUMBER, Shared.ENTER}
PROGRAMS = {
    "join": ".decl t(x: number, z: number)\nt(x, z) :- e(x, y), e(y, z).\n",
    "three columns": ".decl t(x: number, y: number, z: number)\nt(x, y, z) :- e(x, y), e(y, z), x != z.\n",
    "wide values": ".decl t(x: number, z: number)\nt(x * 5000000000, 0 - z) :- e(x, y), e(y, z).\n",
    "two rules": ".decl t(x: number, z: number)\nt(x, z) :- e(x, y), e(y, z).\nt(x, z) :- e(y, x), e(y, z), x < z.\n",
    "linear": ".decl t(x: number, z: number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z).\n",
    "nonlinear": ".decl t(x: number, z: number)\nt(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z).\n",
    "distances": ".decl t(x: number, n: number)\nt(x, 0) :- e(x, _).\nt(y, n + 1) :- t(x, n), e(x, y), n < 4.\n",
}
READERS = """.decl rows(n: number)
rows(n) :- n = count : { t(_, _) }.
.decl u(x: number, y: number)
u(y, x) :- t(x, y), e(x, _).
"""


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """How often steps of each kind have been shared; those of four rows are."""
    return share_from_four_rows(monkeypatch)


def text_of(name: str) -> str:
    return EDGES + PROGRAMS[name] + ("" if name == "three columns" else READERS)


def random_edges(nodes: int, rows: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.permutation(np.unique(random.integers(0, nodes, (rows, 2)), axis=0))


def commit(engine: Maintained, gone: np.ndarray, come: np.ndarray) -> None:
    columns = np.ascontiguousarray(np.concatenate([gone, come]).T)
    diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    engine.commit({"e": Updates((columns[0], columns[1]), diffs, np.full(len(diffs), engine.round + 1))})


def tables(engine: Maintained) -> dict[str, list[list[int]]]:
    return {name: [column.tolist() for column in engine.table(name).columns] for name in engine.program.relations}


def story(name: str, edges: np.ndarray, threads: int) -> list[object]:
    """All tables, row by row: after a load, after changes that must find its rows again, after all has gone and come."""
    engine = Maintained(compile_source(Source(text_of(name))), threads=threads)
    commit(engine, edges[:0], edges)
    found: list[object] = [tables(engine)]
    some = edges[: len(edges) // 3]
    for gone, come in ((some, edges[:0]), (edges[:0], some), (edges, edges[:0]), (edges[:0], edges)):
        commit(engine, gone, come)
        found.append(tables(engine))
    engine.close()
    assert engine.memory.used == 0
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [2, 3, 5])
def test_rows_are_those_of_one_thread_in_its_order(name: str, threads: int, steps: Steps) -> None:
    edges = random_edges(60, 200, 1)
    alone = story(name, edges, 1)
    assert not CLAIMS & steps.keys()
    assert story(name, edges, threads) == alone
    assert steps.keys() >= CLAIMS


@pytest.mark.parametrize(("nodes", "rows"), [(3_000, 12_000), (300, 5_000)])
@pytest.mark.parametrize("name", ["join", "wide values", "three columns"])
def test_many_rows_are_those_of_one_thread_in_its_order(name: str, nodes: int, rows: int, steps: Steps) -> None:
    """Few of the records are the same, and most are."""
    found = []
    for threads in (1, 2, 3):
        engine = Maintained(compile_source(Source(text_of(name))), threads=threads)
        commit(engine, np.zeros((0, 2), np.int64), random_edges(nodes, rows, 2))
        found.append([column.copy() for column in engine.table("t").columns])
        engine.close()
    assert steps.keys() >= CLAIMS
    for other in found[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_rows_that_were_not_expected_are_claimed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first changes derive one row again and again, the last ones others each."""
    edges = random_edges(60_000, 150_000, 2)
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    text = EDGES + ".decl t(x: number, y: number)\nt(x * (x / 50000), y * (x / 50000)) :- e(x, y).\n"
    order: list[int] = []

    def noting(do: DoStep, self: Share, pool: Pool, shares: Sequence[Share]) -> int:
        order.append(self.struct[L.share.kind])
        return do(self, pool, shares)

    look_at_steps(monkeypatch, noting)
    found = []
    for threads in (1, 2, 3):
        order.clear()
        engine = Maintained(compile_source(Source(text)), threads=threads)
        commit(engine, edges[:0], edges)
        found.append(engine.table("t").columns)
        engine.close()
        again = (Shared.CLAIM, Shared.HASH) in pairwise(order)
        assert again == (threads > 1)
    assert all(np.array_equal(one, two) for other in found[1:] for one, two in zip(found[0], other, strict=True))


@pytest.mark.parametrize("condition", ["x < y", "x > y"])
def test_room_for_rows_is_made_for_what_changes_all_over_lead_to(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first changes lead to most rows, or the last ones do."""
    edges = random_edges(100_000, 300_000, 6)
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    reached = ".decl n(x: number)\nn(1).\nn(y) :- n(x), e(x, y).\n"  # has the edges in the order of x
    added = f".decl t(x: number, y: number)\nt(y, x) :- e(x, y), {condition}.\n"
    placed, homes = [], []

    def noting(do: DoStep, self: Share, pool: Pool, shares: Sequence[Share]) -> int:
        kind, address = self.struct[L.share.kind], self.struct[L.share.collection]
        status = do(self, pool, shares)
        collection = view(address, L.collection.size, np.int64) if kind in {Shared.HASH, Shared.ENTER} else None
        if kind == Shared.HASH:
            placed.append(collection[L.relation.rows])
        if kind == Shared.ENTER:
            homes.append(collection[L.collection.slot_homes])
        return status

    before = Maintained(compile_source(Source(EDGES + reached)), threads=2)
    commit(before, edges[:0], edges)
    look_at_steps(monkeypatch, noting)
    engine = Maintained(compile_source(Source(EDGES + reached + added)), threads=2, old=before)
    engine.commit({})
    rows = engine.rows("t")
    assert rows == np.count_nonzero(edges[:, 0] < edges[:, 1] if condition == "x < y" else edges[:, 0] > edges[:, 1])
    assert placed
    assert sum(placed) < rows // 3
    assert homes[-1] < rows * 3 // 2
    engine.close()


@examples(40)
@given(st.integers(2, 4), st.sampled_from(sorted(PROGRAMS)), st.integers(0, 2**32), st.integers(2, 40), st.integers(1, 120))
def test_whatever_is_loaded_rows_are_those_of_one_thread(threads: int, name: str, seed: int, nodes: int, rows: int) -> None:
    edges = random_edges(nodes, rows, seed)
    assert story(name, edges, threads) == story(name, edges, 1)


def test_rules_that_are_added_derive_together(steps: Steps) -> None:
    found = []
    for threads in (1, 3):
        engine = Maintained(compile_source(Source(EDGES)), threads=threads)
        commit(engine, np.zeros((0, 2), np.int64), random_edges(100, 900, 3))
        steps.clear()
        followed = Maintained(compile_source(Source(text_of("two rules"))), threads=threads, old=engine)
        followed.commit({})
        found.append(tables(followed))
        assert (steps.keys() >= CLAIMS) == (threads > 1)
        followed.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["join", "linear"])
def test_memory_that_does_not_suffice_leaves_what_was(name: str) -> None:
    refused = 0
    for more in range(20_000, 1_500_000, 74_321):
        engine = Maintained(compile_source(Source(text_of(name))), threads=2)
        engine.worker.control[L.control.limit] = engine.memory.used + more
        try:
            commit(engine, np.zeros((0, 2), np.int64), random_edges(120, 400, 1))
        except DlogError:
            refused += 1
            engine.worker.control[L.control.limit] = 2**62
            commit(engine, np.zeros((0, 2), np.int64), random_edges(120, 400, 1))
        assert tables(engine) == story(name, random_edges(120, 400, 1), 1)[0]
        engine.close()
        assert engine.memory.used == 0
    assert refused > 1


@pytest.mark.parametrize("step", sorted(CLAIMS | {Shared.PATH}))
@pytest.mark.parametrize("name", ["join", "linear"])
def test_an_interruption_after_a_step_takes_the_load_back(name: str, step: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = random_edges(60, 200, 1)
    engine = Maintained(compile_source(Source(text_of(name))), threads=2)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, step)
        commit(engine, edges[:0], edges)
    commit(engine, edges[:0], edges)
    assert tables(engine) == story(name, edges, 1)[0]
    engine.close()


def test_others_join_a_path_when_they_have_nothing_to_do(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two strata begin side by side, each on one thread; what is left of the longer path is for both."""
    monkeypatch.setattr(runner, "MAX_ROWS_PER_CALL", 1 << 12)
    text = EDGES + ".decl few(y: number, x: number)\nfew(y, x) :- e(x, y), x < 3.\n" + PROGRAMS["join"]
    edges = random_edges(2_000, 40_000, 4)
    found = []
    for threads in (1, 2):
        steps.clear()
        engine = Maintained(compile_source(Source(text)), threads=threads)
        commit(engine, edges[:0], edges)
        found.append(tables(engine))
        engine.close()
    assert steps[Shared.CLAIM] > 0
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["join", "linear"])
def test_where_workers_lack_memory_one_goes_on_alone(name: str) -> None:
    """What one thread takes is little more than rows; others give back what they hold beside."""
    program, edges = compile_source(Source(EDGES + PROGRAMS[name])), random_edges(1_200, 4_000, 5)

    def suffices(threads: int, limit: int) -> bool:
        engine = Maintained(program, threads=threads)
        engine.worker.control[L.control.limit] = limit
        try:
            commit(engine, edges[:0], edges)
        except DlogError:
            return False
        finally:
            engine.close()
        return True

    low, high = 0, 1 << 27
    while high - low > 1 << 14:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(1, middle) else (middle, high)
    assert suffices(2, high + (high >> 1) + (1 << 20))


def test_a_load_after_an_interruption_is_none_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Maintained(compile_source(Source(EDGES + PROGRAMS["join"])), threads=2)
    edges = random_edges(60, 200, 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, Shared.CLAIM)
        commit(engine, edges[:0], edges)
    assert engine._runner.shared is not None
    assert not any(worker.share.struct[L.share.last] for worker in engine._runner.shared.workers)
    engine.close()
