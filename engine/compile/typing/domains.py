"""Dates and times are numbers, but not each other: whether functors, comparisons and heads get what they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.scope import display
from dlog.engine.compile.typing.typed import (
    TypedAggregate,
    TypedAtom,
    TypedClause,
    TypedCompare,
    TypedFalse,
    TypedGenerator,
    TypedLiteral,
    TypedTerm,
)
from dlog.engine.ir.functors import find_functor
from dlog.engine.ir.rules import Domain, Type
from dlog.grammar.syntax import Attribute, Call, Variable

_CALENDAR = (Domain.DATE, Domain.TIMESTAMP)


def result_domain(term: TypedTerm) -> Domain | None:
    """What a functor's result is, None for what is no functor on dates or times."""
    match term.node:
        case Call(name=name, args=args) if (row := find_functor(name, len(args))) is not None and row.domains:
            return row.domains[-1]
        case _:
            return None


def check_domains(clause: TypedClause, domain: Callable[[TypedTerm], Domain | None], problems: Problems) -> None:
    """Arguments of functors, and both sides of comparisons. `domain` tells what a term is, None where nothing says so."""
    for compare in _comparisons(clause.body):
        sides = domain(compare.left), domain(compare.right)
        if sides[0] in _CALENDAR and sides[1] in _CALENDAR and sides[0] is not sides[1]:
            labels = [Label(t.node.span, _a(d)) for t, d in zip((compare.left, compare.right), sides, strict=True) if d]
            message = f"{_a(sides[0])} is compared with {_a(sides[1])}"
            problems.add("mixed-dates", message, *labels, notes=["date_of(t) is the date of a time"])
    for term in _terms(clause):
        if isinstance(term.node, Call) and (row := find_functor(term.node.name, len(term.args))) is not None:
            for arg, wanted in zip(term.args, row.domains, strict=False):
                _check_argument(row.name, arg, wanted, domain(arg), problems)


def _check_argument(functor: str, arg: TypedTerm, wanted: Domain, found: Domain | None, problems: Problems) -> None:
    if wanted not in _CALENDAR or found is None or found is wanted:
        return
    what = f"`{display(arg.node.name)}`" if isinstance(arg.node, Variable) else "this"
    message = f"`{functor}` takes {_a(wanted)}, but {what} is {_a(found)}"
    convert = {Domain.DATE: "date_of", Domain.TIMESTAMP: "timestamp_of"}[wanted]
    note = f"{convert}(...) makes it one" if found in _CALENDAR else f"as(..., {wanted.value}) makes it one if that is meant"
    problems.add("mixed-dates", message, Label(arg.node.span), notes=[note])


def check_result(term: TypedTerm, wanted: Type, attribute: Attribute, problems: Problems) -> None:
    """A functor's result in a head's attribute that is of dates or of times."""
    found = result_domain(term)
    if wanted.is_calendar and found is not None and found is not wanted.domain:
        labels = (Label(term.node.span, _a(found)), Label(attribute.span, f"attribute `{attribute.name}`"))
        problems.add("mixed-dates", f"{_a(found)} stands for {_a(wanted.domain)}", *labels)


def _a(domain: Domain | None) -> str:
    return f"a {domain.value}" if domain in _CALENDAR and domain is not None else "a number"


def _comparisons(body: Iterable[TypedLiteral]) -> Iterator[TypedCompare]:
    for literal in body:
        match literal:
            case TypedCompare():
                yield literal
            case TypedAggregate(alternatives=alternatives):
                for inner in alternatives:
                    yield from _comparisons(inner)
            case TypedAtom() | TypedFalse() | TypedGenerator():
                pass


def _terms(clause: TypedClause) -> Iterator[TypedTerm]:
    """All terms of a clause, inner ones too."""
    waiting = [*clause.head.args, *_outer(clause.body)]
    while waiting:
        term = waiting.pop()
        yield term
        waiting += term.args


def _outer(body: Iterable[TypedLiteral]) -> Iterator[TypedTerm]:
    for literal in body:
        match literal:
            case TypedAtom(args=args):
                yield from args
            case TypedCompare(left=left, right=right):
                yield from (left, right)
            case TypedGenerator(args=args, results=results):
                yield from (*args, *results)
            case TypedAggregate(target=target, alternatives=alternatives):
                yield from () if target is None else (target,)
                for inner in alternatives:
                    yield from _outer(inner)
            case TypedFalse():
                pass
