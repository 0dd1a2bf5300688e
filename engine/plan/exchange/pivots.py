"""A program that several workers maintain together: each rule is evaluated where the rows that it joins are, and what it
derives goes to its owner.

Every rule has a pivot, a variable of its body: the worker that owns the variable's value has all rows that can match then. An
atom with the pivot reads a cut of its relation by that column, any other one a copy of the whole. Where the head's home is not
the pivot, derivations are sent. Other cuts of a derived relation are relations of their own with a rule that copies, which
sends. What each worker gets that way is a program like any other, whose rules are marked: those that send.

    sg(x, y) :- up(x, a), sg(a, b), up(y, b).      pivot a: reads up by 1, sg by its home 0, all of up; sends to the owner of x

Sources: the placement is that of parallel semi-naive evaluation (Ganguly, Silberschatz and Tsur 1990); that only derivations
travel, with their times, is how timely dataflow exchanges differences (McSherry et al., Differential Dataflow).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Generator,
    Head,
    Io,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Stratum,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import occurrences
from dlog.engine.plan.exchange.home_search import Charge, cheapest_homes, mentioned
from dlog.engine.plan.exchange.numbering import ords
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, Place, allowed
from dlog.engine.plan.static.lattices import monotone

HERE = "here@first"
"""A relation without columns whose one row the first worker has: it keeps rules without a pivot to that worker."""


# What it costs to have the rows of an atom where a rule is evaluated, next to each other: nothing where they are at home there,
# a cut of what is given; then more for what must be sent in each round, in each iteration, and for copies of everything.
_INPUT = {"cut": 0, "whole": 4}
_BELOW = {"cut": 3, "whole": 8}
_OWN = {"cut": 6, "whole": 20}
_SEND = 2


@dataclass(frozen=True, slots=True)
class PivotPlan:
    """`program` is what each worker maintains on its share; `homes` says where the rows of each of its relations are. `sends`
    has, by stratum, the rules whose rows may belong to another worker. `stored_names` says by which names rows of a relation
    of the program that was given are known, the one to read them by first."""

    program: Program
    homes: Mapping[str, Place]
    sends: tuple[frozenset[int], ...]
    stored_names: Mapping[str, tuple[str, ...]]


def pivot_plan(program: Program, sending: int = _SEND) -> PivotPlan | None:
    """The plan by which workers maintain a program together; None where they cannot: ids that must be the same on all workers,
    limits on the rows of all of them, an aggregate over its own recursion that is no lattice, relations that do not keep all of
    their rows. `sending` is what a rule that sends costs, where a copy of a whole input costs 4."""
    if program.iterated or any(io.action == "limitsize" for io in program.io):
        return None
    if any(any(ords(rule)) for stratum in program.strata for rule in stratum.rules):
        return None
    strata = [replace(s, rules=tuple(m for r in s.rules for m in monotone(program, r))) for s in program.strata if s.rules]
    if any(_aggregates_itself(rule, s) for s in strata for rule in s.rules):
        return None
    return _Parting(program, strata, sending).part()


def _aggregates_itself(rule: Rule, stratum: Stratum) -> bool:
    return any(x.atom.relation in stratum.relations and not x.binds for x in occurrences(rule.body))


@dataclass
class _Parting:
    program: Program
    strata: list[Stratum]
    sending: int
    homes: dict[str, Place] = field(default_factory=dict)
    """Of derived relations."""
    copies: dict[tuple[str, Place], None] = field(default_factory=dict)
    inside: set[tuple[str, Place]] = field(default_factory=set)
    """The copies that the recursion of their relation reads."""

    def part(self) -> PivotPlan:
        derived = {name for s in self.strata for name in s.relations}
        for stratum in self.strata:
            self.homes |= self._homes_of(stratum, derived)
        rewritten = [self._rewritten(s) for s in self.strata]
        held = {name: self._stored_names(name) for name in self.program.relations}
        strata, sends = self._strata(rewritten)
        homes = {**self.homes, **{_copy(n, p): p for n, p in self.copies}, HERE: ROOT}
        return PivotPlan(self._program(strata, sends), homes, sends, held)

    # ------------------------------------------------------------------------------------------------------------ homes

    def _homes_of(self, stratum: Stratum, derived: set[str]) -> dict[str, Place]:
        """The homes that let the stratum's rules find most where it is."""
        choices = {name: allowed(self.program, name) for name in stratum.relations}
        found = cheapest_homes(choices, [self._charge(rule, stratum) for rule in stratum.rules])
        return found or {name: places[0] for name, places in choices.items()}

    def _charge(self, rule: Rule, stratum: Stratum) -> Charge:
        below = dict(self.homes)
        return Charge(mentioned(rule, stratum.relations), lambda homes: self._best(rule, stratum, {**below, **homes})[1])

    def _best(self, rule: Rule, stratum: Stratum, homes: Mapping[str, Place]) -> tuple[Variable | None, int]:
        """The pivot of a rule, and what it costs; none where no positive atom has a variable where it can be cut."""
        choices = dict.fromkeys(v for x in occurrences(rule.body) if x.binds for v in self._cuts(x.atom))
        costs = [(v, self._cost(rule, v, stratum, homes)) for v in choices]
        return min(costs, key=lambda pair: pair[1], default=(None, 0))

    def _cuts(self, atom: Atom) -> list[Variable]:
        return [a for c in allowed(self.program, atom.relation) if c != ROOT and isinstance(a := atom.args[c], Variable)]

    def _cost(self, rule: Rule, pivot: Variable, stratum: Stratum, homes: Mapping[str, Place]) -> int:
        total = 0 if _is_home(rule.head, pivot, homes) else self.sending
        for atom in (x.atom for x in occurrences(rule.body)):
            place = self._place(atom, pivot, homes)
            if atom.relation not in homes:
                total += _INPUT["whole" if place == EVERYWHERE else "cut"]
            elif place != homes[atom.relation]:
                costs = _OWN if atom.relation in stratum.relations else _BELOW
                total += costs["whole" if place == EVERYWHERE else "cut"]
        return total

    def _place(self, atom: Atom, pivot: Variable | None, homes: Mapping[str, Place]) -> Place:
        """The place of the rows that an atom of a rule with this pivot reads."""
        if pivot is None:
            return ROOT
        columns = [c for c in allowed(self.program, atom.relation) if c != ROOT and atom.args[c] == pivot]
        home = homes.get(atom.relation, EVERYWHERE)
        return home if home in columns else next(iter(columns), EVERYWHERE)

    # ------------------------------------------------------------------------------------------------------------ rules

    def _rewritten(self, stratum: Stratum) -> tuple[Stratum, frozenset[int]]:
        rules = []
        sends = set()
        for number, rule in enumerate(stratum.rules):
            pivot, _ = self._best(rule, stratum, self.homes)
            if not (self.homes[rule.head.relation] == ROOT if pivot is None else _is_home(rule.head, pivot, self.homes)):
                sends.add(number)
            body = self._body(rule.body, pivot, stratum)
            if pivot is None and not any(x.binds for x in occurrences(body)):
                body = (Atom(HERE, ()), *body)
            rules.append(replace(rule, body=body))
        return replace(stratum, rules=tuple(rules)), frozenset(sends)

    def _body(self, body: tuple[Literal, ...], pivot: Variable | None, stratum: Stratum) -> tuple[Literal, ...]:
        return tuple(self._literal(literal, pivot, stratum) for literal in body)

    def _literal(self, literal: Literal, pivot: Variable | None, stratum: Stratum) -> Literal:
        match literal:
            case Atom():
                return self._atom(literal, pivot, stratum)
            case Negation(atom=atom):
                return replace(literal, atom=self._atom(atom, pivot, stratum))
            case Aggregate(alternatives=alternatives):
                return replace(literal, alternatives=tuple(self._body(a, pivot, stratum) for a in alternatives))
            case Compare() | Unpack() | Generator():
                return literal

    def _atom(self, atom: Atom, pivot: Variable | None, stratum: Stratum) -> Atom:
        place = self._place(atom, pivot, self.homes)
        if self.homes.get(atom.relation) == place:
            return atom
        self.copies[atom.relation, place] = None
        if atom.relation in stratum.relations:
            self.inside.add((atom.relation, place))
        return replace(atom, relation=_copy(atom.relation, place))

    # ---------------------------------------------------------------------------------------------------------- program

    def _stored_names(self, name: str) -> tuple[str, ...]:
        """An input that no rule reads is somewhere, too."""
        if name in self.homes:
            return (name,)
        places = sorted((p for n, p in self.copies if n == name), key=lambda place: place < 0)
        if not places:
            places = [allowed(self.program, name)[0]]
            self.copies[name, places[0]] = None
        return tuple(_copy(name, place) for place in places)

    def _strata(
        self, rewritten: list[tuple[Stratum, frozenset[int]]]
    ) -> tuple[tuple[Stratum, ...], tuple[frozenset[int], ...]]:
        inputs = [_copy(n, p) for n, p in self.copies if n not in self.homes]
        strata = [Stratum((name,), (), False) for name in (*inputs, HERE)]
        sends: list[frozenset[int]] = [frozenset() for _ in strata]
        for stratum, sending in rewritten:
            own = [(n, p) for n, p in self.copies if n in stratum.relations]
            within = [c for c in own if c in self.inside]
            rules = (*stratum.rules, *(self._copying(n, p) for n, p in within))
            strata.append(Stratum((*stratum.relations, *(_copy(n, p) for n, p in within)), rules, stratum.recursive))
            sends.append(sending | set(range(len(stratum.rules), len(rules))))
            for name, place in own:
                if (name, place) not in self.inside:
                    strata.append(Stratum((_copy(name, place),), (self._copying(name, place),), False))
                    sends.append(frozenset({0}))
        return tuple(strata), tuple(sends)

    def _copying(self, name: str, place: Place) -> Rule:
        """The rule that sends a derived relation's rows to another place."""
        relation = self.program.relations[name]
        args = tuple(Variable(c) for c in range(relation.arity))
        names = tuple(attribute for attribute, _ in relation.attributes)
        listed = ", ".join(names)
        text = f"{_copy(name, place)}({listed}) :- {name}({listed})."
        return Rule(Head(_copy(name, place), args), (Atom(name, args),), names, relation.kinds, text)

    def _program(self, strata: tuple[Stratum, ...], sends: tuple[frozenset[int], ...]) -> Program:
        """A relation that gets rows from other workers has more sources than its rules: it counts as an input, too."""
        program = self.program
        relations = {name: program.relations[name] for name in self.homes}
        lattices = {name: lattice for name, lattice in program.lattices.items() if name in relations}
        for name, place in self.copies:
            copy = _copy(name, place)
            relations[copy] = replace(program.relations[name], name=copy)
            if (name, place) in self.inside and name in lattices:
                lattices[copy] = replace(lattices[name], relation=copy)
        relations[HERE] = Relation(HERE, ())
        told = {io.relation for io in program.io if io.action == "input"} | {n for n, rows in program.facts.items() if rows}
        told |= {s.rules[number].head.relation for s, sending in zip(strata, sends, strict=True) for number in sending}
        inputs = tuple(Io("input", name) for name in relations if name in told)
        return replace(program, relations=relations, facts={}, strata=strata, io=inputs, lattices=lattices)


def _is_home(head: Head, pivot: Variable, homes: Mapping[str, Place]) -> bool:
    home = homes[head.relation]
    return home != ROOT and head.args[home] == pivot


def _copy(name: str, place: Place) -> str:
    where = {EVERYWHERE: "all", ROOT: "first"}.get(place, str(place))
    return f"{name}@{where}"
