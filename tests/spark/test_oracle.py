"""Programs on Spark against the naive evaluator: a few of those that the workers meet in `engine/cluster` without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given

from tests.engines import run_on_spark
from tests.examples import examples
from tests.strategies import Case, programs
from tests.test_oracle import by_naive_evaluation, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])
@examples(25, phases=[Phase.generate])  # each example takes a second: shrink in engine/cluster
@given(case=programs())
def test_spark_equals_naive_evaluation_on_random_programs(spark: SparkSession, everywhere: int, case: Case) -> None:
    expected = by_naive_evaluation(case)
    assert written(run_on_spark(spark, case.text, case.facts, 2, everywhere=everywhere), case) == expected
