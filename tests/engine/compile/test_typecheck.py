"""What is accepted and what is refused, in pairs that differ by little."""

from __future__ import annotations

import pytest

from tests.engine.compile.rules_of import compiled, mistakes

DECLS = """
.type Name <: symbol
.type First <: Name
.type Last <: Name
.type Any = First | Last
.type Same = First
.type Pair = [a: number, b: symbol]
.type Twin = Pair
.decl n(x: number)
.decl f(x: float)
.decl u(x: unsigned)
.decl s(x: symbol)
.decl name(x: Name)
.decl first(x: First)
.decl last(x: Last)
.decl any(x: Any)
.decl same(x: Same)
.decl pair(p: Pair)
.decl twin(p: Twin)
"""

ACCEPTED = [
    "f(1).",
    "f(x + 1) :- f(x).",
    "f(1 / 2.0).",
    "u(x + 1) :- u(x).",
    "u(1u).",
    "n(x) :- n(x), x < 3, 3 > 2.",
    "s(x) :- name(x).",
    "s(x) :- first(x), name(x).",
    "name(x) :- first(x).",
    "any(x) :- first(x) ; last(x).",
    "first(x) :- any(x), first(x).",
    "first(x) :- same(x).",
    "same(x) :- first(x).",
    'first("a").',
    'first(cat("a", x)) :- last(x).',
    "first(as(x, First)) :- last(x).",
    "s(x) :- first(x), !last(x).",
    "first(x) :- first(x), x = y, name(y).",
    "twin(p) :- pair(p).",
    'pair([1, "a"]).',
    "pair([x, y]) :- n(x), s(y).",
    "n(x) :- pair([x, _]).",
    "pair(nil).",
    "pair(p) :- pair(p), p != nil.",
    "n(x) :- n(x), to_string(x) = \"1\".",
    "n(c) :- c = count : { pair(_) }.",
    "f(m) :- m = mean x : { n(x) }.",
    "s(min(x, y)) :- s(x), s(y).",
    "n(x) :- n(x), \"a\" < \"b\".",
    "n(ord(p)) :- pair(p).",
    "n(as(x, number)) :- s(x).",
]

REFUSED = [
    ("n(1.0).", [("type-mismatch", "1.0")]),
    ("n(x + 1.5) :- n(x).", [("type-mismatch", "1.5")]),
    ("n(1 / 2.0).", [("type-mismatch", "1 / 2.0")]),
    ("u(x + y) :- u(x), n(y).", [("type-mismatch", "y")]),
    ("n(1u).", [("type-mismatch", "1u")]),
    ('n(x) :- n(x), x < "3".', [("type-mismatch", 'x < "3"')]),
    ("name(x) :- s(x).", [("not-a-subtype", "x")]),
    ("first(x) :- name(x).", [("not-a-subtype", "x")]),
    ("first(x) :- any(x).", [("not-a-subtype", "x")]),
    ("first(x) :- first(x), last(x).", [("disjoint-types", "x")]),
    ("last(x) :- same(x).", [("not-a-subtype", "x")]),
    ("first(x) :- last(x).", [("not-a-subtype", "x")]),
    ("first(as(x, Name)) :- last(x).", [("not-a-subtype", "as(x, Name)")]),
    ("n(x) :- n(x), !s(x).", [("type-mismatch", "x")]),
    ("first(x) :- first(x), x = y, last(y).", [("disjoint-types", "y")]),
    ('pair(["a", 1]).', [("type-mismatch", '"a"'), ("type-mismatch", "1")]),
    ("pair([1]).", [("wrong-arity", "[1]")]),
    ("pair([x, y]) :- n(x), n(y).", [("type-mismatch", "y")]),
    ("n(x) :- pair([_, x]).", [("type-mismatch", "x")]),
    ("n(nil).", [("type-mismatch", "nil")]),
    ("n(x) :- n(x), x != nil.", [("type-mismatch", "x != nil")]),
    ("n(c) :- c = mean x : { n(x) }.", [("type-mismatch", "c")]),
    ("s(m) :- m = min x : { s(x) }.", [("type-mismatch", "x")]),
    ("n(min(x, y)) :- n(x), f(y).", [("type-mismatch", "y")]),
    ('n(x) :- n(x), 1 < "b".', [("type-mismatch", '1 < "b"')]),
    ("s(to_float(x)) :- s(x).", [("type-mismatch", "to_float(x)")]),
    ("f(x) :- f(x), 1 band x = 1.", [("type-mismatch", "x")]),
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    assert mistakes(DECLS + text) == []


@pytest.mark.parametrize(("text", "expected"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(text: str, expected: list[tuple[str, str]]) -> None:
    assert mistakes(DECLS + text) == expected


def test_all_mistakes_of_all_clauses_are_reported_in_the_order_of_the_text() -> None:
    text = DECLS + 'n("a"). n(y) :- n(x). f("b"). u(-1).'
    assert [code for code, _ in mistakes(text)] == ["type-mismatch", "ungrounded-variable", "type-mismatch", "literal-range"]


def test_a_rule_that_never_holds_is_still_checked() -> None:
    assert mistakes(DECLS + 'n("a") :- false.') == [("type-mismatch", '"a"')]


def test_recursive_records_and_equivalence_types_resolve() -> None:
    program = compiled(".type L = [h: number, t: L] .type M = L .decl l(x: L, y: M)")
    first, second = (t for _, t in program.relations["l"].attributes)
    assert first == second == program.types["M"]
    assert first.fields == (("h", "number"), ("t", "L"))
