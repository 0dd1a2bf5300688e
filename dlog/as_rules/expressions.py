"""Expressions over columns as terms of rules, which have the same value for every row, or are refused.

What is true or false is no term: it is told by cases, conditions of which exactly one holds for each row. Integer division
rounds down here, towards zero in rules, and by zero it gives zero; floats compare as NumPy's, so that NaN equals none."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from dlog.as_rules import terms as T
from dlog.as_rules.functors import Functors
from dlog.as_rules.refusals import refused
from dlog.as_rules.terms import Term, call
from dlog.as_rules.texts import text_condition, text_term
from dlog.dataclass import dataclass
from dlog.dataflow.applied import Applied
from dlog.dataflow.casts import Cast
from dlog.dataflow.expressions import Binary, Column, Comparison, Computed, Expression, Literal, Named
from dlog.dataflow.kinds import Kind
from dlog.dataflow.membership import Among
from dlog.dataflow.operations import Choice
from dlog.dataflow.schema import Schema
from dlog.dataflow.text_functions import TextFunction
from dlog.dataflow.texts import OfTexts
from dlog.grammar.syntax import Call, Constraint, Number, String

Conditions: TypeAlias = tuple[Constraint, ...]
"""All hold."""
MOST_CASES = 64


@dataclass(frozen=True, slots=True)
class Case:
    """A term, and where it is the value."""

    where: Conditions
    term: Term


_OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Translator:
    """Expressions over the columns of one body."""

    schema: Schema
    columns: Mapping[str, Term]
    functors: Functors

    def column(self, expression: Expression) -> list[Case]:
        """The values of a column that an expression makes."""
        found = self.values(expression)
        if expression.kind(self.schema) is not float:
            return found
        return [replace(case, term=T.positive_zero(case.term)) for case in found]

    def where(self, expression: Expression) -> list[Conditions]:
        """Where an expression holds: cases of which no two hold for one row."""
        return self._truth(expression)[0]

    def values(self, expression: Expression) -> list[Case]:
        """The values of an expression. Zeros of floats are as they come."""
        match expression:
            case Named(_, inner):
                return self.values(inner)
            case Column(name):
                self.schema.place(name)
                return [Case((), self.columns[name])]
            case Literal():
                return [Case((), self._literal(expression))]
            case Comparison():
                return self._cases_of(expression)
            case Binary():
                return self._binary(expression)
            case Applied():
                return self._applied(expression)
            case Computed():
                return self._computed(expression)
            case _:
                raise refused(type(expression).__name__)

    def _applied(self, applied: Applied) -> list[Case]:
        name = self.functors.name(applied, self.schema)
        cases = [Case((), call(f"@{name}"))]
        for argument in applied.arguments:
            values = self.values(argument)
            check_number(len(cases) * len(values))
            cases = [Case((*a.where, *b.where), call(f"@{name}", *_args(a.term), b.term)) for a in cases for b in values]
        return cases

    def _computed(self, computed: Computed) -> list[Case]:
        kind = computed.kind(self.schema)
        match computed.operation:
            case Choice():
                condition, first, second = computed.arguments
                true, false = self._truth(condition)
                branches = [(where, case) for where in true for case in self._as(kind, first)]
                branches += [(where, case) for where in false for case in self._as(kind, second)]
                check_number(len(branches))
                return [Case((*where, *case.where), case.term) for where, case in branches]
            case OfTexts(function) if kind is not bool:
                return [Case(a.where, text_term(function, a.term)) for a in self.values(computed.arguments[0])]
            case Cast() if kind is not bool:
                return self._cast(computed.arguments[0], kind)
            case _:
                return self._cases_of(computed)

    def _cases_of(self, condition: Expression) -> list[Case]:
        true, false = self._truth(condition)
        return [*(Case(where, T.ONE) for where in true), *(Case(where, T.ZERO) for where in false)]

    def _cast(self, given: Expression, wanted: Kind) -> list[Case]:
        """Values as those of another kind than bool."""
        kind = given.kind(self.schema)
        if kind is bool and wanted is str:
            true, false = self._truth(given)
            return [*(Case(where, String("true")) for where in true), *(Case(where, String("false")) for where in false)]
        if kind is wanted or (kind in (int, bool) and wanted in (int, float)):
            return self._as(wanted, given)
        if kind is not int:
            raise refused("cast", f"of {kind.__name__} to {wanted.__name__}")
        return [replace(case, term=call("to_string", case.term)) for case in self.values(given)]

    def _literal(self, literal: Literal) -> Term:
        kind = literal.kind(self.schema)
        value = literal.value.item() if isinstance(literal.value, np.generic) else literal.value
        if kind is str:
            return String(value)
        if kind is float:
            return T.real(value)
        if kind is object or not -(2**63) <= int(value) < 2**63:
            raise refused("lit", f"{value!r} is no number of 64 bits, text, or truth value")
        return T.number(int(value))

    # ---------------------------------------------------------------------------------------------------------- arithmetic

    def _binary(self, expression: Binary) -> list[Case]:
        kind = expression.kind(self.schema)
        if kind is float and expression.sign in ("//", "%"):
            raise refused(expression.sign, "of floats", "make whole numbers of them")
        left, right = self._as(kind, expression.left), self._as(kind, expression.right)
        check_number(len(left) * len(right))
        return [
            Case((*a.where, *b.where), _operation(kind, expression.sign, a.term, b.term)) for a in left for b in right
        ]

    def _as(self, kind: Kind, side: Expression) -> list[Case]:
        """The values of one side, as of the kind of both."""
        found = self.values(side)
        if kind is not float or side.kind(self.schema) is float:
            return found
        return [replace(case, term=_as_float(case.term)) for case in found]

    # ---------------------------------------------------------------------------------------------------------- conditions

    def _truth(self, expression: Expression) -> tuple[list[Conditions], list[Conditions]]:
        """Where an expression holds, and where not."""
        if isinstance(expression, Named):
            return self._truth(expression.inner)
        if isinstance(expression, Comparison) and expression.sign in ("&", "|"):
            (left, no_left), (right, no_right) = self._truth(expression.left), self._truth(expression.right)
            if expression.sign == "&":
                return _both(left, right), [*no_left, *_both(left, no_right)]
            return [*left, *_both(no_left, right)], _both(no_left, no_right)
        if isinstance(expression, Comparison):
            return self._compared(expression)
        if isinstance(expression, Computed):
            match expression.operation:
                case OfTexts(function):
                    return self._of_texts(function, expression.arguments[0])
                case Among() as among:
                    return self._truth(_spelled_out(among, expression.arguments[0], self.schema))
                case Cast():
                    (given,) = expression.arguments
                    return self._truth(given if given.kind(self.schema) is bool else given != 0)
                case _:
                    pass
        true: list[Conditions] = []
        false: list[Conditions] = []
        for case in self.values(expression):
            if isinstance(case.term, Number):
                (false if case.term == T.ZERO else true).append(case.where)
            else:
                true.append((*case.where, Constraint("!=", case.term, T.ZERO)))
                false.append((*case.where, Constraint("=", case.term, T.ZERO)))
        return true, false

    def _of_texts(self, function: TextFunction, given: Expression) -> tuple[list[Conditions], list[Conditions]]:
        found = [(case.where, text_condition(function, case.term)) for case in self.values(given)]
        return [(*where, holds) for where, (holds, _) in found], [(*where, fails) for where, (_, fails) in found]

    def _compared(self, expression: Comparison) -> tuple[list[Conditions], list[Conditions]]:
        left, right = expression.sides(self.schema)
        kinds = {left.kind(self.schema), right.kind(self.schema)}
        if object in kinds or not (kinds <= {int, float, bool} or len(kinds) == 1):
            raise refused(expression.sign, f"of {' and '.join(sorted(kind.__name__ for kind in kinds))}")
        kind = float if float in kinds else kinds.pop()
        true: list[Conditions] = []
        false: list[Conditions] = []
        for a in self._as(kind, left):
            for b in self._as(kind, right):
                holds, fails = _comparison(kind, expression.sign.replace("==", "="), a.term, b.term)
                true += _both([(*a.where, *b.where)], holds)
                false += _both([(*a.where, *b.where)], fails)
        return true, false


def check_number(cases: int) -> None:
    """Refuses too many cases."""
    if cases > MOST_CASES:
        raise refused("map", "too many cases of conditions", "use fewer comparisons as values")


def _spelled_out(among: Among, given: Expression, schema: Schema) -> Expression:
    """That a value is among others, by comparisons with each."""
    found: Expression = Literal(False)
    for k, value in enumerate(among.of_kind(given.kind(schema))):
        found = given == value if k == 0 else found | (given == value)
    return found


def _args(term: Term) -> tuple[Term, ...]:
    return term.args if isinstance(term, Call) else ()


def _both(left: Iterable[Conditions], right: list[Conditions]) -> list[Conditions]:
    found = [(*a, *(c for c in b if c not in a)) for a in left for b in right]
    if len(found) > MOST_CASES:
        raise refused("filter", "too many cases of conditions", "filter several times, with fewer conditions each")
    return found


def _as_float(term: Term) -> Term:
    if isinstance(term, Number):
        return T.real(float(int(term.text)))
    return call("itof", term)


def _operation(kind: Kind, sign: str, left: Term, right: Term) -> Term:
    if kind is str:
        return call("cat", left, right)
    if kind is int and sign in ("//", "%"):
        return rounded_down(sign, left, right)
    if kind is int and isinstance(left, Number) and isinstance(right, Number):
        function = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
        return T.number(T.wrapped(function(int(left.text), int(right.text))))
    return call(sign, left, right)


def rounded_down(sign: str, left: Term, right: Term) -> Term:
    """Division with a remainder of the divisor's sign. `over` is 1 where that of rules has the other sign."""
    guard = not isinstance(right, Number)
    if right == T.ZERO:
        return T.ZERO
    divisor = call("+", right, call("lnot", right)) if guard else right
    rest = call("%", left, divisor)
    over = call("land", rest, call("bshru", call("bxor", rest, divisor), Number("63")))
    if sign == "%":
        return call("+", rest, call("*", divisor, over))  # of the divisor 1, which stands for zero, it is zero
    found = call("-", call("/", left, divisor), over)
    return call("*", found, call("lnot", call("lnot", right))) if guard else found


def _comparison(kind: Kind, op: str, left: Term, right: Term) -> tuple[list[Conditions], list[Conditions]]:
    """Where it holds, and where not."""
    if kind is not float:
        if T.is_literal(left) and T.is_literal(right):
            return ([()], []) if _holds(op, left, right) else ([], [()])
        return [(Constraint(op, left, right),)], [(Constraint(_OPPOSITES[op], left, right),)]
    if op == "!=":
        return _comparison(kind, "=", left, right)[::-1]
    if left == right and op == "=":
        return [(Constraint("<=", left, right),)], [(Constraint("!=", left, right),)]
    less, more, no_number = Constraint("<", left, right), Constraint(">", left, right), _unordered(left, right)
    if op == "=":  # floats that rules call equal are those of one word
        return [(Constraint("<=", left, right), Constraint(">=", left, right))], [(less,), (more,), *no_number]
    return [(Constraint(op, left, right),)], [(Constraint(_OPPOSITES[op], left, right),), *no_number]


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _holds(op: str, left: Term, right: Term) -> bool:
    """Whether it holds of two literals, numbers or texts."""
    a, b = (int(t.text) if isinstance(t, Number) else getattr(t, "value", None) for t in (left, right))
    return _OPERATORS[op](a, b)


def _unordered(left: Term, right: Term) -> list[Conditions]:
    """Where one of two floats is NaN, which is no number's equal, not even its own."""
    tested = [term for term in (left, right) if not isinstance(term, Number)]
    is_nan = [Constraint("!=", term, term) for term in tested]
    are = [Constraint("<=", term, term) for term in tested]
    return [(is_nan[0],), (are[0], is_nan[1])] if len(tested) == 2 else [(c,) for c in is_nan]
