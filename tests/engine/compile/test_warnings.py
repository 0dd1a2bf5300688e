"""Warnings: each kind alone, what has none, and the programs of the project."""

from __future__ import annotations

import pytest

from dlog.engine.compile.warnings import CODES
from dlog.engine.compiler import compile_source
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.preprocess import preprocess
from dlog.grammar.source import Source
from tests.conftest import ROOT

DECLARED = """.decl e(x: number, y: number)
.input e
.decl f(x: float)
.input f
.decl one(x: number)
one(3).
.decl p(x: number)
.output p
"""


def warnings(source: Source) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    compile_source(source, found.extend)
    return found


def codes(rules: str, declared: str = DECLARED) -> list[tuple[str, str]]:
    """The codes with what is underlined, but for relations that these rules do not read."""
    source = Source(declared + rules, "w.dl")
    found = [w for w in warnings(source) if w.code != "never-read"]
    return [(w.code, source.text[w.labels[0].span.start : w.labels[0].span.end] if w.labels else "") for w in found]


@pytest.mark.parametrize("code", CODES)
def test_examples_have_the_warning_that_they_are_about_and_no_other(code: str) -> None:
    found = warnings(Source(CODES[code].example, "w.dl"))
    assert {w.code for w in found} == {code}
    assert {w.severity for w in found} == {"warning"}


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("p(x) :- e(x, y), one(y1), y1 > x.", [("single-use-variable", "y")]),
        ("p(x) :- e(x, _y).", []),
        ("p(x) :- e(x, _).", []),
        ("p(x) :- e(x, y), e(y, x) ; e(x, z), one(z).", []),
        ("p(n) :- e(x, _), n = count : { e(x, y), e(y, z) }.", []),  # each z is a match of its own
        ("p(x) :- e(x, y), !e(x, 2).", [("single-use-variable", "y")]),
    ],
)
def test_variables_that_occur_once(rule: str, found: list[tuple[str, str]]) -> None:
    assert codes(rule) == found


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("p(x + n) :- e(x, _), n = sum x : { e(x, _) }.", [("shadowed-variable", "x")]),
        ("p(n) :- e(x, _), n = x + (sum x : { e(x, _) }).", [("shadowed-variable", "x")]),
        ("p(x + n) :- e(x, _), n = max x + 1 : { e(x, _) }.", [("shadowed-variable", "x")]),
        ("p(n) :- n = sum x : { e(x, m), m = max x : { e(x, _) } }.", [("shadowed-variable", "x")]),
        ("p(x + n) :- e(x, _), n = sum y : { e(x, y) }.", []),
        ("p(x) :- x = min x : { e(x, _) }.", []),
        ("p(x) :- min x : { e(x, _) } = x.", []),
        ("p(n) :- n = sum x : { e(x, _) }.", []),
        ("p(n + m) :- n = sum x : { e(x, _) }, m = max y : { e(_, y) }.", []),
        ("p(x + n) :- e(x, _), n = count : { e(x, _) }.", []),
    ],
)
def test_targets_that_hide_variables(rule: str, found: list[tuple[str, str]]) -> None:
    assert codes(rule) == found


@pytest.mark.parametrize(
    ("items", "found"),
    [
        (".comp C { .decl e(x: number)\ne(1). }\n.init c = C\n.output c.e", ["e"]),
        (".comp C { .comp D { .decl e(x: number)\ne(1). }\n.init d = D }\n.init c = C\n.output c.d.e", ["e"]),
        (".comp C { .decl q(x: number)\nq(1). }\n.init c = C\n.init d = C\n.output c.q, d.q", []),
        (
            ".type T <: number\n.comp C { .type T <: number\n.decl q(x: T)\nq(1). }\n.init c = C\n.output c.q",
            [".type T <: number"],
        ),
        (".comp A { .decl q(x: number)\nq(1). }\n.comp B : A { q(2). }\n.init b = B\n.output b.q", []),
        ('.type date <: number\n.decl q(x: date)\nq(1). q(year(date("2026-11-25"))).\n.output q', [".type date <: number"]),
        (".type date <: number\n.decl q(x: date)\nq(1).\n.output q", []),
    ],
)
def test_declarations_that_hide_others(items: str, found: list[str]) -> None:
    declared = ".decl e(x: number)\ne(0).\n.output e\n"
    assert codes(items, declared) == [("shadowed-declaration", text) for text in found]


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("p(x + y) :- e(x, _), e(y, _).", [("cross-product", "e(x, _)")]),
        ("p(x + y) :- e(x, z), e(y, z).", []),
        ("p(x + y) :- e(x, _), e(y, _), x < y.", []),
        ("p(x + y) :- e(x, _), e(y, _), !e(x, y).", []),
        ("p(x + y) :- e(x, _), one(y).", []),
        ("p(x) :- e(x, _), e(1, 2).", []),
        ("p(x + y) :- one(1), (e(x, _), (e(y, _), x > 0)).", [("cross-product", "e(x, _)")]),
        ("p(x + y) :- e(x, _), y = count : { e(_, _) }.", []),
        ("p(x) :- e(x, _), e(_, _).", []),
        ("p(x + y) :- one(1), (e(x, z), e(y, z) ; e(x, _), e(y, _)).", [("cross-product", "e(x, _)")]),
    ],
)
def test_unconnected_atoms(rule: str, found: list[tuple[str, str]]) -> None:
    assert codes(rule) == found


@pytest.mark.parametrize(
    ("declared", "is_single"),
    [
        (".decl n(x: number)\nn(1).\n", True),
        (".decl n(x: number)\nn(1). n(2).\n", False),
        (".decl n(x: number)\n.input n\nn(1).\n", False),
        (".decl n(x: number)\nn(c) :- c = count : { e(_, _) }.\n", True),
        (".decl n(x: number)\nn(c) :- e(c, _).\n", False),
        (".decl n(x: number)\nn(x) :- m = max y : { e(x, y) }, m > 0.\n", False),
    ],
)
def test_relations_of_one_row_give_constants(declared: str, is_single: bool) -> None:
    assert ("cross-product" in dict(codes(f"{declared}p(x + y) :- e(x, _), n(y).\n"))) != is_single


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("p(1) :- f(x), f(y), x != y.", [("float-equality", "x != y")]),
        ("p(1) :- f(x), x = 1.5.", [("float-equality", "x = 1.5")]),
        ("p(1) :- f(x), f(y), x = y * 2.0.", [("float-equality", "x = y * 2.0")]),
        ("p(1) :- f(x), y = x * 2.0, f(y).", [("float-equality", "y = x * 2.0")]),
        ("p(1) :- f(x), y = x * 2.0, y > 1.0.", []),
        ("p(1) :- f(x), x = min y : { f(y) }.", []),
        ("p(x) :- e(x, y), x = y.", []),
        (".type share <: float\n.decl s(x: share)\n.input s\np(1) :- s(x), x != 0.5.", [("float-equality", "x != 0.5")]),
    ],
)
def test_floats_compared_for_equality(rule: str, found: list[tuple[str, str]]) -> None:
    assert codes(rule) == found


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("p(1) :- 1 = 2.", [("never-fires", "1 = 2")]),
        ('p(1) :- "a" = "b".', [("never-fires", '"a" = "b"')]),
        ("p(1) :- false.", [("never-fires", "false")]),
        ("p(1) :- 1 < 2.", []),
        ("p(x) :- p(x).", [("never-fires", "p(x)")]),
        ("p(x) :- p(x) ; one(x).", []),
        (".decl g(x: number)\np(x) :- g(x), one(x).", [("never-filled", "g"), ("never-fires", "g(x)")]),
        (".decl g(x: number)\np(x) :- one(x), !g(x).", [("never-filled", "g")]),
        (".decl g(x: number)\np(n) :- n = count : { g(_) }.", [("never-filled", "g")]),
        # What follows from a rule that cannot fire is not said again.
        (".decl q(x: number)\nq(1) :- 1 = 2.\np(x) :- q(x).", [("never-fires", "1 = 2")]),
    ],
)
def test_rules_that_derive_nothing(rule: str, found: list[tuple[str, str]]) -> None:
    assert codes(rule) == found


def test_relations_that_nobody_reads() -> None:
    found = warnings(Source(f"{DECLARED}p(x) :- e(x, _).", "w.dl"))
    assert [(w.code, w.message) for w in found] == [
        ("never-read", "relation `f` is neither read nor an output"),
        ("never-read", "relation `one` is neither read nor an output"),
    ]


def test_a_program_without_output_is_told_of_once() -> None:
    """And not, for each of its relations, that nobody reads it."""
    [warning] = warnings(Source("a(1). b(1).\n.decl a(x: number)\n.decl b(x: number)", "w.dl"))
    assert (warning.code, warning.place, warning.labels) == ("without-output", "w.dl", ())


def test_old_qualifiers_of_declarations_count() -> None:
    assert warnings(Source(".decl a(x: number) input\n.decl b(x: number) output\nb(x) :- a(x).", "w.dl")) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("programs/*/program.dl")), ids=lambda path: path.parent.name)
def test_the_projects_programs_have_no_warnings(path: object) -> None:
    assert warnings(preprocess(path)) == []  # type: ignore[arg-type]
