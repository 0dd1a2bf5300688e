"""A session of several workers on Spark: rounds with exchanges between them, and DataFrames that go to them past the driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.conftest import ROOT
from tests.engines import NO_SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(NO_SPARK), reason=NO_SPARK)]
PROGRAM = ".decl a(x: number, s: symbol)\n.decl b(x: number)\nb(12 / x) :- a(x, _).\n"


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """What `tests/spark/two_workers.py` found."""
    command = [sys.executable, str(Path(__file__).with_name("two_workers.py"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_two_workers_maintain_a_recursion_that_is_not_local(figures: dict[str, Any]) -> None:
    assert figures["plan"] == "2 workers together, each on its share; derived rows go to their owners:"
    assert figures["first"]
    assert figures["later"] == [True, True, True]


def test_rows_of_a_dataframe_and_others_take_effect_in_the_order_they_came(figures: dict[str, Any]) -> None:
    assert figures["staged"] == {"edge": 3}
    assert figures["mixed"] == [False, True]


def test_dataframes_take_effect_in_the_order_they_came_and_stay_where_they_are(figures: dict[str, Any]) -> None:
    assert figures["frames"] == [["b", "c"], ["b", "d"]]
    assert figures["with rows"] == ["c", "d", "f", "g"]


def test_a_spark_session_that_was_stopped_is_named(figures: dict[str, Any]) -> None:
    message = "the SparkSession has been stopped"
    lost = dict.fromkeys(("read", "commit"), f"Spark lost a session's workers: {message}")
    others = ("insert", "insert here", "open", "run", "graph", "ask", "live")
    assert figures["stopped"] == {**lost, **dict.fromkeys(others, message)}


@pytest.fixture
def session(spark: SparkSession) -> Any:
    with dlog.session(PROGRAM, engine="spark", spark=spark) as session:
        yield session


def test_a_dataframe_that_fails_a_round_can_be_tried_again_or_forgotten(spark: SparkSession, session: dlog.Session) -> None:
    session.insert("a", spark.createDataFrame([("zero", 0), ("three", 3)], "s string, x int"))
    for _ in range(2):
        with pytest.raises(DlogError, match="division by zero"):
            session.commit()
        assert (session["a"].rows, session.staged) == (0, {"a": 2})
    session.rollback()
    session.insert("a", (6, "six"))
    session.commit()
    assert set(session["b"]) == {(2,)}


def test_a_dataframe_whose_columns_do_not_fit_is_refused_at_once(spark: SparkSession, session: dlog.Session) -> None:
    with pytest.raises(DlogError, match="column x is double, but x is number"):
        session.insert("a", spark.createDataFrame([(1.5, "a")], "x double, s string"))
    session.insert("a", spark.createDataFrame([(1, "a")], "x int, s string"))
    session.commit()
    assert set(session["b"]) == {(12,)}


def test_values_that_do_not_fit_are_told_at_the_commit(spark: SparkSession, session: dlog.Session) -> None:
    session.insert("a", spark.createDataFrame([(None, "a")], "x int, s string"))
    with pytest.raises(DlogError, match="null"):
        session.commit()
    session.rollback()
    session.insert("a", spark.createDataFrame([(4, "a")], "x int, s string"))
    session.commit()
    assert set(session["b"]) == {(3,)}
