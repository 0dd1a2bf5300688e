"""Rules and collections together: relations of sessions as collections, collections as relations' inputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    for read in (kept.counts, kept.updates, kept.to_arrow, lambda: len(kept), lambda: list(kept)):
        with pytest.raises(DlogError, match="the dataflow can go on no longer") as error:
            read()
        assert error.value.diagnostics[0].code == "dataflow-failed"
    again = s.collection("edge").capture()
    s.commit()
    assert set(again) == {(1, 2), (3, 4), (4, 5)}


def test_unsigned_numbers_are_integers_below_2_to_the_63() -> None:
    s = dlog.session(".decl hash(x: unsigned)\n.decl text(x: symbol)\ntext(to_string(x)) :- hash(x), x >= 9223372036854775808.")
    hashes = s.collection("hash").capture()
    s.insert("hash", [(7,), (2**63 - 1,)])
    s.commit()
    assert set(hashes) == {(7,), (2**63 - 1,)}
    s.insert("hash", (2**64 - 1,))
    with pytest.raises(DlogError, match=r"column `x` of `hash` has 18446744073709551615, (.|\n)*`to_string\(x\)`") as error:
        s.commit()
    assert error.value.diagnostics[0].code == "bad-rows"
    with pytest.raises(DlogError, match="can go on no longer"):
        hashes.counts()
    texts = s.collection("text").capture()
    s.commit()
    assert set(texts) == {("18446744073709551615",)}


class _Undone(Exception):
    pass


KINDS = ["feed", "take", "insert", "remove", "rollback", "commit", "undone"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3)))


@given(STEPS)
def test_what_a_collection_has_outlives_a_rollback(steps: list[tuple[str, int]]) -> None:
    """What is forgotten is what was staged by hand."""
    s, flow = dlog.session(".decl e(x: number)\n.decl d(x: number)\nd(x) :- e(x)."), Dataflow()
    rows = flow.input(x=int)
    s.feed("e", rows)
    done: set[int] = set()
    by_hand: list[tuple[int, bool]] = []
    staged: list[tuple[int, bool]] = []
    feed: set[int] = set()

    def fed(x: int, there: bool) -> None:
        if (x in feed) != there:
            (rows.insert if there else rows.remove)([x])
            flow.commit()
            (feed.add if there else feed.discard)(x)
            staged.append((x, there))
            by_hand.append((x, there))

    for kind, x in steps:
        if kind in ("feed", "take"):
            fed(x, kind == "feed")
        elif kind in ("insert", "remove"):
            (s.insert if kind == "insert" else s.remove)("e", (x,))
            by_hand.append((x, kind == "insert"))
        elif kind == "rollback":
            s.rollback()
            by_hand[:] = staged
        elif kind == "undone":
            before = len(by_hand)
            with pytest.raises(_Undone), s.transaction():
                s.insert("e", (x,))
                by_hand_in_block = len(staged)
                fed((x + 1) % 4, x % 2 == 0)
                s.remove("e", ((x + 1) % 4,))
                raise _Undone
            by_hand[before:] = staged[by_hand_in_block:]
        else:
            s.commit()
            done = _after(done, by_hand)
            by_hand.clear()
            staged.clear()
            assert set(s["d"]) == {(x,) for x in done}
    s.commit()
    assert set(s["d"]) == {(x,) for x in _after(done, by_hand)}


def _after(rows: set[int], changes: list[tuple[int, bool]]) -> set[int]:
    last = dict(changes)
    return {x for x in {*rows, *last} if last.get(x, x in rows)}


def test_a_transaction_whose_commit_fails_keeps_what_a_collection_has(monkeypatch: pytest.MonkeyPatch) -> None:
    s, flow = dlog.session(".decl e(x: number)\n.decl by_hand(x: number)"), Dataflow()
    rows = flow.input(x=int)
    s.feed("e", rows)
    failing = s._engine.commit

    def fail(*given: object) -> int:
        raise MemoryError

    with pytest.raises(DlogError, match="out of memory"), s.transaction():
        rows.insert([1])
        flow.commit()
        s.insert("by_hand", (1,))
        monkeypatch.setattr(s._engine, "commit", fail)
    monkeypatch.setattr(s._engine, "commit", failing)
    s.commit()
    assert set(s["e"]) == {(1,)}
    assert not list(s["by_hand"])
    s.rollback()
    s.commit()
    assert set(s["e"]) == {(1,)}
    s.remove("e", (1,))
    s.commit()
    s.rollback()
    s.commit()
    assert not list(s["e"])


def test_what_waits_for_a_relation_that_is_dropped_is_forgotten() -> None:
    s, flow = dlog.session(".decl e(x: number)\n.decl other(x: number)"), Dataflow()
    rows = flow.input(x=int)
    s.feed("e", rows)
    rows.insert([1])
    flow.commit()
    s.drop_relation("e")
    s.rollback()
    s.commit()
    assert not s.staged


def test_a_feed_of_rules_that_were_collections_outlives_a_transaction() -> None:
    s, flow = dlog.rules(sets=["e"], d=Dataflow().input("e", x=int).map("x")).session(), Dataflow()
    rows = flow.input(x=int)
    s.feed("e", rows)
    with pytest.raises(_Undone), s.transaction():
        s.insert("e", (2,))
        rows.insert([1])
        flow.commit()
        raise _Undone
    s.commit()
    assert set(s["d"]) == {(1,)}
