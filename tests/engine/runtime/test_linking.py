"""Code that paths of one form share is the code that each of them is lowered to by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.engine.kernels import layout as L
from dlog.engine.runtime.lowering import lower_rounds
from dlog.engine.runtime.lowering.lower_rounds import RoundCode, RoundLowering
from dlog.engine.runtime.lowering.lowered import LoweredPath
from dlog.engine.runtime.lowering.stratum_code import StratumCode
from tests.bench.shapes import SHAPES

POINTERS = {L.path.code, L.path.gates}
KINDS = """
.decl e(x: number, y: number)   .decl f(x: number, y: number)   .decl w(x: number, c: number)
e(1, 2). e(2, 3). e(3, 1). f(2, 3). f(1, 1). w(1, 5). w(2, 7).
.decl t0(x: number, y: number, z: number)   t0(x, y, z) :- e(x, y), e(y, z), e(z, x).
.decl t1(x: number, y: number, z: number)   t1(x, y, z) :- f(x, y), f(y, z), f(z, x).
.decl a0(x: number)   a0(x) :- e(x, 2), !f(x, x).
.decl a1(x: number)   a1(x) :- f(x, 3), !e(x, x).
.decl c0(x: number, n: number)   c0(x, n) :- e(x, _), n = count : { f(x, _) }.
.decl c1(x: number, n: number)   c1(x, n) :- f(x, _), n = count : { e(x, _) }.
.decl s0(x: number, n: number)   s0(x, n) :- e(x, _), n = sum c : { w(x, c) }.
.decl s1(x: number, n: number)   s1(x, n) :- f(x, _), n = sum c : { w(x, c) }.
.decl d0(x: number, c: number)   d0(x, c) :- w(x, _), c = min m : { w(x, m) ; d0(y, b), e(y, x), m = b + 1 }.
.decl d1(x: number, c: number)   d1(x, c) :- w(x, _), c = min m : { w(x, m) ; d1(y, b), f(y, x), m = b + 1 }.
.decl k0(x: symbol)   k0(to_string(x)) :- e(x, y), y > 1.
.decl k1(x: symbol)   k1(to_string(x)) :- f(x, y), y > 2.
"""


def _content(path: LoweredPath) -> tuple[object, ...]:
    """A path's fields and code but for where they are."""
    count = path.struct[L.path.gate_count]
    gates = (path.struct[L.path.gates] - path.address) // 8
    fields = [path.struct[field] for field in range(L.path.size) if field not in POINTERS]
    return fields, path.struct.words[gates : gates + count].tolist(), [level.words.tolist() for level in path.code]


@pytest.fixture
def whole() -> list[LoweredPath]:
    """The paths of strata that were linked at once."""
    return []


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, whole: list[LoweredPath]) -> list[bool]:
    """Whether each path that was lowered was linked with the code of another one; every one is compared with its own."""
    found: list[bool] = []
    lowered = RoundCode.lowered

    def both(self: RoundCode, path: Any, storage: Any) -> LoweredPath:
        before = len(made)
        result = lowered(self, path, storage)
        found.append(len(made) == before)
        if found[-1]:
            assert _content(result) == _content(RoundLowering(path, storage, self.tables).lower())
        return result

    linked = StratumCode.linked

    def together(self: StratumCode, named: Any, path: Any, storage: Any, tables: Any) -> list[LoweredPath]:
        result = linked(self, named, path, storage, tables)
        for each in result:
            found.append(True)
            whole.append(each)
            assert _content(each) == _content(RoundLowering(each.path, storage, tables).lower())
        return result

    monkeypatch.setattr(StratumCode, "linked", together)
    made: list[object] = []
    lower = RoundLowering.lower
    monkeypatch.setattr(RoundLowering, "lower", lambda self: made.append(self) or lower(self))
    monkeypatch.setattr(lower_rounds.RoundCode, "lowered", both)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_rules_of_one_form_share_their_code(shape: str, compared: list[bool]) -> None:
    with dlog.session(SHAPES[shape](60)) as session:
        session.commit()
    assert shape == "facts" or sum(compared) >= len(compared) // 2


STRATA = """
.decl e(x: number, y: number)   .decl w(x: number, c: number)   .decl s(x: symbol)
e(1, 2). e(2, 3). e(3, 1). w(1, 5). w(2, 7). s("a"). s("b").
"""
STRATUM = """
.decl j{i}(x: number, y: number)   j{i}(x, z) :- e(x, y), e(y, z), x < {i} + 1.
.decl t{i}(x: number, y: number, z: number)   t{i}(x, y, z) :- j{i}(x, y), j{i}(y, z), j{i}(z, x), x != {i}.
.decl p{i}(x: number, y: number)   p{i}(x, y) :- j{i}(x, y).   p{i}(x, z) :- p{i}(x, y), e(y, z), z != {i}.
.decl n{i}(x: number)   n{i}(x) :- e(x, _), !p{i}(x, {i}).
.decl k{i}(x: number, n: number)   k{i}(x, n) :- e(x, _), n = count : {{ p{i}(x, _) }}.
.decl m{i}(x: number, n: number)   m{i}(x, n) :- e(x, _), n = sum c : {{ w(x, c), c > {i} }}, 1 < {i}.
.decl d{i}(x: number, c: number)   d{i}(x, c) :- w(x, _), c = min m : {{ w(x, m) ; d{i}(y, b), e(y, x), m = b + {i} }}.
.decl c{i}(x: symbol)   c{i}(x) :- s(x), x != "b{i}".
"""


def test_strata_with_one_plan_are_linked_as_their_paths_are_lowered(compared: list[bool], whole: list[LoweredPath]) -> None:
    with dlog.session(STRATA + "".join(STRATUM.format(i=i) for i in range(1, 6))) as session:
        session.commit()
        assert sorted(session["n4"]) == [(1,), (2,), (3,)] and sorted(session["c1"]) == [("a",), ("b",)]
        assert {path.path.rule for path in whole} >= {0, 1}
    assert len(whole) > 30


def test_a_dataflow_that_begins_anew_is_linked_with_the_code_of_the_one_before(compared: list[bool]) -> None:
    text = (STRATA + STRATUM.format(i=1)).replace("e(1, 2). e(2, 3). e(3, 1). w(1, 5). w(2, 7).", "")
    given = {"e": [(2 * k, 2 * k + 1) for k in range(2000)], "w": [(k, k % 9) for k in range(2000)]}
    with dlog.session(text) as late, dlog.session(text) as whole:
        _commit(late, {name: rows[:1] for name, rows in given.items()})
        begun = len(compared)
        _commit(late, given)
        linked = compared[begun:]
        _commit(whole, given)
        assert sum(linked) > len(linked) // 2
        for name in ("t1", "p1", "k1", "m1", "d1"):
            assert sorted(late[name]) == sorted(whole[name])


def _commit(session: dlog.Session, given: dict[str, list[tuple[int, int]]]) -> None:
    for name, rows in given.items():
        session.insert(name, rows)
    session.commit()


def test_paths_of_all_kinds_are_linked_as_they_are_lowered(compared: list[bool]) -> None:
    with dlog.session(KINDS) as session:
        assert sorted(session["a0"]) == [] and sorted(session["a1"]) == [(2,)]
        assert sorted(session["d0"]) == [(1, 5), (2, 6)] and sorted(session["d1"]) == [(1, 5), (2, 7)]
    assert sum(compared) >= 8


def test_all_programs_are_linked_as_they_are_lowered(compared: list[bool]) -> None:
    for path in sorted(Path(__file__).parents[3].glob("programs/*/program.dl")):
        with dlog.session(path, {}) as session:
            session.commit()
    assert any(compared) and not all(compared)
