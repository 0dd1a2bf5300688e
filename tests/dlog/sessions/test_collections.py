"""Rules and collections together: relations of sessions as collections, collections as relations' inputs."""

from __future__ import annotations

import pytest

import dlog
from dlog.dataflow import Dataflow, col
from dlog.grammar.diagnostics import DlogError

PATHS = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def test_a_relation_is_a_collection() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2), (2, 3)]})
    reached = s.collection("path").map("x").count("targets").capture(history=True)
    s.insert("edge", (3, 4))
    s.commit()
    assert reached.counts() == {(1, 3): 1, (2, 2): 1, (3, 1): 1}
    s.remove("edge", (2, 3))
    s.commit()
    assert reached.counts() == {(1, 1): 1, (3, 1): 1}
    assert reached.counts(2) == {(1, 3): 1, (2, 2): 1, (3, 1): 1}


def test_collections_of_a_session_can_be_joined() -> None:
    s = dlog.session('.decl name(x: number, n: symbol)\n.decl age(x: number, a: float)\nname(1, "ada").')
    both = s.collection("name").join(s.collection("age")).map("n", "a").capture()
    s.insert("age", [(1, 36.5), (2, 1.0)])
    s.commit()
    assert both.counts() == {("ada", 36.5): 1}
    assert s.collection("name") is s.collection("name")
    with pytest.raises(DlogError, match="unknown relation `nobody`"):
        s.collection("nobody")


def test_many_rounds_arrive_as_such() -> None:
    s = dlog.session(PATHS)
    count = s.collection("path").count(by=[]).capture(history=True)
    s.commit_rounds({"edge": {"x": [1, 2, 3], "y": [2, 3, 4], "round": [1, 3, 4]}})
    assert [count.counts(round) for round in range(1, 5)] == [{(1,): 1}, {(1,): 1}, {(3,): 1}, {(6,): 1}]


def test_a_collection_fills_a_relation() -> None:
    flow = Dataflow()
    measured = flow.input(sensor=int, value=int)
    s = dlog.session(PATHS)
    s.feed("edge", measured.max("value", by="sensor").map(x="sensor", y="value"))
    measured.insert([(1, 2), (1, 0), (2, 5)])
    flow.commit()
    assert s.staged == {"edge": 2}
    s.commit()
    assert set(s["path"]) == {(1, 2), (2, 5), (1, 5)}
    measured.remove([(1, 2)])
    flow.commit()
    s.commit()
    assert set(s["path"]) == {(1, 0), (2, 5)}
    with pytest.raises(DlogError, match="the columns of `edge` are x, y"):
        s.feed("edge", Dataflow().input(x=int))


def test_a_relation_is_fed_by_one_collection() -> None:
    s, flow = dlog.session(PATHS), Dataflow()
    rows = flow.input(x=int, y=int)
    s.feed("edge", rows)
    with pytest.raises(DlogError, match=r"a collection feeds `edge` already(.|\n)*concat") as caught:
        s.feed("edge", rows.filter(col("x") > 1))
    assert caught.value.diagnostics[0].code == "fed-twice"
    rows.insert([(1, 2)])
    flow.commit()
    s.commit()
    assert set(s["edge"]) == {(1, 2)}


def test_a_dataflow_that_has_failed_can_be_made_anew() -> None:
    s, flow = dlog.session(PATHS), Dataflow()
    rows = flow.input(x=int, y=int)
    s.feed("edge", rows)
    rows.assert_empty()
    rows.insert([(1, 2)])
    with pytest.raises(DlogError, match="is there 1 times"):
        flow.commit()
    s.feed("edge", Dataflow().input(x=int, y=int))


def test_rows_beside_a_collection_stay_until_it_loses_them() -> None:
    s, flow = dlog.session(PATHS, {"edge": [(1, 2), (3, 4)]}), Dataflow()
    rows = flow.input(x=int, y=int)
    s.feed("edge", rows)
    rows.insert([(1, 2)])
    rows.remove([(1, 2)], at=1)
    for found in ({(1, 2), (3, 4)}, {(3, 4)}):
        flow.commit()
        s.commit()
        assert set(s["edge"]) == found


@pytest.mark.parametrize(
    ("type", "kind"),
    [("number", str), ("number", float), ("unsigned", str), ("float", str), ("symbol", int), ("date", str)],
)
def test_collections_of_other_kinds_are_not_fed(type: str, kind: type) -> None:
    s = dlog.session(f".decl r(x: {type})\n")
    with pytest.raises(DlogError, match=f"column `x` of `r` is {type}, that of the collection {kind.__name__}"):
        s.feed("r", Dataflow().input(x=kind))
    s.feed("r", Dataflow().input(x=object))


def test_what_follows_from_a_session_can_come_back_a_round_later() -> None:
    s = dlog.session(PATHS + ".decl doubled(x: number, y: number)\n")
    s.feed("doubled", s.collection("path").map("x", y=col("y") * 2))
    s.insert("edge", (1, 2))
    s.commit()
    assert s.staged == {"doubled": 1}
    s.commit()
    assert set(s["doubled"]) == {(1, 4)}


def test_a_failure_of_what_is_made_of_collections_does_not_hold_the_session_up() -> None:
    s = dlog.session(PATHS)
    kept = s.collection("edge").capture()
    s.collection("path").filter(col("x") == 3).assert_empty()
    s.insert("edge", (1, 2))
    s.commit()
    s.insert("edge", (3, 4))
    with pytest.raises(DlogError, match="is there 1 times"):
        s.commit()
    s.insert("edge", (4, 5))
    s.commit()
    assert set(s["edge"]) == {(1, 2), (3, 4), (4, 5)}
    assert (4, 5) not in kept.counts()
    again = s.collection("edge").capture()
    s.commit()
    assert set(again) == {(1, 2), (3, 4), (4, 5)}
