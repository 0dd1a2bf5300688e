"""Recursive scopes that only grow: when they do, and that what they leave behind is what any other batch leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.examples import examples

INPUTS = """.decl e(x: number, y: number)
.input e
.decl f(x: number, y: number)
.input f
.decl t(x: number, y: number)
"""
CLOSURE = INPUTS + "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z).\nt(x, y) :- f(x, y), t(y, x).\n"
PROGRAMS = {
    "closure": CLOSURE,
    "nonlinear": INPUTS + "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), t(y, z).\nt(x, y) :- f(x, y).\n",
    "mutual": INPUTS + ".decl u(x: number, y: number)\n.decl v(x: number)\nt(x, y) :- e(x, y).\nu(x, z) :- t(x, y), e(y, z).\n"
    "t(x, z) :- u(x, y), e(y, z), f(z, _).\nv(x) :- t(x, x).\n",
    "negation": INPUTS + "t(x, y) :- e(x, y).\nt(x, z) :- t(x, y), e(y, z), !f(x, z).\n",
    "facts": INPUTS + "t(0, 0).\nt(x, z) :- t(x, y), e(y, z).\nt(z, y) :- t(x, y), f(x, z).\n",
    "over an aggregate": INPUTS + ".decl n(x: number, c: number)\nn(x, c) :- e(x, _), c = count : { f(x, _) }.\n"
    "t(x, c) :- n(x, c).\nt(x, z) :- t(x, y), e(y, z).\n",
}
Rows = set[tuple[int, int]]


def grows(engine: Maintained) -> bool:
    """Whether the one recursive scope only grew in the last batch."""
    assert engine._flow is not None
    (loop,) = engine._flow.loops
    return bool(loop[L.scope.growing])


def commit(engine: Maintained, **changes: tuple[Rows, Rows]) -> None:
    """Removes rows and inserts others of each input."""
    engine.commit({name: updates_of(engine, *each) for name, each in changes.items()})


def updates_of(engine: Maintained, gone: Rows, come: Rows) -> Updates:
    rows = np.array([*gone, *come], np.int64).reshape(-1, 2)
    diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    return Updates(tuple(np.ascontiguousarray(rows.T)), diffs, np.full(len(diffs), engine.round + 1))


def found(engine: Maintained) -> dict[str, list[tuple[int, ...]]]:
    """The rows of each derived relation, with the iterations from which on they are there, where they have any."""
    made = {}
    for name in sorted(engine.program.relations.keys() - engine.program.inputs):
        columns = [column.tolist() for column in engine.table(name).columns]
        made[name] = sorted(zip(*columns, engine.ranks(name).tolist(), strict=True))
    return made


def engine_of(text: str, threads: int = 1) -> Maintained:
    return Maintained(compile_source(Source(text)), threads=threads)


EDGES: Rows = {(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)}
NONE: Rows = set()


def test_a_first_load_only_grows_and_changes_do_not() -> None:
    engine = engine_of(CLOSURE)
    commit(engine, e=(NONE, EDGES), f=(NONE, {(1, 0)}))
    assert grows(engine)
    commit(engine, e=(NONE, {(4, 5)}))
    assert not grows(engine)
    commit(engine, e=({(2, 0)}, NONE))
    assert not grows(engine)


def test_what_comes_after_an_input_that_gives_nothing_only_grows() -> None:
    engine = engine_of(CLOSURE)
    commit(engine, f=(NONE, {(1, 0)}))
    commit(engine, e=(NONE, EDGES))
    assert grows(engine)


def test_a_scope_that_was_emptied_grows_again() -> None:
    engine = engine_of(CLOSURE)
    commit(engine, e=(NONE, EDGES))
    commit(engine, e=(EDGES, NONE))
    assert not grows(engine)
    commit(engine, e=(NONE, EDGES))
    assert grows(engine)


def test_what_is_negated_does_not_come_while_a_scope_only_grows() -> None:
    engine = engine_of(PROGRAMS["negation"])
    commit(engine, f=(NONE, {(0, 2)}))
    commit(engine, e=(NONE, EDGES))
    assert grows(engine)
    other = engine_of(PROGRAMS["negation"])
    commit(other, e=(NONE, EDGES), f=(NONE, {(0, 2)}))
    assert not grows(other)
    assert found(engine) == found(other)


def test_rows_that_begin_with_changes_of_an_input_do_not_only_grow() -> None:
    """The input has rows, and what comes of changes of one may be taken away by those of another."""
    engine = engine_of(INPUTS + "t(x, y) :- e(x, y), f(y, x).\nt(x, z) :- t(x, y), t(y, z).\n")
    commit(engine, e=(NONE, EDGES))
    commit(engine, f=(NONE, {(9, 9)}))
    commit(engine, f=({(9, 9)}, {(1, 0), (2, 1)}))
    assert not grows(engine)
    assert [row[:2] for row in found(engine)["t"]] == [(0, 1), (0, 2), (1, 2)]


def test_lattices_do_not_only_grow() -> None:
    distances = ".decl d(x: number, n: number)\nd(0, 0).\nd(y, n + 1) :- d(x, n), e(x, y).\nd(x, n) <= d(x, m) :- m < n.\n"
    engine = engine_of(INPUTS + distances + "t(x, n) :- d(x, n).\n")
    commit(engine, e=(NONE, EDGES))
    assert not grows(engine)


rows_of = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)
story_of = st.lists(st.tuples(rows_of, rows_of), min_size=2, max_size=5)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
@examples(25)
@given(stories=story_of)
def test_after_every_round_rows_are_those_of_a_load(name: str, threads: int, stories: list[tuple[Rows, Rows]]) -> None:
    engine = engine_of(PROGRAMS[name], threads)
    before: tuple[Rows, Rows] = (NONE, NONE)
    for now in stories:
        commit(engine, e=(before[0] - now[0], now[0] - before[0]), f=(before[1] - now[1], now[1] - before[1]))
        before = now
        anew = engine_of(PROGRAMS[name])
        commit(anew, e=(NONE, now[0]), f=(NONE, now[1]))
        assert found(engine) == found(anew)
