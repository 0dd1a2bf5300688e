"""`ord`: what several workers would answer differently is refused, or left to one of them."""

from __future__ import annotations

import pytest

from dlog.engine.cluster.sharded_engine import assignment
from dlog.engine.plan.exchange.decomposable import decomposable_plan
from dlog.engine.plan.exchange.numbering import counts, refuse_counting, refuse_for_workers
from dlog.grammar.diagnostics import DlogError, render
from dlog.pipeline import compile_program

DECLARED = (
    ".type Pair = [left: symbol, right: Pair]\n.decl s(x: symbol)\n.decl n(x: number)\n.decl p(x: Pair)\n.decl out(x: number)\n"
)
ASKING = [
    "out(ord(x)) :- s(x).",
    "out(1) :- s(x), ord(x) > 3.",
    "out(y + 2 * ord(x)) :- s(x), n(y).",
    "out(ord(x)) :- p(x).",
    "out(t) :- t = sum ord(x) : { s(x) }.",
    "out(t) :- t = count : { s(x), ord(x) > 3 }.",
    'out(x) :- n(x), !s(to_string(ord(cat(to_string(x), "!")))).',
]


@pytest.mark.parametrize("rule", ASKING)
def test_every_place_of_ord_is_refused(rule: str) -> None:
    with pytest.raises(DlogError) as caught:
        refuse_for_workers(compile_program(DECLARED + rule))
    shown = "".join(render(d) for d in caught.value.diagnostics)
    assert "error: not supported on Spark: ord" in shown
    assert rule in shown
    assert "workers=1" in shown


def test_recursion_through_count_and_sum_is_one_workers() -> None:
    program = compile_program(DECLARED + "out(x) :- n(x), count : { n(y), !out(y) } < 3.")
    with pytest.raises(DlogError, match="recursion through `count` and `sum`"):
        refuse_for_workers(program)
    with pytest.raises(DlogError, match="recursion through `count` and `sum`"):
        refuse_counting(program)
    assert counts(program)
    assert assignment(program, 3).answers["out"].part == "alone"


def test_what_has_no_number_of_a_workers_own_is_not_refused() -> None:
    refuse_for_workers(compile_program(DECLARED + "out(ord(x)) :- n(x).\nout(strlen(x)) :- s(x)."))


@pytest.mark.parametrize("rule", [ASKING[0], "out(t) :- n(_), t = sum ord(x) : { s(x) }."])
def test_in_a_session_one_worker_answers(rule: str) -> None:
    plan = decomposable_plan(compile_program(DECLARED + ".output out\n" + rule), 3)
    assert plan.answers["out"].part == "alone"
