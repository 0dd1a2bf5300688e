"""Ranges, wherever they may stand, on all engines; expected values are written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS
from dlog.pipeline import explain_plan, explain_rounds
from tests.conftest import RunText
from tests.engines import EVERY_ENGINE
from tests.examples import examples
from tests.naive_generators import values_of

TOP, BOTTOM, MOST = 2**63 - 1, -(2**63), 2**64 - 1


def in_a_session(text: str, facts: dict[str, list[tuple[Any, ...]]]) -> dict[str, set[tuple[Any, ...]]]:
    """What a session has once the facts have come, gone and come again, one after the other."""
    with dlog.session(text) as session:
        for again in (False, True):
            for name, rows in facts.items():
                for row in rows:
                    session.insert(name, [row])
                    session.commit()
            if not again:
                for name, rows in facts.items():
                    session.remove(name, rows)
                    session.commit()
        return {name: set(session[name]) for name in session}


@pytest.mark.parametrize(
    ("kind", "call", "expected"),
    [
        ("number", "range(0, 3)", [0, 1, 2]),
        ("number", "range(3, 0)", [3, 2, 1]),
        ("number", "range(3, 3)", []),
        ("number", "range(0, 7, 3)", [0, 3, 6]),
        ("number", "range(0, 7, -3)", []),
        ("number", "range(7, 0, -3)", [7, 4, 1]),
        ("number", "range(5, 1, 0)", [5]),
        ("number", "range(5, 5, 0)", []),
        ("number", f"range({TOP - 1}, {TOP}, 5)", [TOP - 1]),
        ("number", f"range({BOTTOM + 1}, {BOTTOM}, -5)", [BOTTOM + 1]),
        ("number", f"range({BOTTOM}, {TOP}, {TOP})", [BOTTOM, -1, TOP - 1]),
        ("unsigned", "range(9, 7)", [9, 8]),
        ("unsigned", "range(7, 9)", [7, 8]),
        ("unsigned", "range(9, 7, 1)", []),
        ("unsigned", f"range({2**63 - 1}, {2**63 + 1})", [2**63 - 1, 2**63]),
        ("unsigned", f"range(1, {MOST}, {2**63})", [1, 2**63 + 1]),
        ("unsigned", f"range({MOST - 1}, {MOST}, 7)", [MOST - 1]),
        ("float", "range(1.25, 3.25)", [1.25, 2.25]),
        ("float", "range(1.5, -0.2, -0.5)", [1.5, 1.0, 0.5, 0.0]),
        ("float", "range(2.5, 0.5)", [2.5, 1.5]),
        ("float", "range(1.0, 2.0, 0.0)", [1.0]),
        ("float", "range(100000000000000000.0, 1000000000000000000.0, 1.0)", [1e17]),
        ("float", "range(1.0, 3.0, 0.0 / 0.0)", [1.0]),
        ("float", "range(0.0 / 0.0, 3.0)", []),
    ],
)
@EVERY_ENGINE
def test_a_range_has_these_values(run_text: RunText, kind: str, call: str, expected: list[Any]) -> None:
    text = f".decl r(x: {kind})\nr(x) :- x = {call}.\n"
    assert run_text(text, {})["r"] == {(x,) for x in expected}


@examples(200)
@given(
    kind=st.sampled_from([Kind.NUMBER, Kind.UNSIGNED]),
    args=st.lists(st.integers(-6, 6) | st.sampled_from([TOP, TOP - 2, BOTTOM, BOTTOM + 2]), min_size=2, max_size=3),
)
def test_pythons_rows_are_those_of_the_oracle(kind: Kind, args: list[int]) -> None:
    args = [a % 2**64 if kind is Kind.UNSIGNED else a for a in args]
    step = args[2] if len(args) > 2 else 1
    if step and abs((args[1] - args[0]) // step) > 100:
        return
    rows = [row for (row,) in TABLE_FUNCTIONS["range"].rows(kind, *args)]
    assert rows == list(values_of("range", args, kind.value))
    assert len(set(rows)) == len(rows)


NUMBERS = ".decl n(x: number)\n.decl p(x: number, y: number)\n.decl r(x: number)\n"
PLACES = [
    ("r(range(0, 3)).", {0, 1, 2}),
    ("r(range(0, x) * 10) :- n(x).", {0, 10, 20, 30}),
    ("r(x) :- n(x), n(range(1, 3)).", {2, 4}),
    ("r(x) :- p(x, range(0, 3)).", {2}),
    ("r(y) :- n(x), y = range(x, 0).", {4, 3, 2, 1}),
    ("r(range(range(0, 2), range(2, 4))).", {0, 1, 2}),
    ("r(x) :- n(x), x = range(0, 3).", {2}),
    ("r(x) :- n(x), x < range(0, 4).", {2}),
    ("r(x) :- n(x), x != range(2, 3).", {4}),
    ("r(x) :- n(x), !n(range(2, 4)).", {2, 4}),
    ("r(x) :- n(x), !n(range(2, 3)).", set()),
    ("r(x) :- n(x), _ = range(2, x).", {4}),
    ("r(c) :- c = count : { i = range(0, 10), i % 2 = 0 }.", {5}),
    ("r(c) :- n(x), c = count : { _y = range(x, 10) }.", {8, 6}),
    ("r(s) :- n(x), s = sum range(0, x) : { n(2) }.", {1, 6}),
    ("r(s) :- n(x), s = max range(0, y) : { p(x, y) }.", {0, 2}),
    ("r(c) :- c = count : { p(_, _), i = range(0, 2) }.", {2}),
    ("r(x) :- (x = range(0, 2) ; x = range(5, 7)).", {0, 1, 5, 6}),
    ("r(y) :- y = range(z, z + 2), z = x * 4, n(x).", {8, 9, 16, 17}),
    ("r(0). r(y) :- r(x), x < 5, y = range(x, x + 3).", {0, 1, 2, 3, 4, 5, 6}),
    (".decl q(x: number) inline\nq(x) :- n(x), x > 1.\nr(x) :- q(x), q(range(0, 4)), n(x).", {2, 4}),
    (".decl q(x: number) inline\nq(range(0, x)) :- n(x).\nr(x) :- q(x), x > 1.", {2, 3}),
]


@pytest.mark.parametrize(("rules", "expected"), PLACES, ids=[rules for rules, _ in PLACES])
@EVERY_ENGINE
def test_a_range_may_stand_there(run_text: RunText, rules: str, expected: set[int]) -> None:
    facts = {"n": [(2,), (4,)], "p": [(2, 1), (4, 3)]}
    for threads in (1, 3):
        assert run_text(NUMBERS + rules, facts, threads=threads)["r"] == {(x,) for x in expected}


@pytest.mark.parametrize(("rules", "expected"), PLACES, ids=[rules for rules, _ in PLACES])
def test_a_session_maintains_ranges(tmp_path: Path, rules: str, expected: set[int]) -> None:
    facts: dict[str, list[tuple[Any, ...]]] = {"n": [(2,), (4,)], "p": [(2, 1), (4, 3)]}
    text = NUMBERS + rules
    assert in_a_session(text, facts)["r"] == {(x,) for x in expected}
    program = tmp_path / "program.dl"
    program.write_text(text)
    assert "computed anew" not in explain_rounds(program, (), ())


def test_more_values_than_a_block_has_come_in_order_of_need() -> None:
    text = ".decl n(x: number)\n.decl r(x: number, y: number)\nr(x, y) :- n(x), y = range(0, x, 1)."
    facts = {"n": [(x,) for x in (0, 1, 511, 512, 513, 2000)]}
    expected = {(x, y) for (x,) in facts["n"] for y in range(x)}
    assert set(dlog.run(text, facts=facts)["r"]) == expected
    assert in_a_session(text, facts)["r"] == expected


def test_the_plan_shows_the_generator_after_what_binds_its_arguments(tmp_path: Path) -> None:
    program = tmp_path / "program.dl"
    program.write_text(".decl n(x: number)\n.input n\n.decl r(x: number)\n.output r\nr(y) :- y = range(0, x), n(x).\n")
    plan = explain_plan(program, (), (), None)
    assert plan.index("scan n(x)") < plan.index("generate y = range(0, x)") < plan.index("insert r(y)")


def test_a_proof_names_the_range() -> None:
    text = ".decl n(x: number)\n.decl r(x: number)\nr(y) :- n(x), y = range(0, x)."
    with dlog.session(text) as session:
        session.insert("n", [(3,)])
        session.commit()
        assert "n(3)" in str(session.why("r", (2,)))
        assert "range(0, 3) does not give 7" in str(session.why_not("r", (7,)))
