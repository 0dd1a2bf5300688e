"""Commits of many rounds of one input: the short batches that they go through as are not to be told from one batch."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest

from dlog.engine.runtime.incremental.batches.cutting import BATCH_ROUNDS, MIN_FUSED_ROUNDS
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.engines import maintained
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from tests.engine.runtime.maintaining import EDGES, Fusing, commit, engine_of, rows

R = EDGES + ".decl r(x: number, y: number)\n.output r\n"
PROGRAMS = {
    "distances": R + "r(x, d) :- e(_, x), d = min c : { e(0, x), c = 1 ; r(y, b), e(y, x), c = b + 1 }.\n",
    "closure": R + "r(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z).\n",
    "two steps": R + "r(x, z) :- e(x, y), e(y, z).\n",
    "counted": R + "r(x, n) :- e(x, _), n = count : { e(x, y), e(y, _) }.\n",
    "counts counted": R
    + ".decl n(x: number, k: number)\nn(x, k) :- e(x, _), k = count : { e(x, y), e(y, _) }.\n"
    + "r(k, m) :- n(_, k), m = count : { n(_, k) }.\n",
}
DIVIDED = R + "r(x, z / (z - 13)) :- e(x, y), e(y, z).\n"
ROUNDS = 5 * MIN_FUSED_ROUNDS + 3


class Whole(Maintained):
    """Never goes through short batches."""

    def _rounds_to_fuse(self, flow: Dataflow, given: Mapping[str, Updates]) -> int:
        return 0


def story(seed: object, rounds: int, most: int = 2) -> list[tuple[int, int, int, int]]:
    """Edges of few nodes that come and go, some of them in one round, and rounds without changes."""
    random = Random(repr(seed))
    edges = sorted((r, random.choice((-1, 1)), *random.choices(range(8), k=2)) for r in range(rounds) for _ in range(most))
    return [change for change in edges if change[0] % 7]


def told(engine: Maintained, relation: str) -> list[tuple[int, ...]]:
    changes = engine.changes(relation)
    listed = (changes.rounds.tolist(), changes.diffs.tolist(), *(c.tolist() for c in changes.columns))
    return sorted(zip(*listed, strict=True))


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("program", PROGRAMS)
def test_short_batches_have_the_same_rows_and_changes(program: str, most: int) -> None:
    text = PROGRAMS[program]
    with engine_of(text) as engine, engine_of(text, Whole) as whole, engine_of(text, Fusing) as fusing:
        for part in range(3):
            changes = story((program, part), ROUNDS if part else 1, most) or [(0, 1, 0, 1)]
            for each in (engine, whole, fusing):
                commit(each, *changes)
            assert (engine._last.fused is not None) == (part > 0) == (fusing._last.fused is not None)
            for relation in ("e", "r"):
                assert rows(engine, relation) == rows(whole, relation) == rows(fusing, relation)
                assert told(engine, relation) == told(whole, relation) == told(fusing, relation)


def test_what_changes_several_times_in_one_round_has_changed_once() -> None:
    with engine_of(PROGRAMS["closure"], Fusing) as engine:
        commit(engine, (0, 1, 1, 2))
        commit(engine, (0, 1, 2, 3), (1, -1, 1, 2), (1, 1, 1, 2), (1, 1, 5, 6), (1, -1, 5, 6), (4, -1, 2, 3), (9, 1, 3, 4))
        assert told(engine, "e") == [(2, 1, 2, 3), (6, -1, 2, 3), (11, 1, 3, 4)]
        assert told(engine, "r") == [(2, 1, 1, 3), (2, 1, 2, 3), (6, -1, 1, 3), (6, -1, 2, 3), (11, 1, 3, 4)]
        commit(engine, (0, -1, 3, 4))
        assert told(engine, "e") == [(12, -1, 3, 4)] and rows(engine, "r") == {(1, 2)}


@pytest.mark.parametrize("late", [0, 1, 2, 70, ROUNDS - 1])
@pytest.mark.parametrize("make", [Maintained, Fusing])
def test_a_mistake_in_a_later_batch_takes_all_rounds_back(make: type[Maintained], late: int) -> None:
    with engine_of(DIVIDED, make) as engine:
        commit(engine, (0, 1, 1, 2), (0, 1, 2, 3))
        before = {relation: rows(engine, relation) for relation in ("e", "r")}
        changes = [(r, 1 if r % 2 else -1, 2, 3) for r in range(ROUNDS)] + [(r, 1, 4, r + 20) for r in range(ROUNDS)]
        with pytest.raises(DlogError) as raised:
            commit(engine, *sorted([*changes, (late, 1, 2, 13)]))
        assert raised.value.diagnostics[0].code == "division-by-zero"
        assert engine.round == 1
        assert {relation: rows(engine, relation) for relation in before} == before
        commit(engine, *changes[:ROUNDS])
        assert engine.round == 1 + ROUNDS and len(told(engine, "e")) == ROUNDS


def test_a_signal_between_two_stretches_takes_both_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with engine_of(PROGRAMS["closure"]) as engine:
        commit(engine, (0, 1, 0, 1), (0, 1, 1, 2))
        monkeypatch.setattr(maintained, "check", check)
        with pytest.raises(KeyboardInterrupt):
            commit(engine, *((r, 1 if r % 2 else -1, 1, 2) for r in range(3 * BATCH_ROUNDS)))
        assert len(calls) == 3 and engine.round == 1
        assert rows(engine, "r") == {(0, 1), (1, 2), (0, 2)}


def test_a_stretch_that_meets_the_limit_of_memory_is_taken_back() -> None:
    with engine_of(PROGRAMS["closure"], Fusing, memory=1 << 21) as engine:
        commit(engine, (0, 1, 0, 1), (0, 1, 1, 2))
        with pytest.raises(DlogError) as raised:
            commit(engine, *((r, 1, r, r + 1) for r in range(2000)))
        assert raised.value.diagnostics[0].code == "out-of-memory"
        assert rows(engine, "r") == {(0, 1), (1, 2), (0, 2)}
        commit(engine, *((r, 1, r, r + 1) for r in range(4)))
        assert len(rows(engine, "r")) == 10


def test_changes_of_a_stretch_are_forgotten_with_the_next_commit() -> None:
    with engine_of(PROGRAMS["distances"]) as engine:
        commit(engine, (0, 1, 0, 1))
        commit(engine, *((r, 1, r, r + 1) for r in range(ROUNDS)))
        assert engine._last.fused is not None
        commit(engine, (0, -1, 0, 1))
        assert engine._last.fused is None
        assert told(engine, "e") == [(ROUNDS + 2, -1, 0, 1)]
        assert np.array_equal(np.unique(engine.changes("r").diffs), [-1])
