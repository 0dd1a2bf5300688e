"""Printing and parsing are inverse, and formatting keeps the program and its comments."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from dlog.grammar import syntax
from dlog.grammar.parser import parse
from dlog.grammar.printer import find_trivia, format_program, format_source
from dlog.grammar.source import Source
from tests.examples import examples
from tests.grammar import trees

modest = examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@modest
@given(trees.programs)
def test_parse_of_print_is_the_tree(program: syntax.Program) -> None:
    assert parse(Source(format_program(program))) == program


@modest
@given(trees.bodies)
def test_bodies_keep_their_grouping(body: syntax.Body) -> None:
    clause = syntax.Clause((syntax.Atom("p", ()),), body)
    assert parse(Source(format_program(syntax.Program((clause,))))).items == (clause,)


@st.composite
def commented_texts(draw: st.DrawFn) -> str:
    """Printed items with comments, empty lines and preprocessor lines around them."""
    comment = st.sampled_from(["// note", "/* block */", "/* two\n   lines */", "@[note]"])
    parts = []
    for item in draw(trees.few(trees.items, 1, 4)):
        parts += [draw(comment) + "\n" for _ in range(draw(st.integers(0, 2)))]
        parts.append(draw(st.sampled_from(["", "\n", "\n\n\n", "#define X 1\n", ".once\n"])))
        parts.append(format_program(syntax.Program((item,)))[:-1])
        parts.append(draw(st.sampled_from(["\n", " // behind\n", "  /* behind */\n", " /* a */ // b\n"])))
    return "".join(parts)


@modest
@given(commented_texts())
def test_formatting_keeps_tree_and_comments_and_is_stable(text: str) -> None:
    formatted = format_source(Source(text))
    assert [t.text for t in find_trivia(formatted)] == [t.text for t in find_trivia(text)]
    assert format_source(Source(formatted)) == formatted
    if not any(t.kind == "line" for t in find_trivia(text)):
        assert parse(Source(formatted)) == parse(Source(text))


FORMATTED = {
    "numbers as written": (
        "e(1_000,0xff_ff,1e3).\ne(x):-x=0b1_0u,f(2.5E-7,-1_0.5).",
        "e(1_000, 0xff_ff, 1e3).\ne(x) :- x = 0b1_0u, f(2.5E-7, -1_0.5).\n",
    ),
    "spaces": ("path( x,y ):-edge(x,y),x<y .", "path(x, y) :- edge(x, y), x < y.\n"),
    "facts of one line stay on it": ("e(1,2).e(2,3).\ne(3,4).", "e(1, 2). e(2, 3).\ne(3, 4).\n"),
    "comment behind": ("e(1). // one\n// alone\ne(2).", "e(1).  // one\n// alone\ne(2).\n"),
    "empty lines become one": ("e(1).\n\n\n\ne(2).", "e(1).\n\ne(2).\n"),
    "comment inside a rule leaves it": ("p(x):-q(x), // why\n  x>1.", "p(x):-q(x), // why\n  x>1.\n"),
    "component": (
        ".comp C<T>:B<T>{ // open\n.decl r(x:T)\n// note\nr(x):-s(x).}",
        ".comp C<T> : B<T> {  // open\n    .decl r(x: T)\n    // note\n    r(x) :- s(x).\n}\n",
    ),
    "preprocessor lines": ("#ifdef A\n p(1).\n#endif", "#ifdef A\np(1).\n#endif\n"),
    "address": ("ip( 127.0.0.1 ).", "ip(127.0.0.1).\n"),
    "comment mark in a string": ('p("// no", "/* no").', 'p("// no", "/* no").\n'),
    "only a comment": ("// nothing\n", "// nothing\n"),
    "nothing": ("", ""),
    "legacy type": (".number_type N\n.type S", ".type N <: number\n.type S <: symbol\n"),
}


@pytest.mark.parametrize(("text", "formatted"), FORMATTED.values(), ids=FORMATTED.keys())
def test_format_source(text: str, formatted: str) -> None:
    assert format_source(Source(text)) == formatted


def test_long_rules_get_one_literal_per_line() -> None:
    literals = [f"relation_number_{i}(x, y, z)" for i in range(6)]
    text = f"head(x, y, z) :- {', '.join(literals)}."
    expected = "head(x, y, z) :-\n    " + ",\n    ".join(literals) + ".\n"
    assert format_source(Source(text)) == expected


def test_text_that_needs_its_macros_is_left_alone() -> None:
    text = "#define RULE(p) p(x) :- q(x).\nRULE(a)\n  b( 1 )."
    assert format_source(Source(text)) == text
