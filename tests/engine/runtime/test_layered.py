"""Strata that cannot be maintained are computed anew alone, and only where what they read changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.engine.compiler import compile_source
from dlog.engine.runtime.incremental.engines.choice import storing_engine, unmaintained
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.incremental.engines.recompute import Recompute
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source

TEXT = """.decl n(x: number)
.decl e(x: number, y: number)
.decl other(x: number)
.decl big(x: number)
.decl r(x: number)
.decl above(x: number, c: number)
.input n
.input e
.input other
.input r
big(x) :- other(x), x > 10.
r(x) :- n(x).
r(z) :- r(x), e(x, y), z = x / y.
above(x, c) :- n(x), c = count : { r(y), y > x }.
"""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[str]]:
    """The relations of the parts that were computed anew."""
    found: list[frozenset[str]] = []
    real = Recompute.commit

    def commit(engine: Recompute, *given: Any) -> int:
        found.append(frozenset(name for stratum in engine.program.strata if stratum.rules for name in stratum.relations))
        return real(engine, *given)

    monkeypatch.setattr(Recompute, "commit", commit)
    return found


@pytest.fixture
def engine() -> Iterator[Layered]:
    made = storing_engine(compile_source(Source(TEXT)))
    assert isinstance(made, Layered)
    yield made
    made.close()


def commit(engine: Layered, relation: str, rows: list[tuple[int, ...]], diff: int = 1) -> None:
    columns = tuple(np.array(column, np.int64) for column in zip(*rows, strict=True))
    count = len(rows)
    engine.commit({relation: Updates(columns, np.full(count, diff), np.full(count, engine.round + 1))})


def rows(engine: Layered, relation: str) -> set[tuple[int, ...]]:
    return set(zip(*(column.tolist() for column in engine.table(relation).columns), strict=True))


def test_only_the_stratum_that_cannot_be_maintained_is_computed_anew(engine: Layered, runs: list[frozenset[str]]) -> None:
    commit(engine, "n", [(100,), (3,)])
    assert runs == [{"r"}]
    commit(engine, "e", [(100, 7)])
    assert runs == [{"r"}, {"r"}]
    assert rows(engine, "r") == {(100,), (3,), (14,)}
    assert rows(engine, "above") == {(100, 0), (3, 2)}
    runs.clear()
    commit(engine, "other", [(11,), (2,)])
    assert runs == []
    assert list(engine.touched) == ["other", "big"]
    assert not engine.changes("r").rows
    assert (rows(engine, "big"), engine.round) == ({(11,)}, 3)


def test_a_commit_that_fails_there_is_taken_back_everywhere(engine: Layered) -> None:
    commit(engine, "n", [(100,), (3,)])
    commit(engine, "r", [(6,)])
    commit(engine, "e", [(100, 7)])
    before = {name: rows(engine, name) for name in engine.program.relations}
    with pytest.raises(dlog.DlogError):
        commit(engine, "e", [(3, 0)])
    assert engine.round == 3
    assert {name: rows(engine, name) for name in engine.program.relations} == before
    with pytest.raises(dlog.DlogError, match="no longer kept"):
        engine.changes("r")
    commit(engine, "r", [(6,)], -1)
    assert rows(engine, "r") == before["r"] - {(6,)}
    assert engine.changes("above").rows == 2


def test_a_first_commit_that_fails_leaves_nothing(engine: Layered) -> None:
    program = engine.program
    given = {"n": [(1,)], "e": [(1, 0)]}
    with pytest.raises(dlog.DlogError):
        engine.commit(
            {
                name: Updates(tuple(np.array(c) for c in zip(*found, strict=True)), np.ones(1, np.int64), np.ones(1, np.int64))
                for name, found in given.items()
            }
        )
    assert engine.round == 0
    assert all(not engine.rows(name) for name in program.relations)
    commit(engine, "n", [(1,)])
    assert rows(engine, "r") == {(1,)}


def test_which_strata_are_computed_anew_is_said_and_why(engine: Layered) -> None:
    [why] = unmaintained(engine.program).values()
    assert f"r: computed anew in each round that changes what is read\n  {why}\n" in engine.explain()
    assert "big" in engine.explain()
    with dlog.session(TEXT) as session:
        assert why in session.explain()
