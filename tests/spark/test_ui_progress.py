"""What a run on Spark shows of itself: in Spark's UI, on the terminal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import dlog
from dlog.engine.runtime.static.executor import Progress
from dlog.engine.spark.job import description
from dlog.engine.spark.ui_progress import Timeline
from dlog.pipeline import compile_program
from dlog.spark import _Together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_the_ui_names_the_strata_of_a_run(spark: SparkSession) -> None:
    text = ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\np(x, y) :- e(x, y).\n"
    text += "p(x, z) :- p(x, y), e(y, z).\n.decl n(c: number)\nn(c) :- c = count : { p(_, _) }.\n.output n\n"
    dlog.run(text, {"e": spark.range(3).selectExpr("id x", "id + 1 y")}, engine="spark", workers=2)
    assert "Some(dlog: 2 strata on 2 workers: 1. p (recursive), 2. n)" in descriptions(spark)


def descriptions(spark: SparkSession) -> list[str]:
    jobs: Any = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return [jobs.apply(i).description().toString() for i in range(jobs.size())]


@pytest.mark.spark
def test_the_ui_shows_rules_and_iterations_while_a_run_goes_on(spark: SparkSession) -> None:
    """A walk along 50,000 edges, in iterations of one row."""
    text = ".decl hop(x: number, y: number)\n.input hop\n.decl far(x: number)\n.output far\n"
    text += "far(0).\nfar(y) :- far(x), hop(x, y).\n"
    edges = spark.range(50_000).selectExpr("id x", "id + 1 y")
    assert dlog.run(text, {"hop": edges}, engine="spark", workers=2)["far"].rows == 50_001
    said = [line for line in descriptions(spark) if "stratum 1 of 1, far: iteration " in line]
    assert said and all(line.endswith(" rows so far: far(y) :- far(x), hop(x, y).)") for line in said)


def test_entries_tell_of_all_workers_and_not_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_program(".decl a(x: number)\n.decl b(x: number)\na(1).\na(x) :- a(x).\nb(x) :- a(x).\n")
    spark: Any = SimpleNamespace(sparkContext=None)
    timeline, shown = Timeline(spark, program), []
    monkeypatch.setattr(timeline, "_show", shown.append)
    timeline(0, Progress(1, 2, ("a",), 3, 10, 100, 0))
    timeline(1, Progress(1, 2, ("a",), 4, 10, 50, 0))
    assert timeline.entry(1) == "dlog: stratum 1 of 2, a: iteration 4, 150 rows so far: a(x) :- a(x)."
    timeline(1, Progress(2, 2, ("b",), 0, 10, 50, 0))
    timeline(0, Progress(1, 2, ("a",), 9, 10, 100, 0))
    assert [line.split(":")[1] for line in shown] == [" stratum 1 of 2, a", " stratum 2 of 2, b"]


def test_long_descriptions_are_cut() -> None:
    rules = "".join(f".decl relation_{i}(x: number)\nrelation_{i}(x) :- given(x).\n" for i in range(100))
    text = description(compile_program(".decl given(x: number)\n" + rules), 2)
    assert text.startswith("dlog: 100 strata on 2 workers: 1. relation_")
    assert (len(text), text[-4:]) == (400, " ...")


def test_progress_is_that_of_all_workers() -> None:
    shown: list[Progress] = []
    together = _Together(shown.append)
    together(0, Progress(1, 2, ("a",), 3, 10, 100, 1_000))
    together(1, Progress(1, 2, ("a",), 4, 5, 50, 500))
    together(1, Progress(2, 2, ("b",), 1, 7, 8, 600))
    assert shown[1:] == [Progress(1, 2, ("a",), 4, 15, 150, 1_500), Progress(2, 2, ("b",), 1, 7, 8, 1_600)]
