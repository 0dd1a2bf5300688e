"""The variables that literals of the normalized program bind, and the literals that share some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dlog.engine.ir.rules import Aggregate, Atom, Compare, Generator, Literal, Negation, Unpack, Variable
from dlog.engine.ir.traversal import literal_variables, term_variables


def closure(body: Iterable[Literal]) -> set[int]:
    """The variables that a body binds."""
    waiting, bound, before = list(body), set[int](), -1
    while before != len(bound):
        before = len(bound)
        for literal in waiting:
            match literal:
                case Atom(args=args):
                    bound |= {a.id for a in args if isinstance(a, Variable)}
                case Compare(op="=", left=left, right=right):
                    for side, other in ((left, right), (right, left)):
                        if isinstance(side, Variable) and bound.issuperset(term_variables(other)):
                            bound.add(side.id)
                case Unpack(value=value, fields=fields) if value.id in bound:
                    bound |= {f.id for f in fields if isinstance(f, Variable)}
                case Generator(args=args, results=results) if bound.issuperset(v for a in args for v in term_variables(a)):
                    bound |= {r.id for r in results if isinstance(r, Variable)}
                case Aggregate(result=result, outer=outer) if bound.issuperset(v.id for v in outer):
                    bound.add(result.id)
                case Negation() | Compare() | Unpack() | Generator() | Aggregate():
                    pass
    return bound


def evaluable(body: Sequence[Literal], others: Iterable[Literal] = ()) -> tuple[Literal, ...]:
    """The literals of a body that say nothing about variables which neither it nor the others bind."""
    bound = closure((*body, *others))
    return tuple(x for x in body if bound.issuperset(literal_variables(x)))


def connected(body: Iterable[Literal], needed: set[int], known: set[int]) -> list[Literal]:
    """The literals that the needed variables, beyond those that are known, hang together with."""
    chosen: list[Literal] = []
    waiting = list(body)
    while found := [x for x in waiting if needed & set(literal_variables(x))]:
        chosen += found
        waiting = [x for x in waiting if x not in found]
        needed = {v for x in chosen for v in literal_variables(x)} - known
    return [x for x in body if x in chosen]
