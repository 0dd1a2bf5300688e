"""Sessions on Spark: the same rounds, kept by its workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXT = """.decl edge(x: number, y: number)
.decl name(x: number, s: symbol)
.decl path(x: number, y: number)
.decl reached(s: symbol, n: number)
.decl near(x: number, d: number)
.input edge, name
.output path, reached, near
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
reached(cat(s, "!"), n) :- name(x, s), n = count : { path(x, _) }.
near(1, 0).
near(y, d) :- edge(_, y), d = min c + 1 : { near(x, c), edge(x, y) }.
"""
PLAIN = TEXT.split("near(1, 0)")[0]
EDGES = [(1, 2), (2, 3), (3, 4)]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[dlog.Session]:
    with dlog.session(PLAIN, {"edge": EDGES, "name": [(1, "one"), (9, "none")]}, engine="spark", spark=spark) as session:
        yield session


def test_rounds_change_relations_and_say_how(session: dlog.Session) -> None:
    assert sorted(session["path"]) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    assert set(session["reached"]) == {("one!", 3), ("none!", 0)}
    session.remove("edge", (2, 3))
    session.insert("edge", (2, 5))
    session.insert("name", (2, "two"))
    round = session.commit()
    assert sorted(round.changes("path")) == [((1, 3), -1), ((1, 4), -1), ((1, 5), 1), ((2, 3), -1), ((2, 4), -1), ((2, 5), 1)]
    assert sorted(round.changes("reached")) == [(("one!", 2), 1), (("one!", 3), -1), (("two!", 1), 1)]
    assert session["path"].rows == 4


def test_relations_are_dataframes(spark: SparkSession, session: dlog.Session) -> None:
    before = session["path"].df
    assert sorted(map(tuple, before.where("x = 1").collect())) == [(1, 2), (1, 3), (1, 4)]
    session.insert("edge", spark.createDataFrame([(4, 1)], "x long, y long"))
    session.commit()
    assert (before.count(), session["path"].df.count()) == (6, 16)
    session["path"].create_view("paths")
    assert spark.sql("select count(*) from paths where x = y").first()[0] == 4  # type: ignore[index]


def test_rules_can_be_added_and_dropped(session: dlog.Session) -> None:
    session.add_rules(".decl back(y: number, x: number)\nback(y, x) :- path(x, y).")
    session.insert("edge", (4, 5))
    assert ((5, 1), 1) in session.commit().changes("back")
    session.drop_relation("back")
    assert session["path"].rows == 10


def test_a_failed_commit_changes_nothing(session: dlog.Session) -> None:
    session.add_rules(".decl odd(x: number)\nodd(6 / (x - 7)) :- edge(x, _).")
    session.insert("edge", [(7, 8), (8, 9), (11, 12)])
    with pytest.raises(DlogError, match="division by zero"):
        session.commit()
    session.rollback()
    assert session["path"].rows == 6
    session.insert("edge", (8, 9))
    session.commit()
    assert session["path"].rows == 7


def test_a_session_leaves_a_slot(spark: SparkSession) -> None:
    with pytest.raises(DlogError, match="leaves one slot to everything else, and the application has 2"):
        dlog.session(PLAIN, engine="spark", spark=spark, workers=2)


def test_a_session_with_a_state_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    with dlog.session(PLAIN, {"edge": EDGES}, engine="spark", spark=spark, state=tmp_path / "state") as session:
        session.insert("edge", (4, 5))
        session.commit(mark=17)
    with dlog.session(PLAIN, engine="spark", spark=spark, state=tmp_path / "state") as session:
        assert (session.round, session.mark) == (2, 17)
        assert session["path"].rows == 10
        session.remove("edge", (1, 2))
        assert len(session.commit().changes("path")) == 4
