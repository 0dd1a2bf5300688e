"""Inline relations: the same answers as without the word, where both may be, and arguments that are bound at the use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dlog
from dlog.engine.compiler import compile_source
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.conftest import RunText
from tests.examples import examples
from tests.naive import TooBig, evaluate
from tests.strategies import Case, Relation, random_programs


class Inline(Relation):
    @property
    def declaration(self) -> str:
        return super().declaration + " inline"


def with_inline(case: Case, names: set[str]) -> Case:
    """The case with these relations inline, but for those that cannot be."""
    for name in sorted(names):
        made = [Inline(r.name, r.types, r.stratum) if r.name == name else r for r in case.relations]
        changed = replace(case, relations=tuple(made))
        try:
            compile_source(Source(changed.text))
        except DlogError as error:
            assert {d.code for d in error.diagnostics} <= {"inline-cycle", "inline-negation", "not-stratified"}
        else:
            case = changed
    return case


@examples(150)
@given(random_programs(), st.sets(st.sampled_from(["d1", "d2", "d3", "d4", "d5"]), min_size=1))
def test_bodies_in_the_place_of_atoms_give_the_same_rows(run_text: RunText, case: Case, names: set[str]) -> None:
    inline = with_inline(case, names)
    assume(inline is not case)
    try:
        expected = evaluate(parse(Source(case.text)), case.facts, 200_000)
    except TooBig:
        assume(False)
    found = run_text(inline.text, case.facts)
    for relation in inline.relations:
        if not isinstance(relation, Inline):
            assert sorted(map(repr, found[relation.name])) == sorted(map(repr, expected[relation.name]))


BASE = ".decl b(x: number)\n.decl n(x: number, y: number)\nb(1). b(5). b(7). n(1, 2). n(5, 9). n(7, 5).\n"
READ = {
    "arguments may be bound at the use": (
        ".decl above(x: number, y: number) inline above(x, y) :- y > x.",
        "a(y) :- n(x, y), above(x, y).",
        {(2,), (9,)},
    ),
    "results of functors": (
        ".decl plus(x: number, y: number, z: number) inline plus(x, y, x + y).",
        "a(z) :- n(x, y), plus(x, y, z).",
        {(3,), (14,), (12,)},
    ),
    "clauses are alternatives": (
        ".decl near(x: number, y: number) inline near(x, x + 1). near(x, x - 1).",
        "a(y) :- b(x), near(x, y), y > 4.",
        {(6,), (8,)},
    ),
    "negation of several clauses": (
        ".decl odd(x: number) inline odd(x) :- x = 1 ; x = 5. odd(9).",
        "a(x) :- n(_, x), !odd(x).",
        {(2,)},
    ),
    "one that reads another": (
        ".decl up(x: number, y: number) inline up(x, y) :- n(x, y), y > x.\n"
        ".decl twice(x: number, z: number) inline twice(x, z) :- up(x, y), z = y * 2.",
        "a(z) :- b(x), twice(x, z).",
        {(4,), (18,)},
    ),
    "its names are its own": (
        ".decl f(x: number) inline f(y) :- n(x, y), b(x).",
        "a(x) :- b(x), f(x).",
        {(5,)},
    ),
    "the target of an aggregate is its own": (
        ".decl f(x: number) inline f(x) :- 2 = min x : { n(_, x) }, b(x).",
        "a(5) :- f(5).",
        {(5,)},
    ),
    "bindings are counted as without": (
        ".decl some(x: number) inline some(x) :- n(x, y), n(z, y).",
        "a(k) :- k = count : { some(_) }.",
        {(3,)},
    ),
    "a filter within a count": (
        ".decl big(x: number) inline big(x) :- x > 4.",
        "a(k) :- k = count : { b(x), big(x) }.",
        {(2,)},
    ),
    "rows are counted, not how they come about": (
        ".decl half(x: number) inline half(x / 4) :- b(x).",
        "a(k) :- k = count : { half(_) }.",
        {(2,)},
    ),
    "what a clause does not name counts once": (
        ".decl from(x: number) inline from(x) :- n(x, _). n(1, 3).",
        "a(k) :- k = count : { from(_) }.",
        {(3,)},
    ),
    "unnamed arguments beside other atoms count once": (
        ".decl g(x: number, y: number) inline g(x, y) :- n(x, y). n(1, 3).",
        "a(k) :- k = count : { g(x, _), b(x) }.",
        {(3,)},
    ),
    "one atom that stays counts no rows where two counted bindings": (
        ".decl one(x: number) inline one(1).",
        "a(k) :- k = count : { one(x), n(_, _) }.",
        {(1,)},
    ),
    "an aggregate as an argument": (
        ".decl above(x: number, y: number) inline above(x, y) :- y > x, y < 100.",
        "a(x) :- b(x), above(count : { b(_) }, x).",
        {(5,), (7,)},
    ),
    "no clauses": (".decl none(x: number) inline", "a(x) :- b(x), !none(x).", {(1,), (5,), (7,)}),
    "no clauses, which bind variables": (
        ".decl none(x: number) inline\n.decl via(x: number) inline via(x) :- none(x), x > 1.",
        "a(7). a(y) :- none(x), y = x + 1. a(x) :- b(x) ; via(x), !none(x). a(k) :- k = count : { none(_) }.",
        {(0,), (1,), (5,), (7,)},
    ),
    "several heads": (
        ".decl f(x: number) inline\n.decl g(x: number)\nf(x), g(x) :- n(x, _), x > 1.",
        "a(x) :- f(x), g(x).",
        {(5,), (7,)},
    ),
}


@pytest.mark.parametrize("case", READ)
def test_inline(run_text: RunText, case: str) -> None:
    declared, rule, expected = READ[case]
    assert set(run_text(f"{BASE}{declared}\n.decl a(x: number)\n.output a\n{rule}\n", {})["a"]) == expected


REFUSED = {
    "an inline relation is written": (".decl f(x: number) inline\nf(1).\n.output f", "inline-io", 6),
    "a cycle": (
        ".decl f(x: number) inline\n.decl g(x: number) inline\nf(x) :- g(x).\ng(x) :- f(x).",
        "inline-cycle",
        7,
    ),
    "a negation of what binds": (
        ".decl f(x: number) inline\nf(x) :- n(x, y), b(y).\n.decl a(x: number)\na(x) :- b(x), !f(x).",
        "inline-negation",
        7,
    ),
    "a negation of what is computed from what binds": (
        ".decl f(x: number) inline\nf(x + 1) :- b(x).\n.decl a(x: number)\na(x) :- b(x), !f(x).",
        "inline-negation",
        7,
    ),
    "a wildcard under a negation": (
        ".decl f(x: number, y: number) inline\nf(x, y) :- n(x, y).\n.decl a(x: number)\na(x) :- b(x), !f(x, _).",
        "inline-negation",
        7,
    ),
    "nothing binds": (
        ".decl f(x: number, y: number) inline\nf(x, y) :- x < y.\n.decl a(x: number)\na(x) :- b(x), f(x, _).",
        "ungrounded-variable",
        7,
    ),
    "types where nobody reads": (".decl f(x: symbol) inline\nf(x) :- x > 1.", "type-mismatch", 5),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    text, code, line = REFUSED[case]
    with pytest.raises(DlogError) as caught:
        compile_source(Source(BASE + text))
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert f":{line}:" in str(caught.value)


def test_an_inline_relation_is_asked_not_read() -> None:
    text = f"{BASE}.decl above(x: number, y: number) inline\nabove(x, y) :- y > x.\n"
    with dlog.session(text) as session:
        assert list(session.query("b(x), n(_, y), above(x, y), x > 1")) == [(5, 9), (7, 9)]
        with pytest.raises(DlogError, match="the relation `above` is inline"):
            session["above"]
        with pytest.raises(DlogError, match="the relation `above` is inline"):
            session.insert("above", [(1, 2)])
        session.add_rules(".decl a(x: number)\na(x) :- b(x), above(4, x).")
        session.add_rules("above(x, y) :- y = x - 3.")
        assert set(session["a"]) == {(1,), (5,), (7,)}
        assert str(session.why("a", (1,)))
    with pytest.raises(DlogError, match="the relation `above` is inline"):
        dlog.run(text)["above"]
