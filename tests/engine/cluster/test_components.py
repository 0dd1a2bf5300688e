"""Values that travel between neighbours, both ways, on several workers: each unites its own edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.cluster import components
from dlog.engine.cluster.exchange import OutgoingRows, RowExchange, Rows
from dlog.engine.cluster.executor import ShardExecutor
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import compile_program
from tests.engine.kernels.workbench import EXAMPLES
from tests.engine.runtime.test_components import ASKED, FACTS, STEPS, text_of
from tests.examples import examples
from tests.naive import evaluate
from tests.shards import evaluated, in_worker_group, run_sharded

PATHS = 3
LENGTH = 400


@examples(2 * EXAMPLES)
@given(
    st.sampled_from(sorted(ASKED)),
    st.sampled_from(sorted(STEPS)),
    st.sampled_from(["min", "max"]),
    FACTS,
    st.sampled_from([2, 3]),
)
def test_components_are_what_the_naive_evaluator_finds(
    asked: str, steps: str, op: str, facts: dict[str, list[tuple[int, ...]]], workers: int
) -> None:
    text = text_of(asked, steps, op)
    assert run_sharded(text, facts, workers)["p"] == set(evaluate(parse(Source(text)), facts)["p"])


def test_rows_that_were_there_before_the_rules_count() -> None:
    text = text_of("at nodes", "one relation")
    facts = {"edge": [(1, 2, 0), (2, 3, 0), (4, 3, 0), (5, 4, 0)], "node": [(1,), (2,), (3,), (4,)], "p": [(5, 1), (1, 9)]}
    assert run_sharded(text, facts, 2)["p"] == {(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)}


def paths() -> dict[str, list[tuple[int, ...]]]:
    """A few long paths: following values along them takes as many exchanges as vertices, or nearly."""
    ends = [(path * LENGTH + i, path * LENGTH + i + 1, 0) for path in range(PATHS) for i in range(LENGTH - 1)]
    return {"edge": ends, "first": [(path * LENGTH, path) for path in range(PATHS)]}


def steps_of(text: str) -> int:
    def work(worker_group: WorkerGroup) -> int:
        executor, _ = evaluated(compile_program(text), paths(), worker_group)
        assert executor.rows("p") > 0
        return worker_group.steps

    return max(in_worker_group(3, work))


def test_components_take_a_handful_of_exchanges_however_long_paths_are() -> None:
    text = text_of("at starts of edges", "one relation")
    assert steps_of(text) < 20
    assert steps_of(text.replace("p(y, c), edge(y, x, _)", "p(y, b), edge(y, x, _), c = b + 0")) > LENGTH / 2


def test_what_a_worker_fails_at_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    text = text_of("at nodes", "one relation") + "edge(1, 2, 3). node(1). node(2). first(1, 1)."
    executors: list[ShardExecutor] = []

    def work(worker_group: WorkerGroup) -> None:
        executor = ShardExecutor(compile_program(text), worker_group)
        executors.append(executor)
        executor.run()

    monkeypatch.setattr(components, "flattened", fail)
    with pytest.raises(ZeroDivisionError):
        in_worker_group(2, work)
    assert not [name for executor in executors for name in executor.catalog.relations if name.startswith("@")]


def test_only_components_with_keys_of_several_workers_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody is connected with stays where it is."""
    told: list[int] = []
    swap = RowExchange.swap

    def swapping(row_exchange: RowExchange, batches: Sequence[OutgoingRows]) -> tuple[dict[str, Rows], bool]:
        told.extend(c.rows.height for c in batches if c.name == components.BEST)
        return swap(row_exchange, batches)

    monkeypatch.setattr(RowExchange, "swap", swapping)
    facts = {"edge": [(x, x + 1, 0) for x in range(20)], "node": [(x,) for x in range(400)]}
    found = run_sharded(text_of("at nodes", "one relation"), facts | {"first": [(x, x) for x in range(400)]}, 2)["p"]
    assert found == {(x, 0 if x <= 20 else x) for x in range(400)}
    assert told == [1, 1]


@pytest.mark.parametrize("size", [1, 2, 9, 100])
def test_roots_are_found_however_deep_trees_are(size: int) -> None:
    deep = np.maximum(np.arange(size) - 1, 0).astype(np.int32)
    assert components.flattened(deep).tolist() == [0] * size
    alone = np.arange(size, dtype=np.int32)
    assert components.flattened(alone).tolist() == alone.tolist()
