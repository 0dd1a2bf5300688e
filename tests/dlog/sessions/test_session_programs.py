"""Programs that change in a live session: rules and relations come and go, rows stay."""

from __future__ import annotations

import pytest

import dlog
from dlog.grammar.diagnostics import render
from tests.dlog.sessions.test_sessions import CLOSURE, code, notes

STEP = "path(x, z) :- path(x, y), edge(y, z)."


def chain() -> dlog.Session:
    return dlog.session(CLOSURE + "edge(1, 2).\n", {"edge": [(2, 3)]}, history=10)


def test_added_rules_are_a_round_with_exact_changes() -> None:
    s = chain()
    subscription = s.subscribe("path", snapshot=False)
    round = s.add_rules(".decl back(x: number, y: number)\nback(y, x) :- path(x, y).\npath(x, x) :- edge(x, _).")
    assert (round.number, s.round) == (2, 2)
    assert sorted(round.changes("path")) == [((1, 1), 1), ((2, 2), 1)]
    assert list(round.changes("edge")) == []
    assert len(round.changes("back")) == len(s["back"]) == 5
    assert [(r, sorted(c)) for r, c in subscription.fetch()] == [(2, [((1, 1), 1), ((2, 2), 1)])]
    assert len(s.at(1)["path"]) == 3
    s.remove("edge", (1, 2))
    assert sorted(s.commit().changes("back")) == [((1, 1), -1), ((2, 1), -1), ((3, 1), -1)]


def test_facts_among_added_rules_are_inserted_and_removed_ones_do_not_come_back() -> None:
    s = chain()
    s.remove("edge", (1, 2))
    s.commit()
    round = s.add_rules("edge(3, 4). edge(2, 3).")
    assert sorted(s["edge"]) == [(2, 3), (3, 4)]
    assert list(round.changes("edge")) == [((3, 4), 1)]
    s.add_rules("path(x, x) :- edge(x, _).")
    assert sorted(s["edge"]) == [(2, 3), (3, 4)]


def test_what_is_staged_stays_staged() -> None:
    s = chain()
    s.insert("edge", (3, 4))
    s.add_rules(".decl n(c: number) n(c) :- c = count : { edge(_, _) }.")
    assert (s.staged, list(s["n"])) == ({"edge": 1}, [(2,)])
    s.commit()
    assert list(s["n"]) == [(3,)]


def test_rows_besides_rules_outlive_a_change_of_rules() -> None:
    s = dlog.session(CLOSURE + ".input path\n", {"edge": [(1, 2)], "path": [(8, 9)]})
    s.drop_rules("path")
    assert list(s["path"]) == [(8, 9)]
    s.add_rules("path(x, y) :- edge(x, y).")
    assert sorted(s["path"]) == [(1, 2), (8, 9)]


@pytest.mark.parametrize("which", [STEP, "path(x,z):-path(x,y),edge(y,z). // the same"])
def test_rules_are_dropped_by_their_text(which: str) -> None:
    s = chain()
    round = s.drop_rules(which)
    assert list(round.changes("path")) == [((1, 3), -1)]
    assert STEP not in s.text


def test_all_rules_of_a_relation_are_dropped_by_its_name() -> None:
    s = chain()
    s.drop_rules("path")
    assert (list(s["path"]), len(s["edge"])) == ([], 2)
    s.insert("path", (5, 5))
    s.commit()
    assert list(s["path"]) == [(5, 5)]


def test_symbols_and_records_keep_their_meaning() -> None:
    s = dlog.session(".type L = [s: symbol, l: L]\n.decl a(l: L)\n", {"a": [(("x", ("y", None)),)]})
    s.add_rules(".decl b(s: symbol, l: L) b(cat(s, \"!\"), t) :- a([s, t]).")
    assert list(s["b"]) == [("x!", ("y", None))]
    s.insert("a", (("z", None),))
    s.commit()
    assert sorted(s["b"], key=repr) == [("x!", ("y", None)), ("z!", None)]


def test_a_relation_is_dropped_with_its_rules() -> None:
    s = chain()
    watching = s.subscribe("path")
    s.drop_relation("path")
    assert (list(s), watching.closed) == (["edge"], True)
    with pytest.raises(dlog.DlogError):
        s["path"]
    s.add_rules(".decl path(x: symbol)")
    assert list(s["path"]) == []


def test_a_relation_that_is_read_is_not_dropped() -> None:
    s = chain()
    with pytest.raises(dlog.DlogError) as raised:
        s.drop_relation("edge")
    assert {d.code for d in raised.value.diagnostics} == {"relation-in-use"}
    assert (s.round, s.rows("path")) == (1, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path(x, y) :- egde(x, y).", "unknown-relation"),
        (".decl edge(x: number)", "duplicate-relation"),
        ("path(x, y) :- edge(x, y)", "syntax"),
        ("path(x, x) :- edge(x, _), !path(x, x).", "cycle-through-negation"),
    ],
)
def test_wrong_rules_change_nothing(text: str, expected: str) -> None:
    s = chain()
    before = s.text
    with pytest.raises(dlog.DlogError) as raised:
        s.add_rules(text)
    assert raised.value.diagnostics
    assert (s.text, s.round, s.rows("path")) == (before, 1, 3)
    s.add_rules("path(x, x) :- edge(x, _).")
    assert s.rows("path") == 5


def test_mistakes_are_shown_in_the_text_they_are_in() -> None:
    s = chain()
    s.add_rules("path(x, x) :- edge(x, _).")
    with pytest.raises(dlog.DlogError) as raised:
        s.add_rules("\npath(x, y) :- edge(x).")
    shown = render(raised.value.diagnostics[0])
    assert "2 | path(x, y) :- edge(x)." in shown
    assert "1 | .decl edge(x: number, y: number)" in shown


def test_rules_that_are_not_there_are_not_dropped() -> None:
    s = chain()
    with pytest.raises(dlog.DlogError) as raised:
        s.drop_rules("path(x, z) :- path(x, y), edge(z, y).")
    assert (code(raised), notes(raised)) == ("no-rule", f"did you mean `{STEP}`?")
    with pytest.raises(dlog.DlogError) as raised:
        s.drop_rules("pahts")
    assert code(raised) == "unknown-relation"
    with pytest.raises(dlog.DlogError) as raised:
        s.drop_rules("edge")
    assert code(raised) == "no-rule"
    with pytest.raises(dlog.DlogError) as raised:
        s.drop_rules("edge(1, 2).")
    assert code(raised) == "no-rule"
    assert "remove" in notes(raised)


def test_a_change_that_fails_when_it_is_evaluated_leaves_the_program() -> None:
    s = dlog.session(".decl n(x: number)\n", {"n": [(0,)]})
    with pytest.raises(dlog.DlogError) as raised:
        s.add_rules(".decl q(x: number) q(1 / x) :- n(x).")
    assert code(raised) == "division-by-zero"
    assert (list(s), s.round) == (["n"], 1)


def test_questions_know_the_changed_program() -> None:
    s = chain()
    assert len(s.query("path(1, X)")) == 2
    s.drop_rules(STEP)
    assert len(s.query("path(1, X)")) == 1


def test_programs_do_not_change_inside_transactions() -> None:
    s = chain()
    with pytest.raises(dlog.DlogError) as raised, s.transaction():
        s.add_rules("path(x, x) :- edge(x, _).")
    assert code(raised) == "program-inside-transaction"
