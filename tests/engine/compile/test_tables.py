"""The tables of functors, comparisons and aggregates fit the grammar and the kernels."""

from __future__ import annotations

import dlog
from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.ir.aggregates import AGGREGATES, opcodes_of
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.functors import FUNCTORS, find_functor, written_functors
from dlog.engine.kernels.combine import Combine
from dlog.grammar import operators, words

NOT_SUPPORTED = {"recursive_iteration_cnt"}


def test_the_grammar_has_the_words_that_the_tables_have() -> None:
    assert set(AGGREGATES) == words.AGGREGATES
    assert set(written_functors()) > words.FUNCTORS - NOT_SUPPORTED
    forms = {form: {row.written for row in FUNCTORS.values() if row.form == form} for form in ("infix", "prefix")}
    assert forms == {"infix": set(operators.BINDING), "prefix": set(operators.PREFIX)}


def test_only_what_is_written_is_found() -> None:
    assert [find_functor(name, 1) for name in ("neg", "weight", "half")] == [None] * 3
    assert [row and row.name for row in (find_functor("-", 1), find_functor("-", 2))] == ["neg", "-"]


def test_every_way_of_combining_values_belongs_to_an_aggregate() -> None:
    named = {opcode for row in AGGREGATES.values() for opcode in row.opcodes.values()}
    assert named == set(Combine.__members__) - {"NONE", "BOUND", "FIRST", "TEXT"}
    assert {opcode for dominance in Dominance for opcode in opcodes_of(dominance).values()} < named


def test_opposites_and_mirrors_lead_back() -> None:
    for row in COMPARISONS.values():
        assert COMPARISONS[row.opposite].opposite == row.name
        assert not row.mirrored or COMPARISONS[row.mirrored].mirrored == row.name


def test_a_relation_may_have_the_name_of_a_functor_that_souffle_does_not_have() -> None:
    text = ".decl abs(x: number)\nabs(-3). abs(2).\n.decl r(x: number, y: number)\n.output r\n"
    found = dlog.run(text + "r(x, abs(x)) :- abs(x), (abs(x)) < 3 ; abs(x), abs(x) + 1 > 3.\n")["r"]
    assert sorted(found) == [(-3, 3), (2, 2)]
