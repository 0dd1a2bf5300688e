"""Rules made of parts of others: variables are numbered anew, and have the types of what binds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import assert_never

from dlog.engine.ir.printing import explicit_rule
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Head,
    Kind,
    Literal,
    Negation,
    Record,
    Relation,
    Rule,
    Term,
    Type,
    Unpack,
    UserFunctor,
    Variable,
)
from dlog.engine.ir.traversal import literal_variables, term_variables

Change = Callable[[Variable], Variable]
NUMBER = Type(Kind.NUMBER.value, Kind.NUMBER)


def compacted(rule: Rule, relation: str, args: Sequence[Term], body: Iterable[Literal]) -> Rule:
    """The rule of a head and a body that are made of those of `rule`, whose variables count from 0."""
    numbers: dict[int, int] = {}

    def change(variable: Variable) -> Variable:
        return Variable(numbers.setdefault(variable.id, len(numbers)))

    new_body = tuple(_literal(x, change) for x in body)
    head = Head(relation, tuple(_term(t, change) for t in args), rule.head.span)
    names, kinds = tuple(rule.variables[v] for v in numbers), tuple(rule.kinds[v] for v in numbers)
    return replace(rule, head=head, body=new_body, variables=names, kinds=kinds)


def _term(term: Term, change: Change) -> Term:
    match term:
        case Variable():
            return change(term)
        case Functor(args=args) | Record(args=args):
            return replace(term, args=tuple(_term(a, change) for a in args))
        case Constant():
            return term


def _arg(arg: Arg, change: Change) -> Arg:
    return change(arg) if isinstance(arg, Variable) else arg


def _atom(atom: Atom, change: Change) -> Atom:
    return replace(atom, args=tuple(_arg(a, change) for a in atom.args))


def _literal(literal: Literal, change: Change) -> Literal:
    match literal:
        case Atom():
            return _atom(literal, change)
        case Negation(atom=atom):
            return replace(literal, atom=_atom(atom, change))
        case Compare(left=left, right=right):
            return replace(literal, left=_term(left, change), right=_term(right, change))
        case Unpack(value=value, fields=fields):
            return replace(literal, value=change(value), fields=tuple(_arg(f, change) for f in fields))
        case Generator(args=args, results=results):
            return replace(literal, args=tuple(_term(a, change) for a in args), results=tuple(_arg(r, change) for r in results))
        case Aggregate(target=target, alternatives=bodies, init=init):
            return replace(
                literal,
                result=change(literal.result),
                target=None if target is None else _term(target, change),
                alternatives=tuple(tuple(_literal(x, change) for x in body) for body in bodies),
                outer=tuple(change(v) for v in literal.outer),
                init=_arg(init, change),
            )
        case _:
            assert_never(literal)


def binds(literal: Literal) -> Iterator[int]:
    """The variables that a literal may give their values."""
    match literal:
        case Atom():
            yield from literal_variables(literal)
        case Compare(op="=", left=Variable(id=id)):
            yield id
        case Unpack(fields=args) | Generator(results=args):
            yield from (a.id for a in args if isinstance(a, Variable))
        case Aggregate(result=result):
            yield result.id
        case Negation() | Compare():
            pass
        case _:
            assert_never(literal)


def uses(literal: Literal) -> set[int]:
    """The variables whose values a literal must have to give others theirs."""
    match literal:
        case Atom():
            return set()
        case Compare(op="=", left=Variable(), right=right):
            return set(term_variables(right))
        case Unpack(value=value):
            return {value.id}
        case Generator(args=args):
            return {v for a in args for v in term_variables(a)}
        case _:
            return set(literal_variables(literal)) - set(binds(literal))


def types_of(
    rule: Rule, relations: Mapping[str, Relation], types: Mapping[str, Type], functors: Mapping[str, UserFunctor]
) -> list[Type]:
    """The type of each variable of a rule, as far as its kind does not say it."""
    found: dict[int, Type] = {}
    for _ in rule.variables:
        known = len(found)
        for literal in rule.body:
            found |= {v: t for v, t in _told(literal, found, relations, types, functors) if t.kind is Kind.RECORD}
        if len(found) == known:
            break
    return [found.get(v, Type(kind.value, kind)) for v, kind in enumerate(rule.kinds)]


def _told(
    literal: Literal,
    known: Mapping[int, Type],
    relations: Mapping[str, Relation],
    types: Mapping[str, Type],
    functors: Mapping[str, UserFunctor],
) -> Iterator[tuple[int, Type]]:
    """The types of variables that a literal tells."""
    match literal:
        case Atom(relation=name, args=args):
            columns = zip(args, relations[name].attributes, strict=True)
            yield from ((a.id, t) for a, (_, t) in columns if isinstance(a, Variable))
        case Unpack(type=name, fields=fields):
            pairs = zip(fields, types[name].fields, strict=True)
            yield from ((f.id, types[t]) for f, (_, t) in pairs if isinstance(f, Variable) and t in types)
        case Compare(op="=", left=Variable(id=id), right=Record(type=name)):
            yield id, types[types[name].whole]
        case Compare(op="=", left=Variable(id=id), right=Variable(id=other)) if other in known:
            yield id, known[other]
        case Compare(op="=", left=Variable(id=id), right=Functor(op=op)) if op[:1] == "@":
            yield id, functors[op[1:]].result
        case Aggregate(result=result, op=op) if op[:2] == "@@":
            yield result.id, functors[op[2:]].result
        case _:
            pass


def digest(rule: Rule, *more: object) -> str:
    """Stands for what a rule says, whatever its head is called."""
    text = explicit_rule(replace(rule, head=replace(rule.head, relation="")))
    return "x" + sha256("\n".join([text, *map(str, rule.kinds), *map(str, more)]).encode()).hexdigest()[:12]
