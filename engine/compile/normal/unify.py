"""Plain equations disappear: a variable equal to another variable or to a constant is replaced by it.

    p(x, z) :- e(x, y), y = 3, z = x.            ->   p(x, x) :- e(x, 3).
    p(x) :- r(v), [x, 1] = [y, 1], v = y.        ->   p(v) :- r(v).
    p(x) :- e(x), 1 = 2.                         ->   never

A variable is kept where others look at it: `fixed` variables belong to an enclosing scope. The result of an aggregate takes
another variable's place only if nothing else gives that variable its values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dlog.engine.compile.normal.lower import (
    Falsehood,
    Raw,
    RawAggregate,
    RawAtom,
    RawGenerator,
    Variables,
    aggregate_variables,
)
from dlog.engine.ir.rules import Compare, Constant, Functor, Kind, Record, Term, Variable
from dlog.engine.ir.traversal import term_variables


class Unsatisfiable(Exception):
    """The conjunction never holds."""


class Substitution:
    """Variable ids to what replaces them, which may be replaced itself."""

    def __init__(self) -> None:
        self.terms: dict[int, Variable | Constant] = {}

    def add(self, variable: int, term: Variable | Constant) -> None:
        """Replaces a variable by another term; neither of them is replaced yet."""
        self.terms[variable] = term

    def _last(self, variable: Variable) -> Variable | Constant:
        """What a variable is replaced by in the end. Those on the way to it have it at once the next time."""
        term: Variable | Constant = variable
        passed = []
        while isinstance(term, Variable) and (found := self.terms.get(term.id)) is not None:
            passed.append(term.id)
            term = found
        for id in passed:
            self.terms[id] = term
        return term

    def term(self, term: Term) -> Term:
        match term:
            case Variable():
                return self._last(term)
            case Functor(args=args):
                return replace(term, args=tuple(self.term(a) for a in args))
            case Record(type=name, args=args):
                return Record(name, tuple(self.term(a) for a in args))
            case Constant():
                return term

    def literal(self, literal: Raw) -> Raw:
        match literal:
            case RawAtom(relation=relation, args=args, negated=negated, span=span):
                return RawAtom(relation, tuple(None if a is None else self.term(a) for a in args), negated, span)
            case Compare(op=op, left=left, right=right, kind=kind, span=span):
                return Compare(op, self.term(left), self.term(right), kind, span)
            case RawGenerator(function=function, args=args, results=results, kind=kind, span=span):
                given = tuple(self.term(a) for a in args)
                return RawGenerator(function, given, tuple(None if r is None else self.term(r) for r in results), kind, span)
            case RawAggregate(target=target, alternatives=bodies, init=init):
                inner = tuple(tuple(self.literal(x) for x in body) for body in bodies)
                new, first = (None if t is None else self.term(t) for t in (target, init))
                return replace(literal, target=new, alternatives=inner, init=first)
            case Falsehood():
                return literal


def unify(literals: Iterable[Raw], fixed: set[int], variables: Variables) -> tuple[list[Raw], Substitution]:
    """The literals without plain equations, and the substitution made; raises Unsatisfiable."""
    return _Unifier(list(literals), fixed, variables).run()


class _Unifier:
    def __init__(self, literals: list[Raw], fixed: set[int], variables: Variables) -> None:
        self.literals = literals
        self.fixed = fixed
        self.variables = variables
        self.substitution = Substitution()
        self.aggregates = {a.result.id: a for a in literals if isinstance(a, RawAggregate)}
        atoms = [x for x in literals if isinstance(x, RawAtom) and not x.negated]
        generators = [x for x in literals if isinstance(x, RawGenerator)]
        given = [a for atom in atoms for a in atom.args] + [r for generator in generators for r in generator.results]
        self.from_atoms = {v for term in given for v in term_variables(term)}
        """The variables that get bits from atoms or generators."""

    def run(self) -> tuple[list[Raw], Substitution]:
        literals = self.literals
        while True:  # a later equation may decide an earlier one: [a, b] = t, t = nil
            known = len(self.substitution.terms)
            literals = [x for literal in literals for x in self._step(literal)]
            if len(self.substitution.terms) == known:
                break
        return ([self.substitution.literal(x) for x in literals] if self.substitution.terms else literals), self.substitution

    def _step(self, literal: Raw) -> list[Raw]:
        if isinstance(literal, Falsehood):
            raise Unsatisfiable
        return self._equation(literal) if isinstance(literal, Compare) and literal.op == "=" else [literal]

    def _equation(self, equation: Compare) -> list[Raw]:
        """The rest of an equation: nothing, itself, or those of its records' fields."""
        left, right = self.substitution.term(equation.left), self.substitution.term(equation.right)
        match left, right:
            case (Constant(value=a), Constant(value=b)):
                if a != b:
                    raise Unsatisfiable
                return []
            case (Variable(id=a), Variable(id=b)) if a == b:
                return []
            case (Variable() as one, Variable() as other):
                early, late = (one, other) if one.id < other.id else (other, one)  # the first name stays
                if self._replace(late, early) or self._replace(early, late):
                    return []
            case (Variable() as one, Constant() as constant) | (Constant() as constant, Variable() as one):
                zero = constant.kind is Kind.FLOAT and constant.value == 0 and one.id in self.from_atoms
                if self._replaceable(one.id) and one.id not in self.aggregates and not zero:  # atoms tell 0.0 from -0.0
                    self.substitution.add(one.id, constant)
                    return []
            case (Record(args=xs), Record(args=ys)):
                pairs = zip(xs, ys, strict=True)
                return [y for a, b in pairs for y in self._equation(Compare("=", a, b, self._kind(a), equation.span))]
            case (Record(), Constant()) | (Constant(), Record()):
                raise Unsatisfiable  # nil is no record of fields
            case _:
                pass
        return [Compare("=", left, right, equation.kind, equation.span)]

    def _kind(self, term: Term) -> Kind:
        match term:
            case Variable(id=id):
                return self.variables.kinds[id]
            case Constant(kind=kind):
                return kind
            case Functor(result=result):
                return result
            case Record():
                return Kind.RECORD

    def _replaceable(self, variable: int) -> bool:
        return variable not in self.fixed

    def _replace(self, one: Variable, other: Variable) -> bool:
        """Replace `one` by `other` if that is allowed and sensible."""
        wild = self.variables.wild
        if not self._replaceable(one.id) or one.id in self.aggregates or (other.id in wild and one.id not in wild):
            return False
        aggregate = self.aggregates.get(other.id)
        if aggregate is not None:
            if one.id in self.from_atoms or one.id in set(aggregate_variables(self._current(aggregate))):
                return False
            self.variables.names[other.id] = self.variables.names[other.id] or self.variables.names[one.id]
        if one.id in self.from_atoms:
            self.from_atoms.add(other.id)
        self.substitution.add(one.id, other)
        return True

    def _current(self, aggregate: RawAggregate) -> RawAggregate:
        literal = self.substitution.literal(aggregate)
        assert isinstance(literal, RawAggregate)
        return literal
