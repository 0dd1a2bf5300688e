"""Scopes: aggregates leave their terms, and every variable of a clause gets a name of its own.

    a(x, n + 1) :- b(x), n = count : { c(x, y) }, y = 2.
    ->  a(x, n + 1) :- b(x), n = @1, y = 2,  @1 = count : { c(x, y@1) }.

A name in an aggregate means, as in Souffle:

* in the target: the aggregate's own variable, even if the name is used outside (`x = min x : { a(x) }`);
* a name bound outside the aggregate (by an atom, `=`, or another aggregate's result): that variable;
* a name used outside but bound only by the body of a `min` or `max`: a witness. `a(x, m) :- m = max z : { c(x, z) }.` gives
  the x where the maximum stands: the body is repeated outside with the result in the target's place. Other aggregates cannot
  have a witness;
* any other name: the aggregate's own.

Own names become `name@k`, results `@k`. An `Aggregation`'s body is in disjunctive form and may hold further ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from dlog.dataclass import immutable
from dlog.engine.compile.grounding import bound_variables
from dlog.engine.compile.normal.disjunction import FLAT, Conjunction, Flat, FlatClause, alternatives
from dlog.engine.compile.normal.generators import GeneratorHoist, has_generator
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.walk import has_aggregate, map_body, map_term, outside_aggregates, renaming, variables
from dlog.engine.ir.aggregates import dominance_of
from dlog.grammar.source import Span
from dlog.grammar.syntax import AggregateTerm, Atom, Body, Constraint, Not, Term, Truth, Variable


@immutable
class Aggregation:
    """`result = op target : { alternatives }`; `own` are the names of its own scope, those of inner ones excepted. `init` is
    the name, of the scope around it, of what a user's aggregate begins with."""

    result: str
    op: str
    target: Term | None
    alternatives: tuple[tuple[Scoped, ...], ...]
    own: frozenset[str]
    span: Span
    init: str | None = None


Scoped: TypeAlias = Flat | Aggregation


@immutable
class ScopedClause:
    head: Atom
    body: tuple[Scoped, ...]
    text: str
    span: Span


@immutable
class _Pending:
    """An aggregate on its way out of a term; `target` is free of aggregates."""

    result: str
    term: AggregateTerm
    target: Term | None
    bodies: tuple[Conjunction, ...]
    init: str | None

    def names(self) -> set[str]:
        return {v.name for b in self.bodies for literal in b for v in variables(literal)} | self.target_names()

    def target_names(self) -> set[str]:
        return set() if self.target is None else {v.name for v in variables(self.target)}


def display(name: str) -> str:
    """The user's name of a variable."""
    return name.split("@")[0]


def scope(clause: FlatClause, problems: Problems) -> ScopedClause:
    generators = GeneratorHoist()
    clause = generators.clause(clause)
    if not has_aggregate(clause.head) and not any(has_aggregate(literal) for literal in clause.body):
        return ScopedClause(clause.head, clause.body, clause.text, clause.span)
    return _Scoper(problems, generators).clause(clause)


class _Scoper:
    def __init__(self, problems: Problems, generators: GeneratorHoist) -> None:
        self.problems = problems
        self.generators = generators
        self.count = 0
        self.witnesses: dict[str, set[str]] = {}  # by the aggregate's result; inside it they are its own

    def clause(self, clause: FlatClause) -> ScopedClause:
        pending: list[_Pending] = []
        args = tuple(self._hoist(a, pending) for a in clause.head.args)
        head = Atom(clause.head.name, args, span=clause.head.span)
        outside = {v.name for a in args for v in variables(a)}
        body = self._conjunction(clause.body, pending, outside, frozenset())
        return ScopedClause(head, body, clause.text, clause.span)

    def _hoist(self, term: Term, pending: list[_Pending]) -> Term:
        """The term with a fresh variable in each aggregate's place."""

        def change(t: Term) -> Term | None:
            if not isinstance(t, AggregateTerm):
                return None
            pending.append(self._pend(t))
            return Variable(pending[-1].result, span=t.span)

        return map_term(term, change) if has_aggregate(term) else term

    def _pend(self, term: AggregateTerm) -> _Pending:
        self.count += 1
        bodies = alternatives(term.body, self.problems)
        target = term.target
        if target is not None and (has_aggregate(target) or has_generator(target)):
            # sum (count : ...) : body  ->  sum t : body, t = count : ...
            fresh = Variable(f"target@t{self.count}", span=target.span)
            bodies = [(*b, Constraint("=", fresh, target, span=target.span)) for b in bodies]
            target = fresh
        init = None if term.init is None else f"@init{self.count}"
        return _Pending(f"@{self.count}", term, target, tuple(map(self.generators.conjunction, bodies)), init)

    def _hoist_literal(self, literal: Flat, pending: list[_Pending]) -> Flat:
        match literal:
            case Atom(name=name, args=args):
                return Atom(name, tuple(self._hoist(a, pending) for a in args), span=literal.span)
            case Not(body=Atom() as atom):
                args = tuple(self._hoist(a, pending) for a in atom.args)
                return Not(Atom(atom.name, args, span=atom.span), span=literal.span)
            case Constraint(op=op, left=left, right=right):
                return Constraint(op, self._hoist(left, pending), self._hoist(right, pending), span=literal.span)
            case Not() | Truth():
                return literal

    def _conjunction(
        self, literals: Conjunction, pending: list[_Pending], outside: set[str], known: frozenset[str]
    ) -> tuple[Scoped, ...]:
        """Settle the aggregates of one conjunction. `outside` are names used next to it, `known` those bound around it."""
        literals = self._reaching(literals, outside, known)
        plain = [self._hoist_literal(literal, pending) for literal in literals]
        index = 0
        while index < len(pending):  # a witness repeats a body, which may bring in more aggregates
            plain += self._first(pending[index], pending)
            plain += self._witness(pending[index], plain, pending, outside, known)
            index += 1
        settled = [self._settle(p, plain, pending, known) for p in pending]
        return (*plain, *settled)

    def _first(self, one: _Pending, pending: list[_Pending]) -> Conjunction:
        """What gives the variable its value that a user's aggregate begins with."""
        init = one.term.init
        if init is None or one.init is None:
            return ()
        first = Constraint("=", Variable(one.init, span=init.span), init, span=init.span)
        return tuple(self._hoist_literal(x, pending) for x in self.generators.conjunction((first,)))

    # ------------------------------------------------------------------------------------------------------- witnesses

    def _reaching(self, literals: Conjunction, outside: set[str], known: frozenset[str]) -> Conjunction:
        """The literals with those aggregates beside them that stand in the bodies of others, depend on nothing there, and have
        witnesses which are used out here: `r(n, w) :- n = count : { b(x), x > min y : { d(y, w) } }.`"""
        used = outside | {v.name for x in literals for v in _outer_variables(x)}
        wanted = used - bound_variables(literals, known)
        if not wanted:
            return literals
        lifted: list[Flat] = []

        def change(term: Term) -> Term | None:
            if not isinstance(term, AggregateTerm):
                return None
            return replace(term, body=map_body(term.body, lambda inner: self._lifted(inner, term, wanted, lifted)))

        changed = tuple(map_body(x, change) for x in literals) if any(map(has_aggregate, literals)) else literals
        return (*(x for x in changed if isinstance(x, FLAT)), *lifted) if lifted else literals

    def _lifted(self, term: Term, around: AggregateTerm, wanted: set[str], lifted: list[Flat]) -> Term | None:
        """An aggregate that reaches out of the body of another one: it is evaluated beside that, too, and has names of its own
        where it stands."""
        if not isinstance(term, AggregateTerm) or dominance_of(term.op) is None:
            return None
        own = {v.name for v in variables(term)}
        beside = {v.name for part in (around.body, around.target) if part is not None for v in _outer_variables(part)}
        if not own & wanted or own & beside:
            return None
        self.count += 1
        result = Variable(f"{term.op}@r{self.count}", span=term.span)
        lifted.append(Constraint("=", result, term, span=term.span))
        return map_term(term, renaming({name: f"{name}@r{self.count}" for name in own & wanted}))

    def _witness(
        self, one: _Pending, plain: Iterable[Scoped], pending: list[_Pending], outside: set[str], known: frozenset[str]
    ) -> list[Flat]:
        """The literals that give the aggregate's witnesses, where it has some."""
        used = outside | _names(plain)
        bound = bound_variables(_syntax(plain), known | {p.result for p in pending})
        wanted = {n for n in one.names() if n in used and n not in bound}
        shared = bound - one.target_names()
        inside = [bound_variables(b, shared) for b in one.bodies]
        found = {n for n in wanted if inside and all(n in b for b in inside)}
        if not found:
            return []
        if dominance_of(one.term.op) is None:
            self._refuse_witness(one, found)
            return []
        if len(one.bodies) > 1:
            message = "not supported yet: a witness of an aggregate whose body is a disjunction"
            self.problems.add("unsupported", message, Label(one.term.span))
            return []
        self.witnesses[one.result] = found
        names = {n: f"{n}@w{one.result[1:]}" for n in one.names() if n not in shared and n not in found}
        copy = [map_body(literal, renaming(names)) for literal in one.bodies[0]]
        target = map_term(one.target, renaming(names)) if one.target is not None else None
        result = Variable(one.result, span=one.term.span)
        same = [Constraint("=", target, result, span=one.term.span)] if target is not None else []
        flat = [literal for literal in copy if isinstance(literal, FLAT)]
        return [self._hoist_literal(literal, pending) for literal in (*flat, *same)]

    def _refuse_witness(self, one: _Pending, found: set[str]) -> None:
        shown = ", ".join(f"`{display(n)}`" for n in sorted(found))
        message = f"{shown} is bound only inside this `{one.term.op}`, but used outside of it"
        notes = [
            f"each value of {shown} would be its own group: bind it outside with an atom to aggregate per group",
            "only `min` and `max` have witnesses: the values at which the least or greatest one stands",
        ]
        self.problems.add("aggregate-witness", message, Label(one.term.span), notes=notes)

    # -------------------------------------------------------------------------------------------------------- settling

    def _settle(self, one: _Pending, plain: Iterable[Scoped], pending: list[_Pending], known: frozenset[str]) -> Aggregation:
        others = {p.result for p in pending if p.result != one.result}
        bound = bound_variables(_syntax(plain), known | others)
        own = {n for n in one.names() if n in one.target_names() or n not in bound} | self.witnesses.get(one.result, set())
        names = {n: f"{display(n)}{one.result}" if "@" not in n else f"{n}.{one.result[1:]}" for n in own}
        change = renaming(names)
        target = None if one.target is None else map_term(one.target, change)
        outside = set() if target is None else {v.name for v in variables(target)}
        inner_known = frozenset(bound)
        bodies = []
        for body in one.bodies:
            renamed = [map_body(literal, change) for literal in body]
            flat = tuple(literal for literal in renamed if isinstance(literal, FLAT))
            bodies.append(self._conjunction(flat, [], outside, inner_known))
        own_names = frozenset(names.values())
        return Aggregation(one.result, one.term.op, target, tuple(bodies), own_names, one.term.span, one.init)


def _outer_variables(node: Term | Body) -> Iterable[Variable]:
    """Every occurrence of a named variable outside of aggregates."""
    return (n for n in outside_aggregates(node) if isinstance(n, Variable))


def _syntax(literals: Iterable[Scoped]) -> list[Flat]:
    return [literal for literal in literals if not isinstance(literal, Aggregation)]


def _names(literals: Iterable[Scoped]) -> set[str]:
    return {v.name for literal in _syntax(literals) for v in variables(literal)}
