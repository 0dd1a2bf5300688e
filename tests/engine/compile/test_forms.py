"""Clauses of one form are checked and normalized once, and become the rules that each of them alone becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog import run_text
from dlog.engine.compile import check
from dlog.engine.compile.normal import form_rules
from dlog.engine.compile.normal.form_rules import Forms
from dlog.engine.compile.normal.forms import Form
from dlog.engine.compile.resolve import resolve
from dlog.engine.compiler import check_tree, parse
from dlog.grammar import parser
from dlog.grammar.alike_clauses import AlikeClause
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.preprocess import preprocess
from dlog.grammar.source import Source
from tests.bench.shapes import SHAPES

DECLARED = """
.type Pair = [a: number, b: number]
.type Id <: number   .type Name <: symbol
.decl e(x: number, y: number)   .decl f(x: number, y: number)   .decl g(x: float, y: symbol)
.decl u(x: unsigned)   .decl r(p: Pair)   .decl i(x: Id)   .decl n(x: Name)   .decl p(x: number)   .decl q(x: number)
"""

ALIKE = [
    ("p(x) :- e(x, y), f(y, z), z > 5.", "q(abc) :- f(abc, d), e(d, z), z > 77."),
    ("p(x) :- e(x, 2), e(x, 2).", "q(x) :- e(x, 3), e(x, 3)."),
    ('n(x) :- n(x), x != "a".', 'n(y) :- n(y), y != "b\\n".'),
    ("p(n) :- e(n, _), n = count : { f(n, x), x < 7 }.", "q(m) :- f(m, _), m = count : { e(m, y), y < 9 }."),
    ("p(x), q(x) :- e(x, y), (f(x, y) ; !e(y, x)).", "q(y), p(y) :- f(y, x), (e(y, x) ; !f(x, y))."),
    ("r([x, y]) :- e(x, y), r([y, _]).", "r([a, bc]) :- f(a, bc), r([bc, _])."),
    ("p(m) :- m = min x : { e(x, y), x = max y : { f(y, _) } }.", "q(k) :- k = min b : { e(b, c), b = max c : { f(c, _) } }."),
    ("g(x * 2, y) :- g(x, y), x < 10.", "g(z * 30, y) :- g(z, y), z < 20."),
    ("p(ord(y)) :- g(_, y), strlen(y) > 4.", "q(ord(z)) :- g(_, z), strlen(z) > 9."),
    ("i(as(x, Id)) :- e(x, _).", "i(as(y, Id)) :- f(y, _)."),
]
"""Clauses of one form."""

APART = [
    ("p(x) :- e(x, 2), e(x, 3).", "q(x) :- e(x, 2), e(x, 2)."),
    ("p(x) :- e(x, y), y = 3, y < 4.", "p(x) :- e(x, y), y = 5, y < 4."),
    ("p(x) :- e(x, _), 3 < 4.", "p(x) :- e(x, _), 5 < 4."),
    ("p(x) :- e(x, y), !(y != 3), y < 4.", "p(x) :- e(x, y), !(y != 5), y < 4."),
    ("p(x) :- r([x, 1]), [x, 1] = [1, 1].", "p(x) :- r([x, 1]), [x, 2] = [1, 1]."),
    ("p(x) :- e(x, y), y > -5.", "p(x) :- e(x, y), y > -6."),
    ("p(x) :- e(x, y), y > 0.", "p(x) :- e(x, y), y > 7."),
    ("p(x) :- e(x, y), y > 0x10.", "p(x) :- e(x, y), y > 16."),
    ("p(x) :- e(x, _).", "p(x) :- e(_, x)."),
    ("p(x) :- e(x, _1), f(_1, _).", "p(y) :- e(y, z), f(z, _)."),
    ("p(x + 1) :- e(x, y), f(y + 1, _).", "p(_1 + 1) :- e(_1, y), f(y + 1, _)."),
    ("p(x) :- e(x, x).", "p(x) :- e(x, y), e(y, _)."),
    ("p(x) :- e(x, _).", "p(x) :- u(x)."),
    ("u(x) :- u(x), x > 5.", "u(x) :- u(x), x > 18446744073709551616."),
    ("i(x) :- i(x).", "i(x) :- p(x)."),
    ("n(x) :- n(x), !g(1, x).", "n(x) :- g(1, x)."),
    ("p(x) :- e(x, y), true.", "p(x) :- e(x, y), false."),
    ("p(x) :- e(x, y), x < y.", "p(x) :- e(x, y), x < z."),
]
"""Clauses that look alike, of which one has another meaning or a mistake."""


def _checked(text: str | Source) -> object:
    source = Source(text) if isinstance(text, str) else text
    try:
        found = check_tree(parse(source), source)
        return found.rules, found.facts
    except DlogError as error:
        return str(error)


def _alone(text: str | Source, monkeypatch: pytest.MonkeyPatch) -> object:
    """What the text says where each clause is checked by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(form_rules.Forms, "rules", lambda *_: None)
        return _checked(text)


@pytest.mark.parametrize("pair", [*ALIKE, *APART])
def test_each_clause_becomes_what_it_becomes_alone(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for clauses in (pair, pair[::-1]):
        text = DECLARED + "\n".join(clauses)
        assert _checked(text) == _alone(text, monkeypatch)


@pytest.mark.parametrize("pair", ALIKE)
def test_clauses_of_one_form_are_checked_once(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []
    original = check.typecheck
    monkeypatch.setattr(check, "typecheck", lambda clause, *rest: checked.append(clause) or original(clause, *rest))
    _checked(DECLARED + pair[0])
    once = len(checked)
    _checked(DECLARED + "\n".join(pair))
    assert len(checked) == 2 * once


def test_all_programs_are_what_their_clauses_are_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [preprocess(path) for path in sorted(Path(__file__).parents[3].glob("programs/**/*.dl"))]
    sources += [Source(made(60)) for made in SHAPES.values()]
    assert len(sources) > 30
    for source in sources:
        assert _checked(source) == _alone(source, monkeypatch)


def test_the_tag_of_a_branch_is_no_literal_of_the_clause() -> None:
    text = """.type T = Leaf {} | Node { l: T, r: T } | Nothing {}
.decl b(k: number, t: T)
b(2, $Node($Nothing(), $Nothing())) :- true.
b(1, $Node($Nothing(), $Nothing())) :- true."""
    rows = run_text(text, {})["b"]
    assert {str(t) for _, t in rows} == {str(next(iter(rows))[1])} and {k for k, _ in rows} == {1, 2}


def _alike(text: str) -> tuple[Forms, list[AlikeClause]]:
    """The forms of a program, and its clauses that were parsed by their shape."""
    source = Source(text)
    tree = parse(source)
    clauses = [item for item in tree.items if type(item) is AlikeClause]
    return Forms(resolve(tree, source)), clauses


def _same(forms: Forms, clause: AlikeClause) -> bool:
    """Whether the form of a clause is that of its nodes."""
    found, whole = forms.form(clause), Form(clause, forms._columns)
    numbers = range(len(whole.spans))
    assert (found.key, found.some_spans(numbers)) == (whole.key, whole.spans)
    named = [(list(form.relations), list(form.variables), list(form.literals)) for form in (found, whole)]
    return named[0] == named[1]


@pytest.mark.parametrize("pair", [*ALIKE, *APART])
def test_the_form_of_a_clause_is_that_of_its_nodes(pair: tuple[str, str]) -> None:
    forms, clauses = _alike(DECLARED + "\n".join([pair[0], *pair, pair[1]]))
    assert all(_same(forms, clause) for clause in clauses) and (clauses or "0x10" in pair[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_forms_of_programs_of_many_rules_are_those_of_their_nodes(shape: str) -> None:
    forms, clauses = _alike(SHAPES[shape](60))
    assert all(_same(forms, clause) for clause in clauses) and (clauses or shape == "facts")


@pytest.mark.parametrize("shape", SHAPES)
def test_nodes_of_clauses_like_others_are_not_made(shape: str) -> None:
    source = Source(SHAPES[shape](200))
    tree = parse(source)
    check_tree(tree, source)
    clauses = [item for item in tree.items if type(item) is AlikeClause]
    assert sum(clause._heads is not None for clause in clauses) <= 30


WRONG = [
    ("p(x) :- e(x, y), q(y).", "p(a) :- e(a, b), w(b)."),
    ("p(x) :- e(x, y), q(y).", "p(a) :- e(a, b), e(b)."),
    ("p(x) :- e(x, y), q(y).", "p(a) :- e(b, b), q(b)."),
    ("p(strlen(y)) :- g(_, y).", "p(strlon(y)) :- g(_, y)."),
    ("p(as(x, Id)) :- e(x, _).", "p(as(x, Ix)) :- e(x, _)."),
    ("p(x) :- e(x, y), q(y).", "p(a) :- e(a, b), n(b)."),
]


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_mistakes_of_clauses_like_right_ones_are_found_where_they_are(
    right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join([DECLARED, right, right, right, wrong, right])
    found = _checked(text)
    monkeypatch.setattr(parser, "Alike", lambda *_: None)
    assert found == _checked(text) and isinstance(found, str)
