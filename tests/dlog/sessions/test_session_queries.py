"""Questions to a session: their answers, rules that come with them, and what is computed for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import dlog
from dlog.sessions.queries.questions import MAX_COMPILED_QUESTIONS
from tests.examples import examples
from tests.strategies import SHAPE_RELATIONS, SHAPES, graphs, weighted_graphs

CLOSURE = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def code(raised: pytest.ExceptionInfo[dlog.DlogError]) -> str:
    [diagnostic] = raised.value.diagnostics
    return diagnostic.code


ROADS = """.type Route = [via: symbol, rest: Route]
.decl road(from: symbol, to: symbol, km: number)
.decl trip(route: Route, km: number)
trip([x, [y, nil]], k) :- road(x, y, k).
"""
ROAD_ROWS = [("Ulm", "Jena", 340), ("Jena", "Bonn", 380), ("Ulm", "Bonn", 400), ("Bonn", "Bonn", 1)]


@pytest.mark.parametrize(
    ("question", "attributes", "rows"),
    [
        ('?- road("Ulm", X, K).', ("X", "K"), [("Bonn", 400), ("Jena", 340)]),
        ("road(X, X, _)", ("X",), [("Bonn",)]),
        ("road(_, X, _)", ("X",), [("Bonn",), ("Jena",)]),
        ('road("Rome", X, _)', ("X",), []),
        ('road("Ulm", "Bonn", 400)', (), [()]),
        ("?- road(X, Y, A), road(Y, Z, B), X != Y, Y != Z.", ("X", "Y", "A", "Z", "B"), [("Ulm", "Jena", 340, "Bonn", 380)]),
        ("road(X, Y, _), !road(Y, _, _)", ("X", "Y"), []),
        ("road(X, Y, _), !road(Y, X, _), X != \"Ulm\"", ("X", "Y"), [("Jena", "Bonn")]),
        ("N = count : { road(_, _, _) }", ("N",), [(4,)]),
        ('road("Ulm", X, _) ; road(X, "Bonn", _)', ("X",), [("Bonn",), ("Jena",), ("Ulm",)]),
        ("trip(R, K), K < 350", ("R", "K"), [(("Bonn", ("Bonn", None)), 1), (("Ulm", ("Jena", None)), 340)]),
        ("trip([X, [_y, nil]], 380)", ("X",), [("Jena",)]),
        ('R = ["Ulm", ["Jena", nil]], trip(R, K)', ("R", "K"), [(("Ulm", ("Jena", None)), 340)]),
        ("X = 2 * 3", ("X",), [(6,)]),
    ],
)
def test_questions(question: str, attributes: tuple[str, ...], rows: list[Any]) -> None:
    found = dlog.session(ROADS, {"road": ROAD_ROWS}).query(question)
    assert (found.attributes, sorted(found)) == (attributes, rows)


def test_questions_are_about_the_present_round() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2)]})
    answers = [len(s.query("path(1, X)"))]
    s.insert("edge", (2, 3))
    answers.append(len(s.query("path(1, X)")))
    s.commit()
    answers.append(len(s.query("path(1, X)")))
    assert answers == [1, 1, 2]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("?- raod(X, _, _).", "unknown-relation"),
        ("road(X, Y)", "wrong-arity"),
        ("road(X, Y, K), K > Z", "ungrounded-variable"),
        ("road(X, _, _). road(Y, _, _).", "bad-query"),
        ("?- .", "bad-query"),
        ("", "bad-query"),
        ("road(X, 1, _)", "type-mismatch"),
    ],
)
def test_wrong_questions_are_explained(question: str, expected: str) -> None:
    s = dlog.session(ROADS, {"road": ROAD_ROWS})
    with pytest.raises(dlog.DlogError) as raised:
        s.query(question)
    assert code(raised) == expected


def test_a_wrong_question_is_shown_where_it_is_wrong() -> None:
    from dlog.grammar.diagnostics import render

    with pytest.raises(dlog.DlogError) as raised:
        dlog.session(ROADS).query("?- road(X, Y, K),\n   raod(Y, Z, L).")
    shown = render(raised.value.diagnostics[0])
    assert " --> <query>:2:4" in shown
    assert "2 |    raod(Y, Z, L)." in shown


# ------------------------------------------------------------------------------------------------------ rules of a question

CHAIN = {"edge": [(i, i + 1) for i in range(1, 200)]}
BACK = """
.decl back(x: number, y: number)
back(y, x) :- edge(x, y).
back(z, x) :- edge(y, z), back(y, x).
"""


def test_rules_of_a_question_are_for_it_alone() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2), (2, 3)]})
    question = f"{BACK} .decl seed(x: number) seed(3).\n?- seed(X), back(X, Y), !edge(Y, X)."
    assert sorted(s.query(question)) == [(3, 1)]
    assert list(s) == ["edge", "path"]
    s.insert("edge", (0, 1))
    s.commit()
    assert sorted(s.query(question)) == [(3, 0), (3, 1)]
    with s.at() as view:
        s.insert("edge", (-1, 0))
        s.commit()
        assert sorted(view.query(question)) == [(3, 0), (3, 1)]


def test_rules_of_a_question_may_have_types_records_and_aggregates() -> None:
    s = dlog.session(CLOSURE, {"edge": [(1, 2), (1, 3), (3, 4)]})
    question = """.type Way = [x: number, rest: Way]
.decl way(w: Way, x: number) way([x, nil], x) :- edge(x, _). way([y, w], y) :- way(w, x), edge(x, y).
.decl most(n: number) most(n) :- n = max x : { way(_, x) }.
?- most(N), way(W, N), W = [_, R], R != nil."""
    assert set(s.query(question)) == {(4, (4, (3, None)), (3, None)), (4, (4, (3, (1, None))), (3, (1, None)))}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("path(x, x) :- edge(x, _).\n?- path(1, X).", "the rules of a query are for relations that it declares, not `path`"),
        ("edge(7, 8). ?- edge(7, X).", "the rules of a query are for relations that it declares, not `edge`"),
        (".decl edge(x: number)\n?- edge(X).", "relation `edge` is declared twice"),
        (".decl a(x: number)\n.input a\n?- a(X).", "a query has no directives: `.input a`"),
        (".decl a(x: number)\na(X).\n?- a(X).", "is not bound"),
        (".decl a(x: number)\na(1). ?- .", "a query is one body of a rule"),
        ("?- edge(X, _). ?- edge(_, X).", "a query is one body of a rule"),
    ],
)
def test_wrong_rules_of_a_question_are_named(question: str, expected: str) -> None:
    with pytest.raises(dlog.DlogError) as raised:
        dlog.session(CLOSURE).query(question)
    assert expected in str(raised.value) or expected in code(raised)


def test_a_mistake_after_rules_is_shown_where_it_is() -> None:
    from dlog.grammar.diagnostics import render

    with pytest.raises(dlog.DlogError) as raised:
        dlog.session(CLOSURE).query(".decl a(x: number) a(1). // ?- not here\na(2). ?- a(X),\n  egde(X, _).")
    assert " --> <query>:3:3" in render(raised.value.diagnostics[0])
    with pytest.raises(dlog.DlogError) as raised:
        dlog.session(CLOSURE).query(".decl a(x: number)\na(2). ?- b(X).")
    assert " --> <query>:2:10" in render(raised.value.diagnostics[0])


def test_a_mark_in_a_string_or_a_comment_is_none() -> None:
    s = dlog.session(".decl a(x: symbol)\n", {"a": [("?-",)]})
    assert sorted(s.query('a(X), X = "?-"')) == [("?-",)]
    assert sorted(s.query('/* ?- a(X) */ ?- a(X), contains("?-", X). // ?-')) == [("?-",)]


# --------------------------------------------------------------------------------------------------------------- by demand


def test_few_values_are_asked_for_by_demand() -> None:
    s = dlog.session(CLOSURE, CHAIN)
    question = f"{BACK} ?- back(150, X)."
    assert s.explain(question).startswith("by demand: back[x] are asked for 0.5% of their values at first\n")
    assert "back[x]" in s.explain(question)
    assert len(s.query(question)) == 149


def test_all_is_computed_where_most_values_would_be_asked_for() -> None:
    s = dlog.session(CLOSURE, CHAIN)
    question = f"{BACK} ?- edge(X, Y), back(Y, X), X < 3."
    assert s.explain(question).startswith("all of what it reads is computed: back[x, y] would be asked for")
    assert sorted(s.query(question)) == [(1, 2), (2, 3)]
    assert s.explain(f"{BACK} ?- back(X, _), X < 3.").startswith("all of what it reads is computed: nothing in it is asked for")


def test_relations_that_are_there_are_not_computed() -> None:
    s = dlog.session(CLOSURE, CHAIN)
    assert s.explain("?- path(1, X).") == "rows of `path` are selected"
    plan = s.explain("?- path(1, X), path(X, 5).")
    assert plan.startswith("over relations that are maintained\n")
    assert "stratum path" not in plan


@pytest.mark.parametrize("asked", ["?- path(1, X).", "?- path(X, 3), X != 1.", "?- edge(X, Y), !path(Y, X).", "?- path(X, X)."])
def test_what_a_crash_left_is_computed_as_far_as_it_is_asked_for(tmp_path: Path, asked: str) -> None:
    program = CLOSURE + ".input path\n"
    first = dlog.session(program, {"edge": [(1, 2), (2, 3)], "path": [(3, 9)]}, state=tmp_path)
    first.insert("edge", [(3, 4), (4, 2)])
    first.commit()
    expected = sorted(first.query(asked))
    first._engine.abandon()  # type: ignore[attr-defined]
    with dlog.session(program, state=tmp_path) as s:
        assert "path" in s._engine.pending
        assert sorted(s.query(asked)) == expected
        assert "path" in s._engine.pending, "nothing has been derived but the answers"
        assert sorted(s["path"]) and not s._engine.pending
        assert sorted(s.query(asked)) == expected


@pytest.mark.slow
def test_only_so_many_compiled_questions_are_kept() -> None:
    s = dlog.session(CLOSURE, CHAIN)
    for number in range(MAX_COMPILED_QUESTIONS + 10):
        assert len(s.query(f"edge({number % 150 + 1}, X), X != {number}")) in (0, 1)
    assert len(s._questions._compiled) <= MAX_COMPILED_QUESTIONS


ASKED = ["?- p(1, X).", "?- p(X, 2).", "?- e(1, X), !p(X, 2).", "?- p(1, Y), p(Y, X).", "?- e(1, Y), X = count : { p(Y, _) }."]
TWO_NUMBERS = ["linear", "nonlinear", "same generation", "mutual", "triangles of a closure", "complement", "distances"]
TWO_NUMBERS += ["degrees", "ranks", "neighbours", "shortest paths", "components", "recursive triangles", "widest paths"]


@examples(60)
@given(shape=st.sampled_from(TWO_NUMBERS), edges=graphs(6, 12), weighted=weighted_graphs(6, 10), data=st.data())
def test_rules_of_a_question_give_what_rules_of_the_program_give(shape: str, edges: Any, weighted: Any, data: Any) -> None:
    rules = SHAPES[shape]
    used = [r for r in SHAPE_RELATIONS if any(f"{r.name}(" in rule for rule in rules) or r.name == "e"]
    declared = {r.name: f".decl {r.name}({', '.join(f'c{i}: {t}' for i, t in enumerate(r.types))})" for r in used}
    inputs = "\n".join(declared[r.name] for r in used if not r.stratum) + "\n"
    local = "\n".join([*(declared[r.name] for r in used if r.stratum), *rules]) + "\n"
    facts = {"e": edges, "w": weighted, "f": [(1, 0.5), (2, 1.5)]}
    given_ = {r.name: facts[r.name] for r in used if not r.stratum}
    asked = data.draw(st.sampled_from(ASKED))
    with dlog.session(inputs, given_) as s, dlog.session(inputs + local, given_) as whole:
        event(s.explain(local + asked).partition(":")[0])
        assert sorted(s.query(local + asked)) == sorted(whole.query(asked))


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("e(x), 1 / x = 1", "1:1\n  |\n1 | e(x), 1 / x = 1\n  | ^^^^^^^^^^^^^^^ while"),
        ("?- e(x), 1 / x = 1.", "1:4\n  |\n1 | ?- e(x), 1 / x = 1.\n  |    ^^^^^^^^^^^^^^^^ while"),
        ("  ?-  e(x),\n1 / x = 1.", "1:7\n  |\n1 |   ?-  e(x),\n  |       ^^^^^ while"),
        (".decl r(x: number) r(x) :- e(x).\n ?- r(x), 1 / x = 1.", "2:5\n  |\n2 |  ?- r(x), 1 / x = 1.\n  |     ^^^^^^^^"),
        ("?- zz(1).", "1:4\n  |\n1 | ?- zz(1).\n  |    ^^^^^"),
        ("e(x) e(y)", "1:5\n  |\n1 | e(x) e(y)\n  |     ^"),
    ],
)
def test_mistakes_are_shown_where_they_are_in_the_question(question: str, place: str) -> None:
    with dlog.session(".decl e(x: number)\ne(0).\n") as s, pytest.raises(dlog.DlogError) as raised:
        s.query(question)
    assert f"\n --> <query>:{place}" in str(raised.value)


def test_an_alternative_of_values_only_is_an_answer() -> None:
    text = ".decl c(x: number)\n.decl f(x: number) inline\nf(3).\nf(x) :- c(x).\n"
    with dlog.session(text, {"c": [(2,), (5,)]}) as session:
        assert set(session.query("?- X = 3.")) == {(3,)}
        assert set(session.query("?- c(X) ; X = 3, 0 <= 1.")) == {(2,), (3,), (5,)}
        assert set(session.query("?- f(X).")) == {(2,), (3,), (5,)}
        assert session.query("?- 1 < 2.") and not session.query("?- 2 < 1.")


def test_an_inline_relation_that_a_question_counts_is_computed_for_it() -> None:
    text = ".decl c(x: number)\n.decl f(x: number) inline\nf(3).\nf(x) :- c(x), x > 2.\n"
    with dlog.session(text, {"c": [(2,), (5,)]}) as session:
        assert set(session.query("?- N = count : { f(_) }.")) == {(2,)}
