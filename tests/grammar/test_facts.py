"""Facts of literals take a short way through the parser, to the same tree."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace

import pytest

from dlog.grammar import automaton, syntax
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source

NEVER = re.compile(r"(?!)")


def _said(text: str) -> object:
    try:
        return _all(parse(Source(text)))
    except DlogError as error:
        return str(error)


def _all(node: object) -> object:
    """A tree with all places."""
    if isinstance(node, tuple):
        return [_all(part) for part in node]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    return node.__class__.__name__, [(f.name, _all(getattr(node, f.name))) for f in fields(node)]


TEXTS = [
    'e(1, 2). e(2,3).\ne ( 4\t, "a" ) .\ne("b, c).", 0x1f).e(0b11, 12).',
    'e(1).\n// e(2).\ne(3). /* e(4). */ e(5).\n',
    "e(1).decl f(x: number)",
    "e(1). .decl f(x: number)\nf(2). f(x) :- e(x). f(3).",
    "e(1) :- f(2). e(1, 2) :- f(3), g(4). e(5).",
    "e(-1). e(1.5). e(127.0.0.1). e(12u). e(1). e(0b12). e(0x).",
    'e("a\\n"). e("b"). e("\\""). e("é").',
    "c.e(1). e(2). e(). e(_). e(nil). e([1, 2]). e(x).",
    ".comp C { e(1). e(2). }\ne(3).",
    "e(1), f(2). e(3), f(4) :- g(5). e(6).",
    "e(1) <= e(2) :- true. e(3).",
    "e(1). min(2). e(3).",
    "e(1).\ncount(2). e(3).",
    "e(1) e(2).",
    "e(1). e(2",
    "e(1). $ e(2).",
    "e(1,). e(2).",
    "e(1) .plan 1: (1)",
    "e(1, 2) . e(3, 4).\n\n  ",
    "?e(1). _e(2). _(3).",
    "e(-1, -0x1f). e(- 1). e(--1). e(-1 + 2). e(1.5, -2.5e-3, 1.5E+2). e(1e5).",
    "e(1.5). e(1.). e(1.2.3). e(1.5u). e(-12u).",
    'e("a\\"b", "\\\\"). e("\\t\\\\"). e("\\x"). e(1).',
    'e("a\\\nb"). e("b").',
    "e(1_000, 0x_f). e(1_000, 0xf_f, 0b1_0, 1_0.2_5e-7, -1E+3). e(1_).\ne(1_u). e(1_0u). e(1__0). e(1e_3). e(1e3_0). e(2).",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_short_way_says_what_the_grammar_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = _said(text)
    monkeypatch.setattr(automaton, "FACT", NEVER)
    assert short == _said(text)


def test_facts_that_follow_each_other_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "_reduce", None)  # the long way fails
    with pytest.raises(TypeError):
        parse(Source("e(1)."))
    monkeypatch.undo()
    reduced: list[object] = []
    reduce = automaton._reduce
    monkeypatch.setattr(automaton, "_reduce", lambda *args: reduced.append(0) or reduce(*args))
    parse(Source('e(1, "a", -2, 1.5e3, "\\n", 0x1f).\n' * 100))
    assert len(reduced) < 10


def test_a_fact_passes_for_the_clause_of_its_nodes() -> None:
    (fact,) = parse(Source('e(1, -2, "\\t").')).items
    atom = syntax.Atom("e", (syntax.Number("1"), syntax.Call("-", (syntax.Number("2"),)), syntax.String("\t")))
    assert fact == syntax.Clause((atom,)) and syntax.Clause((atom,)) == fact and hash(fact) == hash(syntax.Clause((atom,)))
    assert fact != syntax.Clause((atom, atom))
    assert isinstance(fact, syntax.Clause)
    assert replace(fact, heads=(atom, atom)) == syntax.Clause((atom, atom))
