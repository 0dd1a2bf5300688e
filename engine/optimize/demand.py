"""demand: relations are computed as far as the observed ones ask for their rows (magic sets).

    p(x, z) :- e(x, y), p(y, z).   q(z) :- p(1, z).
    ->
    p[from]?(1).   p[from]?(y) :- p[from]?(x), e(x, y).
    p[from](x, z) :- p[from]?(x), e(x, y), p[from](y, z).   q(z) :- p[from](1, z).

`p[from]` has those rows of p whose column `from` is in `p[from]?`, which has every value that a reader asks for. Values are
passed on sideways through a body (bindings.py), to atoms, negated ones and those in aggregates. C. Beeri, R. Ramakrishnan, "On
the power of magic", 1991; of a program that would not be stratified any more, negated and aggregated relations are left whole,
with all that they read.

What is asked for are values of rows, constants and fields of records: there are finitely many, so a demand ends where the
program does. Computed values are asked for only outside of recursion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import components, relations_asked, relations_read, retained, through_aggregates
from dlog.engine.ir.functors import may_stop
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Generator,
    Head,
    Kind,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Unpack,
    Variable,
    reading_rule,
)
from dlog.engine.ir.traversal import literal_variables
from dlog.engine.optimize.bindings import BoundVariables, next_atom, settled
from dlog.engine.optimize.filters import with_named_head
from dlog.engine.optimize.rewriting import Body, Rules, has_given_rows, rules_by_relation, with_rules
from dlog.grammar.diagnostics import InternalError

MAX_DEMANDS = 64
"""Ways in which a program's relations are asked for; one with more stays as it is."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A relation that is asked for by values of some columns, ascending."""

    relation: str
    columns: tuple[int, ...]


def demand(program: Program, observed: frozenset[str]) -> Program:
    """The observed relations have the same rows; those that they ask for by no column keep their rules."""
    return demanded(program, observed)[0]


def demand_as_asked(program: Program, observed: frozenset[str]) -> Program:
    """The same for those relations of which the program's text says so."""
    if not program.options.by_demand:
        return program
    return demand(program, observed | (program.relations.keys() - program.options.by_demand))


def demanded(program: Program, observed: frozenset[str]) -> tuple[Program, Mapping[str, Demand]]:
    """The program, and what each relation of values stands for."""
    for through_negation in (True, False):
        whole: frozenset[str] = frozenset()
        while True:
            rewriting = _Rewriting(program, observed, whole, through_negation)
            rewriting.run()
            if rewriting.needed_whole <= whole:
                break
            whole |= rewriting.needed_whole
        if not 0 < len(rewriting.demands) <= MAX_DEMANDS:
            return program, {}
        rewritten = with_rules(program, rewriting.result(), rewriting.relations)
        if rewritten.alternating <= program.alternating:
            return rewritten, {_demand_name(name): asked for asked, name in rewriting.demands.items()}
        # The demand for a relation reads what is computed from its absence.
    raise InternalError("demand", "a program without demand through negation is not stratified")


@dataclass(frozen=True, slots=True)
class _Place:
    """A position in a body at which values are passed on: its rule, the component of its head, and the literals that come
    first."""

    rule: Rule
    component: int
    before: Body
    bound: BoundVariables
    inside: bool = False
    """Whether it is in a negation or an aggregate."""

    def after(self, literal: Literal, known: BoundVariables) -> _Place:
        return replace(self, before=(*self.before, literal), bound=known)


class _Rewriting:
    """Rewrites the rules of the observed relations and of what they ask for. `whole` are the relations that keep their rules;
    those found to be `needed_whole` are reported, for another attempt."""

    def __init__(self, program: Program, observed: frozenset[str], whole: frozenset[str], through_negation: bool) -> None:
        self.program = program
        self.observed = observed
        self.whole = whole
        self.through_negation = through_negation
        self.old = rules_by_relation(program)
        self.demands: dict[Demand, str] = {}
        self.relations: dict[str, Relation] = {}
        self.needed_whole: frozenset[str] = frozenset()
        self._waiting: list[Demand] = []
        self._rules: Rules = {}
        self._component = _components(self.old)
        self._through_aggregates = through_aggregates(program)
        self._retained = retained(program)

    def result(self) -> Rules:
        """The new rules, and the old ones of relations that are whole."""
        return {name: self.old[name] for name in self.old if name in self.whole - self.observed} | self._rules

    def run(self) -> None:
        for name in self.old:
            if name in self.observed:
                self._rules[name] = [self._rewritten(rule, None) for rule in self.old[name]]
        while self._waiting and len(self.demands) <= MAX_DEMANDS:
            asked = self._waiting.pop()
            name, relation = self.demands[asked], self.program.relations[asked.relation]
            made = [self._rewritten(rule, asked) for rule in self.old[asked.relation]]
            if has_given_rows(self.program, relation.name):
                made.append(_restricted(reading_rule(relation), asked, name))
            self._rules.setdefault(name, []).extend(replace(r, head=replace(r.head, relation=name)) for r in made)

    def _rewritten(self, rule: Rule, asked: Demand | None) -> Rule:
        """The rule over relations that are asked for, for the heads that are asked for."""
        component = self._component[rule.head.relation]
        if asked is None:
            place = _Place(rule, component, (), BoundVariables())
            return replace(rule, body=self._body(rule.body, place))
        for column in asked.columns:
            if not isinstance(rule.head.args[column], Variable | Constant):
                rule, _ = with_named_head(rule, column, self.program.relations[asked.relation].kinds[column])
        wanted = _demand_atom(rule, asked, self.demands[asked])
        place = _Place(rule, component, (wanted,), BoundVariables().with_atom(wanted))
        return _restricted(replace(rule, body=self._body(rule.body, place)), asked, self.demands[asked])

    # ------------------------------------------------------------------------------------------------------------- bodies

    def _body(self, body: Body, place: _Place) -> Body:
        """The body, in its order, with each atom in the place of which another relation is read replaced."""
        new: dict[int, Literal] = {}
        waiting = dict(enumerate(body))
        while True:
            place = self._settle(waiting, place)
            atoms = {number: x for number, x in waiting.items() if isinstance(x, Atom)}
            if not atoms:
                break
            chosen = next_atom(list(atoms.values()), place.bound, self._rank)
            number = next(n for n, x in atoms.items() if x is chosen)
            new[number] = atom = self._atom(chosen, place)
            place = place.after(atom, place.bound.with_atom(chosen))
            del waiting[number]
        return tuple(new[n] if n in new else self._last(literal, place) for n, literal in enumerate(body))

    def _settle(self, waiting: dict[int, Literal], place: _Place) -> _Place:
        """Places what can be decided without another atom."""
        again = True
        while again:
            again = False
            for number, literal in list(waiting.items()):
                known = settled(literal, place.bound)
                if known is not None:
                    place = place.after(literal, known)
                    del waiting[number]
                    again = True
        return place

    def _last(self, literal: Literal, place: _Place) -> Literal:
        """A literal that is not read for its values, when all atoms have been read."""
        inside = replace(place, inside=True)
        match literal:
            case Negation(atom=atom):
                return replace(literal, atom=self._atom(atom, inside))
            case Aggregate(alternatives=bodies):
                return replace(literal, alternatives=tuple(self._body(inner, inside) for inner in bodies))
            case Atom() | Compare() | Unpack() | Generator():
                return literal

    def _rank(self, atom: Atom) -> int:
        """The rank of an atom: what is there anyway is read first."""
        return int(self._is_derived(atom.relation))

    def _is_derived(self, relation: str) -> bool:
        return relation in self.old and relation not in self.observed and relation not in self.whole

    # -------------------------------------------------------------------------------------------------------------- atoms

    def _atom(self, atom: Atom, place: _Place) -> Atom:
        """The atom over the relation of the rows that are asked for here."""
        if not self._is_derived(atom.relation):
            return atom
        columns = self._columns(atom, place)
        if not columns or (place.inside and not self.through_negation) or self._must_be_whole(atom.relation):
            self.needed_whole |= self._closure(atom.relation)
            return atom
        name = self._ask(Demand(atom.relation, columns))
        wanted = Atom(_demand_name(name), tuple(atom.args[c] for c in columns))
        if wanted not in place.before:
            self._rules[wanted.relation].append(_demanding(wanted, place))
        return replace(atom, relation=name)

    def _columns(self, atom: Atom, place: _Place) -> tuple[int, ...]:
        """The columns whose values are known, and may be asked for."""
        known = place.bound
        inside = self._component[atom.relation] == place.component
        return tuple(
            column
            for column, arg in enumerate(atom.args)
            if known.has(arg)
            and not (inside and isinstance(arg, Variable) and arg.id in known.computed)
            and all(_can_be_asked(rule, column, self.program.relations[atom.relation]) for rule in self.old[atom.relation])
        )

    def _must_be_whole(self, relation: str) -> bool:
        limited = any(io.action == "limitsize" and io.relation == relation for io in self.program.io)
        return limited or relation in self._through_aggregates or relation in self._retained

    def _ask(self, asked: Demand) -> str:
        """The name of the relation of the rows that are asked for."""
        if asked not in self.demands:
            relation = self.program.relations[asked.relation]
            listed = ", ".join(relation.attributes[c][0] for c in asked.columns)
            name = self.demands[asked] = f"{relation.name}[{listed}]"
            attributes = tuple(relation.attributes[c] for c in asked.columns)
            self.relations[name] = replace(relation, name=name)
            self.relations[_demand_name(name)] = Relation(_demand_name(name), attributes, relation.span)
            self._rules[_demand_name(name)] = []
            self._waiting.append(asked)
        return self.demands[asked]

    def _closure(self, relation: str) -> frozenset[str]:
        """A relation and all derived ones that it is computed from, as far as they are not observed."""
        found, queue = {relation}, [relation]
        while queue:
            stratum = self.program.stratum_of[queue.pop()]
            reads = relations_asked(self.program, stratum).union(stratum.relations)
            more = {name for name in reads if name in self.old and name not in self.observed} - found
            found |= more
            queue += more
        return frozenset(found)


def _components(rules: Rules) -> dict[str, int]:
    """For each derived relation the number of the cycle that it is in, or has for itself."""
    edges = {name: list({on for rule in found for on in relations_read(rule)}) for name, found in rules.items()}
    return {name: number for number, found in enumerate(components(rules, edges)) for name in found}


def _demand_name(name: str) -> str:
    return f"{name}?"


def _can_be_asked(rule: Rule, column: int, relation: Relation) -> bool:
    """Whether a rule's heads can be compared with a value: a computed float may equal another of different bits, and what an
    aggregate gives has no other value before."""
    term = rule.head.args[column]
    if isinstance(term, Constant):
        return True
    if not isinstance(term, Variable):
        return relation.kinds[column] is not Kind.FLOAT and not may_stop(term)
    if any(isinstance(x, Aggregate) and x.result == term for x in rule.body):
        return False
    if relation.kinds[column] is not Kind.FLOAT:
        return True
    return any(isinstance(x, Atom | Unpack | Generator) and term.id in literal_variables(x) for x in rule.body)


def _demand_atom(rule: Rule, asked: Demand, name: str) -> Atom:
    """The demand for a rule's heads, which are plain in these columns."""
    args = tuple(a for c in asked.columns if isinstance(a := rule.head.args[c], Variable | Constant))
    return Atom(_demand_name(name), args)


def _restricted(rule: Rule, asked: Demand, name: str) -> Rule:
    """The rule for the heads that are asked for."""
    return replace(rule, body=(_demand_atom(rule, asked, name), *rule.body), text=f"{rule.text}  [{name}]")


def _demanding(wanted: Atom, place: _Place) -> Rule:
    """The rule for what an atom asks for at its place."""
    head = Head(wanted.relation, tuple(a for a in wanted.args if a is not None))
    return replace(place.rule, head=head, body=place.before, text=f"{place.rule.text}  [{wanted.relation}]")
