"""Steps of a stratum that several threads do together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Shared
from dlog.engine.runtime.incremental.batches import runner, sharing, strata_runner
from dlog.engine.runtime.incremental.batches.changes import insertions
from dlog.engine.runtime.incremental.batches.sharing import Share
from dlog.engine.runtime.incremental.batches.worker import BatchWorker
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.storage.native import view
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from tests.engine.runtime.maintaining import EDGES, Beside
from tests.engine.runtime.shared_steps import GIVEN_UP, DoStep, Pool, Steps, count_steps, interrupt_after, look_at_steps

PATHS = ".decl p(x: number, y: number)\n.output p\np(x, y) :- e(x, y).\n"
RECURSIVE = {
    "linear": PATHS + "p(x, z) :- p(x, y), e(y, z).\n",
    "nonlinear": PATHS + "p(x, z) :- p(x, y), p(y, z).\n",
    "mutual": PATHS + ".decl q(x: number, y: number)\nq(x, z) :- p(x, y), e(y, z).\np(x, z) :- q(x, y), e(y, z).\n",
    "one column": ".decl n(x: number)\n.output n\nn(1).\nn(y) :- n(x), e(x, y).\n",
}
FLAT = {
    "join": ".decl t(x: number, z: number)\n.output t\nt(x, z) :- e(x, y), e(y, z), x != z.\n",
    "triangles": ".decl t(x: number, y: number, z: number)\n.output t\nt(x, y, z) :- e(x, y), e(y, z), e(x, z).\n",
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    """How often steps of each kind have been shared; those of four rows are."""
    counted = count_steps(monkeypatch)
    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    yield counted


def _commit(engine: Maintained, gone: np.ndarray, come: np.ndarray) -> None:
    columns = np.ascontiguousarray(np.concatenate([gone, come]).T)
    diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    engine.commit({"e": Updates((columns[0], columns[1]), diffs, np.full(len(diffs), engine.round + 1))})


def _tables(engine: Maintained) -> dict[str, list[list[int]]]:
    return {name: [c.tolist() for c in engine.table(name).columns] for name in engine.program.relations}


def _edges(nodes: int, rows: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.permutation(np.unique(random.integers(0, nodes, (rows, 2)), axis=0))


def _story(text: str, threads: int) -> list[object]:
    """All tables, row by row, after a load, after batches that remove and insert, after everything has gone and come again."""
    engine = Maintained(compile_source(Source(EDGES + text)), threads=threads)
    edges = _edges(150, 300, 1)
    _commit(engine, edges[:0], edges)
    found: list[object] = [_tables(engine)]
    for seed in range(2, 5):
        gone, come = edges[: 40 * seed], _edges(150, 40 * seed, seed)
        _commit(engine, gone, come)
        found += [_tables(engine), sorted(engine.touched)]
        edges = np.unique(np.concatenate([edges[40 * seed :], come]), axis=0)
    _commit(engine, edges, edges[:0])
    found.append(_tables(engine))
    _commit(engine, edges[:0], edges)
    found.append(_tables(engine))
    engine.close()
    assert engine.memory.used == 0
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", RECURSIVE)
def test_threads_that_share_a_recursion_make_the_same_rows_in_the_same_order(name: str, steps: Steps) -> None:
    alone = _story(RECURSIVE[name], 1)
    assert not steps
    assert _story(RECURSIVE[name], 2) == alone
    assert _story(RECURSIVE[name], 3) == alone
    noting = {Shared.BUCKET, Shared.BUCKET_NOTES, Shared.ROUND, Shared.ROUND_NOTES}
    assert {Shared.PATH, Shared.SUPPORTS} | noting <= steps.keys()


@pytest.mark.parametrize("name", FLAT)
def test_threads_that_share_a_path_make_the_same_rows_in_the_same_order(name: str, steps: Steps) -> None:
    alone = _story(FLAT[name], 1)
    assert _story(FLAT[name], 2) == alone
    assert _story(FLAT[name], 3) == alone
    assert steps[Shared.PATH] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "relation"), [("join", "t"), ("linear", "p")])
def test_a_change_of_which_too_much_comes_is_for_one_thread(name: str, relation: str, steps: Steps) -> None:
    spokes = np.arange(1, 1501)
    hub = np.zeros_like(spokes)
    edges = np.concatenate([np.column_stack([spokes, hub]), np.column_stack([hub, spokes + 1500])])
    found = []
    for threads in (1, 2):
        engine = Maintained(compile_source(Source(EDGES + (RECURSIVE | FLAT)[name])), threads=threads)
        _commit(engine, edges[:0], edges)
        found.append(engine.table(relation).columns)
        engine.close()
    assert steps[GIVEN_UP] > 0
    assert len(found[0][0]) >= 1500 * 1500
    assert all((one == other).all() for one, other in zip(*found, strict=True))


def test_a_mistake_in_a_part_is_told_at_its_rule_and_the_round_taken_back(steps: Steps) -> None:
    text = EDGES + ".decl d(x: number, y: number)\n.output d\nd(x, 6 / z) :- e(x, y), e(y, z).\n"
    told = []
    for threads in (1, 2, 3):
        engine = Maintained(compile_source(Source(text)), threads=threads)
        edges = _edges(90, 400, 1) + 1
        _commit(engine, edges[:0], edges)
        before = _tables(engine)
        with pytest.raises(DlogError, match="division by zero") as error:
            _commit(engine, edges[:9], np.array([[1, 2], [2, 0], *edges[:9].tolist()]))
        told.append(str(error.value))
        assert _tables(engine) == before
        _commit(engine, edges[:9], edges[:0])
        engine.close()
    assert told[0] == told[1] == told[2]
    assert steps[Shared.PATH] > 0


def test_memory_that_does_not_suffice_for_a_shared_step_takes_the_round_back(steps: Steps) -> None:
    refused = 0
    for more in range(0, 1_500_000, 76_543):
        engine = Beside(compile_source(Source(EDGES + RECURSIVE["linear"])))
        edges = _edges(150, 300, 1)
        _commit(engine, edges[:0], edges)
        before = _tables(engine)
        engine.worker.control[L.control.limit] = engine.memory.used + more
        try:
            _commit(engine, edges[:50], _edges(150, 200, 3))
        except DlogError:
            refused += 1
            engine.worker.control[L.control.limit] = 2**62
            assert {n: sorted(zip(*t, strict=True)) for n, t in _tables(engine).items()} == {
                n: sorted(zip(*t, strict=True)) for n, t in before.items()
            }
        engine.close()
        assert engine.memory.used == 0
    assert refused > 1


def test_an_interruption_between_shared_steps_takes_the_round_back(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Maintained(compile_source(Source(EDGES + RECURSIVE["linear"])), threads=2)
    edges = _edges(150, 300, 1)
    _commit(engine, edges[:0], edges)
    before = _tables(engine)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, Shared.BUCKET)
        _commit(engine, edges[:100], _edges(150, 100, 3))
    assert {n: sorted(zip(*t, strict=True)) for n, t in _tables(engine).items()} == {
        n: sorted(zip(*t, strict=True)) for n, t in before.items()
    }
    _commit(engine, edges[:100], _edges(150, 100, 3))
    assert engine.round == 2
    engine.close()


def test_who_added_derivations_keeps_what_else_it_has_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that one worker has noted alone are added by all; when it goes on, others may have begun another stratum."""
    run_worker = BatchWorker.run
    other_work = np.array([0, 1], np.int64)
    noted: list[Share] = []
    left: list[int] = []

    def noting(do: DoStep, self: Share, pool: Pool, shares: Sequence[Share]) -> int:
        alone = self.struct[L.share.kind] == Shared.SUPPORTS and not self.struct[L.share.last]
        status = do(self, pool, shares)
        for share in shares if alone else ():
            if share is not self:
                share.items[L.items.data], share.items[L.items.count] = int(other_work.ctypes.data), 1
                noted.append(share)
        return status

    def looking(self: BatchWorker) -> int:
        status = run_worker(self)
        for share in noted:
            left.append(share.items[L.items.count])
            share.items[L.items.data] = share.items[L.items.count] = 0
        noted.clear()
        return status

    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 4)
    look_at_steps(monkeypatch, noting)
    monkeypatch.setattr(BatchWorker, "run", looking)
    text = EDGES + ".decl t(x: number)\nt(x) :- e(x, _).\nt(y) :- t(x), e(x, y).\n"
    engine = Maintained(compile_source(Source(text)), threads=2)
    columns = (np.arange(5000), np.arange(1, 5001))
    engine.commit({"e": Updates(columns, np.ones(5000, np.int64), np.ones(5000, np.int64))})
    assert engine.rows("t") == 5001
    assert left
    assert set(left) == {1}
    engine.close()


def test_parts_may_be_at_another_stratum_when_what_they_noted_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a step and its end whoever did a part begins something else, and writes to all lists of its own."""
    found = []

    def running(do: DoStep, self: Share, pool: Pool, shares: Sequence[Share]) -> int:
        kind, alone = self.struct[L.share.kind], not self.struct[L.share.last]
        status = do(self, pool, shares)
        for share in shares if alone and kind in (Shared.SUPPORTS, Shared.BUCKET, Shared.ROUND) else ():
            if share is not self:
                for items in (share.items, share.values, share.derived_rows, share.left):
                    if items[L.items.data]:
                        view(items[L.items.data], items[L.items.capacity] * items[L.items.words], np.int64)[:] = -1
                found.append(kind)
        return status

    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    alone = _story(RECURSIVE["nonlinear"], 1)
    look_at_steps(monkeypatch, running)
    assert _story(RECURSIVE["nonlinear"], 3) == alone
    assert {Shared.SUPPORTS, Shared.BUCKET, Shared.ROUND} <= set(found)


@pytest.mark.parametrize(("name", "relation"), [("join", "t"), ("linear", "p")])
def test_few_changes_of_which_much_comes_are_divided(name: str, relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spokes, few = np.arange(1, 2001), np.arange(100)
    hub = np.zeros_like(spokes)
    found = []
    for threads in (1, 2, 3):
        steps = count_steps(monkeypatch)
        engine = Maintained(compile_source(Source(EDGES + (RECURSIVE | FLAT)[name])), threads=threads)
        _commit(engine, np.empty((0, 2), np.int64), np.column_stack([spokes, hub]))
        for come in (np.column_stack([few - 5000, few - 6000]), np.column_stack([few * 0, few + 3000])):
            before = steps[Shared.PATH]
            _commit(engine, come[:0], come)
            found.append((threads, steps[Shared.PATH] - before > 0))
        assert engine.rows(relation) >= 200_000
        found.append((threads, [column.tolist() for column in engine.table(relation).columns]))
        engine.close()
    (_, alone), (_, two), (_, three) = found[2::3]
    assert alone == two == three
    assert found[:2] == [(1, False), (1, False)]
    assert found[3:5] == [(2, False), (2, True)]
    assert found[6:8] == [(3, False), (3, True)]


def test_others_do_not_join_a_path_while_one_tries_some_of_its_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take the end of the trial for that of the path."""
    text = "".join(f".decl {r}(x: number, z: number)\n{r}(x, z) :- e(x, y), e(y, w), e(w, z), x != z.\n" for r in "abcd")
    others = np.random.default_rng(3)
    allow = Share.allow
    for module, name in ((sharing, "SHARED_STEP"), (strata_runner, "SHARED_ROWS"), (runner, "BULK_ROWS")):
        monkeypatch.setattr(module, name, 4)
    monkeypatch.setattr(runner, "MAX_ROWS_ALONE", 64)
    monkeypatch.setattr(Share, "allow", lambda self, _: allow(self, bool(others.integers(2))))
    found = []
    for threads in (1, 2, 3):
        engine = Maintained(compile_source(Source(EDGES + text)), threads=threads)
        for seed in range(1, 6):
            come = _edges(40, 300, seed)
            _commit(engine, come[:0], come)
        for seed in range(1, 5):
            gone = _edges(40, 300, seed)
            _commit(engine, gone, gone[:0])
        found.append({name: sorted(zip(*columns, strict=True)) for name, columns in _tables(engine).items()})
        engine.close()
    assert found[0]["a"]
    assert found[0] == found[1] == found[2]


ROWS, NODES = 60_000, 4_000
TRIPLES = ".decl e(x: number, y: number, z: number)\n.input e\n"
OF_SOME_INDEXES = {
    "one": ".decl t(x: number)\n.output t\nt(z) :- s(x), e(x, _, z).\n",
    "two": ".decl t(x: number)\n.output t\nt(z) :- s(x), e(x, y, _), e(_, z, y).\n",
    "three": ".decl t(x: number)\n.output t\nt(z) :- s(x), e(x, y, _), e(_, y, w), e(w, _, z).\nt(z) :- s(x), e(_, x, z).\n",
}


@pytest.mark.parametrize("far", [0, 1 << 40])
@pytest.mark.parametrize("name", OF_SOME_INDEXES)
def test_inputs_settle_and_enter_indexes_in_parts(name: str, far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come have values that are `far` from the others, in one of which an index of values ends."""
    done: set[str] = set()
    for task in ("_remove_part", "_enter_index"):
        original = getattr(strata_runner, task)
        monkeypatch.setattr(strata_runner, task, lambda *a, o=original, t=task: (done.add(t), o(*a))[1])
    random = np.random.default_rng(7)
    rows = np.unique(random.integers(0, NODES, (2 * ROWS, 3)), axis=0)
    random.shuffle(rows)
    first, second, third = np.split(rows[: 3 * (len(rows) // 3)], 3)
    second[len(second) // 2] += far
    text = TRIPLES + ".decl s(x: number)\n.input s\n" + OF_SOME_INDEXES[name]
    found = []
    for threads in (1, 2, 4):
        engine = Maintained(compile_source(Source(text)), threads=threads)
        starts = np.arange(0, NODES, 7)
        given = {"s": (starts,), "e": _columns(first)}
        engine.commit({n: insertions(columns, len(columns[0]), 1) for n, columns in given.items()})
        tables = []
        for gone, come in ((first[:20_000], second), (second[:20_000], third), (third, first[:20_000])):
            changes = _columns(np.concatenate([gone, come]))
            diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
            engine.commit({"e": Updates(changes, diffs, np.full(len(diffs), engine.round + 1))})
            tables.append(_tables(engine))
        found.append(tables)
        engine.close()
        assert engine.memory.used == 0
    assert found[0] == found[1] == found[2]
    left = np.concatenate([first[20_000:], second[20_000:], first[:20_000]])
    assert sorted(zip(*found[0][-1]["e"], strict=True)) == sorted(map(tuple, left.tolist()))
    assert done == ({"_remove_part", "_enter_index"} if name != "one" else {"_remove_part"})


def _columns(rows: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.ascontiguousarray(column) for column in rows.T)


def test_what_is_noted_is_taken_by_those_who_noted_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strata run side by side: whoever is idle helps, who may be more or fewer at each step."""
    before, numbers = dict[int, int](), set[int]()
    noting = {Shared.BUCKET_NOTES: Shared.BUCKET, Shared.ROUND_NOTES: Shared.ROUND}
    taken = []

    def running(do: DoStep, self: Share, pool: Pool, shares: Sequence[Share]) -> int:
        if self.struct[L.share.kind] in noting:
            taken.append(before[id(self)] == len(shares))
        before[id(self)] = len(shares)
        numbers.add(len(shares))
        return do(self, pool, shares)

    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 4)
    monkeypatch.setattr(runner, "BULK_ROWS", 0)
    look_at_steps(monkeypatch, running)
    reached = ".decl p{0}(x: number, n: number)\np{0}(x, 0) :- e(x, _), x < {1}.\n"
    reached += "p{0}(y, n + 1) :- p{0}(x, n), e(x, y), n < {2}.\n"
    joined = ".decl s{0}(x: number, y: number)\ns{0}(x, z) :- e(x, y), e(y, z), x < {1}.\n"
    text = "".join(reached.format(i, 3 * i + 3, 3 + 2 * i) + joined.format(i, 100 * i) for i in range(6))
    found = []
    for threads in (1, 3, 3, 3, 3, 3):
        if len(numbers) > 1:
            break  # who is idle at a step depends on what else the machine does
        engine = Maintained(compile_source(Source(EDGES + text)), threads=threads)
        edges, told = _edges(300, 300, 1), []
        _commit(engine, edges[:0], edges)
        for seed in range(2, 12):
            come = _edges(300, 80, seed)
            _commit(engine, edges[:70], come)
            edges = np.unique(np.concatenate([edges[70:], come]), axis=0)
            told.append(_tables(engine))
        engine.close()
        found.append(told)
    assert all(told == found[0] for told in found)
    assert len(numbers) > 1
    assert taken
    assert all(taken)


def test_threads_look_for_the_next_part_before_they_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sent for fewer times than there are parts for them, and come back after they have gone."""
    serve, sent = Share.serve, []

    def serving(self: Share) -> None:
        sent.append(self)
        serve(self)

    steps = count_steps(monkeypatch)
    monkeypatch.setattr(sharing, "SHARED_STEP", 4)
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 4)
    monkeypatch.setattr(Share, "serve", serving)
    engine = Maintained(compile_source(Source(EDGES + RECURSIVE["linear"])), threads=2)
    edges = _edges(150, 300, 1)
    for _ in range(20):
        sent.clear()
        steps.clear()
        for _ in range(2):
            _commit(engine, edges[:0], edges)
            _commit(engine, edges, edges[:0])
            time.sleep(0.05)
        if 2 <= len(sent) < sum(number for kind, number in steps.items() if kind > 0):
            break  # where other processes have all cores nobody comes in time, or goes, now and then
    else:
        pytest.fail("threads were sent for all parts, or never twice")
    assert engine.rows("p") == 0
    engine.close()
