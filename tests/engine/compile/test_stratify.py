"""Strata: their order, which are recursive, recursion through min and max."""

from __future__ import annotations

import pytest

from dlog.engine.compile.strata.dependencies import components
from dlog.engine.compiler import compile_source
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.rules import Io, Lattice
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.source import Source
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
def test_other_recursion_through_an_aggregate_alternates(rule: str) -> None:
    program = compiled(EDGES + ".decl dist(x: number, d: number) " + rule)
    assert (program.alternating, program.lattices) == ({"dist"}, {})
    assert program.iterated == {"dist"}


def test_recursion_with_one_result_does_not_alternate() -> None:
    text = EDGES + ".decl p(x: number) p(x) :- node(x), count : { edge(x, y, _), p(y) } > 2. p(x) :- node(x), edge(x, x, _)."
    assert compiled(text).alternating == set()


def warned(text: str) -> list[list[str]]:
    found: list[Diagnostic] = []
    compile_source(Source(text), found.extend)
    return [list(w.notes) for w in found if w.code == "unstratified"]


def test_what_may_be_meant_otherwise_is_told_and_totals_of_totals_are_not() -> None:
    head = EDGES + ".decl p(x: number, n: number) p(x, n) :- node(x), "
    doubtful = "only the rows will say whether there is a result"
    assert warned(head + "n = sum k * m : { edge(x, y, k), p(y, m) }.") == []
    assert warned(head + "n = count : { edge(x, y, _), p(y, _) }.") == []
    assert warned(head + "n = 1, !p(x, 2).") == [["the cycle: p -> p", doubtful]]
    [[_, why]] = warned(head + "n = count : { edge(x, y, _), p(y, _) }, n < 3.")
    assert why.startswith(f"{doubtful}: more rows of the cycle make the `count` greater")
    [[_, why]] = warned(head + "n = min c : { p(y, b), edge(y, x, w), c = b * w }.")
    assert why.startswith(f"{doubtful}: `b` is used in an equation whose value does not grow with it")


@pytest.mark.parametrize("rule", ["p(x) :- node(x), !p(x).", "p(x) :- node(x), !q(x). q(x) :- p(x)."])
def test_relations_that_do_not_keep_all_rows_must_be_stratified(rule: str) -> None:
    text = EDGES + ".decl p(x: number) choice-domain x .decl q(x: number) " + rule
    assert [code for code, _ in mistakes(text)] == ["not-stratified"]


def test_connected_components_are_a_lattice() -> None:
    text = """
    .decl node(x: number) .decl edge(x: number, y: number) .decl cc(x: number, l: number)
    cc(x, l) :- node(x), l = min v : { node(x), v = x ; cc(y, v), edge(x, y) ; cc(y, v), edge(y, x) }.
    """
    assert compiled(text).lattices == {"cc": Lattice("cc", Dominance.LEAST, 1)}


def test_each_cycle_is_told_of_once() -> None:
    text = ".decl a, b, c(x: number) a(x) :- c(x), !b(x). b(x) :- c(x), !a(x). c(x) :- c(x), !c(x)."
    assert [notes[0] for notes in warned(text)] == ["the cycle: a -> b -> a", "the cycle: c -> c"]
    kept = ".decl a, b, c(x: number) choice-domain x" + text.removeprefix(".decl a, b, c(x: number)")
    assert mistakes(kept) == [("not-stratified", "!b(x)"), ("not-stratified", "!c(x)")]


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
