"""What later supersteps of a recursion evaluate: rules over what is new."""

from __future__ import annotations

from dlog.engine.ir.rules import Atom, Compare, Literal, Negation, Program, Rule
from dlog.engine.plan.exchange.increments import increment
from dlog.engine.plan.exchange.supersteps import supersteps
from dlog.pipeline import compile_program

EDGES = ".decl e(x: number, y: number)\n"


def incremented(text: str) -> Program:
    """The increment of the last stratum of a program that sends nothing."""
    program = compile_program(EDGES + text)
    return increment(program, program.strata[-1], ())


def shapes(program: Program) -> list[str]:
    """Which relations each rule reads, and in which way."""
    return [f"{rule.head.relation} :- {', '.join(map(_shape, rule.body))}" for s in program.strata for rule in s.rules]


def _shape(literal: Literal) -> str:
    match literal:
        case Atom(relation=relation):
            return relation
        case Negation(atom=atom):
            return f"!{atom.relation}"
        case Compare(op=op):
            return op
        case _:
            return "?"


def test_a_rule_has_a_version_for_each_choice_of_atoms_that_read_new_rows() -> None:
    found = incremented(".decl p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).\n")
    assert shapes(found) == [
        "p@got :- p, p@new",
        "p@got :- p@new, p",
        "p@got :- p@new, p@new",
        "p@new :- p@got, !p",
    ]
    assert [io.relation for io in found.io] == ["p", "p@got"]


def test_of_a_lattice_new_is_what_is_better_and_left_what_it_does_not_replace() -> None:
    found = incremented(
        ".decl d(x: number, n: number)\nd(x, n) :- e(x, _), n = min c : { x = 0, c = 0 ; d(y, b), e(y, x), c = b + 1 }.\n"
    )
    assert shapes(found)[-3:] == ["d@new :- d@got, !d", "d@new :- d@got, d, <", "d@left :- d, !d@new"]
    assert sorted(found.lattices) == ["d@got", "d@new"]
    greatest = incremented(
        ".decl d(x: number, n: number)\nd(x, n) :- e(x, _), n = max c : { x = 0, c = 9 ; d(y, c), e(y, x) }.\n"
    )
    assert shapes(greatest)[-2] == "d@new :- d@got, d, >"


def test_rules_that_send_derive_from_what_is_new_for_their_owners() -> None:
    text = EDGES + ".decl s(x: number, y: number)\ns(x, y) :- e(x, y).\ns(x, y) :- e(x, a), s(a, b), e(y, b).\n"
    (step,) = supersteps(compile_program(text), 2).steps
    assert step.increment is not None
    assert shapes(step.increment) == ["s@out :- e@1, s@new, e@all", "s@new :- s@got, !s"]
    rules: list[Rule] = [rule for s in step.increment.strata for rule in s.rules]
    assert rules[0].text == "s(x, y) :- e(x, a), s(a, b), e(y, b)."
