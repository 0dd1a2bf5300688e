"""Sessions on Spark: the same rounds, kept by its workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dlog
from dlog.engine.rounds_engine import MAX_RELAYED_ROWS
from dlog.engine.spark.session_engine import SparkRounds
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence import bulk_files, saving

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
    with (
        dlog.session(PLAIN, engine="spark", spark=spark),
        pytest.raises(DlogError, match="and the application has 2, of which other sessions have 1"),
    ):
        dlog.session(PLAIN, engine="spark", spark=spark)


def test_a_large_dataframe_goes_into_a_state_past_the_driver(
    spark: SparkSession, brought: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows of files are read here neither at the commit nor when the session is opened again, closed or not."""
    many, text = MAX_RELAYED_ROWS + 10, PLAIN.replace("path(x, z) :- path(x, y), edge(y, z).\n", "")
    monkeypatch.setattr(bulk_files, "read_parts", None)
    monkeypatch.setattr(SparkRounds, "_collect", None)

    def opened() -> dlog.Session:
        return dlog.session(text, engine="spark", spark=spark, state=tmp_path / "a state")

    session = opened()
    session.insert("edge", spark.range(many).selectExpr("id as x", "id + 1 as y"))
    session.insert("name", spark.range(many).selectExpr("id as x", "concat('n', id) as s"))
    session.commit()
    session.remove("edge", [(0, 1), (7, 8)])
    session.insert("edge", (5, 9))
    session.commit()
    for crashed in (True, False, False):
        assert (session["path"].rows, session["reached"].rows) == (many - 1, many)
        few = session["reached"].df.where("s in ('n0!', 'n5!', 'n6!', 'n7!')")
        assert sorted(map(tuple, few.collect())) == [("n0!", 0), ("n5!", 2), ("n6!", 1), ("n7!", 0)]
        if crashed:
            session._engine.abandon()  # type: ignore[attr-defined]
            session._engines.close()
        else:
            session.close()
        session = opened()
    assert sum(brought) < 100
    session.close()
    monkeypatch.undo()
    with dlog.session(text, state=tmp_path / "a state") as here:
        assert here["edge"].rows == many - 1
        assert len(here["path"]) == many - 1


def test_rules_that_come_later_leave_files_to_the_workers(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    collected: list[str] = []

    def seen(self: Any, command: str, relation: str, *args: Any) -> Any:
        collected.append(relation)
        return real(self, command, relation, *args)

    real = SparkRounds._collect
    monkeypatch.setattr(saving, "MAX_RELAYED_ROWS", 2)
    monkeypatch.setattr(SparkRounds, "_collect", seen)
    with dlog.session(PLAIN, engine="spark", spark=spark, state=tmp_path / "state") as session:
        session.insert("edge", spark.createDataFrame(EDGES, "x long, y long"))
        session.commit()
        session.remove("edge", (2, 3))
        session.commit()
        with monkeypatch.context() as patch:
            patch.setattr(bulk_files, "read_parts", None)
            session.add_rules(".decl back(y: number, x: number)\nback(y, x) :- path(x, y).")
        assert sorted(session["back"]) == [(2, 1), (4, 3)]
        assert "edge" not in collected
        assert sorted(session["edge"]) == [(1, 2), (3, 4)]


def test_a_small_dataframe_is_logged_with_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    with dlog.session(PLAIN, engine="spark", spark=spark, state=tmp_path / "state") as session:
        session.insert("edge", spark.createDataFrame(EDGES, "x long, y long"))
        session.commit()
        assert not list((tmp_path / "state").glob("*.parquet"))
        with pytest.raises(DlogError, match="the column has nulls"):
            session.insert("edge", spark.createDataFrame([(None, 1)], "x long, y long"))
            session.commit()
        session.rollback()
        assert session["path"].rows == 6
    assert {p.suffix for p in (tmp_path / "state").iterdir()} <= {".json", ".copy", ".log", ".layer", ".bytes", ".ends", ""}


@pytest.mark.parametrize("state", ["none", "logged", "lots"])
def test_of_dataframes_that_do_the_opposite_the_last_one_counts(
    spark: SparkSession, state: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows are the program's: 0.0 is not -0.0, and a record may be written in two ways. Rows of chance are drawn once."""
    text = """.type Pair = [a: number, b: number]
    .decl f(x: number, v: float)  .decl p(p: Pair)  .decl chance(x: number, y: number)
    p([7, 7]).
    """
    monkeypatch.setattr(saving, "MAX_RELAYED_ROWS", 0 if state == "lots" else MAX_RELAYED_ROWS)
    where = {} if state == "none" else {"state": tmp_path / "state"}
    draw = spark.range(200).selectExpr("id % 10 as x", "cast(rand() * 10 as long) as y")
    with dlog.session(text, engine="spark", spark=spark, **where) as session:
        session.insert("f", spark.createDataFrame([(1, -0.0), (2, 0.0), (3, float("nan"))], "x long, v double"))
        session.remove("f", spark.createDataFrame([(1, 0.0), (2, -0.0), (3, float("nan"))], "x long, v double"))
        session.remove("p", spark.createDataFrame([("[1,2]",), ("[7,7]",)], "p string"))
        session.insert("p", spark.createDataFrame([("[1, 2]",), ("[3, 4]",)], "p string"))
        session.remove("p", spark.createDataFrame([("[3,4]",)], "p string"))
        for change in (session.insert, session.remove, session.insert, session.remove):
            change("chance", draw)
        session.commit()
        found = {name: sorted(map(repr, session[name])) for name in session}
        assert (found["f"], found["p"]) == (["(1, -0.0)", "(2, 0.0)"], ["((1, 2),)"])
    if where:
        with dlog.session(text, **where) as here:
            assert {name: sorted(map(repr, here[name])) for name in here} == found


def test_a_dataframe_means_the_same_wherever_it_is_read(spark: SparkSession) -> None:
    """Records are text, columns go by their names, and what cannot be read leaves what is staged."""
    text = ".type Pair = [a: number, b: number]\n.decl p(x: number, p: Pair)\n"
    fine = spark.createDataFrame([("[1,2]", "ignored", 1), ("nil", "", 2)], "p string, z string, x int")
    broken = spark.range(1).selectExpr("cast(raise_error('boom') as string) as p", "id as x")
    for engine in ({}, {"engine": "spark", "spark": spark}):
        assert sorted(dlog.run(text, {"p": fine.where("x = 1")}, **engine)["p"]) == [(1, (1, 2))]
        with dlog.session(text, **engine) as session:
            session.insert("p", (2, None))
            session.insert("p", fine)
            session.remove("p", fine.where("x = 2"))  # the opposite of a row that is here: this frame comes here, too
            session.commit()
            assert sorted(session["p"]) == [(1, (1, 2))]
            session.insert("p", fine.where("x = 2"))
            with pytest.raises(DlogError, match="the rows for p cannot be read: boom"):
                session.insert("p", broken)
                session.remove("p", (7, None))
            if not engine:
                session.commit()
                assert sorted(map(repr, session["p"])) == ["(1, (1, 2))", "(2, None)"]
            else:
                assert len(session._staged_changes.staged["p"].frames) == 2


def test_a_dataframe_says_whether_a_relation_without_columns_holds(spark: SparkSession) -> None:
    text = ".decl on()\n.input on\n.decl x(n: number)\nx(1) :- on().\n.output x\n"
    for engine in ({}, {"engine": "spark", "spark": spark}):
        for rows in (0, 2):
            assert dlog.run(text, {"on": spark.range(rows).select()}, **engine)["x"].rows == min(rows, 1)
        with dlog.session(text, {"on": spark.range(2).select()}, **engine) as session:
            assert session["x"].rows == 1
            session.remove("on", spark.range(1))
            session.commit()
            assert session["x"].rows == 0


def test_a_session_with_a_state_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    with dlog.session(PLAIN, {"edge": EDGES}, engine="spark", spark=spark, state=tmp_path / "state") as session:
        session.insert("edge", (4, 5))
        session.commit(mark=17)
    with dlog.session(PLAIN, engine="spark", spark=spark, state=tmp_path / "state") as session:
        assert (session.round, session.mark) == (2, 17)
        assert session["path"].rows == 10
        session.remove("edge", (1, 2))
        assert len(session.commit().changes("path")) == 4
