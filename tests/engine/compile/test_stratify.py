"""Strata: their order, which are recursive, recursion through min and max."""

from __future__ import annotations

import pytest

from dlog.engine.compile.strata.dependencies import components
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.rules import Io, Lattice
from tests.engine.compile.rules_of import compiled, mistakes

EDGES = ".decl node(x: number) .decl source(x: number) .decl edge(x: number, y: number, w: number) "


def strata(text: str) -> list[tuple[tuple[str, ...], bool]]:
    return [(s.relations, s.recursive) for s in compiled(text).strata]


def test_strata_come_after_what_they_read() -> None:
    text = """
    .decl far(x: number) .decl path(x: number, y: number) .decl edge(x: number, y: number) .decl size(n: number)
    size(n) :- n = count : { far(_) }.
    far(x) :- edge(x, _), !path(1, x).
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    """
    assert strata(text) == [(("path",), True), (("far",), False), (("size",), False)]


def test_mutual_recursion_is_one_stratum() -> None:
    text = """
    .decl e(x: number, y: number) .decl odd(x: number, y: number) .decl even(x: number, y: number)
    odd(x, y) :- e(x, y).
    odd(x, z) :- even(x, y), e(y, z).
    even(x, z) :- odd(x, y), e(y, z).
    """
    assert strata(text) == [(("odd", "even"), True)]


def test_relations_without_rules_have_no_stratum() -> None:
    assert strata(".decl a(x: number) .decl b(x: number) a(1). b(x) :- a(x).") == [(("b",), False)]


def test_a_component_is_found_at_the_end_of_a_long_chain() -> None:
    length = 50_000
    edges = {str(i): [str(i + 1)] for i in range(length)} | {str(length): [str(length - 1)]}
    found = components([str(i) for i in range(length + 1)], edges)
    assert found[0] == [str(length - 1), str(length)]
    assert [c[0] for c in found[1:]] == [str(i) for i in reversed(range(length - 1))]


WELL_DEFINED = [
    ("dist(x, d) :- node(x), d = min c : { source(x), c = 0 ; dist(y, b), edge(y, x, w), c = b + w }.", "min", 1),
    ("dist(x, d) :- node(x), d = max c : { source(x), c = 0 ; dist(y, b), edge(y, x, w), c = w + b }.", "max", 1),
    ("dist(x, d) :- node(x), d = min c : { source(x), c = 0 ; dist(y, c), edge(y, x, _) }.", "min", 1),
    ("dist(x, d) :- node(x), d = min b - w : { dist(y, b), edge(y, x, w) }.", "min", 1),
    ("dist(x, d) :- node(x), d = min c : { dist(y, b), edge(y, x, w), v = b + w, c = max(v, 3) }.", "min", 1),
    ("dist(d, x) :- node(x), d = min c : { source(x), c = 0 ; dist(b, y), edge(y, x, w), c = b + w }.", "min", 0),
    ("dist(x, d) :- node(x), d = min c : { source(x), c = 0 ; dist(y, b), dist(z, a), edge(y, x, z), c = a + b }.", "min", 1),
]


@pytest.mark.parametrize(("rule", "op", "column"), WELL_DEFINED)
def test_monotone_recursion_through_min_and_max_is_a_lattice(rule: str, op: str, column: int) -> None:
    program = compiled(EDGES + ".decl dist(x: number, d: number) " + rule)
    assert program.lattices == {"dist": Lattice("dist", Dominance.LEAST if op == "min" else Dominance.GREATEST, column)}
    assert program.strata[-1].recursive


@pytest.mark.parametrize(
    "rule",
    [
        "dist(x, d) :- node(x), d = min c : { dist(y, b), edge(y, x, w), c = b * w }.",
        "dist(x, d) :- node(x), d = min c : { dist(y, b), edge(y, x, w), c = w - b }.",
        "dist(x, d) :- node(x), d = min c : { dist(y, b), edge(y, x, c), b < c }.",
        "dist(x, d) :- node(x), d = min c : { dist(y, b), edge(b, x, c), edge(y, _, _) }.",
        "dist(x, d) :- node(x), d = min c : { dist(y, b), edge(y, x, w), c = b + w }, d < 10.",
        "dist(x, d + 1) :- node(x), d = min c : { dist(y, c), edge(y, x, _) }.",
        "dist(x, d) :- node(x), d = min c : { dist(x, x), edge(_, x, c) }.",
        "dist(x, d) :- edge(x, _, w), d = min c : { dist(y, c), edge(y, x, w) }.",
        "dist(x, d) :- node(x), d = min c : { edge(y, x, c), !dist(y, c) }.",
        "dist(x, d) :- node(x), d = count : { dist(y, _), edge(y, x, _) }.",
        "dist(x, d) :- node(x), d = min c : { dist(y, c), edge(y, x, _) }. dist(x, 0) :- source(x).",
        "dist(x, d) :- node(x), d = min c : { dist(y, c), edge(y, x, _) }. dist(1, 0).",
    ],
)
def test_other_recursion_through_an_aggregate_is_refused(rule: str) -> None:
    found = mistakes(EDGES + ".decl dist(x: number, d: number) " + rule)
    assert [code for code, _ in found] == ["not-stratified"]
    assert "dist(" in found[0][1]


def test_connected_components_are_a_lattice() -> None:
    text = """
    .decl node(x: number) .decl edge(x: number, y: number) .decl cc(x: number, l: number)
    cc(x, l) :- node(x), l = min v : { node(x), v = x ; cc(y, v), edge(x, y) ; cc(y, v), edge(y, x) }.
    """
    assert compiled(text).lattices == {"cc": Lattice("cc", Dominance.LEAST, 1)}


def test_each_cycle_is_one_error() -> None:
    text = ".decl a, b, c(x: number) a(x) :- c(x), !b(x). b(x) :- c(x), !a(x). c(x) :- c(x), !c(x)."
    assert mistakes(text) == [("not-stratified", "!b(x)"), ("not-stratified", "!c(x)")]


def test_directives_and_legacy_qualifiers_become_io() -> None:
    text = '.decl a(x: number) input output .decl b(x: number) printsize .output a, b(IO=stdout) .limitsize b(n=3)'
    assert [(i.action, i.relation, i.params) for i in compiled(text).io] == [
        ("input", "a", ()),
        ("output", "a", ()),
        ("printsize", "b", ()),
        ("output", "a", (("IO", "stdout"),)),
        ("output", "b", (("IO", "stdout"),)),
        ("limitsize", "b", (("n", "3"),)),
    ]
    assert isinstance(compiled(text).io[0], Io)
