"""What expressions are evaluated to, of all rows of a delta at once: a value for each row, or one for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dlog.dataflow.kinds import Kind, Objects, decode, encode, float_words
from dlog.dataflow.schema import Schema
from dlog.dataflow.text_functions import TextFunction
from dlog.engine.operators.delta import Columns


class DeltaFrame:
    """The columns of a delta, as values."""

    __slots__ = ("_decoded", "objects", "rows", "schema", "words")

    def __init__(self, schema: Schema, words: Columns, rows: int, objects: Objects) -> None:
        self.schema, self.words, self.rows, self.objects = schema, words, rows, objects
        self._decoded: dict[int, np.ndarray] = {}

    def values(self, place: int) -> np.ndarray:
        """The values of the column at a place."""
        if place not in self._decoded:
            self._decoded[place] = decode(self.schema.kinds[place], self.words[place], self.objects)
        return self._decoded[place]

    def only(self, chosen: np.ndarray) -> DeltaFrame:
        """The rows of a mask."""
        words = tuple(column[chosen] for column in self.words)
        return DeltaFrame(self.schema, words, int(np.count_nonzero(chosen)), self.objects)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values(self.schema.place(name))


Values = Callable[[DeltaFrame], np.ndarray]
"""What gives a value for each row of a frame."""
Operand = Values | np.generic
"""The same, or one value for all rows."""


class Unfinished:
    """Something that is still to become an expression: `missing` says what has to be behind it."""

    missing: str


class Elsewhere:
    """Something that looks like an expression, and is none: `place` says where it goes."""

    __slots__ = ()
    place: ClassVar[str]


class Valued(ABC):
    """Something with a value for each row. It is bound to a schema once, and then applied to frames of it."""

    @property
    def column_name(self) -> str | None:
        """The column that it is, if it is one as it stands."""
        return None

    def text_steps(self) -> tuple[Valued, tuple[TextFunction, ...]]:
        """The functions of texts that it ends with, and what they are applied to."""
        return self, ()

    @abstractmethod
    def kind(self, schema: Schema) -> Kind: ...
    @abstractmethod
    def values(self, schema: Schema) -> Values:
        """What gives its values: numbers of 64 bits, truth values, or objects."""

    def words(self, schema: Schema) -> Values:
        """What gives its values as words; NumPy may warn where it is `noisy`."""
        kind, operand = self.kind(schema), self.operand(schema)
        values = self.values(schema) if isinstance(operand, np.generic) else operand
        if kind is int:
            return values
        if kind is float:
            return lambda frame: float_words(values(frame))
        return lambda frame: encode(kind, values(frame), frame.objects)

    def operand(self, schema: Schema) -> Operand:
        """Its values, or the one that it has for all rows; NumPy may warn where it is `noisy`."""
        return self.values(schema)

    def noisy(self, schema: Schema) -> bool:
        """Whether some values have no result."""
        return False

    def total(self, schema: Schema) -> bool:
        """Whether it is known to have a value for all rows there can be: evaluating it raises nothing."""
        return False


def numeric(schema: Schema, *sides: Valued) -> bool:
    return all(each.kind(schema) in (int, float, bool) for each in sides)


def operands(left: Valued, right: Valued, schema: Schema, whole: bool = False) -> tuple[Operand, Operand]:
    """What two sides of numbers give, not both one value for all rows; with `whole` truth values are numbers, too."""
    first, second = left.operand(schema), right.operand(schema)
    if isinstance(first, np.generic) and isinstance(second, np.generic):
        first = left.values(schema)
    return (_whole(left, schema, first), _whole(right, schema, second)) if whole else (first, second)


def _whole(side: Valued, schema: Schema, operand: Operand) -> Operand:
    if side.kind(schema) is int:
        return operand
    if isinstance(operand, np.generic):
        return np.int64(operand)
    return lambda frame: operand(frame).astype(np.int64)


def quiet(values: Values, noisy: bool) -> Values:
    """The same without warnings."""

    def run(frame: DeltaFrame) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(values(frame))

    return run if noisy else values


def of_both(function: Callable[[Any, Any], Any], left: Operand, right: Operand) -> Values:
    if isinstance(left, np.generic):
        assert not isinstance(right, np.generic)
        return lambda frame: function(left, right(frame))
    if isinstance(right, np.generic):
        return lambda frame: function(left(frame), right)
    return lambda frame: function(left(frame), right(frame))
