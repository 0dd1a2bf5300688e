"""Several workers against the naive evaluator: random programs, every way of placing rows."""

from __future__ import annotations

import pytest
from hypothesis import given

from dlog.engine.cluster.executor import SPLIT_ROWS
from tests.examples import examples
from tests.shards import run_sharded
from tests.strategies import Case, graph_programs, programs, random_programs
from tests.test_oracle import Answer, by_naive_evaluation, written


def executed(case: Case, workers: int, everywhere: int, split_rows: int = SPLIT_ROWS) -> Answer:
    return written(run_sharded(case.text, case.facts, workers, everywhere, split_rows), case)


@pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])
@examples(100)
@given(case=random_programs())
def test_workers_equal_naive_evaluation_on_random_programs(everywhere: int, case: Case) -> None:
    assert executed(case, 3, everywhere) == by_naive_evaluation(case)


@pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])
@examples(60)
@given(case=graph_programs())
def test_workers_equal_naive_evaluation_on_graphs(everywhere: int, case: Case) -> None:
    assert executed(case, 2, everywhere) == by_naive_evaluation(case)


@pytest.mark.parametrize("everywhere", [4, 0])
@examples(100)
@given(case=programs())
def test_spreading_what_two_rows_have_in_common_changes_nothing(everywhere: int, case: Case) -> None:
    assert executed(case, 8, everywhere, 0) == by_naive_evaluation(case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("everywhere", [4, 0])
@examples(1500)
@given(case=programs())
def test_spreading_changes_nothing_in_thousands_of_programs(everywhere: int, case: Case) -> None:
    assert executed(case, 8, everywhere, 0) == by_naive_evaluation(case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("everywhere", [10**6, 4, 0])
@examples(1500)
@given(case=programs())
def test_workers_equal_naive_evaluation_on_thousands_of_programs(everywhere: int, case: Case) -> None:
    assert executed(case, 3, everywhere) == by_naive_evaluation(case)
