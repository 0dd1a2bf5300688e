"""Event atoms and `now()` in the rules of sessions on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dlog
from tests.dlog.sessions.events_twin import CLOCKS, DECLARED, EVENTS, Driven

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROUNDS: list[tuple[str, object]] = [
    ("commit", [("price", 1, ("tea", 3)), ("order", 1, (2, "tea")), ("spell", 1, ("tea", 1, 3)), ("lent", 1, (1, "tea"))]),
    ("commit", [("price", -1, ("tea", 3)), ("price", 1, ("tea", 1)), ("road", 1, (1, 2, 3, 4)), ("road", 1, (2, 3, 0, 9))]),
    ("batch", [(1, [("order", 1, (3, "tea"))]), (2, [("order", -1, (2, "tea")), ("lent", -1, (1, "tea"))])]),
    ("add", "few"),
    ("commit", [("order", 1, (1, "tea"))]),
    ("restart", None),
    ("commit", [("order", -1, (3, "tea")), ("price", 1, ("tea", 2))]),
    ("kill", None),
    ("commit", [("order", 1, (3, "tea")), ("lent", 1, (1, "tea"))]),
    ("drop", "pay"),
    ("commit", []),
]


class OnSpark(Driven):
    """A session on Spark and its twin."""

    spark: SparkSession

    def open(self) -> dlog.Session:
        text = DECLARED + "".join((EVENTS | CLOCKS)[name] for name in self.rules)
        program = None if self.now else text
        return dlog.session(program, state=self.state, engine="spark", spark=self.spark, workers=1, history=50)


def test_rules_in_time_are_what_they_mean(spark: SparkSession, tmp_path: Path) -> None:
    OnSpark.spark = spark
    driven = OnSpark(tmp_path / "state", ["pay", "owe", "bill", "on", "reach", "offer"])
    try:
        for what, argument in ROUNDS:
            driven.step(what, argument)
    finally:
        driven.session.close()


def test_rows_may_come_as_dataframes(spark: SparkSession) -> None:
    text = DECLARED + EVENTS["pay"] + CLOCKS["on"]
    with dlog.session(text, {"price": [("tea", 3)]}, engine="spark", spark=spark, workers=1) as s:
        s.insert("order", spark.createDataFrame([(1, "tea"), (2, "rum")], "o long, item string"))
        s.commit()
        s.insert("spell", spark.createDataFrame([("a", 4, 5)], "s string, `from` long, `to` long"))
        s.commit()
        assert (sorted(s["pay"]), list(s["on"])) == ([(1, 6)], [])
        s.commit()
        assert sorted(map(tuple, s["on"].df.collect())) == [("a",)]
        s.commit()
        assert s["on"].rows == 0
