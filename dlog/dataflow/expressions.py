"""Expressions over columns: `col("x") + 1`. They are evaluated for all rows of a delta at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.casts import Cast
from dlog.dataflow.dates import numbers_of_dates
from dlog.dataflow.kinds import KINDS, Kind
from dlog.dataflow.kinds import kind as checked_kind
from dlog.dataflow.membership import Among, listed
from dlog.dataflow.operands import (
    DeltaFrame,
    Elsewhere,
    Operand,
    Unfinished,
    Valued,
    Values,
    numeric,
    of_both,
    operands,
    quiet,
)  # fmt: skip
from dlog.dataflow.operations import Absolute, Operation
from dlog.dataflow.schema import Schema
from dlog.dataflow.text_functions import TextFunction
from dlog.dataflow.text_methods import TextMethods
from dlog.dataflow.texts import MIRRORED, OfTexts, compared_texts, steps_of
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Expression(Valued):
    """Something with a value for each row, and the operators that make others of it."""

    @property
    def label(self) -> str | None:
        """The name of the column that it makes, where it has one."""
        return None

    def alias(self, name: str) -> Expression:
        """The same under a name."""
        return Named(name, self)

    def __add__(self, other: Any) -> Expression:
        return Binary("+", operator.add, self, expression(other))

    def __radd__(self, other: Any) -> Expression:
        return Binary("+", operator.add, expression(other), self)

    def __sub__(self, other: Any) -> Expression:
        return Binary("-", operator.sub, self, expression(other))

    def __rsub__(self, other: Any) -> Expression:
        return Binary("-", operator.sub, expression(other), self)

    def __mul__(self, other: Any) -> Expression:
        return Binary("*", operator.mul, self, expression(other))

    def __rmul__(self, other: Any) -> Expression:
        return Binary("*", operator.mul, expression(other), self)

    def __truediv__(self, other: Any) -> Expression:
        return Binary("/", operator.truediv, self, expression(other))

    def __rtruediv__(self, other: Any) -> Expression:
        return Binary("/", operator.truediv, expression(other), self)

    def __floordiv__(self, other: Any) -> Expression:
        return Binary("//", operator.floordiv, self, expression(other))

    def __mod__(self, other: Any) -> Expression:
        return Binary("%", operator.mod, self, expression(other))

    def __neg__(self) -> Expression:
        return Binary("-", operator.sub, expression(0), self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Comparison("==", operator.eq, self, expression(other))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Comparison("!=", operator.ne, self, expression(other))

    def __lt__(self, other: Any) -> Expression:
        return Comparison("<", operator.lt, self, expression(other))

    def __le__(self, other: Any) -> Expression:
        return Comparison("<=", operator.le, self, expression(other))

    def __gt__(self, other: Any) -> Expression:
        return Comparison(">", operator.gt, self, expression(other))

    def __ge__(self, other: Any) -> Expression:
        return Comparison(">=", operator.ge, self, expression(other))

    def __and__(self, other: Any) -> Expression:
        return Comparison("&", np.logical_and, self, expression(other))

    def __or__(self, other: Any) -> Expression:
        return Comparison("|", np.logical_or, self, expression(other))

    def __invert__(self) -> Expression:
        return Comparison("!=", operator.ne, self, expression(True))

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Whether it is one of some values."""
        return Computed(Among(listed(values)), (self,))

    def is_between(self, lower: Any, upper: Any) -> Expression:
        """Whether it is neither less than a bound nor more than another one."""
        return (self >= expression(lower)) & (self <= expression(upper))

    def abs(self) -> Expression:
        """A number without its sign."""
        return Computed(Absolute(), (self < 0, -self, self))

    def cast(self, kind: Kind) -> Expression:
        """It as a value of another kind: numbers as others, or as texts, and texts as numbers."""
        return Computed(Cast(checked_kind("kind", kind)), (self,))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        note = "write `&`, `|` and `~` for `and`, `or` and `not`"
        raise DlogError(Diagnostic("no-truth-value", "an expression over columns is neither true nor false", notes=(note,)))

    @property
    def str(self) -> TextMethods[Expression]:  # the last of all: `str` is a type before
        """Functions of texts."""
        return TextMethods(lambda function: Computed(OfTexts(function), (self,)))


@dataclass(frozen=True, eq=False)
class Column(Expression):
    """The column of a name."""

    name: str

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    @property
    def label(self) -> str:
        return self.name

    @property
    def column_name(self) -> str:
        return self.name

    def kind(self, schema: Schema) -> Kind:
        return schema.kind(self.name)

    def total(self, schema: Schema) -> bool:
        return True

    def values(self, schema: Schema) -> Values:
        place = schema.place(self.name)
        return self.words(schema) if schema.kinds[place] is int else lambda frame: frame.values(place)

    def words(self, schema: Schema) -> Values:
        place = schema.place(self.name)
        return lambda frame: frame.words[place]


@dataclass(frozen=True, eq=False)
class Literal(Expression):
    """One value for all rows."""

    value: Any

    def __repr__(self) -> str:
        return f"lit({self.value!r})"

    def __post_init__(self) -> None:
        if isinstance(self.value, (int, np.integer)) and not -(2**63) <= self.value < 2**63:
            raise DlogError(Diagnostic("bad-argument", f"{self.value} is beyond 64 bits"))

    def kind(self, schema: Schema) -> Kind:
        found = type(self.value.item() if isinstance(self.value, np.generic) else self.value)
        return found if found in KINDS else object

    def total(self, schema: Schema) -> bool:
        return numeric(schema, self)

    def values(self, schema: Schema) -> Values:
        dtype = np.dtype(object if self.kind(schema) in (str, object) else self.kind(schema))

        def repeat(frame: DeltaFrame) -> np.ndarray:
            values = np.empty(frame.rows, dtype)
            values.fill(self.value)
            return values

        return repeat

    def operand(self, schema: Schema) -> Operand:
        kind = self.kind(schema)
        return np.dtype(kind).type(self.value) if kind in (int, float, bool) else self.values(schema)


@dataclass(frozen=True, eq=False)
class Named(Expression):
    name: str
    inner: Expression

    def __repr__(self) -> str:
        return f"{_side(self.inner)}.alias({self.name!r})"

    @property
    def label(self) -> str:
        return self.name

    @property
    def column_name(self) -> str | None:
        return self.inner.column_name

    def text_steps(self) -> tuple[Valued, tuple[TextFunction, ...]]:
        return self.inner.text_steps()

    def kind(self, schema: Schema) -> Kind:
        return self.inner.kind(schema)

    def values(self, schema: Schema) -> Values:
        return self.inner.values(schema)

    def words(self, schema: Schema) -> Values:
        return self.inner.words(schema)

    def operand(self, schema: Schema) -> Operand:
        return self.inner.operand(schema)

    def noisy(self, schema: Schema) -> bool:
        return self.inner.noisy(schema)

    def total(self, schema: Schema) -> bool:
        return self.inner.total(schema)


@dataclass(frozen=True, eq=False)
class Binary(Expression):
    sign: str
    function: Callable[[Any, Any], Any]
    left: Expression
    right: Expression

    def __repr__(self) -> str:
        return f"{_side(self.left)} {self.sign} {_side(self.right)}"

    def kind(self, schema: Schema) -> Kind:
        kinds = {self.left.kind(schema), self.right.kind(schema)}
        if kinds <= {int, float, bool}:
            return float if float in kinds or self.sign == "/" else int
        if kinds == {str} and self.sign == "+":
            return str
        names = f"{self.left.kind(schema).__name__} and {self.right.kind(schema).__name__}"
        raise DlogError(Diagnostic("bad-expression", f"there is no `{self.sign}` of {names}"))

    def values(self, schema: Schema) -> Values:
        return quiet(self.operand(schema), self.noisy(schema))

    def operand(self, schema: Schema) -> Values:
        return of_both(self.function, *operands(self.left, self.right, schema, whole=self.kind(schema) is int))

    def noisy(self, schema: Schema) -> bool:
        own = self.kind(schema) is not int or self.sign not in "+-*"
        return own or self.left.noisy(schema) or self.right.noisy(schema)

    def total(self, schema: Schema) -> bool:
        return numeric(schema, self.left, self.right) and self.left.total(schema) and self.right.total(schema)


@dataclass(frozen=True, eq=False)
class Comparison(Expression):
    sign: str
    function: Callable[[Any, Any], Any]
    left: Expression
    right: Expression

    def __repr__(self) -> str:
        return f"{_side(self.left)} {self.sign} {_side(self.right)}"

    def sides(self, schema: Schema) -> tuple[Expression, Expression]:
        """What is compared: a date or time with integers is the number that inputs make of it."""
        return _dated(self.left, self.right, schema), _dated(self.right, self.left, schema)

    def kind(self, schema: Schema) -> Kind:
        left, right = (side.kind(schema) for side in self.sides(schema))
        kinds = {left, right}
        numbers = kinds <= {int, float, bool}
        if not (numbers or len(kinds) == 1 or self.sign in ("==", "!=")) or (self.sign in "&|" and kinds != {bool}):
            names = f"{left.__name__} and {right.__name__}"
            raise DlogError(Diagnostic("bad-expression", f"there is no `{self.sign}` of {names}"))
        return bool

    def values(self, schema: Schema) -> Values:
        left, right = self.sides(schema)
        kinds = {left.kind(schema), right.kind(schema)}
        if numeric(schema, left, right):
            found = of_both(self.function, *operands(left, right, schema))
            return quiet(found, left.noisy(schema) or right.noisy(schema))
        if kinds == {str}:
            for side, other, sign in ((left, right, self.sign), (right, left, MIRRORED[self.sign])):
                if isinstance(other, Literal) and (name := side.column_name) is not None:
                    return compared_texts(schema.place(name), sign, other.value)
        first, second = left.values(schema), right.values(schema)
        return lambda frame: np.asarray(self.function(first(frame), second(frame)), bool)

    def total(self, schema: Schema) -> bool:
        left, right = self.sides(schema)
        return numeric(schema, left, right) and left.total(schema) and right.total(schema)


@dataclass(frozen=True, eq=False)
class Computed(Expression):
    """What an operation makes of others."""

    operation: Operation
    arguments: tuple[Expression, ...]

    def __repr__(self) -> str:
        return self.operation.shown(self.arguments)

    def text_steps(self) -> tuple[Valued, tuple[TextFunction, ...]]:
        return steps_of(self.operation, self.arguments) or (self, ())

    def kind(self, schema: Schema) -> Kind:
        return self.operation.kind(schema, self.arguments)

    def values(self, schema: Schema) -> Values:
        return self.operation.values(schema, self.arguments)

    def words(self, schema: Schema) -> Values:
        return self.operation.words(schema, self.arguments) or super().words(schema)

    def total(self, schema: Schema) -> bool:
        return self.operation.total(schema, self.arguments)


def _side(side: Expression) -> str:
    """One side of an operator, as it is written."""
    if isinstance(side, Literal):
        return repr(side.value)
    return f"({side!r})" if isinstance(side, Binary | Comparison) else repr(side)


def _dated(side: Expression, other: Expression, schema: Schema) -> Expression:
    """One side of a comparison: where it is a date or time and the other one is of integers, its number."""
    if not isinstance(side, Literal) or (numbers := numbers_of_dates([side.value])) is None or other.kind(schema) is not int:
        return side
    return Literal(int(numbers[0]))


def col(name: str) -> Expression:
    """The column of this name."""
    if not isinstance(name, str):
        raise bad_argument("name", "the name of a column", name)
    return Column(name)


def lit(value: Any) -> Expression:
    """One value for all rows."""
    return Literal(value)


def expression(value: Any) -> Expression:
    """The value itself if it is an expression, else as a literal. Raises DlogError for a function, which is neither."""
    if isinstance(value, Elsewhere):
        raise DlogError(Diagnostic("bad-expression", f"{value!r} is no expression over columns", notes=(value.place,)))
    if callable(value) and not isinstance(value, type):
        note = (
            '`apply(function, "x")` makes an expression of a function of numbers, with `kind=bool` for `filter`; '
            "`flat_map` takes any Python function of rows, `map_batches` one of columns"
        )
        raise bad_argument("expression", "over columns, or a value", value, note)
    if isinstance(value, Unfinished):
        note = "there is no null: a value is there for all rows"
        raise DlogError(Diagnostic("bad-expression", f"`when` has no {value.missing} behind it", notes=(note,)))
    return value if isinstance(value, Expression) else Literal(value)


def column_or(value: Any) -> Expression:
    """The same, but a string is the name of a column."""
    return Column(value) if isinstance(value, str) else expression(value)
