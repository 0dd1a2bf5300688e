"""The variables that a literal of the normalized program mentions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from dlog.engine.ir.rules import Aggregate, Atom, Compare, Literal, Negation, Unpack, Variable
from dlog.engine.ir.traversal import term_variables


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
        case Aggregate(result=result, outer=outer):
            yield result.id
            yield from (v.id for v in outer)
        case _:
            assert_never(literal)
