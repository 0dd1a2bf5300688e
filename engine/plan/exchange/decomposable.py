"""Decomposable strata, which workers maintain without a word to each other, each on its share of the rows; the rest one
maintains alone.

A stratum is local if its relations have homes such that every rule passes its head's home value on from a positive atom, and
all that the rule reads is either cut by that same value or an input, of which every worker can have a copy. Each worker then
keeps an engine of its own for these strata; nothing is exchanged, in any round, at any iteration. The other strata, with all
that they need, are kept by the first worker. Inputs are cut, copied, or sent to the first worker as these engines need them.

Source: decomposable programs (Wolfson and Silberschatz 1988; BigDatalog, SIGMOD 2016), here for maintenance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Literal as OneOf

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_asked
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Generator,
    Io,
    Literal,
    Negation,
    Program,
    Rule,
    Stratum,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import occurrences
from dlog.engine.plan.exchange.home_search import Charge, cheapest_homes, mentioned, possible
from dlog.engine.plan.exchange.numbering import ords
from dlog.engine.plan.exchange.pivots import PivotPlan
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, Place, columns

Maintainer = OneOf["shared", "alone", "together"]


@dataclass(frozen=True, slots=True)
class Feed:
    """The destination of a relation's changes from outside: relation `name` of an engine, at the workers that `place` says."""

    part: Maintainer
    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class DecomposablePlan:
    """`shared` is maintained by every worker on its share, `alone` by the first worker on everything; either may be missing.
    Where there is `together`, all workers maintain all of the program that way, and nothing else. `feeds` says where the rows
    of each relation that come from outside go. `answers` says where a relation is read: each of its rows is there once
    (EVERYWHERE: at any one worker)."""

    shared: Program | None
    alone: Program | None
    feeds: Mapping[str, tuple[Feed, ...]]
    answers: Mapping[str, Feed]
    together: PivotPlan | None = None


def exchanged(program: Program, plan: PivotPlan) -> DecomposablePlan:
    """All of a program maintained by all workers together."""
    held = {name: [Feed("together", n, plan.homes[n]) for n in names] for name, names in plan.stored_names.items()}
    outside = _outside(program)
    feeds = {name: tuple(found) if name in outside else () for name, found in held.items()}
    return DecomposablePlan(None, None, feeds, {name: found[0] for name, found in held.items()}, plan)


def decomposable_plan(program: Program, workers: int) -> DecomposablePlan:
    """Parts a program."""
    homes = _homes(program) if workers > 1 else {}
    derived = [s for s in program.strata if s.rules]
    alone = _needed(program, [s for s in derived if s.relations[0] not in homes])
    shared = [s for s in derived if s.relations[0] in homes]
    cutter = _Cutter(program, homes)
    strata = [replace(s, rules=tuple(cutter.rule(r) for r in s.rules)) for s in shared]
    return _parted(program, homes, cutter, strata, alone)


def _parted(
    program: Program, homes: dict[str, Place], cutter: _Cutter, strata: list[Stratum], alone: list[Stratum]
) -> DecomposablePlan:
    kept = {name for s in alone for name in s.relations}
    unused = [n for n in program.relations if n not in homes and n not in kept and n not in cutter.copies]
    alone = [*alone, *(Stratum((name,), (), False) for name in unused)]
    held: dict[str, list[Feed]] = {name: [] for name in program.relations}
    for name, places in cutter.copies.items():
        held[name] += [Feed("shared", _copy(name, place), place) for place in places]
    for name, home in homes.items():
        held[name].append(Feed("shared", name, home))
    for name in kept.union(unused):
        held[name].append(Feed("alone", name, ROOT))
    outside = _outside(program)
    return DecomposablePlan(
        _shared(program, cutter, strata, homes) if cutter.copies or homes else None,
        _alone(program, alone) if alone else None,
        {name: tuple(found) if name in outside else () for name, found in held.items()},
        {name: max(found, key=lambda f: (f.place >= 0, f.part == "alone")) for name, found in held.items()},
    )


def _outside(program: Program) -> set[str]:
    """The relations that rows may be given for."""
    derived = program.derived.keys()
    told = {io.relation for io in program.io if io.action == "input"} | {name for name, rows in program.facts.items() if rows}
    return told.union(program.relations.keys() - derived)


def _inputs(program: Program, names: Iterable[str]) -> tuple[Io, ...]:
    """Directives that say which derived relations take rows from outside."""
    return tuple(Io("input", name) for name in names if name in _outside(program))


def _shared(program: Program, cutter: _Cutter, strata: list[Stratum], homes: Mapping[str, Place]) -> Program:
    relations = {name: program.relations[name] for name in homes}
    inputs = []
    for name, places in cutter.copies.items():
        for place in places:
            copy = _copy(name, place)
            relations[copy] = replace(program.relations[name], name=copy)
            inputs.append(Stratum((copy,), (), False))
    lattices = {name: lattice for name, lattice in program.lattices.items() if name in homes}
    io = _inputs(program, homes)
    return replace(program, relations=relations, facts={}, strata=(*inputs, *strata), io=io, lattices=lattices)


def _alone(program: Program, strata: list[Stratum]) -> Program:
    names = [name for s in strata for name in s.relations]
    relations = {name: program.relations[name] for name in names}
    lattices = {name: lattice for name, lattice in program.lattices.items() if name in relations}
    limits = tuple(io for io in program.io if io.relation in relations and io.action == "limitsize")
    io = (*limits, *_inputs(program, names))
    return replace(program, relations=relations, facts={}, strata=tuple(strata), io=io, lattices=lattices)


def _needed(program: Program, strata: list[Stratum]) -> list[Stratum]:
    """The strata and all strata below them, in order; inputs are strata without rules."""
    wanted = {name for s in strata for name in s.relations}
    for stratum in reversed(program.strata):
        if wanted.intersection(stratum.relations):
            wanted |= relations_asked(program, stratum)
    placed = {name for s in program.strata for name in s.relations}
    inputs = [Stratum((name,), (), False) for name in program.relations if name in wanted and name not in placed]
    return [*inputs, *(s for s in program.strata if wanted.intersection(s.relations))]


def _copy(name: str, place: Place) -> str:
    return f"{name}@{'all' if place == EVERYWHERE else place}"


# ------------------------------------------------------------------------------------------------------------------- homes


def _homes(program: Program) -> dict[str, Place]:
    """Homes of the relations of all local strata."""
    homes: dict[str, Place] = {}
    limited = {io.relation for io in program.io if io.action == "limitsize"}
    for stratum in program.strata:
        if not program.iterated.isdisjoint(stratum.relations):
            continue  # which rows stay is decided in one place
        if stratum.rules and not limited.intersection(stratum.relations):
            homes |= _homes_of(stratum, program, homes) or {}
    return homes


def _homes_of(stratum: Stratum, program: Program, below: Mapping[str, Place]) -> dict[str, Place] | None:
    choices = {name: columns(program, name) for name in stratum.relations}

    def local(rule: Rule) -> Charge:
        return Charge(mentioned(rule, choices), lambda homes: possible(_is_local(rule, program, {**below, **homes})))

    return cheapest_homes(choices, [local(rule) for rule in stratum.rules])


def _is_local(rule: Rule, program: Program, homes: Mapping[str, Place]) -> bool:
    kept = rule.head.args[homes[rule.head.relation]]
    if not isinstance(kept, Variable) or any(ords(rule)):  # only one worker can say
        return False
    binding = any(isinstance(x, Atom) and kept in x.args for x in rule.body)
    derived = program.derived.keys()
    return binding and all(_is_here(x.atom, kept, derived, homes) for x in occurrences(rule.body))


def _is_here(atom: Atom, kept: Variable, derived: Set[str], homes: Mapping[str, Place]) -> bool:
    """Whether a worker that owns the value has all rows that can match the atom."""
    if atom.relation not in derived:
        return True
    return atom.relation in homes and atom.args[homes[atom.relation]] == kept


class _Cutter:
    """Makes rules read the copies of inputs that a worker has; `copies` are those that are needed."""

    def __init__(self, program: Program, homes: Mapping[str, Place]) -> None:
        self._derived = program.derived.keys()
        self._homes = homes
        self.copies: dict[str, dict[Place, None]] = {}

    def rule(self, rule: Rule) -> Rule:
        kept = rule.head.args[self._homes[rule.head.relation]]
        assert isinstance(kept, Variable)
        return replace(rule, body=self._body(rule.body, kept))

    def _body(self, body: tuple[Literal, ...], kept: Variable) -> tuple[Literal, ...]:
        return tuple(self._literal(literal, kept) for literal in body)

    def _literal(self, literal: Literal, kept: Variable) -> Literal:
        match literal:
            case Atom():
                return self._atom(literal, kept)
            case Negation(atom=atom):
                return replace(literal, atom=self._atom(atom, kept))
            case Aggregate(alternatives=alternatives):
                return replace(literal, alternatives=tuple(self._body(a, kept) for a in alternatives))
            case Compare() | Unpack() | Generator():
                return literal

    def _atom(self, atom: Atom, kept: Variable) -> Atom:
        if atom.relation in self._derived:
            return atom
        place = next((c for c, a in enumerate(atom.args) if a == kept), EVERYWHERE)
        self.copies.setdefault(atom.relation, {})[place] = None
        return replace(atom, relation=_copy(atom.relation, place))
