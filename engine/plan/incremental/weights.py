"""The weights of matches, and the bound that their sum must exceed (see thresholds). No term leaves 64 bits, whatever the
values are."""

from __future__ import annotations

from typing import Final

from dlog.engine.ir.functors import fold
from dlog.engine.ir.rules import Constant, Functor, Kind, Term, Variable

NUMBER: Final = Kind.NUMBER
ZERO: Final = Constant(0, NUMBER)
ONE: Final = Constant(1, NUMBER)
_GREATEST: Final = 2**63 - 1
_BELOW: Final = Constant(_GREATEST - 1, NUMBER)


def exceeded(op: str, bound: Term, whole: Term | None) -> Term:
    """The bound that the weights must exceed where `aggregate op bound`. With `whole`, the aggregate is that less the
    weights."""
    if whole is None:
        return bound if op == ">" else _functor("-", greatest(bound, ZERO), ONE)
    if op == "<":
        return _functor("-", whole, greatest(bound, ZERO))
    return _functor("-", _functor("-", whole, greatest(bound, Constant(-1, NUMBER))), ONE)


def greatest(left: Term, right: Term) -> Term:
    return _functor("max", left, right)


def signed(term: Term, kind: Kind) -> Term:
    """A bound as a number: no sum of numbers reaches an unsigned one that is none."""
    if kind is not Kind.UNSIGNED:
        return term
    if isinstance(term, Constant):
        return Constant(min(_value(term), _GREATEST), NUMBER)
    least = Functor("min", (term, Constant(_GREATEST, kind)), kind, kind)
    return Functor("utoi", (least,), NUMBER, NUMBER)


def weight_of(value: Term, level: Variable | Constant) -> Term:
    """The weight of a match: no more than takes a sum above its bound. A value that is negative, or too much then, stops the
    run."""
    if value == ONE:
        return value
    return Functor("weight", (_functor("min", value, _functor("+", _functor("min", level, _BELOW), ONE)),), NUMBER, NUMBER)


def _functor(op: str, left: Term, right: Term) -> Term:
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(fold(op, (_value(left), _value(right)), NUMBER), NUMBER)
    return Functor(op, (left, right), NUMBER, NUMBER)


def _value(constant: Constant) -> int:
    assert isinstance(constant.value, int)
    return constant.value
