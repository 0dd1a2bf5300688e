"""Traversals of the normalized program: the atoms of a body, the variables that terms and literals mention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, assert_never, cast

from dlog.engine.ir.aggregates import is_user_aggregate
from dlog.engine.ir.rules import (
    Aggregate,
    Atom,
    Compare,
    Functor,
    Generator,
    Literal,
    Negation,
    Record,
    Rule,
    Term,
    Unpack,
    Variable,
    printed_types,
)

_NESTED = frozenset({Functor, Record})
"""Terms that may hold others."""


class Occurrence(NamedTuple):
    """An atom where a body reads it."""

    atom: Atom
    body: tuple[Literal, ...]
    """The innermost body around it: the rule's, or an alternative of an aggregate."""
    negated: bool
    aggregated: bool
    """Whether it stands inside an aggregate."""

    @property
    def binds(self) -> bool:
        """Whether the body's matches have a row of it each."""
        return not self.negated and not self.aggregated


def occurrences(body: tuple[Literal, ...], aggregated: bool = False) -> Iterator[Occurrence]:
    """Every atom of a body, negations and aggregates included, in the order of the text."""
    for literal in body:
        match literal:
            case Atom():
                yield Occurrence(literal, body, False, aggregated)
            case Negation(atom=atom):
                yield Occurrence(atom, body, True, aggregated)
            case Aggregate(alternatives=alternatives):
                for alternative in alternatives:
                    yield from occurrences(alternative, True)
            case Compare() | Unpack() | Generator():
                pass
            case _:
                assert_never(literal)


def positive_atoms(body: tuple[Literal, ...]) -> Iterator[Atom]:
    """The atoms of a body and of its aggregates that are not negated."""
    return (x.atom for x in occurrences(body) if not x.negated)


def functors(rule: Rule) -> list[Functor]:
    """Every functor of a rule."""
    found: list[Functor] = []
    for term in rule.head.args:
        if type(term) in _NESTED:
            _note_functors((term,), found)
    for literal in rule.body:
        if type(literal) is Compare:
            if type(literal.left) in _NESTED or type(literal.right) in _NESTED:
                _note_functors((literal.left, literal.right), found)
        elif type(literal) is not Atom and type(literal) is not Negation:
            _note_functors(_terms(literal), found)
    return found


def user_aggregates(body: Iterable[Literal]) -> Iterator[Aggregate]:
    """Every aggregate of a body that is a user's functor."""
    for literal in body:
        if isinstance(literal, Aggregate):
            if is_user_aggregate(literal.op):
                yield literal
            for alternative in literal.alternatives:
                yield from user_aggregates(alternative)


def stateful_functors(rule: Rule) -> list[Functor]:
    """Every functor of a rule that may give another value for the same arguments."""
    return [functor for functor in functors(rule) if functor.stateful]


def prints(rule: Rule) -> bool:
    """Whether a rule has a goal that prints."""
    return any(printed_types(functor.op) is not None for functor in stateful_functors(rule))


def _terms(literal: Literal) -> Iterator[Term]:
    """The terms of a literal that may hold functors: atoms have variables and constants only."""
    match literal:
        case Compare(left=left, right=right):
            yield from (left, right)
        case Generator(args=args):
            yield from args
        case Aggregate(target=target, alternatives=alternatives):
            if target is not None:
                yield target
            for alternative in alternatives:
                for inner in alternative:
                    yield from _terms(inner)
        case Atom() | Negation() | Unpack():
            pass
        case _:
            assert_never(literal)


def _note_functors(terms: Iterable[Term], found: list[Functor]) -> None:
    """Adds every functor of some terms."""
    for term in terms:
        kind = type(term)
        if kind is Functor:
            found.append(cast(Functor, term))
        if kind is Functor or kind is Record:
            _note_functors(cast("Functor | Record", term).args, found)


def term_variables(term: Term | None) -> Iterator[int]:
    """The variables of a term, each as often as it occurs."""
    match term:
        case Variable(id=id):
            yield id
        case Functor(args=args) | Record(args=args):
            for arg in args:
                yield from term_variables(arg)
        case _:
            pass


def literal_variables(literal: Literal) -> Iterator[int]:
    """The variables of a body that a literal mentions; of an aggregate those it shares with the body around it."""
    match literal:
        case Atom(args=args) | Negation(atom=Atom(args=args)):
            yield from (a.id for a in args if isinstance(a, Variable))
        case Compare(left=left, right=right):
            yield from term_variables(left)
            yield from term_variables(right)
        case Unpack(value=value, fields=fields):
            yield value.id
            yield from (f.id for f in fields if isinstance(f, Variable))
        case Generator(args=args, results=results):
            for arg in args:
                yield from term_variables(arg)
            yield from (r.id for r in results if isinstance(r, Variable))
        case Aggregate(result=result, outer=outer):
            yield result.id
            yield from (v.id for v in outer)
        case _:
            assert_never(literal)
