"""Programs of many rules: what opening them takes grows with the rules, and no faster."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import pytest

import dlog
from dlog.engine.optimize import optimize
from dlog.engine.runtime.incremental.engines import choice
from dlog.engine.runtime.incremental.engines.choice import is_incremental
from dlog.engine.runtime.static.executor import Executor
from dlog.pipeline import compile_program, explain_plan, observed_relations, optimized
from tests.bench.shapes import SHAPES

RULES = 96
"""Enough that most are of a shape that came before, and that what pays from some 80 rules on is done for each number."""


def calls(work: Callable[[], object]) -> int:
    """How many functions are called: what work costs, told alike on every machine. Collections would call some, too."""
    count = 0
    gc.collect()
    gc.disable()

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def grows_like_rules(work: Callable[[str], Callable[[], object]], shape: str) -> bool:
    """Whether as many rules again take what so many rules took, or little more."""
    rules = RULES // 2 if shape == "wide" else RULES
    work(SHAPES[shape](rules))()  # imports what it needs
    small, large, larger = (calls(work(SHAPES[shape](rules * n))) for n in (1, 2, 3))
    return larger - large <= 1.15 * (large - small)


def opened(text: str) -> Callable[[], object]:
    return lambda: dlog.session(text).commit()


def ran(text: str) -> Callable[[], object]:
    program = optimized(compile_program(text))
    return lambda: Executor(program, threads=1, memory=None, on_progress=None).run()


def optimizing(text: str) -> Callable[[], object]:
    program = compile_program(text)
    return lambda: (optimize(program, observed_relations(program)), optimize(program, frozenset(program.relations)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("work", [opened, ran, optimizing])
def test_each_rule_costs_what_the_one_before_did(work: Callable[[str], Callable[[], object]], shape: str) -> None:
    assert grows_like_rules(work, shape)


@pytest.mark.slow
def test_work_that_grows_with_the_square_of_the_rules_is_told() -> None:
    assert not grows_like_rules(lambda text: lambda: [len(b) for _ in text.split("\n") for b in text.split("\n")], "copies")


@pytest.mark.slow
def test_plans_of_many_rules_are_shown_at_a_cost_that_goes_with_them(tmp_path) -> None:
    def shown(text: str) -> Callable[[], object]:
        path = tmp_path / "rules.dl"
        path.write_text(text)
        return lambda: explain_plan(path, (), (), None)

    assert grows_like_rules(shown, "strata")


def test_only_strata_that_can_stop_are_planned_to_know_that_they_can_be_maintained(monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("planned")

    monkeypatch.setattr(choice, "build_rounds_scope", refuse)
    assert is_incremental(compile_program(SHAPES["joins"](RULES)))
    assert is_incremental(compile_program(".decl a(x: number) .decl b(x: number)\nb(x / 2) :- a(x).\n"))
    for body in ("a(x), y = 1 / x", "a(_), y = sum 1 / x : { a(x) }"):
        with pytest.raises(AssertionError, match="planned"):
            is_incremental(compile_program(f".decl a(x: number) .decl b(x: number)\nb(y) :- {body}.\n"))
