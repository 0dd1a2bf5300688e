"""What no observed relation is computed from is gone; the rest is as it was."""

from __future__ import annotations

import sys

import pytest

from dlog.engine.compile.strata.dependencies import relations_asked
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.optimize.prune import prune
from tests.engine.compile.rules_of import compiled
from tests.engine.optimize.passing import EDGE, LEFT, after, unchanged

READERS = "q(x) :- p(x, x). .decl r(x: number) r(x) :- q(x), f(x). .decl s(n: number) s(n) :- n = count : { p(_, _) }. "


def test_readers_of_what_is_observed_are_gone() -> None:
    kept = ["p(x, y) :- e(x, y).", "p(x, z) :- p(x, y), e(y, z).", "q(x) :- p(x, x)."]
    assert after(prune, EDGE + LEFT + READERS, "q") == kept
    assert after(prune, EDGE + LEFT + READERS, "p") == kept[:2]


def test_what_a_negation_or_an_aggregate_reads_is_needed() -> None:
    negation = EDGE + "q(x) :- f(x), !p(x, _). p(x, y) :- e(x, y)."
    assert after(prune, negation, "q") == ["p(x, y) :- e(x, y).", "q(x) :- f(x), !p(x, _)."]
    assert after(prune, EDGE + LEFT + READERS, "s") == [
        "p(x, y) :- e(x, y).",
        "p(x, z) :- p(x, y), e(y, z).",
        "s(n) :- n = count : { p(_, _) }.",
    ]


def test_nothing_is_gone_when_everything_is_observed() -> None:
    assert unchanged(prune, EDGE + LEFT + READERS, *compiled(EDGE + LEFT + READERS).relations)


def test_declarations_and_facts_stay() -> None:
    program = compiled(EDGE + LEFT + "q(1). p(2, 3).")
    pruned = prune(program, frozenset({"q"}))
    assert pruned.strata == ()
    assert (pruned.relations, pruned.facts) == (program.relations, program.facts)


LATTICE = ".decl d(x: number, v: number) d(x, v) :- f(x), v = min c : { f(x), c = 0 ; d(y, b), e(y, x), c = b + 1 }. "


def test_lattices_go_with_their_relations() -> None:
    program = compiled(EDGE + LATTICE + "q(x) :- f(x).")
    assert set(prune(program, frozenset({"d"})).lattices) == {"d"}
    assert prune(program, frozenset({"q"})).lattices == {}


def test_inputs_that_nothing_needs_are_not_read() -> None:
    program = compiled(".decl e(x: number)\n.decl f(x: number)\n.decl p(x: number)\n.input e, f\n.output p\np(x) :- e(x).")
    assert [(i.action, i.relation) for i in prune(program, frozenset({"p"})).io] == [("input", "e"), ("output", "p")]


def test_a_stratum_whose_rows_may_go_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many relations it has: each of them would look at the rules of all."""
    count = 30
    cycle = "".join(f".decl m{i}(x: number)\nm{i}(x) :- m{(i + 1) % count}(x).\n" for i in range(count))
    program = compiled(f"{cycle}.decl e(x: number)\nm0(x) :- e(x).\nm0(a) <= m0(b) :- a < b.")
    asked: list[Stratum] = []

    def counted(of: Program, stratum: Stratum) -> set[str]:
        asked.append(stratum)
        return relations_asked(of, stratum)

    monkeypatch.setattr(sys.modules[prune.__module__], "relations_asked", counted)
    assert prune(program, frozenset({"m3"})).strata == program.strata
    assert len(asked) == 1
