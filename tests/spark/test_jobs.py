"""Runs without a barrier stage: a job for each superstep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.dlog.command import dlog as command
from tests.engines import run_on_spark
from tests.examples import examples
from tests.strategies import Case, programs
from tests.test_oracle import by_naive_evaluation, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
DISTANCES = """.decl e(x: symbol, y: symbol)
.input e
.decl node(x: symbol)
.decl d(x: symbol, n: number)
.output d
.decl far()
.output far
node("a"). node(y) :- e(_, y).
d(x, n) :- node(x), n = min c : { x = "a", c = 0 ; d(y, b), e(y, x), c = b + 1 }.
far() :- d(_, 7).
"""
EDGES = [(f"{'a' if i == 0 else i}", f"{i + 1}") for i in range(6)] + [("2", "6")]


@examples(4, phases=[Phase.generate])  # each example takes many seconds: shrink in engine/cluster
@given(case=programs())
def test_jobs_equal_naive_evaluation_on_random_programs(spark: SparkSession, case: Case) -> None:
    expected = by_naive_evaluation(case)
    assert written(run_on_spark(spark, case.text, case.facts, 3, strategy="jobs"), case) == expected


def test_tasks_may_be_more_than_run_at_once(spark: SparkSession) -> None:
    edges = spark.createDataFrame(EDGES, "x string, y string")
    result = dlog.run(DISTANCES, {"e": edges}, engine="spark", spark=spark, workers=3, strategy="jobs")
    expected = dlog.run(DISTANCES, {"e": EDGES})
    assert sorted(result["d"]) == sorted(expected["d"])
    assert (result["d"].rows, result["far"].rows, result["d"].df.where("n > 3").count()) == (7, 0, 2)
    assert result.steps > 2
    result.release()


def test_rows_are_sent_once(spark: SparkSession) -> None:
    """What each superstep sends is only what the one before added: 25 nodes of a path, and the start."""
    text = ".decl e(x: number, y: number)\n.input e\n.decl r(x: number)\n.output r\nr(0).\nr(y) :- r(x), e(x, y).\n"
    edges = spark.createDataFrame([(i, i + 1) for i in range(25)], "x long, y long")
    result = dlog.run(text, {"e": edges}, engine="spark", spark=spark, workers=2, strategy="jobs")
    assert (result["r"].rows, result.rows_sent, result.steps) == (26, 25, 26)
    result.release()


def test_the_ui_says_stratum_and_superstep(spark: SparkSession) -> None:
    edges = spark.createDataFrame(EDGES, "x string, y string")
    dlog.run(DISTANCES, {"e": edges}, engine="spark", spark=spark, workers=2, strategy="jobs").release()
    jobs: Any = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    said = {jobs.apply(i).description().toString() for i in range(jobs.size())}
    expected = {"node node@all, superstep 1", "d, superstep 1", "d, superstep 2", "d@first, superstep 1"}
    assert {f"Some(dlog: {text})" for text in expected} <= said


def test_mistakes_are_those_of_a_run(spark: SparkSession, tmp_path: Path) -> None:
    divided = ".decl a(x: number)\n.input a\n.decl b(x: number)\nb(6 / x) :- a(x).\n"
    with pytest.raises(DlogError, match="division by zero"):
        dlog.run(divided, {"a": [(0,), (2,)]}, engine="spark", spark=spark, strategy="jobs")
    spark.createDataFrame([(None,)], "x int").write.parquet(str(tmp_path / "nulls"))
    program = divided.replace(".input a", f'.input a(IO=spark, path="{tmp_path}/nulls", format=parquet)')
    with pytest.raises(DlogError, match="null") as caught:
        dlog.run(program, engine="spark", spark=spark, strategy="jobs")
    assert caught.value.diagnostics[0].labels
    with pytest.raises(DlogError, match="strategy='loop' is not one of auto, barrier, jobs"):
        dlog.run(divided, {"a": []}, engine="spark", spark=spark, strategy="loop")


def test_what_tasks_find_by_themselves_takes_no_superstep(spark: SparkSession) -> None:
    text = ".decl n(x: number)\n.decl m(x: number, y: number)\nn(1).\nm(x, x) :- n(x).\nm(x, y + 1) :- m(x, y), y < 400.\n"
    result = dlog.run(text, engine="spark", spark=spark, workers=2, strategy="jobs")
    assert (result["m"].rows, result.steps, result.rows_sent) == (400, 1, 0)
    result.release()


def test_the_plan_shows_supersteps(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(DISTANCES, encoding="utf-8")
    done = command("plan", program, "--engine", "spark", "--strategy", "jobs", cwd=tmp_path)
    assert done.code == 0
    assert "step 2, and again from what is new until nothing is sent" in done.out
