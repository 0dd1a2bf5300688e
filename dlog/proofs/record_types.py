"""The types of a rule's variables that are records, dates or times: the typed program leaves them to where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Kind,
    Literal,
    Negation,
    Program,
    Record,
    Term,
    Unpack,
    Variable,
)
from dlog.proofs.forms import Form


def record_type(form: Form, variable: int, program: Program) -> str | None:
    """The name of the type of a variable that is a record, a date or a time; None where nothing tells."""
    literals = (*form.rule.body, *form.body)
    places = [*_typed(form.rule.head.args, form.rule.head.relation, program)]
    for literal in literals:
        places += _places(literal, program)
    equal = {variable}
    while True:
        found = next((name for v, name in places if v in equal), None)
        more = {b for a, b in _equations(literals, form.kinds) if a in equal} - equal
        if found is not None or not more:
            return found
        equal |= more


def _typed(args: tuple[Term | None, ...], relation: str, program: Program) -> Iterator[tuple[int, str]]:
    for arg, (_, type) in zip(args, program.relations[relation].attributes, strict=True):
        if type.kind is Kind.RECORD or type.is_calendar:
            yield from _of_term(arg, type.name, program)


def _of_term(term: Term | None, type: str, program: Program) -> Iterator[tuple[int, str]]:
    match term:
        case Variable(id=number):
            yield number, type
        case Record(type=name, args=args):
            for arg, (_, field) in zip(args, program.types[name].fields, strict=True):
                yield from _of_term(arg, field, program)
        case Constant() | Functor() | None:
            pass


def _places(literal: Literal, program: Program) -> Iterator[tuple[int, str]]:
    match literal:
        case Atom(relation=relation, args=args) | Negation(atom=Atom(relation=relation, args=args)):
            yield from _typed(args, relation, program)
        case Compare(left=left, right=right):
            for side in (left, right):
                for record in _records(side):
                    yield from _of_term(record, record.type, program)
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Variable) and isinstance(other, Record):
                    yield one.id, program.types[other.type].whole
        case Unpack(value=value, type=name, fields=fields):
            yield value.id, program.types[name].whole
            types = (type for _, type in program.types[name].fields)
            yield from ((f.id, t) for f, t in zip(fields, types, strict=True) if isinstance(f, Variable))
        case Generator(args=args):
            for record in (r for arg in args for r in _records(arg)):
                yield from _of_term(record, record.type, program)
        case Aggregate(alternatives=alternatives):
            for alternative in alternatives:
                for inner in alternative:
                    yield from _places(inner, program)
        case _:
            assert_never(literal)


def _records(term: Term) -> Iterator[Record]:
    match term:
        case Record():
            yield term
        case Functor(args=args):
            for arg in args:
                yield from _records(arg)
        case Variable() | Constant():
            pass


def _equations(body: tuple[Literal, ...], kinds: tuple[Kind, ...]) -> Iterator[tuple[int, int]]:
    """Pairs of variables of records, or of numbers, that are equal."""
    for literal in body:
        match literal:
            case Compare(op="=", left=Variable(id=a), right=Variable(id=b)) if kinds[a] in (Kind.RECORD, Kind.NUMBER):
                yield a, b
                yield b, a
            case Aggregate(alternatives=alternatives):
                for alternative in alternatives:
                    yield from _equations(alternative, kinds)
            case Atom() | Negation() | Compare() | Unpack() | Generator():
                pass
