"""Collections of a session that are made at any time: each is right after every commit from then on, whatever came before."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Captured, Collection, Dataflow, col
from dlog.dataflow.collection import Arrangement
from dlog.grammar.diagnostics import DlogError
from dlog.sessions import Session
from tests.examples import examples

PATHS = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
NAMED = ".decl named(name: symbol, y: number)\nnamed(cat(\"n\", to_string(x)), y) :- path(x, y).\n"

Rows = set[tuple[int, int]]
Made = Callable[[Session], Collection]


def _closure(edges: Rows) -> Rows:
    found = set(edges)
    while more := {(x, z) for x, y in found for a, z in edges if y == a} - found:
        found |= more
    return found


def _degrees(s: Session) -> Collection:
    return s.collection("edge").count("degree", by="x")


def _indirect(s: Session) -> Collection:
    return s.collection("path").antijoin(s.collection("edge"))


def _joined(s: Session) -> Collection:
    return _joined_with(s, s.collection("edge"))


def _joined_with(s: Session, edges: Collection) -> Collection:
    return s.collection("path").join_map(edges, on={"y": "x"}, x="x", y="y_right")


def _looped(s: Session) -> Collection:
    edges = s.collection("edge")

    def step(inner: Collection) -> Collection:
        around = edges.enter(inner.scope)
        return inner.join_map(around, on={"y": "x"}, x="x", y="y_right").concat(around).distinct()

    return edges.iterate(step)


def _named(s: Session) -> Collection:
    return s.collection("named").count("targets", by="name")


def _later(s: Session) -> Collection:
    return s.collection("path").filter(col("x") < col("y"))


MADE: dict[Made, Callable[[Rows, Rows], Counter[Any]]] = {
    _degrees: lambda edges, paths: Counter(Counter(x for x, _ in edges).items()),
    _indirect: lambda edges, paths: Counter(paths - edges),
    _joined: lambda edges, paths: Counter((x, z) for x, y in paths for a, z in edges if y == a),
    _looped: lambda edges, paths: Counter(paths),
    _named: lambda edges, paths: Counter({f"n{x}": n for x, n in Counter(x for x, _ in paths).items()}.items()),
    _later: lambda edges, paths: Counter((x, y) for x, y in paths if x < y),
}


@dataclass
class _Reading:
    """A capture, what it should have, and how it has been at rounds that are done."""

    captured: Captured
    expected: Callable[[Rows, Rows], Counter[Any]]
    history: dict[int, Counter[Any]]

    def check(self, round: int, edges: Rows) -> None:
        self.history[round] = self.expected(edges, _closure(edges))
        assert self.captured.counts() == self.history[round]
        for then, counts in self.history.items():
            assert self.captured.counts(then) == counts


EDGES = st.tuples(st.integers(0, 4), st.integers(0, 4))
OTHERS = ["commit", "commit", "many", "rollback", "undone", "rules", "drop", "arrange", "import"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["insert", "insert", "remove"]), EDGES),
        st.tuples(st.just("make"), st.sampled_from(list(MADE))),
        st.tuples(st.sampled_from(OTHERS), st.integers(0, 7)),
    ),
    max_size=40,
)


class _Undone(Exception):
    pass


@examples(60)
@given(STEPS)
def test_collections_made_at_any_time_are_what_would_be_computed_anew(steps: list[tuple[str, Any]]) -> None:
    s = dlog.session(PATHS)
    edges: Rows = set()
    staged: dict[tuple[int, int], bool] = {}
    readings: list[_Reading] = []
    arranged: list[Arrangement] = []

    def done() -> None:
        for reading in readings:
            reading.check(s.round, edges)

    for kind, what in steps:
        if kind in ("insert", "remove"):
            (s.insert if kind == "insert" else s.remove)("edge", what)
            staged[what] = kind == "insert"
        elif kind == "make" and (what is not _named or "named" in s):
            readings.append(_Reading(what(s).capture(history=True), MADE[what], {}))
        elif kind == "arrange":
            arranged.append(s.collection("edge").arrange_by_key("x"))
        elif kind == "import" and arranged:
            found = _joined_with(s, s.import_(arranged[what % len(arranged)]).collection)
            readings.append(_Reading(found.capture(history=True), MADE[_joined], {}))
        elif kind == "rollback":
            s.rollback()
            staged = {}
        elif kind == "undone":
            with pytest.raises(_Undone), s.transaction():
                s.insert("edge", (what, what))
                raise _Undone
        elif kind == "drop" and readings:
            del readings[what % len(readings)]
        elif kind == "rules" and "named" not in s:
            s.add_rules(NAMED)
            done()
        elif kind == "many" and not staged:
            s.commit_rounds({"edge": [(s.round + 1, (what, 0), 1), (s.round + 3, (0, what), 1)]})
            edges |= {(what, 0), (0, what)}
            done()
        elif kind == "commit":
            s.commit()
            edges = {e for e in edges | staged.keys() if staged.get(e, e in edges)}
            staged = {}
            done()


def test_those_that_are_there_already_go_on() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2)]})
    first = s.collection("path").capture()
    s.insert("edge", (2, 3))
    s.commit()
    second = s.collection("edge").capture(history=True)
    assert second.counts() == {}
    s.insert("edge", (3, 4))
    s.commit()
    assert second.updates() == [((1, 2), 2, 1), ((2, 3), 2, 1), ((3, 4), 3, 1)]
    assert set(first) == {(1, 2), (2, 3), (3, 4), (1, 3), (2, 4), (1, 4)}


def test_a_relation_is_one_collection_until_a_commit() -> None:
    s = dlog.session(PATHS)
    before = s.collection("edge")
    assert s.collection("edge") is before
    s.commit()
    after = s.collection("edge")
    assert after is not before
    assert s.collection("edge") is after


def test_collections_of_different_commits_are_not_combined() -> None:
    s = dlog.session(PATHS)
    before = s.collection("edge")
    s.commit()
    with pytest.raises(DlogError, match=r"two dataflows(.|\n)*without a commit between(.|\n)*session\.import_"):
        s.collection("path").join(before)
    with pytest.raises(DlogError, match=r"rounds have been done(.|\n)*`session\.collection\(name\)` begins another"):
        before.distinct()
    other = Dataflow().input(x=int, y=int)
    for one, two in [(other, s.collection("edge")), (s.collection("edge"), dlog.session(PATHS).collection("edge"))]:
        with pytest.raises(DlogError, match=r"two dataflows(.|\n)*session\.feed"):
            one.concat(two)


def test_what_was_arranged_before_is_imported() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2), (2, 3)]})
    by_x = s.collection("edge").arrange_by_key("x")
    assert s.import_(by_x) is by_x
    s.commit()
    imported = s.import_(by_x)
    assert imported.arranged.source.trace is by_x.arranged.source.trace
    both = s.collection("path").join_map(imported.collection, on={"y": "x"}, x="x", y="y_right").capture()
    del by_x, imported
    s.insert("edge", (3, 4))
    s.commit()
    assert both.counts() == {(1, 3): 1, (2, 4): 1, (1, 4): 1}
    s.remove("edge", (3, 4))
    s.commit()
    assert both.counts() == {(1, 3): 1}


def test_what_cannot_be_imported_is_refused() -> None:
    s = dlog.session(PATHS)
    for arrangement in (Dataflow().input(x=int).arrange_by_self(), dlog.session(PATHS).collection("edge").arrange_by_self()):
        with pytest.raises(DlogError, match=r"cannot be imported here(.|\n)*collections of the same session"):
            s.import_(arrangement)
    with pytest.raises(DlogError, match="`arrangement` must be one of a collection"):
        s.import_(s.collection("edge"))  # type: ignore[arg-type]
    failing = s.collection("edge")
    failing.assert_empty()
    arranged = failing.arrange_by_self()
    s.insert("edge", (1, 2))
    with pytest.raises(DlogError, match="is there 1 times"):
        s.commit()
    with pytest.raises(DlogError, match="can go on no longer"):
        s.import_(arranged)


def test_one_that_fails_leaves_the_others_going_on() -> None:
    s = dlog.session(PATHS)
    before = s.collection("edge").capture()
    s.commit()
    failing = s.collection("edge").flat_map(lambda x, y: [x // y], z=int).capture()
    s.commit()
    after = s.collection("path").capture()
    s.insert("edge", (1, 0))
    with pytest.raises(ZeroDivisionError):
        s.commit()
    assert set(before) == set(after) == {(1, 0)}
    with pytest.raises(DlogError, match="can go on no longer"):
        failing.counts()
    s.remove("edge", (1, 0))
    s.insert("edge", (1, 2))
    s.commit()
    assert set(before) == set(after) == {(1, 2)}


def test_what_imports_from_one_that_fails_fails_with_it() -> None:
    s = dlog.session(PATHS)
    edges = s.collection("edge")
    arranged = edges.arrange_by_key("x")
    edges.filter(col("x") == 3).assert_empty()
    s.commit()
    importing = s.import_(arranged).collection.capture()
    s.commit()
    aside = s.collection("edge").capture()
    s.insert("edge", (3, 4))
    with pytest.raises(DlogError, match="is there 1 times"):
        s.commit()
    with pytest.raises(DlogError, match="can go on no longer"):
        importing.counts()
    assert set(aside) == {(3, 4)}


def test_a_dataflow_that_nobody_holds_is_advanced_no_longer() -> None:
    s = dlog.session(PATHS)
    seen: list[int] = []

    def see(x: int, y: int) -> list[int]:
        seen.append(x)
        return [x + y]

    gc.collect()
    gc.disable()
    try:
        kept = {
            "capture": s.collection("edge").flat_map(see, z=int).capture(),
            "probe": s.collection("edge").probe(),
        }
        s.insert("edge", (1, 1))
        s.commit()
        del kept["capture"]
        s.insert("edge", (2, 2))
        s.commit()
        assert kept["probe"].frontier.elements == ((3,),)
        assert seen == [1, 2]
        del kept["probe"]
        s.insert("edge", (3, 3))
        s.commit()
        s.collection("edge").flat_map(see, z=int).capture()
        s.commit()
    finally:
        gc.enable()
    assert seen == [1, 2]


def test_what_a_dataflow_has_followed_is_let_go_with_it() -> None:
    s = dlog.session(PATHS)
    captured = s.collection("edge").capture()
    s.commit()
    assert s._followers._following
    del captured
    for x in range(2):
        s.insert("edge", (x, x))
        s.commit()
    assert not s._followers._following
    assert not s._dataflows._kept


def test_functions_are_shown_what_comes_though_nobody_holds_the_dataflow() -> None:
    s = dlog.session(PATHS)
    shown: list[Any] = []
    s.collection("edge").inspect(lambda *update: shown.append(update))
    s.commit()
    s.collection("edge").arrange_by_key("x").inspect_batches(lambda batch: shown.append(batch.rows))
    gc.collect()
    s.commit()
    s.insert("edge", (1, 2))
    s.commit()
    assert shown == [((1, 2), 3, 1), 1]


def test_a_relation_can_be_fed_by_one_made_later() -> None:
    s = dlog.session(PATHS + ".decl doubled(x: number, y: number)\n", {"edge": [(1, 2)]})
    held = s.collection("edge").capture()
    s.commit()
    s.feed("doubled", s.collection("path").map("x", y=col("y") * 2))
    gc.collect()
    s.commit()
    assert s.staged == {"doubled": 1}
    s.commit()
    assert set(s["doubled"]) == {(1, 4)}
    assert set(held) == {(1, 2)}


def test_a_relation_that_was_dropped_and_declared_again_is_another_collection() -> None:
    s = dlog.session(PATHS + ".decl q(x: number)\n", {"q": [(1,)]})
    before = s.collection("q").capture()
    s.commit()
    s.drop_relation("q")
    with pytest.raises(DlogError, match="unknown relation `q`"):
        s.collection("q")
    s.add_rules(".decl q(name: symbol)\n")
    after = s.collection("q").capture()
    s.insert("q", ("a",))
    s.commit()
    assert set(after) == {("a",)}
    assert set(before) == {(1,)}


def test_captures_of_a_session_that_is_closed_stay_readable(tmp_path: Path) -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2)]}, state=tmp_path / "s")
    s.collection("edge").capture()
    s.commit()
    later = s.collection("path").capture()
    s.commit()
    s.close()
    assert set(later) == {(1, 2)}
    with pytest.raises(DlogError, match="the session is closed"):
        s.collection("path")
    with dlog.session(PATHS, state=tmp_path / "s") as again:
        first = again.collection("path").capture()
        again.commit()
        second = again.collection("path").capture()
        again.insert("edge", (2, 3))
        again.commit()
        assert set(first) == set(second) == {(1, 2), (2, 3), (1, 3)}


def test_collections_of_what_is_dropped_keep_its_rows() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2)]})
    followed = s.subscribe("path")
    paths, edges = s.collection("path").capture(), s.collection("edge").capture()
    s.commit()
    s.drop_relation("path")
    s.insert("edge", (2, 3))
    s.commit()
    s.add_rules(".decl path(x: number)\npath(x) :- edge(x, _).")
    assert set(paths) == {(1, 2)} and set(edges) == {(1, 2), (2, 3)} and followed.closed
    again = s.collection("path").capture()
    s.commit()
    assert set(again) == {(1,), (2,)}


def test_captures_do_not_keep_their_session() -> None:
    gc.collect()
    gc.disable()
    try:
        s = dlog.session(PATHS, {"edge": [(1, 2)]}, threads=1)
        captured = s.collection("edge").capture()
        s.commit()
        held = weakref.ref(s)
        del s
        assert held() is None
    finally:
        gc.enable()
    assert set(captured) == {(1, 2)}
