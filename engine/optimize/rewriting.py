"""Tools of all passes: a program's rules by relation, a program of other rules, and maps over the atoms of bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from dlog.engine.compile.check import Checked
from dlog.engine.compile.strata.stratify import stratify
from dlog.engine.ir.rules import Aggregate, Atom, Compare, Generator, Literal, Negation, Program, Relation, Rule, Unpack

Body: TypeAlias = tuple[Literal, ...]
Rules: TypeAlias = dict[str, list[Rule]]


def rules_by_relation(program: Program) -> Rules:
    return {name: list(program.rules.get(name, ())) for s in program.strata for name in s.relations}


def with_rules(program: Program, rules: Mapping[str, Sequence[Rule]], more: Mapping[str, Relation] | None = None) -> Program:
    """The program with these rules, and `more` relations, in strata of their own."""
    relations = {**program.relations, **(more or {})}
    flat = tuple(rule for found in rules.values() for rule in found)
    known = (program.io, program.inline, program.retentions, program.options, program.eqrels, program.classes, program.functors)
    own = program.source, program.types, relations, program.facts, flat, *known, program.first_symbols
    return stratify(Checked(*own, program.timed, program.at_once))


def has_given_rows(program: Program, relation: str) -> bool:
    """Whether a relation gets rows from elsewhere than its rules."""
    return relation in program.inputs or bool(program.facts.get(relation))


def map_atoms(body: Body, change: Callable[[Atom, Body], Atom]) -> Body:
    """The body with each atom, negated or not, replaced by what `change` makes of it and of the innermost body around it."""
    return tuple(_map_literal(literal, body, change) for literal in body)


def _map_literal(literal: Literal, body: Body, change: Callable[[Atom, Body], Atom]) -> Literal:
    match literal:
        case Atom():
            return change(literal, body)
        case Negation(atom=atom):
            return replace(literal, atom=change(atom, body))
        case Aggregate(alternatives=bodies):
            return replace(literal, alternatives=tuple(map_atoms(inner, change) for inner in bodies))
        case Compare() | Unpack() | Generator():
            return literal
        case _:
            assert_never(literal)
