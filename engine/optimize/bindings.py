"""Sideways information passing: the order of a body's atoms, and the variables that are bound when each is read.

    p(x, z) :- e(x, y), q(y, w), f(w, z).     with x known:     e by x, then q by y, then f by w
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir.functors import may_stop
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
    Term,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import literal_variables, term_variables

_ORDERED: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})

Rank: TypeAlias = Callable[[Atom], int]
"""How willingly an atom is read next; the lowest first."""


@dataclass(frozen=True, slots=True)
class BoundVariables:
    """Variables with values; those that are `computed` may have values that no row has."""

    variables: frozenset[int] = frozenset()
    computed: frozenset[int] = frozenset()

    def has(self, arg: Arg) -> bool:
        return isinstance(arg, Constant) or (isinstance(arg, Variable) and arg.id in self.variables)

    def with_atom(self, atom: Atom) -> BoundVariables:
        """The variables known after an atom, whose variables have values of rows."""
        read = frozenset(literal_variables(atom))
        return BoundVariables(self.variables | read, self.computed - read)

    def with_variables(self, more: frozenset[int], computed: bool) -> BoundVariables:
        fresh = more - self.variables
        return BoundVariables(self.variables | fresh, self.computed | (fresh if computed else frozenset()))


def settled(literal: Literal, known: BoundVariables) -> BoundVariables | None:
    """The variables known after a comparison, an unpacking or a generator, None where it cannot be decided yet, or had better
    not be: functors that stop the run on some arguments wait for the rest of the body, and an `=` of floats gives no bits to
    look for."""
    match literal:
        case Compare(op=op, left=left, right=right, kind=kind):
            if op not in _ORDERED or may_stop(left) or may_stop(right) or not _all(right, known):
                return None
            if _all(left, known):
                return known
            if op == "=" and isinstance(left, Variable) and kind is not Kind.FLOAT:
                made = isinstance(right, Functor | Record) or not known.computed.isdisjoint(term_variables(right))
                return known.with_variables(frozenset((left.id,)), made)
            return None
        case Unpack(value=value, fields=fields) if value.id in known.variables:
            more = frozenset(f.id for f in fields if isinstance(f, Variable))
            return known.with_variables(more, value.id in known.computed)
        case Generator(args=args, results=results) if not any(map(may_stop, args)) and all(_all(a, known) for a in args):
            return known.with_variables(frozenset(r.id for r in results if isinstance(r, Variable)), True)
        case Atom() | Negation() | Unpack() | Generator() | Aggregate():
            return None


def _all(term: Term, known: BoundVariables) -> bool:
    return known.variables.issuperset(term_variables(term))


def next_atom(atoms: Sequence[Atom], known: BoundVariables, rank: Rank) -> Atom:
    """The atom to read next: of those with a known argument, if there are any, the one of the lowest rank, then with the most
    such arguments, then the first."""

    def key(atom: Atom) -> tuple[bool, int, int]:
        count = sum(known.has(arg) for arg in atom.args)
        return (count == 0 and bool(atom.args), rank(atom), -count)

    return min(atoms, key=key)
