"""A program of its own with a session of two workers on Spark, which exchange rows and take in DataFrames; prints what came of
it as JSON. The application of the tests has room for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import dlog

TEXT = """.decl edge(x: symbol, y: symbol)
.decl reach(x: symbol, y: symbol)
.decl same(x: symbol, y: symbol)
.decl size(x: symbol, n: number)
.input edge
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), reach(y, z).
same(x, y) :- reach(x, y), reach(y, x).
size(x, n) :- same(x, _), n = count : { same(x, _) }.
"""
RING = [(f"n{i}", f"n{(i + 1) % 12}") for i in range(12)]
CHANGES: list[tuple[str, list[tuple[str, str]]]] = [
    ("insert", [("n3", "out"), ("out", "n9")]),
    ("remove", [("n0", "n1")]),
    ("insert", [("n11", "n4")]),
]


def rows(session: dlog.Session) -> dict[str, list[Any]]:
    return {name: sorted(session[name]) for name in ("reach", "same", "size")}


def main() -> None:
    import dlog
    from dlog.engine.spark.application import start

    spark = start("local[3]", {"spark.ui.enabled": "false"})
    figures: dict[str, Any] = {}
    embedded = dlog.session(TEXT, {"edge": RING})
    given = held(frame(spark, RING))
    with dlog.session(TEXT, {"edge": given}, engine="spark", spark=spark, workers=2) as session:
        figures["plan"] = session.explain().splitlines()[0]
        figures["first"] = rows(session) == rows(embedded)
        figures["later"] = []
        for act, changed in CHANGES:
            for target, given in ((session, frame(spark, changed)), (embedded, changed)):
                getattr(target, act)("edge", given)
            rounds = session.commit(), embedded.commit()
            told = [sorted(round.changes("size")) for round in rounds]
            figures["later"].append(rows(session) == rows(embedded) and told[0] == told[1])
        session.insert("edge", frame(spark, [("a", "b")]))
        session.remove("edge", ("a", "b"))
        session.insert("edge", frame(spark, [("b", "c")]))
        figures["staged"] = session.staged
        session.commit()
        figures["mixed"] = [("a", "b") in session["edge"], ("b", "c") in session["edge"]]
        session.insert("edge", held(frame(spark, [("b", "d"), ("b", "e")])))
        session.remove("edge", held(frame(spark, [("b", "e"), ("b", "c")])))
        session.insert("edge", held(frame(spark, [("b", "c")])))
        session.commit()
        figures["frames"] = sorted(row for row in session["edge"] if row[0] == "b")
        session.insert("edge", held(frame(spark, [("b", "f"), ("b", "g")])))
        session.insert("edge", ("b", "g"))
        session.commit()
        figures["with rows"] = sorted(row[1] for row in session["edge"] if row[0] == "b")
        later = frame(spark, [("p", "q")])
        graph = dlog.graph(later, src="x", dst="y")
        spark.stop()
        calls = {
            "read": lambda: list(session["edge"]),
            "commit": lambda: (session.insert("edge", ("p", "q")), session.commit()),
            "insert": lambda: session.insert("edge", later),
            "insert here": lambda: embedded.insert("edge", later),
            "open": lambda: dlog.session(TEXT, engine="spark", spark=spark),
            "run": lambda: dlog.run(TEXT, {"edge": later}, engine="spark", spark=spark),
            "graph": lambda: dlog.graph(later, src="x", dst="y"),
            "ask": lambda: graph.connected_components(),
            "live": lambda: graph.live(),
        }
        figures["stopped"] = {name: mistake_of(call) for name, call in calls.items()}
    print(json.dumps(figures), flush=True)


def mistake_of(call: Callable[[], Any]) -> str:
    """What dlog says is wrong; anything else is raised."""
    from dlog.grammar.diagnostics import DlogError

    try:
        return f"no mistake: {call()}"
    except DlogError as error:
        return error.diagnostics[0].message


def held(given: Any) -> Any:
    """A DataFrame with which whoever brings its rows to the driver fails."""
    given.toArrow = None
    return given


def frame(spark: SparkSession, listed: list[tuple[str, str]]) -> Any:
    return spark.createDataFrame(listed, "x string, y string")


if __name__ == "__main__":
    main()
