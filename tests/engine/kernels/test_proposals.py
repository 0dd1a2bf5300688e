"""Extensions by short groups of values: what a sieve leaves out, and cyclic joins over rounds against those of sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.steps import proposals
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.engine.kernels.workbench import EXAMPLES, MAX, MIN
from tests.examples import examples

Pair = tuple[int, int]
Edges = set[Pair]
VALUES = st.one_of(st.integers(0, 300), st.sampled_from([-(2**31), 2**31 - 1, -1]))
WIDE = st.one_of(VALUES, st.sampled_from([MIN, MAX, 2**31]))


def sieved(group: list[int], proposed: list[int]) -> list[int] | None:
    """What of the proposed values passes the sieve of a group; None where that is too long to be one."""
    pool = np.array([0, *group, 0], np.int32)
    slab = np.array([1, len(group), len(group) + 1], np.int32)
    collection, column, index = Struct(L.relation.size), Struct(L.column.size), Struct(L.index.size)
    collection.point(L.relation.columns, column)
    index[L.index.collection], index[L.index.pool], index[L.index.values] = collection.address, int(pool.ctypes.data), 1
    bits = np.full(proposals.WORDS, -1, np.int64)
    target = np.array([-7, *proposed], np.int64)
    proposer = words([index.address, 0, 0, 1])
    if not proposals.fill_sieve(proposer.address, int(slab.ctypes.data), len(proposed), int(bits.ctypes.data)):
        return None
    kept = proposals.pass_sieve(int(target.ctypes.data), 1, len(target), int(bits.ctypes.data))
    assert target[0] == -7
    return [int(value) for value in target[1 : 1 + kept]]


@pytest.mark.slow
@examples(3 * EXAMPLES)
@given(group=st.lists(VALUES, unique=True, max_size=proposals.SIEVED + 2), proposed=st.lists(WIDE, max_size=40))
def test_a_sieve_leaves_out_only_what_the_group_does_not_have(group: list[int], proposed: list[int]) -> None:
    passed = sieved(group, proposed)
    assert (passed is not None) == (len(group) <= min(proposals.SIEVED, len(proposed) * proposals.WORTH))
    if passed is not None:
        assert [value for value in passed if value in group] == [value for value in proposed if value in group]
        remaining = iter(proposed)
        assert all(value in remaining for value in passed), "what passes is proposed, in its order"
        assert group or not passed


def test_a_sieve_of_few_values_lets_few_others_pass() -> None:
    """A sieve that keeps nothing out would be right, too."""
    passed = sieved(list(range(1000, 1010)), list(range(100)))
    assert passed is not None and len(passed) <= 20


# ------------------------------------------------------------------------------------------------------------ whole joins


def triangles(edges: Edges) -> set[tuple[int, ...]]:
    after = successors(edges)
    return {(x, y, z) for x, y in edges for z in after.get(y, ()) if z in after[x]}


def squares(edges: Edges) -> set[tuple[int, ...]]:
    after = successors(edges)
    pairs = {(x, z, y) for x, y in edges for z in after.get(y, ())}
    back: dict[Pair, set[int]] = {}
    for x, z, y in pairs:
        back.setdefault((x, z), set()).add(y)
    return {(x, y, z, w) for x, z, y in pairs for w in back.get((z, x), ())}


def cornered(edges: Edges) -> set[tuple[int, ...]]:
    """Reached from 0 by edges that are the long side of a triangle."""
    after = successors(edges)
    found, front = {(0,)}, [0]
    while front:
        x = front.pop()
        for z in after.get(x, ()):
            if (z,) not in found and any(z in after.get(y, ()) for y in after[x]):
                found.add((z,))
                front.append(z)
    return found


def successors(edges: Edges) -> dict[int, set[int]]:
    after: dict[int, set[int]] = {}
    for x, y in edges:
        after.setdefault(x, set()).add(y)
    return after


PROGRAMS: dict[str, tuple[str, Callable[[Edges], set[tuple[int, ...]]]]] = {
    "triangles": ("r(x, y, z) :- e(x, y), e(y, z), e(x, z).", triangles),
    "squares": ("r(x, y, z, w) :- e(x, y), e(y, z), e(z, w), e(w, x).", squares),
    "recursion": ("r(0). r(z) :- r(x), e(x, y), e(y, z), e(x, z).", cornered),
}
ARITY = {"triangles": 3, "squares": 4, "recursion": 1}


def engine_of(program: str) -> Maintained:
    columns = ", ".join(f"c{c}: number" for c in range(ARITY[program]))
    text = f".decl e(x: number, y: number)\n.input e\n.decl r({columns})\n.output r\n{PROGRAMS[program][0]}\n"
    return Maintained(compile_source(Source(text, program)))


def committed(engine: Maintained, rounds: list[list[tuple[Pair, int]]]) -> None:
    listed = [(*pair, diff, number) for number, round in enumerate(rounds, engine.round + 1) for pair, diff in round]
    if listed:
        x, y, diffs, numbers = (np.array(column, np.int64) for column in zip(*listed, strict=True))
        engine.commit({"e": Updates((x, y), diffs, numbers)})


def rows_of(engine: Maintained) -> set[tuple[int, ...]]:
    return set(zip(*(column.tolist() for column in engine.table("r").columns), strict=True))


@pytest.mark.slow
@examples(max(EXAMPLES // 3, 2))
@given(seed=st.integers(0, 2**16), program=st.sampled_from(sorted(PROGRAMS)), told=st.data())
def test_cyclic_joins_equal_joins_of_sets_after_every_round(seed: int, program: str, told: st.DataObject) -> None:
    random = np.random.default_rng(seed)
    nodes = 60 if program == "squares" else 45
    edges: Edges = set(map(tuple, random.integers(0, nodes, (1500, 2)).tolist()))
    engine, twin = engine_of(program), PROGRAMS[program][1]
    committed(engine, [[(edge, 1) for edge in sorted(edges)]])
    known = rows_of(engine)
    assert known == twin(edges)
    value = st.one_of(st.integers(0, nodes), st.integers(0, nodes), st.sampled_from([-1, 10**7, 2**31, MIN]))
    change = st.tuples(st.one_of(st.sampled_from(sorted(edges)), st.tuples(value, value)), st.sampled_from([1, -1]))
    for rounds in told.draw(st.lists(st.lists(st.lists(change, max_size=6), max_size=4), max_size=3)):
        before = engine.round
        once = [list(dict(round).items()) for round in rounds]
        committed(engine, once)
        changes = engine.changes("r") if engine.round > before else None
        for number, round in enumerate(once, before + 1):
            for edge, diff in round:
                (edges.add if diff > 0 else edges.discard)(edge)
            if changes is not None and number <= engine.round:
                known = followed(known, changes, number)
                assert known == twin(edges)
        assert rows_of(engine) == twin(edges)
    engine.close()


def followed(rows: set[tuple[int, ...]], changes: Updates, round: int) -> set[tuple[int, ...]]:
    """Rows after the changes of a round, each of which must be one."""
    rows = set(rows)
    chosen = changes.rounds == round
    for *row, diff in zip(*(c[chosen].tolist() for c in changes.columns), changes.diffs[chosen].tolist(), strict=True):
        assert (tuple(row) in rows) == (diff < 0)
        (rows.add if diff > 0 else rows.discard)(tuple(row))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(("program", "holding"), [("triangles", True), ("recursion", True), ("squares", False)])
def test_indexes_that_only_propose_hold_values(program: str, holding: bool) -> None:
    """A join that is not closed at once (of a square) needs rows."""
    engine = engine_of(program)
    committed(engine, [[((x, y), 1) for x in range(40) for y in range(40)]])
    assert engine._flow is not None
    held = [index.struct[L.index.values] for index in engine._flow.collections["e"].indexes.values()]
    assert any(held) == holding
    engine.close()
