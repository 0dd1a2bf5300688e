"""Collections as rules on Spark: the rows of the dataflow, of a run and of a session's rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import dlog
from dlog.dataflow import Dataflow
from dlog.grammar.diagnostics import DlogError
from tests.dlog.as_rules.cases import CASES, INPUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("case", CASES)
def test_rules_have_the_rows_of_a_dataflow_on_spark(spark: SparkSession, case: str) -> None:
    sets = INPUTS[case] if case in ("searches", "labels") else ()
    CASES[case](*sets).check_rounds(rounds=3, engine="spark", spark=spark)


def test_inputs_may_be_dataframes(spark: SparkSession) -> None:
    flow = Dataflow()
    edges = flow.input("edges", src=int, dst=int)
    both = edges.map("src").concat(edges.map(src="dst")).count("degree")
    facts = {"edges": spark.createDataFrame([(1, 2), (1, 2), (2, 3)], "src long, dst long")}
    for sets, once in (((), {(1, 2): 1, (2, 3): 1, (3, 1): 1}), (("edges",), {(1, 1): 1, (2, 2): 1, (3, 1): 1})):
        rules = dlog.rules(degrees=both, sets=sets)
        assert rules.counts(rules.run(facts, engine="spark", spark=spark), "degrees") == once
        with rules.session(facts, engine="spark", spark=spark) as s:
            assert s.counts("degrees") == once


def test_columns_of_dataframes_go_into_inputs_by_name_in_any_case(spark: SparkSession) -> None:
    flow = Dataflow()
    edges = flow.input(src=int, dst=int)
    captured = edges.capture()
    edges.insert(spark.createDataFrame([(1, 2)], "DST long, Src long"))
    edges.insert(spark.createDataFrame([(3, 4)], "a long, b long"))
    flow.commit()
    assert captured.counts() == {(2, 1): 1, (3, 4): 1}
    with pytest.raises(DlogError, match="`dst`, but is not in its place"):
        edges.insert(spark.createDataFrame([(1, 2)], "DST long, b long"))
