"""Plans follow the data: a stratum is planned anew when its figures have left the range that its plan was made for."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.paths import RoundsPaths
from dlog.engine.runtime.incremental.batches.changes import insertions
from dlog.engine.runtime.incremental.engines import maintained
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.plan_changes import planner_statistics, replanning
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import (
    MIN_STATISTIC,
    VALID_FACTOR,
    DataflowStatistics,
    RecordingStatistics,
)
from dlog.engine.runtime.incremental.plan_changes.replanning import PlanWatch
from dlog.engine.runtime.storage.statistics import distinct_values, second_moment
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.engine.runtime.maintaining import engine_of, rows

EDGES = ".decl e(x: number, y: number)\n"
TRIANGLES = EDGES + ".decl t(x: number, y: number, z: number)\nt(x, y, z) :- e(x, y), e(y, z), e(z, x).\n"
COUNTED = EDGES + ".decl n(c: number)\nn(c) :- c = count : { e(x, y), e(y, z), e(z, x) }.\n"
DEGREES = EDGES + ".decl n(x: number, c: number)\nn(x, c) :- e(x, _), c = count : { e(x, _) }.\n"
PROJECTED = EDGES + ".decl p(x: number)\np(x) :- e(x, _), e(_, x).\n"
SPOKES = 2_000
SOME = [(1, 2), (2, 3), (3, 1), *((k, 100 + k) for k in range(10, 20))]
"""A triangle among edges that are more than those for which nothing is estimated."""


def star(spokes: int) -> np.ndarray:
    """Edges to a hub and away from it: pairs of them are many, triangles there are none."""
    outer = np.arange(1, spokes // 2 + 1)
    return np.concatenate([np.stack([outer, 0 * outer], 1), np.stack([0 * outer, outer + spokes], 1)])


def commit(engine: Maintained, edges: Iterable[object], diff: int = 1) -> None:
    listed = np.array(list(edges), np.int64)
    marks = np.full(len(listed), diff, np.int64), np.full(len(listed), engine.round + 1, np.int64)
    engine.commit({"e": Updates((listed[:, 0], listed[:, 1]), *marks)})


def work(engine: Maintained, edges: Iterable[object]) -> int:
    """The rows that paths make for a commit."""
    engine.worker.control[L.control.budget] = 2**62
    commit(engine, edges)
    return int(engine.worker.control[L.control.work])


@pytest.mark.parametrize("text", [TRIANGLES, COUNTED])
@pytest.mark.parametrize("first", [[(1, 2)], [(1, 2), (2, 3), (3, 4)], SOME])
def test_a_star_after_a_few_edges_costs_what_it_costs_at_once(text: str, first: list[tuple[int, int]]) -> None:
    with engine_of(text) as late, engine_of(text) as whole:
        commit(late, first)
        assert work(late, star(SPOKES)) <= 4 * work(whole, star(SPOKES)) < SPOKES**2 / 16


def test_a_star_that_grows_edge_by_edge_is_planned_anew() -> None:
    with engine_of(TRIANGLES) as engine:
        edges = star(SPOKES)[np.random.default_rng(1).permutation(SPOKES)]
        for begin in range(0, SPOKES, len(SOME)):
            commit(engine, edges[begin : begin + len(SOME)])
        assert work(engine, [(1, SPOKES + 1), (SPOKES + 1, 1)]) < SPOKES / 4
        assert "extend" in engine.explain()
        assert rows(engine, "t") == {(0, 2001, 1), (1, 0, 2001), (2001, 1, 0)}


def test_a_plan_for_skewed_rows_is_left_when_they_go() -> None:
    even = np.stack([np.arange(SPOKES), SPOKES + np.arange(SPOKES)], 1)
    with engine_of(TRIANGLES) as engine:
        commit(engine, star(SPOKES))
        assert "extend" in engine.explain()
        commit(engine, star(SPOKES), -1)
        for _ in range(150):
            commit(engine, even)
            commit(engine, even, -1)
        commit(engine, even)
        assert "extend" not in engine.explain()


def test_rows_that_come_and_go_within_a_commit_are_not_taken_for_more() -> None:
    with engine_of(PROJECTED) as engine:
        edges = np.stack([np.arange(SPOKES), np.arange(SPOKES) + 1], 1)
        commit(engine, edges)
        columns = tuple(np.tile(np.repeat(edges[:, c], 2), 8) for c in (0, 1))
        diffs = np.tile(np.array([-1, 1]), 8 * SPOKES)
        waiting = Updates(columns, diffs, 2 + np.arange(len(diffs)))
        now = DataflowStatistics({"e": waiting}, frozenset(), {"e": engine._flow.collections["e"]})
        assert (now.rows("e"), now.second_moment("e", (0,))) == (SPOKES, SPOKES)


def test_rounds_of_one_commit_are_planned_for_together() -> None:
    with engine_of(TRIANGLES) as late, engine_of(TRIANGLES) as whole:
        commit(late, SOME)
        edges = star(SPOKES)
        for engine in (late, whole):
            engine.worker.control[L.control.budget] = 2**62
            rounds = engine.round + 1 + np.arange(SPOKES)
            engine.commit({"e": Updates((edges[:, 0].copy(), edges[:, 1].copy()), np.ones(SPOKES, np.int64), rounds)})
        assert "extend" in late.explain() and "extend" in whole.explain()


def test_a_plan_says_when_and_why_it_changed() -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, SOME)
        assert "planned anew" not in engine.explain()
        commit(engine, star(SPOKES))
        assert "stratum t, over rounds\n  planned anew in round 2: e had 13 rows, now 2,013\n" in engine.explain()
        assert rows(engine, "t") == {(1, 2, 3), (2, 3, 1), (3, 1, 2)}


def test_a_figure_within_its_range_changes_no_plan() -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, star(SPOKES))
        commit(engine, star(SPOKES) + 10 * SPOKES)
        commit(engine, star(SPOKES), -1)
        assert "planned anew" not in engine.explain()


def test_a_relation_that_becomes_skewed_is_projected_and_derived_anew() -> None:
    distinct = [(i, 10_000 + i) for i in range(3_000)]
    with engine_of(PROJECTED) as late, engine_of(PROJECTED) as whole:
        commit(late, distinct)
        assert "@1" not in late.explain()
        skewed = np.concatenate([star(60_000), np.array([(20_000, 7)])])
        both = np.concatenate([skewed, np.array(distinct)])
        commit(late, skewed)
        commit(late, [(5, 5)])
        commit(whole, np.concatenate([both, np.array([(5, 5)])]))
        assert "@1" in late.explain() and "@1" in whole.explain()
        assert rows(late, "p") == rows(whole, "p")
        assert {name: late.rows(name) for name in late.program.relations} == {"e": 63_002, "p": len(rows(whole, "p"))}
        commit(late, skewed, -1)
        commit(whole, skewed, -1)
        assert rows(late, "p") == rows(whole, "p")


def test_what_was_derived_by_a_plan_is_given_back_when_another_one_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, not when cycles of objects are looked for."""
    text = ".decl f(x: number, y: number)\n.decl g(x: number, y: number, z: number)\n.input f, g\n"
    text += ".decl a(x: number, z: number)\n.output a\na(x, z) :- g(x, y, z), f(z, _).\n"
    monkeypatch.setattr(maintained, "MIN_REBUILD_ROWS", 1 << 40)
    random = np.random.default_rng(1)
    given = [("f", 30_000, (15_000, 2)), ("g", 3_000, (3_000, 3)), ("f", 400, (25_000, 2))]
    gc.disable()
    try:
        with engine_of(text) as engine:
            for name, most, shape in given:
                columns = tuple(np.ascontiguousarray(column) for column in random.integers(0, most, shape).T)
                engine.commit({name: insertions(columns, shape[0], engine.round + 1)})
            assert "planned anew" in engine.explain()
        assert engine.memory.used == 0
    finally:
        gc.enable()


def test_no_room_for_another_plan_leaves_the_one_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, SOME)

        def fail(*_: object) -> None:
            raise dlog.DlogError([])

        monkeypatch.setattr(replanning, "derive_new", fail)
        commit(engine, star(SPOKES))
        assert "planned anew" not in engine.explain()
        assert rows(engine, "t") == {(1, 2, 3), (2, 3, 1), (3, 1, 2)}
        monkeypatch.undo()
        commit(engine, star(SPOKES), -1)
        assert engine.rows("e") == len(SOME) and rows(engine, "t") == {(1, 2, 3), (2, 3, 1), (3, 1, 2)}


def test_an_interrupted_plan_leaves_the_round_before(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, SOME)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(replanning, "derive_new", interrupt)
        with pytest.raises(KeyboardInterrupt):
            commit(engine, star(SPOKES))
        assert engine.round == 1 and engine.rows("e") == len(SOME)
        monkeypatch.undo()
        commit(engine, star(SPOKES))
        assert engine.rows("e") == SPOKES + len(SOME) and "planned anew in round 2" in engine.explain()


def test_strata_that_can_be_planned_in_one_way_only_are_not_looked_at() -> None:
    closure = EDGES + ".decl p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
    with engine_of(closure) as engine, engine_of(TRIANGLES) as other:
        for one in (engine, other):
            commit(one, [(1, 2)])
        assert engine._watched.due == replanning.NEVER > other._watched.due


def test_rows_that_figures_were_taken_from_are_not_kept() -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, star(SPOKES))
        assert engine._flow is not None
        assert not any(hasattr(figures, "_statistics") for figures in engine._flow.recorded_statistics.values())


@pytest.mark.parametrize(
    ("rows", "left"), [(999, False), (1000 * VALID_FACTOR - 1, False), (1000 * VALID_FACTOR, True), (125, True)]
)
def test_a_plan_holds_for_a_range_of_figures(rows: float, left: bool) -> None:
    figures = RecordingStatistics(_Sized(1000))
    figures.rows("e")
    figures.close()
    assert (figures.out_of_range(_Sized(int(rows))) is not None) == left
    assert (figures.out_of_range(_Sized(int(rows), (int(rows), int(rows)))) is not None) == left


def test_bounds_of_rows_hold_whatever_changes_wait() -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, star(SPOKES))
        assert engine._flow is not None
        gone = star(SPOKES)
        given = {"e": Updates((gone[:, 0], gone[:, 1]), np.full(len(gone), -1), np.full(len(gone), 2, np.int64))}
        now = DataflowStatistics(given, frozenset(), engine._flow.collections)
        low, high = now.row_bounds("e")
        assert low <= (now.rows("e") or 0) <= high
        assert now.row_bounds("absent") == (0, 0)


def test_small_figures_do_not_matter() -> None:
    figures = RecordingStatistics(_Sized(0))
    figures.rows("e")
    figures.close()
    assert figures.out_of_range(_Sized(int(MIN_STATISTIC * VALID_FACTOR) - 1), figures.countable()) is None


def test_rules_added_to_a_session_that_began_small_are_planned_for_what_is_there() -> None:
    with dlog.session(EDGES, {"e": [(1, 2)]}, threads=1) as session:
        session.insert("e", star(SPOKES))
        session.commit()
        session.add_rules(TRIANGLES.removeprefix(EDGES))
        assert "extend" in session.explain()


def test_a_state_goes_on_with_a_plan_for_its_rows(tmp_path) -> None:
    with dlog.session(TRIANGLES, {"e": [(1, 2), (2, 3), (3, 1)]}, state=tmp_path / "s", threads=1) as session:
        session.insert("e", star(SPOKES))
        session.commit()
    with dlog.session(None, state=tmp_path / "s", threads=1) as session:
        session.insert("e", (5, 5))
        session.commit()
        assert set(session["t"]) == {(1, 2, 3), (2, 3, 1), (3, 1, 2), (5, 5, 5)}
        assert "extend" in session.explain()


class _Sized(DataflowStatistics):
    """Every relation has so many rows, which is known at once to lie between two numbers."""

    def __init__(self, rows: int, bounds: tuple[int, int] = (0, 1 << 40)) -> None:
        self._rows, self._bounds = rows, bounds

    def rows(self, relation: str) -> int:
        return self._rows

    def row_bounds(self, relation: str) -> tuple[int, int]:
        return self._bounds

    def distinct(self, relation: str, columns: tuple[int, ...]) -> None:
        return None


def test_derived_relations_are_unknown_while_more_rows_wait_than_there_are() -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, [(1, 2), (2, 3), (3, 1)])
        assert engine._flow is not None
        few, many = star(2), star(20)
        for waiting, known in ((few, 3), (many, None)):
            marks = np.ones(len(waiting), np.int64), np.full(len(waiting), 2, np.int64)
            given = {"e": Updates((waiting[:, 0], waiting[:, 1]), *marks)}
            figures = DataflowStatistics(given, frozenset(), engine._flow.collections)
            assert (figures.rows("e"), figures.rows("t")) == (3 + len(waiting), known)


def test_a_small_commit_counts_values_for_one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def noted(what: str, count: Any) -> Any:
        return lambda *args: counted.append(what) or count(*args)

    monkeypatch.setattr(replanning, "WORK_PER_PATH", 1)
    monkeypatch.setattr(replanning, "WORK_PER_STATISTICS", 0)
    with engine_of(TRIANGLES) as engine:
        commit(engine, [(k, k * 7 % 5000) for k in range(5000)])
        for count in (distinct_values, second_moment):
            monkeypatch.setattr(planner_statistics, count.__name__, noted(count.__name__, count))
        found = []
        for number in range(40):
            counted.clear()
            commit(engine, [(10_000 + number, 1)])
            found.append(len(counted))
        assert max(found) == 1


def test_a_small_commit_plans_one_body(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = [0]
    enter = RoundsPaths.enter

    def noted(self: RoundsPaths, *args: Any, **options: Any) -> Any:
        entered[-1] += 1
        return enter(self, *args, **options)

    rules = "".join(f"t(x, y, z) :- e(x, y), e(y, z), e(z, x), x > {n}.\n" for n in range(4))
    with engine_of(EDGES + ".decl t(x: number, y: number, z: number)\n" + rules) as engine, engine_of(TRIANGLES) as other:
        commit(engine, SOME)
        monkeypatch.setattr(RoundsPaths, "enter", noted)
        edges = star(SPOKES)[np.random.default_rng(1).permutation(SPOKES)]
        for begin in range(0, SPOKES, 4):
            entered.append(0)
            commit(engine, edges[begin : begin + 4])
        assert max(entered[10:]) == 1 < sum(entered[10:])
        assert "planned anew" in engine.explain() and "extend" in engine.explain()
        commit(other, np.concatenate([edges, SOME]))
        assert rows(engine, "t") == {row for row in rows(other, "t") if row[0] > 0}


def test_rows_of_a_large_commit_are_planned_for_though_a_plan_is_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_of(TRIANGLES) as engine:
        commit(engine, [(k, k + 1) for k in range(200)])
        engine._watched.due = 0
        figures = replanning.StatisticChange("rows", "e", (), 1, 1)
        monkeypatch.setattr(PlanWatch, "out_of_range", lambda *_: dict.fromkeys(engine._flow.scopes, figures))
        commit(engine, [(1, 5)])
        assert engine._watched._replanning is not None
        assert "planned anew" not in engine.explain()
        monkeypatch.undo()
        commit(engine, star(SPOKES))
        assert engine._watched._replanning is None
        assert "e had 200 rows, now 2,201" in engine.explain()


def test_values_within_their_range_are_counted_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(replanning, "WORK_PER_PATH", 1)
    monkeypatch.setattr(replanning, "WORK_PER_STATISTICS", 100)
    with engine_of(TRIANGLES) as engine:
        commit(engine, SOME)
        distinct = planner_statistics.distinct_values
        monkeypatch.setattr(
            planner_statistics, "distinct_values", lambda *args: counted.append(engine.round) or distinct(*args)
        )
        for number in range(4000):
            commit(engine, [(number % 7, 1)], -1 if number // 7 % 2 else 1)
        rounds = sorted(set(counted))
        gaps = [after - before for before, after in pairwise(rounds)]
        assert len(rounds) > 8 and max(gaps[-4:]) > 4 * gaps[0]


def test_pairs_are_sampled_evenly_however_many_places_are_free() -> None:
    with engine_of(DEGREES) as engine:
        edges = np.stack([np.arange(60_000) % 3000, np.arange(60_000)], 1)
        commit(engine, edges)
        for kept, before in ((60_000, None), (30_000, 60_000), (12_000, 30_000)):
            if before is not None:
                commit(engine, edges[kept:before], -1)
            assert engine._flow is not None
            held = engine._flow.collections["e"]
            first, second = held.some_pairs(8192)
            assert held.struct[L.collection.pairs] != 0 and len(first) == len(second) == 8192
            assert (first == second % 3000).all() and kept - 100 < second.max() < kept
            assert 2500 < len(np.unique(first)) <= 3000
        assert len(held.some_pairs(None)[0]) == kept


@pytest.mark.parametrize("threads", [1, 2])
def test_an_input_whose_keys_are_implied_goes_and_comes_again(threads: int) -> None:
    """Its rows are a base whose key column takes no memory; the next ones are the rows of another one."""
    text = ".decl e(x: number, y: number)\n.input e\n.decl p(x: number)\n.output p\np(x) :- e(x, _).\n"
    engine = Maintained(compile_source(Source(text)), threads=threads)
    x = np.arange(6000)
    given = np.stack([x, x * 7 % 6000])

    def commit(diff: int) -> None:
        columns = given[0].copy(), given[1].copy()
        engine.commit({"e": Updates(columns, np.full(6000, diff), np.full(6000, engine.round + 1))})

    commit(1)
    more = compile_source(Source(text + ".decl q(x: number)\n.output q\nq(y) :- e(_, y).\n"))
    engine = Maintained(more, threads=threads, old=engine)
    engine.commit({})
    for _ in range(3):
        commit(-1)
        assert (engine.rows("p"), engine.rows("q")) == (0, 0)
        commit(1)
        assert (engine.rows("p"), engine.rows("q")) == (6000, 6000)
    engine.close()
    assert engine.memory.used == 0
