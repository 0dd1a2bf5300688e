"""Clauses to flat clauses: several heads are split, disjunctions distributed, negation pushed down to atoms.

    a(x), b(x) :- c(x), (d(x) ; !(x < 3, e(x))).   ->   a(x) :- c(x), d(x).      b(x) :- c(x), d(x).
                                                        a(x) :- c(x), x >= 3.    b(x) :- c(x), x >= 3.
                                                        a(x) :- c(x), !e(x).     b(x) :- c(x), !e(x).

`true` disappears; `false` stays as a literal so that the rest of its clause is still checked.
"""

from __future__ import annotations

from itertools import product
from typing import Final, TypeAlias, assert_never

from dlog.dataclass import immutable
from dlog.engine.compile.normal.comparisons import OPPOSITE
from dlog.engine.compile.problems import Label, Problems
from dlog.grammar.source import Source, Span
from dlog.grammar.syntax import And, Atom, Body, Clause, Constraint, Not, Or, Truth

LIMIT: Final = 4096
"""The most alternatives one body may have: a product of disjunctions grows exponentially."""

Flat: TypeAlias = Atom | Not | Constraint | Truth
"""A literal of a flat body: `Not` holds an atom, `Truth` is false."""
FLAT: Final = (Atom, Not, Constraint, Truth)
Conjunction: TypeAlias = tuple[Flat, ...]


class TooManyAlternatives(Exception):
    """More than `LIMIT`."""


@immutable
class FlatClause:
    """One head, one conjunction; `text` is the clause as written."""

    head: Atom
    body: Conjunction
    text: str
    span: Span


def clause_text(clause: Clause, source: Source) -> str:
    """The clause as written, on one line."""
    return " ".join(source.text[clause.span.start : clause.span.end].split())


def flatten_clause(clause: Clause, source: Source, problems: Problems) -> list[FlatClause]:
    text = clause_text(clause, source)
    bodies = alternatives(clause.body, problems) if clause.body is not None else [()]
    return [FlatClause(head, body, text, clause.span) for head in clause.heads for body in bodies]


def alternatives(body: Body, problems: Problems) -> list[Conjunction]:
    """The disjunctive form of a body; too many alternatives are an error and give none."""
    try:
        return _alternatives(body, False)
    except TooManyAlternatives:
        message = f"the body has more than {LIMIT} alternatives when its disjunctions are multiplied out"
        notes = ["give some of the disjunctions a relation of their own"]
        problems.add("too-many-alternatives", message, Label(body.span), notes=notes)
        return []


def _alternatives(body: Body, negated: bool) -> list[Conjunction]:
    match body:
        case Atom():
            return [(Not(body, span=body.span) if negated else body,)]
        case Not(body=inner):
            return _negation(body, inner, negated)
        case Constraint(op=op, left=left, right=right):
            return [(Constraint(OPPOSITE[op], left, right, span=body.span) if negated else body,)]
        case Truth(value=value):
            return [(Truth(False, span=body.span),)] if value == negated else [()]
        case And(parts=parts):
            return _either(parts, True) if negated else _both(parts, False)
        case Or(parts=parts):
            return _both(parts, True) if negated else _either(parts, False)
        case _:
            assert_never(body)


def _negation(whole: Not, inner: Body, negated: bool) -> list[Conjunction]:
    if isinstance(inner, Atom) and not negated:
        return [(whole,)]
    return _alternatives(inner, not negated)


def _either(parts: tuple[Body, ...], negated: bool) -> list[Conjunction]:
    found = [c for part in parts for c in _alternatives(part, negated)]
    if len(found) > LIMIT:
        raise TooManyAlternatives
    return found


def _both(parts: tuple[Body, ...], negated: bool) -> list[Conjunction]:
    choices = [_alternatives(part, negated) for part in parts]
    size = 1
    for choice in choices:
        size *= len(choice)
        if size > LIMIT:
            raise TooManyAlternatives
    return [tuple(literal for part in combination for literal in part) for combination in product(*choices)]
