"""Inline relations: where one is read, the bodies of its clauses take the place of the atom, and it has no rows of its own.

    .decl above(x: number, y: number) inline
    above(x, y) :- y > x.
    a(x) :- b(x), n(y), above(y, x).                ->   a(x) :- b(x), n(y), x > y.

So its arguments may be bound where it is used (Souffle's `inline`). Several clauses become a disjunction, and under a negation
the negation of all of them. Within an aggregate that counts a body may stand for an atom only if it has as many bindings as the
atom (`_may_stand`); where it does not, the relation keeps its clauses, and its rows. One without clauses stays, too: its atoms
bind variables, though to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from dlog.engine.compile.normal.comparisons import HAS_TYPE, OPPOSITE
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.resolve import Resolved
from dlog.engine.compile.walk import has_aggregate, map_body, map_term, parts, variables, walk
from dlog.engine.ir.aggregates import dominance_of
from dlog.grammar.syntax import (
    AggregateTerm,
    And,
    Atom,
    Attribute,
    Body,
    Clause,
    Constraint,
    Counter,
    Nil,
    Not,
    Or,
    String,
    Term,
    Truth,
    Variable,
    Wildcard,
)

Definition: TypeAlias = tuple[Atom, Body]
"""The head of a clause and its body."""
Counting: TypeAlias = Literal["no", "rows", "bindings", "kept"]
"""What an aggregate around an atom counts: nothing; the rows of the atom; bindings of names; or these of so few atoms that it
would count rows if there were one less (see rules.Aggregate)."""


def inlined(resolved: Resolved, problems: Problems) -> Resolved:
    """The program without atoms of inline relations. Its `inline` are those that have no clauses any more."""
    if not resolved.inline:
        return resolved
    definitions: dict[str, list[Definition]] = {name: [] for name in sorted(resolved.inline)}
    others: list[Clause] = []
    for clause in resolved.clauses:
        own = tuple(head for head in clause.heads if head.name in definitions)
        for head in own:
            definitions[head.name].append((head, Truth(True) if clause.body is None else _apart(clause.body)))
        heads = tuple(head for head in clause.heads if head.name not in definitions)
        if heads:
            others.append(clause if not own else replace(clause, heads=heads))
    before = len(problems)
    _check_written(resolved, problems)
    _check_cycles(definitions, problems)
    _check_counters(resolved, problems)
    if len(problems) > before:
        return resolved
    inliner = _Inliner(definitions, resolved.attributes, problems)
    clauses = [inliner.clause(clause) for clause in others]
    clauses += _remaining_clauses(resolved, inliner)
    return replace(resolved, clauses=tuple(clauses), inline=resolved.inline - inliner.not_inlined)


def _remaining_clauses(resolved: Resolved, inliner: _Inliner) -> list[Clause]:
    """The clauses of inline relations that keep them."""
    clauses: dict[str, list[Clause]] = {}
    while missing := sorted(inliner.not_inlined - clauses.keys()):
        for name in missing:
            own = [replace(clause, heads=(h,)) for clause in resolved.clauses for h in clause.heads if h.name == name]
            clauses[name] = [inliner.clause(clause) for clause in own]
    return [clause for found in clauses.values() for clause in found]


def _apart(body: Body) -> Body:
    """A body in which the targets of aggregates have variables that occur nowhere else: they are the aggregates' own."""

    def change(term: Term) -> Term | None:
        if not isinstance(term, AggregateTerm):
            return None
        own: dict[str, Term] = {}
        for variable in () if term.target is None else variables(term.target):
            own[variable.name] = Variable(f"{variable.name}@t{term.span.start}", span=variable.span)
        target = None if term.target is None else map_term(map_term(term.target, _naming(own)), change)
        return replace(term, target=target, body=map_body(map_body(term.body, _naming(own)), change))

    return map_body(body, change)


# ----------------------------------------------------------------------------------------------------------------- mistakes


def _check_written(resolved: Resolved, problems: Problems) -> None:
    for io in resolved.io:
        if io.relation in resolved.inline:
            message = f"the relation `{io.relation}` is inline: it has no rows, so that `.{io.action}` cannot be"
            labels = (Label(io.span), Label(resolved.relations[io.relation].span, "declared here"))
            problems.add("inline-io", message, *labels)


def _check_counters(resolved: Resolved, problems: Problems) -> None:
    """Where a body takes the place of an atom there are other matches to number."""
    for clause in resolved.clauses:
        own = isinstance(clause, Clause) and any(head.name in resolved.inline for head in clause.heads)
        for atom in (n for part in parts(clause) for n in walk(part) if isinstance(n, Atom)):
            for counter in (n for a in atom.args for n in walk(a) if isinstance(n, Counter)):
                if own or atom.name in resolved.inline:
                    message = f"`autoinc()` in {'a clause of' if own else 'an atom of'} the inline relation `{atom.name}`"
                    problems.add("inline-counter", message, Label(counter.span), notes=["declare it without `inline`"])


def _check_cycles(definitions: dict[str, list[Definition]], problems: Problems) -> None:
    """An error for each cycle through inline relations, at the atom that closes it."""
    open_: list[str] = []
    done: set[str] = set()

    def visit(name: str) -> None:
        open_.append(name)
        for _, body in definitions[name]:
            for atom in _atoms(body):
                if atom.name in open_:
                    cycle = " -> ".join([*open_[open_.index(atom.name) :], atom.name])
                    message = f"the inline relation `{atom.name}` reads itself"
                    notes = [f"the cycle: {cycle}", "declare one of them without `inline`"]
                    problems.add("inline-cycle", message, Label(atom.span), notes=notes)
                elif atom.name in definitions and atom.name not in done:
                    visit(atom.name)
        done.add(open_.pop())

    for name in definitions:
        if name not in done:
            visit(name)


def _atoms(body: Body) -> Iterator[Atom]:
    return (node for node in walk(body) if isinstance(node, Atom))


# -------------------------------------------------------------------------------------------------------------- replacement


class _Inliner:
    """Writes bodies in the place of atoms. `not_inlined` are the relations of atoms that stay as they are."""

    def __init__(
        self, definitions: dict[str, list[Definition]], attributes: Mapping[str, tuple[Attribute, ...]], problems: Problems
    ) -> None:
        self.definitions = definitions
        self.attributes = attributes
        self.problems = problems
        self.not_inlined: set[str] = set()
        self.used = 0

    def clause(self, clause: Clause) -> Clause:
        self.used = 0
        heads = tuple(Atom(h.name, self._terms(h.args), span=h.span) for h in clause.heads)
        body = None if clause.body is None else self._body(clause.body, False, "no")
        return replace(clause, heads=heads, body=body)

    def _body(self, body: Body, negated: bool, counting: Counting) -> Body:
        match body:
            case Atom():
                return self._atom(body, negated, counting)
            case Not(body=inner):
                return Not(self._body(inner, not negated, counting), span=body.span)
            case And(parts=parts):
                return And(tuple(self._body(p, negated, counting) for p in parts), span=body.span)
            case Or(parts=parts):
                return Or(tuple(self._body(p, negated, counting) for p in parts), span=body.span)
            case Constraint(op=op, left=left, right=right):
                left, right = self._terms((left, right))
                return Constraint(op, left, right, span=body.span)
            case Truth():
                return body

    def _terms(self, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(map_term(term, self._term) if has_aggregate(term) else term for term in terms)

    def _term(self, term: Term) -> Term | None:
        if not isinstance(term, AggregateTerm):
            return None
        target = None if term.target is None else map_term(term.target, self._term)
        return replace(term, target=target, body=self._body(term.body, False, self._counting(term)))

    def _counting(self, aggregate: AggregateTerm) -> Counting:
        if dominance_of(aggregate.op) is not None:
            return "no"
        if isinstance(aggregate.body, Atom):
            return "rows"
        parts = aggregate.body.parts if isinstance(aggregate.body, And) else ()
        staying = [part for part in parts if isinstance(part, Atom) and part.name not in self.definitions]
        return "kept" if len(staying) < 2 and _has_wildcards(aggregate.body) else "bindings"

    def _atom(self, atom: Atom, negated: bool, counting: Counting) -> Body:
        atom = Atom(atom.name, self._terms(atom.args), span=atom.span)
        found = self.definitions.get(atom.name)
        if found is None:
            return atom
        if not found and negated:
            return Truth(False, span=atom.span)
        if not found or (counting != "no" and not _may_stand(found, atom, counting)):
            self.not_inlined.add(atom.name)
            return atom
        bodies = [self._instance(definition, atom, negated, counting) for definition in found]
        return bodies[0] if len(bodies) == 1 else Or(tuple(bodies), span=atom.span)

    def _instance(self, definition: Definition, atom: Atom, negated: bool, counting: Counting) -> Body:
        """A clause's body for the atom's arguments. What the arguments are is said beside it, so that it is not negated."""
        head, body = definition
        if negated and self._refused(definition, atom):
            return Truth(True)
        self.used += 1
        names: dict[str, Term] = {}
        inside: list[tuple[Term, Term]] = []
        beside: list[Constraint] = []
        for formal, actual, attribute in zip(head.args, atom.args, self.attributes[atom.name], strict=True):
            term = actual if isinstance(actual, Variable) else Variable(f"{attribute.name}@i{self.used}", span=actual.span)
            beside.append(Constraint(HAS_TYPE, term, String(attribute.type), span=actual.span))
            if not isinstance(actual, Variable | Wildcard):
                beside.append(Constraint("=", term, actual, span=actual.span))
            if isinstance(formal, Variable) and formal.name not in names:
                names[formal.name] = term
            else:
                inside.append((formal, term))
        for variable in (v for node in (*head.args, body) for v in variables(node)):
            if variable.name not in names:
                names[variable.name] = Variable(f"{variable.name}@b{self.used}", span=variable.span)
        naming = _naming(names)
        same = [Constraint("=", map_term(formal, naming), term, span=atom.span) for formal, term in inside]
        placed = self._body(map_body(body, naming), negated, counting)
        placed = And((*same, placed), span=atom.span) if same else placed
        return Or((*map(_opposite, beside), placed), span=atom.span) if negated else And((*beside, placed), span=atom.span)

    def _refused(self, definition: Definition, atom: Atom) -> bool:
        """Whether the negation of a clause's body would speak of variables that nothing binds: an error."""
        own = _own_variables(definition)
        if any(isinstance(a, Wildcard) for a in atom.args):
            own = own | {"_"}
        if not own:
            return False
        shown = ", ".join(f"`{name}`" for name in sorted(own))
        message = f"the inline relation `{atom.name}` is negated, but {shown} is bound only inside of it"
        notes = ["declare the relation without `inline`: then its rows are known before they are asked for"]
        self.problems.add("inline-negation", message, Label(atom.span), notes=notes)
        return True


def _opposite(constraint: Constraint) -> Constraint:
    return Constraint(OPPOSITE[constraint.op], constraint.left, constraint.right, span=constraint.span)


def _may_stand(found: list[Definition], atom: Atom, counting: Counting) -> bool:
    """Whether the body of a relation's clauses has one binding, and one row, for each that the atom has."""
    if counting == "kept" or (counting == "bindings" and any(isinstance(n, Wildcard) for n in walk(atom))):
        return False
    return len(found) < 2 and not any(_own_variables(d) or _has_wildcards(d[1]) for d in found)


def _has_wildcards(body: Body) -> bool:
    """Whether rows may differ in what a body does not name."""
    return any(isinstance(node, Wildcard) for atom in _atoms(_without_aggregates(body)) for node in walk(atom))


def _own_variables(definition: Definition) -> set[str]:
    """The variables of a clause that are not arguments of its head; those of aggregates are their own."""
    head, body = definition
    arguments = {arg.name for arg in head.args if isinstance(arg, Variable)}
    return {v.name for node in (head, body) for v in variables(_without_aggregates(node))} - arguments


def _without_aggregates(body: Body) -> Body:
    return map_body(body, lambda term: Nil() if isinstance(term, AggregateTerm) else None)


def _naming(names: dict[str, Term]) -> Callable[[Term], Term | None]:
    """A `change` for `map_term` that puts terms in the place of variables."""

    def change(term: Term) -> Term | None:
        return names.get(term.name) if isinstance(term, Variable) else None

    return change
