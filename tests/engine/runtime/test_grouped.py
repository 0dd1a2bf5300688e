"""Results that are their groups: counts, sums and means which no path looks rows up in."""

from __future__ import annotations

from random import Random

import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from tests.engine.runtime.maintaining import COUNTS, EDGES, commit, engine_of, rows

SUMS = EDGES + ".decl n(x: number, s: number)\n.output n\nn(x, s) :- e(x, _), s = sum y : { e(x, y) }.\n"
MEANS = EDGES + ".decl n(x: number, m: float)\n.output n\nn(x, m) :- e(x, _), m = mean to_float(y) : { e(x, y) }.\n"
ASKED = COUNTS + ".decl busy(x: number)\n.output busy\nbusy(x) :- n(x, 3), e(_, x).\n"


def changes(engine: Maintained) -> list[tuple[int, ...]]:
    """The last commit's changes of `n`: round, diff and values."""
    told = engine.changes("n")
    return sorted(zip(told.rounds.tolist(), told.diffs.tolist(), *(c.tolist() for c in told.columns), strict=True))


def is_grouped(engine: Maintained) -> bool:
    assert engine._flow is not None
    return bool(engine._flow.collections["n"].struct[L.collection.grouped])


def test_a_count_tells_what_each_round_changes_and_nothing_that_one_round_takes_back() -> None:
    with engine_of(COUNTS) as engine:
        commit(engine, (0, 1, 1, 1), (0, 1, 1, 2), (0, 1, 2, 1))
        assert is_grouped(engine)
        assert rows(engine) == {(1, 2), (2, 1)}
        assert changes(engine) == [(1, 1, 1, 2), (1, 1, 2, 1)]
        commit(engine, (0, -1, 2, 1), (1, 1, 3, 3), (1, -1, 1, 1), (1, 1, 1, 9), (2, 1, 2, 7), (2, 1, 2, 8))
        assert changes(engine) == [(2, -1, 2, 1), (3, 1, 3, 1), (4, 1, 2, 2)]
        assert rows(engine) == {(1, 2), (3, 1), (2, 2)}


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        (COUNTS, {(1, 2), (2, 1), (4, 1)}, {(1, 1), (2, 1), (3, 1)}),
        (SUMS, {(1, 7), (2, -3), (4, 0)}, {(1, 2), (2, 11), (3, 1)}),
        (MEANS, {(1, 3.5), (2, -3.0), (4, 0.0)}, {(1, 2.0), (2, 11.0), (3, 1.0)}),
    ],
    ids=["count", "sum", "mean"],
)
def test_who_reads_while_a_batch_runs_sees_the_result_as_it_was(text: str, first: set, second: set) -> None:
    with engine_of(text) as engine:
        commit(engine, (0, 1, 1, 2), (0, 1, 1, 5), (0, 1, 2, -3), (0, 1, 4, 0))
        assert is_grouped(engine)
        assert engine._flow is not None
        result = engine._flow.collections["n"]
        assert result.rows(before=True) == 0
        assert rows(engine) == first
        commit(engine, (0, -1, 1, 5), (0, -1, 2, -3), (1, 1, 2, 11), (1, 1, 3, 1), (2, -1, 4, 0))
        assert rows(engine) == second
        engine._flow.running = True
        assert rows(engine) == first
        assert engine.rows("n") == len(first)
        engine._flow.running = False


def test_a_result_whose_rows_are_looked_up_keeps_them() -> None:
    with engine_of(ASKED) as engine:
        commit(engine, (0, 1, 1, 1), (0, 1, 1, 2), (0, 1, 1, 3), (0, 1, 2, 1))
        assert not is_grouped(engine)
        assert rows(engine) == {(1, 3), (2, 1)}
        assert rows(engine, "busy") == {(1,)}
        commit(engine, (0, -1, 1, 2), (0, 1, 2, 2))
        assert rows(engine) == {(1, 2), (2, 2)}
        assert rows(engine, "busy") == set()


def test_groups_that_vanish_leave_no_memory_behind() -> None:
    with engine_of(COUNTS) as engine:
        used = []
        for _ in range(6):
            commit(engine, *((0, 1, x, 0) for x in range(300)))
            commit(engine, *((0, -1, x, 0) for x in range(300)))
            assert rows(engine) == set()
            used.append(engine.memory.used)
        assert used[-1] == used[1]


TWICE = EDGES + (
    ".decl n(x: number, s: number)\n.output n\nn(x, s) :- e(x, _), e(0, x), s = sum y : { e(x, y), e(0, x) }.\n"
)
"""Contributions of two paths."""


def rounds_of(seed: int) -> list[tuple[int, int, int, int]]:
    """Rounds with few changes and rounds with more than a block of them; some take back what they did."""
    random, made, there = Random(seed), [], set()
    for number, size in enumerate([1, 2, 700, 1, 3, 600, 1, *(random.choice([1, 2, 2, 9, 40]) for _ in range(200))]):
        for _ in range(size):
            row = (random.randrange(30), random.randrange(60) - 20)
            made.append((number, -1 if row in there else 1, *row))
            there ^= {row}
    return made


def twin(made: list[tuple[int, int, int, int]], text: str) -> list[tuple[int, ...]]:
    """What each round changes of the result: round (from 1 on), diff, key and value."""
    there: set[tuple[int, int]] = set()
    before: dict[int, int] = {}
    told: list[tuple[int, ...]] = []
    for number in range(made[-1][0] + 1):
        for at, _, x, y in made:
            if at == number:
                there ^= {(x, y)}
        keys = {x for x, _ in there if text != TWICE or (0, x) in there}
        after = {x: sum(1 if text == COUNTS else v for k, v in there if k == x) for x in keys}
        told += [(number + 1, -1, x, v) for x, v in before.items() if after.get(x) != v]
        told += [(number + 1, 1, x, v) for x, v in after.items() if before.get(x) != v]
        before = after
    return sorted(told)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "paths"), [(COUNTS, 1), (SUMS, 1), (TWICE, 2)], ids=["count", "sum", "two paths"])
@pytest.mark.parametrize("begun", [False, True])
def test_rounds_of_any_size_change_what_recomputation_says(text: str, paths: int, begun: bool) -> None:
    made = rounds_of(paths)
    with engine_of(text) as engine:
        if begun:
            commit(engine, (0, 1, 1, 1))
            commit(engine, (0, -1, 1, 1))
        before = engine.round
        commit(engine, *made)
        assert is_grouped(engine)
        assert engine._flow is not None
        assert bool(engine._flow.reductions["n"].struct[L.reduction.streamed]) == (paths == 1)
        assert [(r - before, *rest) for r, *rest in changes(engine)] == twin(made, text)
