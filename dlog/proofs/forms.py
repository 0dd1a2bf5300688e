"""Rules as a proof reads them: which bindings make a given row.

A head's arguments become variables and constants, so that a row gives them values: `p(x, [y, t], n + 1) :- b` is read as
`p(x, v, w) :- b, v = [y, t], w = n + 1`. The rule of a lattice has one form for each alternative of its recursive aggregate:
the row's value is the target of some match. That it is the best one is what the fixed point says. A recursive `count` or `sum`
stays: what was there before a row came is enough for its bound.

    d(y, m) :- node(y), m = min c : { root(y), c = 0 ; d(x, b), e(x, y), c = b + 1 }.
    ->  d(y, m) :- node(y), root(y), c = 0, m = c.     d(y, m) :- node(y), d(x, b), e(x, y), c = b + 1, m = c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.thresholds import mentioned as relations_of
from dlog.engine.ir.aggregates import dominance_of
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Kind,
    Literal,
    Negation,
    Record,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.proofs.solve import binds
from dlog.proofs.terms import Frame, Terms


@dataclass(frozen=True, slots=True)
class Form:
    """One reading of a rule. `body` are the literals to solve, `kinds` those of all variables, new ones included. `through` is
    the aggregate that the form goes through, and `inside` what it takes from there."""

    rule: Rule
    args: tuple[Arg, ...]
    body: tuple[Literal, ...]
    kinds: tuple[Kind, ...]
    through: Aggregate | None = None
    inside: tuple[Literal, ...] = ()

    def frame(self, row: tuple[int, ...], terms: Terms) -> Frame | None:
        """The bindings that the head and a row give; None where the head does not match."""
        values: dict[int, int] = {}
        for arg, word in zip(self.args, row, strict=True):
            match arg:
                case Constant() if terms.constant(arg) != word:
                    return None
                case Variable(id=number) if values.setdefault(number, word) != word:
                    return None
                case Variable() | Constant() | None:
                    pass
        return Frame(1, {number: np.array([word], np.int64) for number, word in values.items()})


def forms_of(rule: Rule, own: frozenset[str]) -> tuple[Form, ...]:
    """The forms of a rule in the stratum of the relations `own`."""
    head = _Head(rule)
    args = tuple(head.arg(term) for term in rule.head.args)
    kinds = tuple(head.kinds)
    extremes = (x for x in rule.body if isinstance(x, Aggregate) and dominance_of(x.op) is not None)
    through = next((x for x in extremes if own & relations_of((x,))), None)
    if through is None:
        return (Form(rule, args, (*_given_values(rule.body), *head.literals), kinds),)
    others = tuple(_given_values([x for x in rule.body if x is not through]))
    found = []
    for alternative in through.alternatives:
        reached: tuple[Literal, ...] = ()
        if through.target is not None:
            reached = (_compared_by_words(Compare("=", through.result, through.target, through.kind, through.span)),)
        found.append(Form(rule, args, (*others, *alternative, *reached, *head.literals), kinds, through, alternative))
    return tuple(found)


def _given_values(body: Sequence[Literal]) -> Iterator[Literal]:
    """The body, in which equations that give a variable its value say so: a row may have bound it before."""
    bound: set[int] = set()
    for literal in body:
        match literal:
            case Atom(args=args) | Unpack(fields=args):
                bound.update(a.id for a in args if isinstance(a, Variable))
            case Generator(results=results):
                bound.update(r.id for r in results if isinstance(r, Variable))
            case Aggregate(result=result):
                bound.add(result.id)
            case Negation() | Compare():
                pass
    for literal in body:
        if isinstance(literal, Compare) and (_is_stateful(literal.left) or _is_stateful(literal.right)):
            continue  # it gave what the row has
        if isinstance(literal, Compare) and (target := binds(literal, bound)) is not None:
            bound.add(target[0])
            yield _compared_by_words(literal)
        else:
            yield literal


def _is_stateful(term: Term) -> bool:
    """Whether a term may have another value each time."""
    return isinstance(term, Functor | Record) and (
        (isinstance(term, Functor) and term.stateful) or any(map(_is_stateful, term.args))
    )


def _compared_by_words(equation: Compare) -> Compare:
    """An equation that gives a value. Then floats are the same that are the same word: a NaN is, 0.0 and -0.0 are not."""
    return replace(equation, kind=Kind.NUMBER) if equation.kind is Kind.FLOAT else equation


class _Head:
    """Takes computed arguments apart: each gets a new variable and a literal."""

    def __init__(self, rule: Rule) -> None:
        self.kinds = list(rule.kinds)
        self.literals: list[Literal] = []

    def arg(self, term: Term) -> Arg:
        match term:
            case Variable() | Constant():
                return term
            case Functor(result=kind):
                variable = self._fresh(kind)
                if _is_stateful(term):
                    return variable  # it gave what the row has
                self.literals.append(_compared_by_words(Compare("=", variable, term, kind)))
            case Record(type=name, args=args):
                variable = self._fresh(Kind.RECORD)
                self.literals.append(Unpack(variable, name, tuple(self.arg(a) for a in args)))
            case _:
                assert_never(term)
        return variable

    def _fresh(self, kind: Kind) -> Variable:
        self.kinds.append(kind)
        return Variable(len(self.kinds) - 1)
