"""Blocks of changes that are rows of a base which go: what a set has, whether they are there, repeat, or have come before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels.incremental.inputs.row_blocks import STEP
from dlog.engine.runtime.incremental.batches import runner, strata_runner
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.examples import examples

PROGRAMS = {
    "joined": ".decl e(x: number, y: number)\n.input e\n.decl t(x: number, z: number)\nt(x, z) :- e(x, y), e(y, z).\n",
    "copied": ".decl e(x: number, y: number)\n.input e\n.decl t(x: number, z: number)\nt(y, x) :- e(x, y), x != 3.\n",
}
Row = tuple[int, int]
Change = tuple[Row, int]


def _derived(name: str, there: set[Row]) -> set[Row]:
    if name == "joined":
        return {(x, z) for x, y in there for other, z in there if other == y}
    return {(y, x) for x, y in there if x != 3}


def _updates(rounds: list[list[Change]], first: int) -> Updates:
    changes = [(row, diff, first + number) for number, each in enumerate(rounds) for row, diff in each]
    rows, diffs, at = zip(*changes, strict=True)
    columns = np.array(rows, np.int64).T
    return Updates((columns[0].copy(), columns[1].copy()), np.array(diffs, np.int64), np.array(at, np.int64))


def _table(engine: Maintained, name: str) -> set[Row]:
    found = list(zip(*(c.tolist() for c in engine.table(name).columns), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


def _drawn(random: np.random.Generator, loaded: list[Row], blocks: int) -> list[Change]:
    """Blocks of loaded rows that go, more than there are rows where they repeat, and here and there one that comes."""
    changes: list[Change] = []
    for _ in range(blocks):
        gone = [loaded[i] for i in random.integers(0, len(loaded), STEP)]
        changes += [(row, -1) for row in gone]
        if random.random() < 0.4:
            changes += [(gone[i], 1) for i in random.integers(0, STEP, random.integers(1, STEP))]
        if random.random() < 0.4:
            changes += [((int(x), int(y)), 1 if random.random() < 0.7 else -1) for x, y in random.integers(0, 60, (20, 2))]
    return changes


@examples(60)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(1, 2), st.integers(1, 2), st.integers(0, 2**32))
def test_rows_that_go_are_those_of_a_set(name: str, threads: int, rounds: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strata_runner, "SHARED_ROWS", 4)
        patch.setattr(runner, "BULK_ROWS", 4)
        _check(name, threads, rounds, np.random.default_rng(seed))


def _check(name: str, threads: int, rounds: int, random: np.random.Generator) -> None:
    engine = Maintained(compile_source(Source(PROGRAMS[name])), threads=threads)
    loaded = sorted({(int(x), int(y)) for x, y in random.integers(0, 40, (600, 2))})
    there = set(loaded)
    engine.commit({"e": _updates([[(row, 1) for row in loaded]], 1)})
    for _ in range(4):
        given = [_drawn(random, loaded, int(random.integers(1, 4))) for _ in range(rounds)]
        engine.commit({"e": _updates(given, engine.round + 1)})
        for changes in given:
            for row, diff in changes:
                (there.add if diff > 0 else there.discard)(row)
        assert _table(engine, "e") == there
        assert _table(engine, "t") == _derived(name, there)
    engine.close()
    assert engine.memory.used == 0
