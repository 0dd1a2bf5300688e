"""One vertex with a tenth of the edges: several workers give what one gives, and none has much more than the others."""

from __future__ import annotations

import random

import pytest

from dlog.api import run_text
from dlog.engine.cluster.executor import ShardExecutor
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.plan.exchange.explain import explain_distributed
from dlog.pipeline import compile_program
from tests.shards import evaluated, in_worker_group, run_sharded

HUB = 0
PROGRAM = """.decl e(x: number, y: number)
.decl two(x: number, z: number)
two(x, z) :- e(x, y), e(y, z).
.decl triangle(x: number, y: number, z: number)
triangle(x, y, z) :- e(x, y), e(y, z), e(z, x).
.decl degree(x: number, n: number)
degree(x, n) :- e(x, _), n = count : { e(x, _) }.
.decl far(x: number, n: number)
far(0, 0).
far(y, n + 1) :- far(x, n), e(x, y), n < 4.
"""
TYPED = """.type Pair = [a: symbol, b: number]
.decl e(x: symbol, y: symbol)
.decl p(q: Pair, y: symbol)
p([x, 1], y) :- e(x, y).
.decl two(q: Pair, z: symbol)
two(q, z) :- p(q, y), e(y, z), !e(z, "v0").
.decl back(z: symbol, q: Pair)
back(z, q) :- two(q, z), e(z, _), !e("v0", z).
"""


def skewed(edges: int, nodes: int) -> list[tuple[int, int]]:
    """A tenth of the edges leave the hub, a tenth arrive there."""
    chance = random.Random(1)
    tenth = edges // 10
    leaving = [(HUB, y) for y in chance.sample(range(1, nodes), tenth)]
    arriving = [(x, HUB) for x in chance.sample(range(1, nodes), tenth)]
    others = [(chance.randrange(1, nodes), chance.randrange(1, nodes)) for _ in range(edges - 2 * tenth)]
    return sorted({*leaving, *arriving, *others})


@pytest.mark.slow
@pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])
@pytest.mark.parametrize("split_rows", [10**6, 0], ids=["together", "spread"])
def test_a_hub_changes_no_answer(everywhere: int, split_rows: int) -> None:
    facts = {"e": skewed(5_000, 2_000)}
    found, expected = run_sharded(PROGRAM, facts, 16, everywhere, split_rows), run_text(PROGRAM, facts)
    assert {name: len(rows) for name, rows in found.items()} == {name: len(rows) for name, rows in expected.items()}
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])
def test_a_hub_with_a_name_changes_no_answer(everywhere: int) -> None:
    facts = {"e": [(f"v{x}", f"v{y}") for x, y in skewed(2_000, 900)]}
    assert run_sharded(TYPED, facts, 16, everywhere, 0) == run_text(TYPED, facts)


def shares(split_rows: int, everywhere: int) -> tuple[dict[str, float], str]:
    """For some relations the rows of the worker with the most as a multiple of the mean, among 16; and the plan."""
    facts, program = {"e": skewed(20_000, 6_000)}, compile_program(PROGRAM)

    def work(worker_group: WorkerGroup) -> ShardExecutor:
        return evaluated(program, facts, worker_group, everywhere, split_rows)[0]

    workers = in_worker_group(16, work)
    rows = {name: [worker.rows(name) for worker in workers] for name in ("e", "two")}
    plans = (explain_distributed(plan, program, workers[0].homes) for plan in workers[0].plans)
    return {name: max(held) * len(held) / sum(held) for name, held in rows.items()}, "\n".join(plans)


@pytest.mark.slow
@pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])
def test_no_worker_has_much_more_than_the_others(everywhere: int) -> None:
    found, plan = shares(0, everywhere)
    assert found["e"] < 1.3 and found["two"] < 1.3
    assert "e by 0, rows of heavy values (1) over all" in plan and "two by 0, rows of heavy values (1) over all" in plan
    assert ("heavy ones to all" in plan) == (everywhere == 0)


@pytest.mark.slow
def test_a_small_relation_stays_where_it_is() -> None:
    found, plan = shares(10**6, 0)
    assert found["e"] > 2
    assert "heavy" not in plan
