"""The variables that a conjunction binds: the fixed point behind the scopes of aggregates and the safety check.

A positive atom binds its variables, also inside records and casts. `=` binds one side when the other is bound, records part
by part. Functors, other comparisons and negations bind nothing. Without regard to types.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from dlog.engine.compile.walk import variables
from dlog.grammar.syntax import (
    AggregateTerm,
    Atom,
    Body,
    BranchTerm,
    Call,
    Cast,
    Constraint,
    Counter,
    Nil,
    Number,
    RecordTerm,
    String,
    Term,
    Variable,
    Wildcard,
)


def bound_variables(literals: Iterable[Body], known: Iterable[str]) -> set[str]:
    """The names bound by the literals, `known` among them."""
    bound = set(known)
    equations: list[Constraint] = []
    for literal in literals:
        match literal:
            case Atom(args=args):
                for arg in args:
                    _bind(arg, bound)
            case Constraint(op="="):
                equations.append(literal)
            case _:
                pass
    return close(equations, bound)


def close(equations: list[Constraint], bound: set[str]) -> set[str]:
    """Let `=` bind until nothing more follows: an equation is tried again once a name in it has been bound."""
    names = [{v.name for v in variables(equation)} - bound for equation in equations]
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for i, own in enumerate(names):
        for name in own:
            holding[name].append(i)
    done: set[int] = set()
    trying: Sequence[int] = range(len(equations))
    while trying:
        fresh: set[str] = set()
        for i in trying:
            size = len(bound)
            if _propagate(equations[i], bound):
                done.add(i)
            if len(bound) > size:
                fresh |= names[i] & bound
        trying = sorted({i for name in fresh for i in holding.pop(name, ())} - done)
    return bound


def _propagate(equation: Constraint, bound: set[str]) -> bool:
    """Whether the equation has done all it can: a bound side binds the other."""
    if is_bound(equation.left, bound):
        _bind(equation.right, bound)
        return True
    if is_bound(equation.right, bound):
        _bind(equation.left, bound)
        return True
    match equation.left, equation.right:
        case (RecordTerm() as left, RecordTerm() as right) | (BranchTerm() as left, BranchTerm() as right):
            return _propagate_fields(left, right, bound)
        case _:
            return False


def _propagate_fields(left: RecordTerm | BranchTerm, right: RecordTerm | BranchTerm, bound: set[str]) -> bool:
    """`[x, 1] = [2, y]` binds field by field; always tried again, since fields may become bound one after the other."""
    for a, b in zip(left.args, right.args, strict=False):
        _propagate(Constraint("=", a, b), bound)
    return is_bound(left, bound) and is_bound(right, bound)


def is_bound(term: Term, bound: set[str]) -> bool:
    """Whether the term has a value once `bound` have."""
    match term:
        case Variable(name=name):
            return name in bound
        case Wildcard():
            return False
        case Call(args=args) | RecordTerm(args=args) | BranchTerm(args=args):
            return all(is_bound(a, bound) for a in args)
        case Cast(term=inner):
            return is_bound(inner, bound)
        case AggregateTerm():
            return True
        case Number() | String() | Nil() | Counter():
            return True


def _bind(term: Term, bound: set[str]) -> None:
    match term:
        case Variable(name=name):
            bound.add(name)
        case RecordTerm(args=args) | BranchTerm(args=args):
            for arg in args:
                _bind(arg, bound)
        case Cast(term=inner):
            _bind(inner, bound)
        case _:
            pass
