"""Programs on Spark through the API: DataFrames in, DataFrames out, mistakes as dlog's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CLOSURE = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.input edge
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
EDGES = [(1, 2), (2, 3), (3, 4), (2, 3)]
CLOSED = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_dataframes_in_and_out(spark: SparkSession) -> None:
    edges = spark.createDataFrame(EDGES, "x int, y long")
    result = dlog.run(CLOSURE, {"edge": edges}, engine="spark", spark=spark)
    assert result["path"].rows == 6
    assert result["path"].df.schema.simpleString() == "struct<x:bigint,y:bigint>"
    assert sorted(map(tuple, result["path"].df.collect())) == CLOSED
    assert sorted(result["path"]) == CLOSED
    result["path"].create_view("closed")
    assert spark.sql("select count(*) from closed where x = 1").first()[0] == 3  # type: ignore[index]


def test_relations_speak_arrow_and_show_their_first_rows(spark: SparkSession) -> None:
    edges = spark.createDataFrame(EDGES, "x int, y long")
    result = dlog.run(CLOSURE, {"edge": edges}, engine="spark", spark=spark)
    assert sorted(pl.DataFrame(result["path"]).rows()) == CLOSED
    assert pa.table(result["path"]).num_rows == result["path"].to_polars().height == len(result["path"].to_pandas()) == 6
    title, names, _, *rows = repr(result["path"]).splitlines()
    assert (title, names) == ("<dlog.SparkRelation path(x, y), 6 rows>", "x  y")
    assert sorted(tuple(map(int, row.split())) for row in rows) == CLOSED
    assert repr(result) == "<dlog.SparkResult, 1 relation>\nrelation    rows\n----------  ----\npath(x, y)     6"
    with pytest.raises(KeyError) as caught:
        result["pth"]
    assert str(caught.value) == "error: unknown relation `pth`\n  = did you mean `path`?"
    with dlog.session(CLOSURE, {"edge": edges}, engine="spark", spark=spark) as session:
        assert sorted(pa.table(session["path"]).to_pydict()["y"]) == [2, 3, 3, 4, 4, 4]
        assert "<dlog.Relation path(x, y), 6 rows>\nx  y\n" in repr(session["path"])
        assert "path(x, y)     6" in repr(session)


def test_names_that_contradict_their_order_are_a_mistake(spark: SparkSession) -> None:
    with pytest.raises(DlogError, match="a column is called `y`, but is not in its place") as caught:
        dlog.run(CLOSURE, {"edge": spark.createDataFrame([(1, 2)], "Y long, node long")}, engine="spark")
    assert caught.value.diagnostics[0].notes == ("no column is called `x`", "the columns are Y, node")


def test_columns_are_found_by_name_then_by_place(spark: SparkSession) -> None:
    turned = spark.createDataFrame([(2, "ignored", 1)], "Y long, z string, X long")
    assert list(dlog.run(CLOSURE, {"edge": turned}, engine="spark")["path"]) == [(1, 2)]
    unnamed = spark.createDataFrame([(1, 2)], "a long, b long")
    assert list(dlog.run(CLOSURE, {"edge": unnamed}, engine="spark")["path"]) == [(1, 2)]


def test_names_of_columns_may_be_odd_but_not_alike(spark: SparkSession) -> None:
    odd = spark.range(1, 2).selectExpr("id as `a.b`", "id + 1 as `c``d`")
    assert list(dlog.run(CLOSURE, {"edge": odd}, engine="spark")["path"]) == [(1, 2)]
    for names in (("x", "y", "X"), ("a", "a")):
        alike = spark.createDataFrame([(1, 2, 3)[: len(names)]]).toDF(*names)
        with pytest.raises(DlogError, match=f"2 columns of the DataFrame have the name (?i:{names[0]})"):
            dlog.run(CLOSURE, {"edge": alike}, engine="spark")


def test_python_rows_and_facts_of_the_text_are_inputs_too(spark: SparkSession) -> None:
    text = CLOSURE + "edge(4, 5).\n"
    assert set(dlog.run(text, {"edge": EDGES}, engine="spark")["path"]) >= {(1, 5), (4, 5)}
    assert list(dlog.run(text, engine="spark")["path"]) == [(4, 5)]


def test_inputs_that_are_empty_are_inputs(spark: SparkSession) -> None:
    """Spark knows before that nothing is in them, and would start no task."""
    empty = spark.createDataFrame([], "x long, y long")
    for edges in ([], empty, empty.where("false"), spark.range(0).selectExpr("id as x", "id as y")):
        assert dlog.run(CLOSURE, {"edge": edges}, engine="spark")["path"].rows == 0
    assert list(dlog.run(CLOSURE + "edge(4, 5).\n", {"edge": []}, engine="spark")["path"]) == [(4, 5)]


def test_every_type_goes_through(spark: SparkSession) -> None:
    text = """.type List = [head: symbol, tail: List]
    .decl value(n: number, u: unsigned, f: float, s: symbol, l: List)
    .decl copy(n: number, u: unsigned, f: float, s: symbol, l: List)
    .decl any()
    .decl no()
    .input value
    .output copy, any, no
    copy(n, u, f, s, l) :- value(n, u, f, s, l).
    any() :- value(_, _, _, _, _).
    no() :- value(0, _, _, _, _).
    """
    rows = [(-(2**63), 2**64 - 1, -0.5, "grün, [x]", ("a", ("b", None))), (7, 0, 1e300, "", None)]
    result = dlog.run(text, {"value": rows}, engine="spark")
    assert sorted(result["copy"]) == sorted(rows)
    assert (list(result["any"]), list(result["no"])) == ([()], [])
    assert (result["any"].df.count(), result["no"].df.count()) == (1, 0)
    again = dlog.run(text, {"value": result["copy"].df}, engine="spark")
    assert sorted(again["copy"]) == sorted(rows)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("x, cast(y as string) y", "input of edge: column y is string, but y is number"),
        ("x", "input of edge: the columns do not fit"),
        ("x, nullif(y, 3) y", "input of edge, y: the column has nulls"),
    ],
)
def test_dataframes_that_do_not_fit(spark: SparkSession, columns: str, message: str) -> None:
    edges = spark.createDataFrame(EDGES, "x long, y long").selectExpr(*columns.replace("(y, ", "(y,").split(", "))
    with pytest.raises(DlogError, match=message):
        dlog.run(CLOSURE, {"edge": edges}, engine="spark")


def test_mistakes_at_run_time_are_the_rules(spark: SparkSession) -> None:
    text = CLOSURE.replace("path(x, z) :-", "path(x, z / (x - x)) :-")
    with pytest.raises(DlogError, match="division by zero") as caught:
        dlog.run(text, {"edge": EDGES}, engine="spark")
    assert caught.value.diagnostics[0].labels[0].message == "while evaluating this rule"


def test_mistakes_in_the_call(spark: SparkSession) -> None:
    with pytest.raises(DlogError, match="facts are given for `egde`"):
        dlog.run(CLOSURE, {"egde": EDGES}, engine="spark")
    with pytest.raises(DlogError, match="3 workers need as many tasks at once, and Spark has room for 2"):
        dlog.run(CLOSURE, {"edge": EDGES}, engine="spark", workers=3)
    with pytest.raises(DlogError, match="engine='sparc' is not one of embedded, spark"):
        dlog.run(CLOSURE, {"edge": EDGES}, engine="sparc")
    wrong: dict[str, dict[str, Any]] = {
        "`workers` must be a number of tasks, 1 or more, not 0": {"workers": 0},
        "`workers` must be a number of tasks, 1 or more, not '2'": {"workers": "2"},
        "`workers` must be a number of tasks, 1 or more, not True": {"workers": True},
        '`spark` and `workers` are for engine="spark"': {"workers": 2, "engine": "embedded"},
        "`spark` must be a SparkSession, not 'local'": {"spark": "local"},
        "5 is no rows of `edge`": {"facts": {"edge": 5}},
        "`facts` must be a folder, or rows by the name": {"facts": spark.range(2)},
    }
    for message, options in wrong.items():
        with pytest.raises(DlogError, match=re.escape(message)):
            dlog.run(CLOSURE, **{"engine": "spark", "facts": {"edge": EDGES}, **options})


def test_ord_is_for_one_worker(spark: SparkSession) -> None:
    text = '.decl w(x: symbol)\nw("a"). w("b"). w("c").\n.decl n(x: number)\nn(ord(x)) :- w(x).\n.output n\n'
    with pytest.raises(DlogError, match="not supported on Spark: ord"):
        dlog.run(text, engine="spark", workers=2)
    assert dlog.run(text, engine="spark", workers=1)["n"].rows == 3
