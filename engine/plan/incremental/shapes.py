"""Strata of one shape: what the planner sees of a stratum, but for the names of relations, the values of constants and the
places in the text.

Two strata of one shape for which all figures are the same have the same plan, but for these (see `templates`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import AntiJoin, Insert, LookUp
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Literal,
    Negation,
    Program,
    Record,
    Rule,
    Stratum,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.plan.query import Condition, Query
from dlog.grammar.source import NOWHERE, Span

Shape: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class Names:
    """The names in which strata of one shape differ: each relation, constant and span by the order in which a stratum mentions
    them."""

    relations: dict[str, int] = field(default_factory=dict)
    constants: dict[Constant, int] = field(default_factory=dict)
    spans: dict[Span, int] = field(default_factory=dict)

    def relation(self, name: str) -> int:
        return self.relations.setdefault(name, len(self.relations))

    def span(self, span: Span) -> int:
        return -1 if span is NOWHERE or span == NOWHERE else self.spans.setdefault(span, len(self.spans))

    def terms(self, terms: Iterable[Term | None]) -> Shape:
        return tuple([t.id if type(t) is Variable else self.term(t) for t in terms])  # by far the most

    def term(self, term: Term | None) -> object:
        if type(term) is Variable:
            return term.id
        match term:
            case None:
                return None
            case Constant(value=value, kind=of):  # zero, nil and the empty text are told from others: a divisor is, too
                return "c", self.constants.setdefault(term, len(self.constants)), of, bool(value)
            case Functor(op=op, args=args, kind=of, result=result, span=span):
                return "f", op, self.terms(args), of, result, self.span(span)
            case Record(type=name, args=args):
                return "r", name, self.terms(args)
            case Variable():
                return term.id

    def literals(self, body: Iterable[Literal]) -> Shape:
        return tuple([self.literal(x) for x in body])

    def literal(self, literal: Literal) -> Shape:
        match literal:
            case Atom(relation=name, args=args):
                return "+", self.relation(name), self.terms(args)
            case Compare(op=op, left=left, right=right, kind=kind, span=span):
                return "=", op, self.term(left), self.term(right), kind, self.span(span)
            case Negation(atom=atom):
                return "!", self.relation(atom.relation), self.terms(atom.args)
            case Unpack(value=value, type=name, fields=fields, span=span):
                return "[", value.id, name, self.terms(fields), self.span(span)
            case Generator(function=function, args=args, results=results, kind=kind, span=span):
                return "<", function, self.terms(args), self.terms(results), kind, self.span(span)
            case Aggregate():
                bodies = tuple([self.literals(a) for a in literal.alternatives])
                outer, target = self.terms(literal.outer), self.term(literal.target)
                return "{", literal.op, literal.result.id, target, bodies, outer, literal.kind, self.span(literal.span)

    def rule(self, rule: Rule) -> Shape:
        head = rule.head
        return self.relation(head.relation), self.terms(head.args), self.literals(rule.body), rule.kinds, self.term(rule.weight)

    def query(self, query: Query) -> Shape:
        readings = tuple([(self.relation(r.relation), self.terms(r.args), r.view, r.place) for r in query.readings])
        conditions = tuple([self._condition(c) for c in query.conditions])
        return readings, conditions, self.terms(query.output), query.bag, query.kinds

    def _condition(self, condition: Condition) -> Shape:
        match condition:
            case AntiJoin(relation=name, args=args, view=view):
                return "!", self.relation(name), self.terms(args), view
            case LookUp(relation=name, key=key, variable=variable, default=default, view=view):
                return "?", self.relation(name), self.terms(key), variable, default, view
            case Compare() | Unpack() | Generator():
                return self.literal(condition)

    def order(self) -> Shape:
        """The order of names and values, by which the planner goes where nothing else decides."""
        values = {f"{c.kind.value} {c.value!r}": i for c, i in self.constants.items()}
        return _ranks(self.relations), _ranks(values)


class Shapes:
    """The shapes of a program's strata, and of the bodies of large ones."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._declared: dict[str, Shape] = {}

    def of(self, stratum: Stratum) -> tuple[Shape, Names]:
        names = Names()
        own = tuple([names.relation(r) for r in stratum.relations])
        rules = tuple([names.rule(r) for r in stratum.rules])
        return (own, stratum.recursive, rules, self._around(names)), names

    def of_body(self, query: Query, sink: Insert, feedback: frozenset[str]) -> tuple[Shape, Names]:
        names = Names()
        body = names.query(query), names.relation(sink.relation), names.terms(sink.terms), names.term(sink.weight)
        own = tuple([name in feedback for name in names.relations])
        return (body, own, self._around(names)), names

    def _around(self, names: Names) -> Shape:
        """The planner's knowledge of the relations and constants that have names."""
        copied = tuple([self._copied(r, names) for r in tuple(names.relations)])
        return tuple([self._relation(r) for r in names.relations]), copied, names.order()

    def _relation(self, name: str) -> Shape:
        """The planner's knowledge of a relation besides its statistics."""
        found = self._declared.get(name)
        if found is None:
            program, lattice = self.program, self.program.lattices.get(name)
            given = bool(program.facts.get(name)) or name in program.inputs
            passes = name in program.passing
            found = (program.relations[name].kinds, given, passes, lattice and (lattice.dominance, lattice.column))
            self._declared[name] = found
        return found

    def _copied(self, name: str, names: Names) -> Shape:
        """The rules that say of each row of another relation in the stratum that it has a row in this one."""
        of = self.program.copying.get(name)
        return tuple([names.rule(r) for body, rules in of.items() if body in names.relations for r in rules]) if of else ()


def _ranks(numbers: dict[str, int]) -> Shape:
    return tuple([numbers[name] for name in sorted(numbers)]) if len(numbers) > 1 else ()
