"""Calls of table functions leave their terms: each becomes an equation of its own, whose left side takes the call's place.

    p(range(0, 3) + x) :- q(x), !r(range(x, 9)).   ->   p(@r1 + x) :- q(x), @r1 = range(0, 3), @r2 = range(x, 9), !r(@r2).

So one that stands below a negation is beside it: there is a match for each value that the relation does not have. What an
aggregate has in its body stays in that body.
"""

from __future__ import annotations

from dlog.engine.compile.normal.comparisons import HAS_TYPE
from dlog.engine.compile.normal.disjunction import Conjunction, Flat, FlatClause
from dlog.engine.compile.walk import map_term, outside_aggregates
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS
from dlog.grammar.syntax import AggregateTerm, Atom, Body, Call, Constraint, Not, RecordTerm, Term, Truth, Variable, Wildcard


def is_generator(term: Term) -> bool:
    return isinstance(term, Call) and term.name in TABLE_FUNCTIONS


def has_generator(node: Term | Body) -> bool:
    """Whether a term or literal calls a table function, aggregates apart."""
    return any(isinstance(n, Call) and n.name in TABLE_FUNCTIONS for n in outside_aggregates(node))


class GeneratorHoist:
    """Takes the calls out of one clause's terms; the names of their results are `@r1`, `@r2`, ..."""

    def __init__(self) -> None:
        self.count = 0

    def clause(self, clause: FlatClause) -> FlatClause:
        if not has_generator(clause.head) and not any(map(has_generator, clause.body)):
            return clause
        beside: list[Flat] = []
        head = self._atom(clause.head, beside)
        return FlatClause(head, (*self.conjunction(clause.body), *beside), clause.text, clause.span)

    def conjunction(self, literals: Conjunction) -> Conjunction:
        found: list[Flat] = []
        for literal in literals:
            found.append(self._literal(literal, found) if has_generator(literal) else literal)
        return tuple(found)

    def term(self, term: Term, beside: list[Flat]) -> Term:
        """The term, with the result of each call in its place; the equations go to `beside`."""

        def change(t: Term) -> Term | None:
            if isinstance(t, AggregateTerm):
                return t
            if not is_generator(t):
                return None
            self.count += 1
            result = Variable(f"@r{self.count}", span=t.span)
            beside.append(Constraint("=", result, self._call(t, beside), span=t.span))
            return result

        return map_term(term, change)

    def _call(self, call: Term, beside: list[Flat]) -> Call:
        assert isinstance(call, Call)
        return Call(call.name, tuple(self.term(a, beside) for a in call.args), span=call.span)

    def _atom(self, atom: Atom, beside: list[Flat]) -> Atom:
        return Atom(atom.name, tuple(self.term(a, beside) for a in atom.args), span=atom.span)

    def _literal(self, literal: Flat, beside: list[Flat]) -> Flat:
        match literal:
            case Atom():
                return self._atom(literal, beside)
            case Not(body=Atom() as atom):
                return Not(self._atom(atom, beside), span=literal.span)
            case Constraint(op=op, left=left, right=right) if op != HAS_TYPE:
                return self._constraint(literal, left, right, beside)
            case Constraint() | Not() | Truth():
                return literal

    def _constraint(self, constraint: Constraint, left: Term, right: Term, beside: list[Flat]) -> Constraint:
        if is_generator(left) and not is_generator(right):
            left, right = right, left
        if constraint.op == "=" and isinstance(left, Variable | Wildcard | RecordTerm) and is_generator(right):
            return Constraint("=", self.term(left, beside), self._call(right, beside), span=constraint.span)
        left, right = self.term(constraint.left, beside), self.term(constraint.right, beside)
        return Constraint(constraint.op, left, right, span=constraint.span)
