"""Inputs that several threads load together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Shared
from dlog.engine.runtime.incremental.batches import runner, strata_runner
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from tests.engine.runtime.shared_steps import Steps, count_steps, interrupt_after
from tests.examples import examples

PAIRS = ".decl e(x: number, y: number)\n.input e\n.decl p(y: number, x: number)\n.output p\np(y, x) :- e(x, y).\n"
JOINED = PAIRS + ".decl t(x: number, z: number)\n.output t\nt(x, z) :- e(x, y), e(y, z).\n"
ALONE = ".decl e(x: number)\n.input e\n.decl p(x: number)\n.output p\np(x) :- e(x), !e(x + 1).\n"
WIDE = """
.decl e(x: number, y: number, z: number)
.input e
.decl t(x: number, z: number)
.output t
t(x, z) :- e(x, y, _), e(_, x, z).
"""
PROGRAMS = {"pairs": (PAIRS, 2), "joined": (JOINED, 2), "alone": (ALONE, 1), "wide": (WIDE, 3)}


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    """How often steps of each kind have been shared; inputs of four rows are loaded together."""
    counted = count_steps(monkeypatch)
    monkeypatch.setattr(strata_runner, "SHARED_ROWS", 4)
    monkeypatch.setattr(runner, "BULK_ROWS", 4)
    yield counted


def _commit(engine: Maintained, rows: np.ndarray, diff: int) -> None:
    diffs, rounds = np.full(len(rows), diff), np.full(len(rows), engine.round + 1)
    engine.commit({"e": Updates(tuple(np.ascontiguousarray(rows.T)), diffs, rounds)})


def _tables(engine: Maintained) -> dict[str, set[tuple[int, ...]]]:
    tables = {name: engine.table(name) for name in engine.program.relations}
    found = {name: list(zip(*(c.tolist() for c in table.columns), strict=True)) for name, table in tables.items()}
    assert all(len(set(rows)) == len(rows) for rows in found.values())
    return {name: set(rows) for name, rows in found.items()}


def _story(text: str, rows: np.ndarray, threads: int) -> list[dict[str, set[tuple[int, ...]]]]:
    """All tables after a load, after some rows have gone, after some of them have come again."""
    engine = Maintained(compile_source(Source(text)), threads=threads)
    some = np.unique(rows, axis=0)[::3]
    found = []
    for each, diff in ((rows, 1), (some, -1), (some[::2], 1)):
        _commit(engine, each, diff)
        found.append(_tables(engine))
    engine.close()
    assert engine.memory.used == 0
    return found


def _rows(arity: int, count: int, spread: int, skew: bool, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    rows = random.integers(-spread, spread + 1, (count, arity))
    if skew:
        rows[random.random(count) < 0.7, 0] = spread
    return rows


@examples(40)
@given(
    name=st.sampled_from(sorted(PROGRAMS)),
    count=st.integers(4, 3000),
    spread=st.sampled_from([0, 1, 8, 60, 900, 2**31 - 1, 2**31, 2**40]),
    skew=st.booleans(),
    threads=st.integers(2, 5),
    seed=st.integers(0, 2**32),
)
def test_threads_that_load_together_load_what_one_does(
    name: str, count: int, spread: int, skew: bool, threads: int, seed: int
) -> None:
    text, arity = PROGRAMS[name]
    rows = _rows(arity, count, spread, skew, seed)
    if spread < 900:
        rows = rows[: 40 * (spread + 1)]
    assert _story(text, rows, threads) == _story(text, rows, 1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("spread", [200, 5_000, 30_000, 2**30])
@pytest.mark.parametrize("skew", [False, True])
def test_many_rows_are_divided(threads: int, spread: int, skew: bool) -> None:
    text = WIDE.split(".decl t")[0] + ".decl s(x: number, y: number)\n.output s\ns(x, y) :- e(_, x, y), e(y, _, _).\n"
    text += ".decl f(y: number)\n.input f\n.decl g(x: number)\n.output g\ng(x) :- f(y), e(x, _, y).\n"
    rows = _rows(3, 70_000, spread, skew, 2)
    rows[:, 1:] %= 50_000
    engine = Maintained(compile_source(Source(text)), threads=threads)
    _commit(engine, rows, 1)
    different = np.unique(rows, axis=0)
    found = np.column_stack(engine.table("e").columns)
    assert np.array_equal(found[np.lexsort(found.T[::-1])], different)
    firsts = set(different[:, 0].tolist())
    assert _tables(engine)["s"] == {(x, y) for _, x, y in different.tolist() if y in firsts}
    wanted = different[::7, 2]
    engine.commit({"f": Updates((wanted,), np.ones(len(wanted), np.int64), np.full(len(wanted), 2))})
    assert _tables(engine)["g"] == {(x,) for x in different[np.isin(different[:, 2], wanted), 0].tolist()}
    engine.close()


def test_a_base_is_counted_and_filled_together_and_has_its_rows_in_order(steps: Steps) -> None:
    rows = _rows(2, 5000, 300, True, 1)
    engine = Maintained(compile_source(Source(JOINED)), threads=3)
    _commit(engine, rows, 1)
    assert steps[Shared.DIVIDE] == steps[Shared.FILL] == 1
    found = np.column_stack(engine.table("e").columns)
    assert np.array_equal(found, np.unique(rows, axis=0))
    engine.close()


def test_pairs_are_entered_together(steps: Steps) -> None:
    rows = _rows(2, 5000, 60, False, 1)
    engine = Maintained(compile_source(Source(PAIRS)), threads=3)
    _commit(engine, rows, 1)
    assert steps[Shared.DIVIDE_PAIRS] == steps[Shared.ENTER_PAIRS] == 1
    assert _tables(engine)["e"] == set(map(tuple, rows.tolist()))
    engine.close()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("spread", [200, 2**30])
def test_many_pairs_are_divided(threads: int, spread: int) -> None:
    rows = _rows(2, 70_000, spread, False, 3)
    engine = Maintained(compile_source(Source(PAIRS)), threads=threads)
    _commit(engine, rows, 1)
    _commit(engine, rows[:1000], -1)
    there = set(map(tuple, rows.tolist())) - set(map(tuple, rows[:1000].tolist()))
    assert _tables(engine) == {"e": there, "p": {(y, x) for x, y in there}}
    engine.close()


@pytest.mark.parametrize("spread", [60, 2**30])
def test_pairs_are_made_rows_together_when_a_rule_looks_them_up(steps: Steps, spread: int) -> None:
    rows = _rows(2, 5000, spread, False, 1)
    found = []
    for threads in (1, 3):
        engine = Maintained(compile_source(Source(PAIRS)), threads=threads)
        _commit(engine, rows, 1)
        _commit(engine, rows[:500], -1)
        steps.clear()
        followed = Maintained(compile_source(Source(JOINED)), threads=threads, old=engine)
        followed.commit({})
        assert steps[Shared.DIVIDE] == steps[Shared.FILL] == (threads > 1 and spread < 5000)
        found.append([_tables(followed)])
        _commit(followed, rows[:700], 1)
        _commit(followed, rows[300:900], -1)
        found[-1].append(_tables(followed))
        followed.close()
    assert found[0] == found[1]
    assert found[0][0]["e"] == set(map(tuple, rows.tolist())) - set(map(tuple, rows[:500].tolist()))


@pytest.mark.parametrize("name", ["pairs", "joined"])
def test_memory_that_does_not_suffice_for_a_load_leaves_what_was(name: str) -> None:
    refused = 0
    text, arity = PROGRAMS[name]
    rows = _rows(arity, 3000, 900, False, 1)
    for more in range(0, 400_000, 1777):
        engine = Maintained(compile_source(Source(text)), threads=2)
        engine.worker.control[L.control.limit] = engine.memory.used + more
        try:
            _commit(engine, rows, 1)
        except DlogError:
            refused += 1
            engine.worker.control[L.control.limit] = 2**62
            assert not any(_tables(engine).values())
        else:
            assert _tables(engine)["e"] == set(map(tuple, rows.tolist()))
        engine.close()
        assert engine.memory.used == 0
    assert refused > 1


@pytest.mark.parametrize("name", ["pairs", "joined"])
def test_a_limit_of_memory_that_one_thread_keeps_to_is_one_for_all(name: str) -> None:
    text = PROGRAMS[name][0].split(".decl p")[0] + ".decl none(x: number)\n.output none\n"
    text += "none(x) :- e(x, y), x > 5000" + (", e(y, _).\n" if name == "joined" else ".\n")
    rows = _rows(2, 60_000, 900, False, 1)

    def fits(threads: int, limit: int) -> bool:
        engine = Maintained(compile_source(Source(text)), threads=threads)
        engine.worker.control[L.control.limit] = engine.memory.used + limit
        try:
            _commit(engine, rows, 1)
        except DlogError:
            return False
        finally:
            engine.close()
        return True

    least = next(limit for limit in range(400_000, 4_000_000, 50_000) if fits(1, limit))
    assert least > 400_000
    assert fits(2, least + 50_000)
    assert fits(3, least + 50_000)


@pytest.mark.parametrize("name", ["pairs", "joined", "wide"])
@pytest.mark.parametrize("step", [Shared.DIVIDE, Shared.FILL, Shared.DIVIDE_PAIRS, Shared.ENTER_PAIRS])
def test_an_interruption_between_the_steps_of_a_load_takes_it_back(
    name: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, arity = PROGRAMS[name]
    text += ".decl h(x: number)\n.input h\n.decl k(x: number)\n.output k\n"
    text += "k(x) :- h(x).\n" if name == "pairs" else "k(x) :- h(x), e(x" + ", _" * (arity - 1) + ").\n"
    engine = Maintained(compile_source(Source(text)), threads=2)
    engine.commit({"h": Updates((np.arange(9),), np.ones(9, np.int64), np.ones(9, np.int64))})
    rows = _rows(arity, 4000, 60, False, 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, step)
        _commit(engine, rows, 1)
        raise KeyboardInterrupt  # the load has no such step
    if engine.round == 1:
        assert not _tables(engine)["e"]
        _commit(engine, rows, 1)
    assert _tables(engine)["e"] == set(map(tuple, rows.tolist()))
    _commit(engine, rows[:200], -1)
    gone = set(map(tuple, rows[:200].tolist()))
    assert _tables(engine)["e"] == set(map(tuple, rows.tolist())) - gone
    firsts = {row[0] for row in _tables(engine)["e"]}
    assert _tables(engine)["k"] == {(x,) for x in range(9) if name == "pairs" or x in firsts}
    engine.close()
    assert engine.memory.used == 0


CHANGES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(-3, 3), st.sampled_from([1, 1, -1])), min_size=12, max_size=200
)


@examples(60)
@given(loaded=st.integers(0, 400), rounds=st.lists(CHANGES, min_size=1, max_size=4), wide=st.booleans())
def test_pairs_that_are_changed_together_are_those_of_one(
    loaded: int, rounds: list[list[tuple[int, int, int, int]]], wide: bool
) -> None:
    """Rows come and go, some of them several times, at a few rounds of a commit; a round more has one that makes no pair."""
    rows = np.array([(x % 31, x * 7 % 13 - 6) for x in range(loaded)], np.int64).reshape(-1, 2)
    first = [Updates(tuple(np.ascontiguousarray(rows.T)), np.ones(loaded, np.int64), np.ones(loaded, np.int64))]
    stories = []
    for threads in (1, 2, 3):
        engine = Maintained(compile_source(Source(PAIRS)), threads=threads)
        told: list[object] = []
        for updates in [*first, *(_changes(each) for each in rounds), *([_wide()] if wide else [])]:
            moved = Updates(updates.columns, updates.diffs, updates.rounds + engine.round)
            loads = not engine.rows("e")
            engine.commit({"e": moved})
            changes = {name: _changed(engine, name) for name in ("e", "p")}
            # Where there was nothing before rows are in the order of the table, where a few may lie elsewhere.
            told += [_tables(engine), {name: sorted(each) for name, each in changes.items()} if loads else changes]
        engine.close()
        assert engine.memory.used == 0
        stories.append(told)
    assert stories[0] == stories[1] == stories[2]


def _changes(given: list[tuple[int, int, int, int]]) -> Updates:
    given = sorted(given, key=lambda change: change[0])
    rounds, x, y, diffs = np.array(given, np.int64).T.copy()
    return Updates((x, y), diffs, rounds - rounds[0] + 1)


def _wide() -> Updates:
    return _changes([(0, x, x << 40, 1) for x in range(20)])


def _changed(engine: Maintained, name: str) -> list[tuple[int, ...]]:
    updates = engine.changes(name)
    return list(zip(*(column.tolist() for column in (*updates.columns, updates.diffs, updates.rounds)), strict=True))
