"""Sessions whose programs have components: instances come with rules that are added, and keep all of theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

TEXT = """.comp Graph<N> {
    .decl edge(x: N, y: N)
    .decl path(x: N, y: N)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
}
.comp Named : Graph<symbol> { edge("a", "b"). }
.init g = Graph<number>
"""
CHAIN = {"g.edge": [(1, 2), (2, 3)]}


def rows(session: dlog.Session, name: str) -> list[tuple[object, ...]]:
    return sorted(session[name])


def test_relations_of_instances_go_by_their_full_names() -> None:
    with dlog.session(TEXT, CHAIN) as session:
        assert rows(session, "g.path") == [(1, 2), (1, 3), (2, 3)]
        session.insert("g.edge", [(3, 4)])
        round = session.commit()
        assert sorted(row for row, _ in round.changes("g.path")) == [(1, 4), (2, 4), (3, 4)]
        assert sorted(session.query("?- g.path(x, 4), x > 1.")) == [(2,), (3,)]


def test_rules_and_instances_are_added_to_a_session() -> None:
    with dlog.session(TEXT, CHAIN) as session:
        session.add_rules("g.path(x, x) :- g.edge(x, _).")
        assert rows(session, "g.path") == [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3)]
        session.add_rules(".init n = Named\n.decl start(x: symbol)\nstart(x) :- n.path(x, _).")
        assert rows(session, "n.path") == [("a", "b")]
        session.insert("n.edge", [("b", "c")])
        session.remove("n.edge", [("a", "b")])
        session.commit()
        assert rows(session, "start") == [("b",)]
        session.add_rules(".init m = Named")
        assert rows(session, "n.edge") == [("b", "c")], "facts of instances that were there are not inserted again"
        assert rows(session, "m.edge") == [("a", "b")]


def test_rules_of_components_are_not_dropped() -> None:
    with dlog.session(TEXT, CHAIN) as session:
        session.add_rules("g.path(x, x) :- g.edge(x, _).")
        with pytest.raises(DlogError, match=re.escape("rules of `g.path` are those of a component")):
            session.drop_rules("g.path")
        with pytest.raises(DlogError, match=re.escape("rules of `g.path` are those of a component")):
            session.drop_rules("g.path(x, y) :- g.edge(x, y).")
        with pytest.raises(DlogError, match=re.escape("`g.edge` is declared in a component")):
            session.drop_relation("g.edge")
        session.drop_rules("g.path(x, x) :- g.edge(x, _).")
        assert rows(session, "g.path") == [(1, 2), (1, 3), (2, 3)]


def test_a_relation_that_a_component_reads_is_in_use() -> None:
    text = ".decl e(x: number)\n.comp C { .decl r(x: number)\nr(x) :- e(x). }\n"
    with dlog.session(text) as session:
        session.add_rules(".init c = C")
        with pytest.raises(DlogError, match=re.escape("`e` is in use: it is read by rules for `c.r`")):
            session.drop_relation("e")


def test_a_mistake_in_what_is_added_leaves_the_session_as_it_was() -> None:
    with dlog.session(TEXT, CHAIN) as session:
        with pytest.raises(DlogError, match="unknown component `Graf`"):
            session.add_rules(".init h = Graf<number>")
        assert rows(session, "g.path") == [(1, 2), (1, 3), (2, 3)]


def test_a_state_keeps_components(tmp_path: Path) -> None:
    with dlog.session(TEXT, CHAIN, state=tmp_path / "state") as session:
        session.insert("g.edge", [(3, 4)])
        session.commit()
    with dlog.session(None, state=tmp_path / "state") as session:
        assert rows(session, "g.path") == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
        session.add_rules(".init n = Named")
        assert rows(session, "n.path") == [("a", "b")]
