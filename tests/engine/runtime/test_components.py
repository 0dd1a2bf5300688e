"""Values that travel between neighbours, both ways: by connected components, as the naive evaluator has it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.nodes import Connection
from dlog.engine.plan.static.build import build_scope
from dlog.engine.runtime.static import components
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import compile_program
from tests.engine.kernels.workbench import EXAMPLES
from tests.engine.plan.test_shapes import Sizes
from tests.engine.runtime.runs import executor_of, ran, rows_of, variant
from tests.examples import examples
from tests.naive import evaluate

DECLS = """
.decl edge(x: number, y: number, w: number)
.decl other(x: number, y: number)
.decl node(x: number)
.decl known(m: number, x: number)
.decl first(x: number, v: {kind})
.decl p(x: number, v: {kind})
"""
ASKED = {
    "at nodes": "node(x), ",
    "at starts of edges": "edge(x, _, _), ",
    "at known nodes": "node(x), known(_, x), ",
}
STEPS = {
    "one relation": "; p(y, c), edge(x, y, _) ; p(y, c), edge(y, x, _)",
    "two relations": "; p(y, c), edge(x, y, _) ; p(y, c), edge(y, x, _) ; p(y, c), other(x, y) ; p(y, c), other(y, x)",
}
KEYS = st.integers(-3, 9)
FACTS = st.fixed_dictionaries(
    {
        "edge": st.lists(st.tuples(KEYS, KEYS, st.integers(0, 2)), max_size=14),
        "other": st.lists(st.tuples(KEYS, KEYS), max_size=5),
        "node": st.lists(st.tuples(KEYS), max_size=12),
        "known": st.lists(st.tuples(st.integers(0, 1), KEYS), max_size=14),
        "first": st.lists(st.tuples(KEYS, st.integers(0, 40)), max_size=6),
    }
)


def text_of(asked: str, steps: str, op: str = "min", kind: str = "number") -> str:
    """p takes values from `first` and from its neighbours."""
    return DECLS.format(kind=kind) + f"p(x, v) :- {ASKED[asked]}v = {op} c : {{ first(x, c) {STEPS[steps]} }}.\n"


def connection_of(text: str) -> Connection | None:
    program = compile_program(text)
    (stratum,) = (s for s in program.strata if s.relations == ("p",))
    return build_scope(stratum, program, Sizes()).connection


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("steps", STEPS)
def test_the_plan_says_what_is_connected(asked: str, steps: str) -> None:
    edges = (("edge", 0, 1),) if steps == "one relation" else (("edge", 0, 1), ("other", 0, 1))
    where = {"at starts of edges": (("edge", 0),), "at nodes": (("node", 0),), "at known nodes": (("known", 1), ("node", 0))}
    assert connection_of(text_of(asked, steps)) == Connection("p", edges, where[asked])


@pytest.mark.parametrize(
    "steps",
    [
        "; p(y, c), edge(x, y, _)",
        "; p(y, b), edge(x, y, _), c = b + 1 ; p(y, b), edge(y, x, _), c = b + 1",
        "; p(y, c), edge(x, y, _) ; p(y, c), edge(y, x, _), x > 2",
        "; p(y, c), edge(x, y, _) ; p(y, c), edge(y, x, _), known(1, x)",
        "; p(y, c), edge(x, y, 1) ; p(y, c), edge(y, x, 1)",
        "; p(y, c), edge(x, y, w), w < 2 ; p(y, c), edge(y, x, w), w < 2",
        "; p(y, c), edge(x, y, _), node(y) ; p(y, c), edge(y, x, _), node(y)",
        "; p(y, c), edge(x, y, _), p(x, _) ; p(y, c), edge(y, x, _), p(x, _)",
        "; p(y, c), edge(x, y, _) ; p(y, c), other(y, x)",
    ],
)
def test_what_does_more_than_hand_values_on_keeps_its_loop(steps: str) -> None:
    assert connection_of(DECLS.format(kind="number") + f"p(x, v) :- node(x), v = min c : {{ first(x, c) {steps} }}.\n") is None


@examples(2 * EXAMPLES)
@given(st.sampled_from(sorted(ASKED)), st.sampled_from(sorted(STEPS)), st.sampled_from(["min", "max"]), FACTS, st.booleans())
def test_components_are_what_the_naive_evaluator_finds(
    asked: str, steps: str, op: str, facts: dict[str, list[tuple[int, ...]]], hashed: bool
) -> None:
    text = text_of(asked, steps, op)
    with variant(hashed=hashed):
        found = ran(text, facts)["p"]
    wanted = evaluate(parse(Source(text)), facts)["p"]
    assert found == sorted(wanted)


@pytest.mark.parametrize("kind", ["unsigned", "float"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_values_of_every_kind_are_compared_as_such(kind: str, op: str) -> None:
    values: list[Any] = [2**63 + 5, 7] if kind == "unsigned" else [-2.5, 1.5]
    facts: dict[str, list[tuple[Any, ...]]] = {
        "edge": [(1, 2, 0), (2, 3, 0), (3, 2, 0)],
        "first": [(1, values[0]), (3, values[1])],
    }
    best = min(values) if op == "min" else max(values)
    assert ran(text_of("at starts of edges", "one relation", op, kind), facts)["p"] == [(x, best) for x in (1, 2, 3)]


def test_rows_that_were_there_before_the_rules_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "ROWS_PER_LOOK", 2)
    text = text_of("at nodes", "one relation")
    facts = {"edge": [(1, 2, 0), (2, 3, 0), (4, 3, 0), (5, 4, 0)], "node": [(1,), (2,), (3,), (4,)], "p": [(5, 1), (1, 9)]}
    assert ran(text, facts)["p"] == [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]


def test_the_account_is_even_afterwards() -> None:
    executor = executor_of(text_of("at nodes", "one relation"), {"edge": [(1, 2, 0)], "node": [(1,), (2,)], "first": [(1, 3)]})
    executor.run()
    before = executor.memory.used
    executor._has_begun = False  # all rows are there already, and these rules take them twice
    executor.run()
    assert rows_of(executor, "p") == [(1, 3), (2, 3)]
    assert executor.memory.used == before


def test_a_limit_of_size_keeps_the_loop() -> None:
    text = text_of("at starts of edges", "one relation") + ".limitsize p(n=2)\n"
    assert len(ran(text, {"edge": [(i, i + 1, 0) for i in range(50)], "first": [(0, 1)]})["p"]) < 51
