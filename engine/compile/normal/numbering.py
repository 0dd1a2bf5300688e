"""The last step of normalization: variables are numbered from 0 in the order of the text, fresh ones named `_1`, `_2`, ..."""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.normal.lower import Variables
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Head,
    Literal,
    Negation,
    Record,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.grammar.source import Span


def number_variables(head: Head, body: tuple[Literal, ...], variables: Variables, text: str, span: Span) -> Rule:
    numbering = _Numbering(variables)
    new_head = Head(head.relation, tuple(numbering.term(t) for t in head.args), head.span)
    new_body = tuple(numbering.literal(x) for x in body)
    kinds = tuple(variables.kinds[v] for v in numbering.ids)
    return Rule(new_head, new_body, numbering.names(), kinds, text, span)


class _Numbering:
    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.ids: dict[int, Variable] = {}

    def names(self) -> tuple[str, ...]:
        """Distinct names: a name used by several scopes gets primes."""
        taken: set[str] = set()
        names: list[str] = []
        fresh = 0
        for old in self.ids:
            name = self.variables.names[old]
            if not name:
                fresh += 1
                name = f"_{fresh}"
            while name in taken:
                name += "'"
            taken.add(name)
            names.append(name)
        return tuple(names)

    def variable(self, variable: Variable) -> Variable:
        found = self.ids.get(variable.id)
        if found is None:
            found = self.ids[variable.id] = Variable(len(self.ids))
        return found

    def arg(self, arg: Arg) -> Arg:
        return self.variable(arg) if isinstance(arg, Variable) else arg

    def term(self, term: Term) -> Term:
        match term:
            case Variable():
                return self.variable(term)
            case Constant():
                return term
            case Functor(args=args):
                return replace(term, args=tuple(self.term(a) for a in args))
            case Record(type=name, args=args):
                return Record(name, tuple(self.term(a) for a in args))

    def literal(self, literal: Literal) -> Literal:
        match literal:
            case Atom(relation=relation, args=args, span=span):
                return Atom(relation, tuple(self.arg(a) for a in args), span)
            case Negation(atom=Atom(relation=relation, args=args, span=inner), span=span):
                return Negation(Atom(relation, tuple(self.arg(a) for a in args), inner), span)
            case Compare(op=op, left=left, right=right, kind=kind, span=span):
                return Compare(op, self.term(left), self.term(right), kind, span)
            case Unpack(value=value, type=name, fields=fields, span=span):
                return Unpack(self.variable(value), name, tuple(self.arg(f) for f in fields), span)
            case Generator(args=args, results=results):
                new_args = tuple(self.term(a) for a in args)
                return Generator(literal.function, new_args, tuple(self.arg(r) for r in results), literal.kind, literal.span)
            case Aggregate(result=result, target=target, alternatives=bodies, outer=outer, init=init):
                new_result = self.variable(result)
                new_init = None if init is None else self.arg(init)
                new_target = None if target is None else self.term(target)
                new_bodies = tuple(tuple(self.literal(x) for x in body) for body in bodies)
                new_outer = tuple(self.variable(v) for v in outer)
                return replace(
                    literal, result=new_result, target=new_target, alternatives=new_bodies, outer=new_outer, init=new_init
                )
