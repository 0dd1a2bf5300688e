"""Terms of rules: what they are built of, and what is known of their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isinf, isnan
from typing import TypeAlias

from dlog.dataflow.kinds import Kind
from dlog.grammar import syntax
from dlog.grammar.syntax import Call, Number, String, Variable

Term: TypeAlias = syntax.Term
TYPES: Mapping[Kind, str] = {int: "number", bool: "number", float: "float", str: "symbol"}
"""The types of columns, by their kinds: true is 1, false 0."""
ZERO, ONE, MINUS_ONE = Number("0"), Number("1"), Number("-1")


def number(value: int) -> Term:
    return Number(str(value))


def real(value: float) -> Term:
    """A float as it is: -0.0 is another value than 0.0 here."""
    if isnan(value):
        return Call("/", (Number("0.0"), Number("0.0")))
    if isinf(value):
        return Call("/", (Number("1.0" if value > 0 else "-1.0"), Number("0.0")))
    return Number(repr(value).replace("e+", "e"))


def call(name: str, *args: Term) -> Call:
    return Call(name, args)


def is_literal(term: Term) -> bool:
    return isinstance(term, Number | String)


def same_literal(left: Term, right: Term) -> bool:
    """Whether two literals of one kind are one value, as columns tell values apart."""
    if isinstance(left, Number) and isinstance(right, Number):
        return left.text == right.text or ("." in left.text + right.text and float(left.text) == float(right.text) != 0)
    return left == right


def variables(term: Term) -> Iterator[str]:
    """The names of the variables in a term."""
    if isinstance(term, Variable):
        yield term.name
    elif isinstance(term, Call):
        for arg in term.args:
            yield from variables(arg)


def replaced(term: Term, values: Mapping[str, Term]) -> Term:
    """The term with others in the place of variables."""
    if isinstance(term, Variable):
        return values.get(term.name, term)
    if isinstance(term, Call):
        return Call(term.name, tuple(replaced(arg, values) for arg in term.args))
    return term


def plus(left: Term, right: Term) -> Term:
    """The sum of integers, which wraps around."""
    if isinstance(left, Number) and isinstance(right, Number):
        return number(wrapped(int(left.text) + int(right.text)))
    return right if left == ZERO else left if right == ZERO else call("+", left, right)


def minus(left: Term, right: Term) -> Term:
    """The difference of integers, which wraps around."""
    if isinstance(left, Number) and isinstance(right, Number):
        return number(wrapped(int(left.text) - int(right.text)))
    return left if right == ZERO else call("-", left, right)


def wrapped(value: int) -> int:
    """A number of 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def product(factors: Iterable[Term]) -> Term:
    """The product of integers."""
    constant, others = 1, []
    for factor in factors:
        if isinstance(factor, Number):
            constant = wrapped(constant * int(factor.text))
        else:
            others.append(factor)
    if not others or not constant:
        return number(constant)
    found = others[0]
    for other in others[1:]:
        found = call("*", found, other)
    return found if constant == 1 else call("*", found, number(constant))


def positive_zero(term: Term) -> Term:
    """A float of which there is one zero, as collections have it."""
    return term if never_negative_zero(term) else call("+", term, Number("0.0"))


def never_negative_zero(term: Term) -> bool:
    """Whether a float is never -0.0: columns are not, and sums only where both sides are."""
    match term:
        case Variable():
            return True
        case Number(text):
            return not (text.startswith("-") and float(text) == 0)
        case Call("itof", _):
            return True
        case Call("+", (left, right)):
            return never_negative_zero(left) or never_negative_zero(right)
        case Call("-", (left, right)):
            return never_negative_zero(left)
        case _:
            return False


def invertible(term: Term) -> str | None:
    """The variable that a term tells: itself, or with a constant added or taken away. None for others; floats are rounded."""
    match term:
        case Variable(name):
            return name
        case Call("+" | "-", (Variable(name), Number(text))) | Call("+", (Number(text), Variable(name))) if "." not in text:
            return name if "e" not in text else None
        case _:
            return None


def rises_with(term: Term, names: set[str]) -> bool:
    """Whether a term, at any other values of its variables, is greater where these are: what `min` and `max` of a loop may
    make of their value."""
    if not names & set(variables(term)) or isinstance(term, Variable):
        return True
    match term:
        case Call("+", (left, right)):
            return rises_with(left, names) and rises_with(right, names)
        case Call("-", (left, right)):
            return rises_with(left, names) and not names & set(variables(right))
        case _:
            return False
