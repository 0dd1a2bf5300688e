"""Where rows leave a path, and which homes relations have, is a matter of cost: whatever is chosen, the answer is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.cluster import executor
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.ir.nodes import Path
from dlog.engine.ir.rules import Program
from dlog.engine.plan.exchange import cutter, distribute
from dlog.engine.plan.exchange.distribute import _Cut, _early_exchanges, _stays
from dlog.engine.plan.exchange.places import Place, allowed
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import compile_program
from tests.engine.cluster.test_oracle import executed
from tests.examples import examples
from tests.naive import evaluate
from tests.shards import Facts, evaluated, in_worker_group, run_sharded
from tests.strategies import Case, programs
from tests.test_oracle import by_naive_evaluation

INPUTS = ("a", "b", "c")
RECURSIONS = {
    "same generation": "r(x, y) :- a(x, y). r(x, y) :- b(x, p), r(p, q), c(y, q).",
    "points-to": "r(x, o) :- a(x, o). r(x, o) :- b(x, y), r(y, o). "
    "r(x, o) :- c(x, y), r(y, p), r(p, o). r(p, o) :- a(x, y), r(x, p), r(y, o).",
    "mutual": "r(x, y) :- a(x, y). r(x, y) :- r(x, z), s(z, y). "
    "s(x, y) :- b(z, x), r(z, w), c(y, w). s(y, x) :- s(x, z), r(y, z).",
    "three ways": "r(x, y) :- a(x, y). r(x, w) :- r(x, y), b(y, z), r(z, u), r(u, w).",
    "turned": "r(x, y) :- a(x, y). r(y, x) :- r(x, z), b(z, y). r(z, z) :- r(x, y), c(y, z), r(z, x).",
    "least": "r(x, d) :- a(x, _), d = min e : { a(x, e) ; r(y, e), b(y, x) ; r(y, e), c(x, y), r(x, _) }.",
}
PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20, unique=True)


def program(rules: str) -> str:
    declared = "".join(f".decl {name}(x: number, y: number)\n" for name in (*INPUTS, "r", "s"))
    return declared + rules


@contextmanager
def any_plan(seed: int) -> Iterator[None]:
    """Turns, homes and rows to ask about are drawn by lot; no turn that cannot be."""
    lots = Random(seed)

    def by_lot(cut: _Cut, path: Path) -> cutter.EarlyExchange | None:
        found = [None, *_stays(path, cut.partition_context), *_early_exchanges(path, cut.partition_context)]
        return lots.choice([early_exchange for early_exchange in found if cut._trial_cut(path, early_exchange).traffic < inf])

    def anywhere(program: Program) -> dict[str, Place]:
        fixed = Random(seed)  # all workers say the same
        return {name: fixed.choice(allowed(program, name)) for name in program.relations}

    with ExitStack() as stack:
        stack.enter_context(patch.object(_Cut, "_cheapest", by_lot))
        stack.enter_context(patch.object(executor, "choose_homes", anywhere))
        stack.enter_context(patch.object(cutter, "SIFTED_SHARE", lots.choice([0.0, 0.7, 2.0])))
        stack.enter_context(patch.object(distribute, "WORTHWHILE_COST_SHARE", lots.choice([0.0, 0.8, inf])))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", RECURSIONS)
@examples(40)
@given(a=PAIRS, b=PAIRS, c=PAIRS, everywhere=st.sampled_from([0, 10**6]), seed=st.integers(0, 10**6))
def test_any_turns_and_homes_give_the_same_answer(
    name: str, a: list[tuple[int, int]], b: list[tuple[int, int]], c: list[tuple[int, int]], everywhere: int, seed: int
) -> None:
    text, facts = program(RECURSIONS[name]), {"a": a, "b": b, "c": c}
    with any_plan(seed):
        found = run_sharded(text, facts, 3, everywhere)
    assert found == evaluate(parse(Source(text)), facts)


@pytest.mark.parametrize("everywhere", [10**6, 4])
@examples(80)
@given(case=programs(), seed=st.integers(0, 10**6))
def test_any_turns_and_homes_give_the_same_answer_in_random_programs(everywhere: int, case: Case, seed: int) -> None:
    with any_plan(seed):
        found = executed(case, 3, everywhere)
    assert found == by_naive_evaluation(case)


def sent(text: str, facts: Facts, workers: int = 2) -> tuple[int, int, dict[str, Place]]:
    """Rows that went from one worker to another, rows of `r`, and the homes."""

    def work(worker_group: WorkerGroup) -> tuple[int, int, dict[str, Place]]:
        made, _ = evaluated(compile_program(text), facts, worker_group)
        return made.row_exchange.rows_sent, made.rows("r"), made.homes

    rows, found, homes = zip(*in_worker_group(workers, work), strict=True)
    assert all(where == homes[0] for where in homes)
    return sum(rows), sum(found), homes[0]


def test_rows_that_become_many_go_to_all_before_they_do() -> None:
    """A tree of three children each: of 3**2 times as many rows in the next generation none is sent."""
    tree = [(child, (child - 1) // 3) for child in range(1, 364)]
    text = program("r(x, y) :- a(x, p), a(y, p). r(x, y) :- a(x, p), r(p, q), a(y, q).")
    rows, found, _ = sent(text, {"a": tree})
    assert found == sum(9**level for level in range(1, 6))
    assert rows < found / 4


def test_a_relation_that_grows_gets_the_home_that_its_rules_pass_on() -> None:
    rng = np.random.default_rng(5)
    ways = {name: sorted({(int(x), int(y)) for x, y in rng.integers(0, 60, (80, 2))}) for name in INPUTS}
    ways["c"] = ways["c"][:12]
    text = program("r(x, o) :- a(x, o). r(x, o) :- b(x, y), r(y, o). r(x, o) :- c(x, y), r(y, p), r(p, o).")
    rows, found, homes = sent(text, ways)
    assert homes["r"] == 1
    assert rows < found
    # Rows that are given are at home before anything is planned.
    assert sent(text, {**ways, "r": [(1, 1)]})[2]["r"] == 0
