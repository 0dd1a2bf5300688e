"""Steps of a path as workers read them: with other relations, other terms, or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlog.engine.ir.nodes import AntiJoin, Arrangement, Extend, HalfJoin, LookUp, Proposer, SemiJoin, Step
from dlog.engine.ir.rules import Term, Variable


def key_terms(step: HalfJoin | SemiJoin) -> dict[int, Term]:
    """The columns by which a step looks rows up, with what is asked for."""
    if isinstance(step, HalfJoin):
        return dict(zip(step.arrangement.key, step.key, strict=True))
    return {column: term for column, term in enumerate(step.args) if term is not None}


def reading(step: Step, relation: str) -> Step:
    """The step with another relation in its place."""
    match step:
        case HalfJoin(arrangement=arrangement):
            return replace(step, arrangement=replace(arrangement, relation=relation))
        case SemiJoin():
            return replace(step, relation=relation)
        case _:
            raise AssertionError(step)


def proposed(proposer: Proposer) -> dict[int, Term]:
    return dict(zip(proposer.arrangement.key, proposer.key, strict=True))


def with_key(step: Step, column: int, term: Term) -> Step:
    """The lookup with another term for one column of its key."""
    match step:
        case HalfJoin(arrangement=arrangement, key=key):
            return replace(step, key=_replaced(key, arrangement.key.index(column), term))
        case SemiJoin(args=args) | AntiJoin(args=args):
            return replace(step, args=_replaced(args, column, term))
        case LookUp(key=key):
            return replace(step, key=_replaced(key, column, term))
        case _:
            raise AssertionError(step)


def _replaced(terms: Sequence[Term | None], place: int, term: Term) -> tuple[Term, ...]:
    return tuple(term if i == place else t for i, t in enumerate(terms))  # type: ignore[misc]


def apart(extend: Extend) -> list[Step]:
    """An extension as a join with the first proposer and a check against each of the others."""
    first, *others = extend.proposers
    arrangement = Arrangement(first.arrangement.relation, first.arrangement.key)
    steps: list[Step] = [HalfJoin(arrangement, first.key, ((first.column, extend.variable),), first.view, extend.rows)]
    for other in others:
        args: list[Term | None] = [None] * (len(other.arrangement.key) + 1)
        for column, term in proposed(other).items():
            args[column] = term
        args[other.column] = Variable(extend.variable)
        steps.append(SemiJoin(other.arrangement.relation, tuple(args), other.view))
    return steps
