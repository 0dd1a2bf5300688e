"""Aggregates of moving windows: what `Collection.moving` makes of the events of each.

Each is worked out from the events of its window alone, in their order: so a sum of floats does not depend on what was there
before, or will be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.expressions import Expression, column_or, lit
from dlog.dataflow.kinds import Kind, encode
from dlog.dataflow.operands import DeltaFrame
from dlog.dataflow.schema import Schema
from dlog.dataflow.windows import Windows
from dlog.engine.trace.overflow import HEAVY, check_runs, largest


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """What it is of, the kind of its values, and what makes them of windows."""

    name: str
    of: Expression
    result: Kind | None
    function: Callable[[Windows, np.ndarray], np.ndarray]

    def __repr__(self) -> str:
        return f"moving.{self.name}({self.of!r})"

    def kind(self, schema: Schema) -> Kind:
        """The kind of its values; by default that of the expression."""
        given = self.of.kind(schema)
        if given not in (int, float, bool):
            raise bad_argument(self.name, "an aggregate of numbers", given.__name__)
        return self.result or (int if given is bool else given)

    def words(self, windows: Windows, frame: DeltaFrame, rows: np.ndarray) -> np.ndarray:
        values = self.of.values(frame.schema)(frame)[rows]
        values = values.astype(np.int64) if values.dtype == bool else values
        with np.errstate(all="ignore"):
            return encode(self.kind(frame.schema), self.function(windows, values), frame.objects)


def count() -> Aggregate:
    """How many events there are."""
    return Aggregate("count", lit(1), int, lambda windows, values: windows.sizes)


def sum(column: Any) -> Aggregate:
    """The sum of a column or expression. One of integers that needs more than 64 bits is refused."""
    return Aggregate("sum", column_or(column), None, _sum)


def mean(column: Any) -> Aggregate:
    """The arithmetic mean."""
    return Aggregate("mean", column_or(column), float, _mean)


def variance(column: Any) -> Aggregate:
    """The variance of a sample, which needs two events: of one alone it is NaN."""
    return Aggregate("variance", column_or(column), float, _variance)


def stddev(column: Any) -> Aggregate:
    """The standard deviation of a sample: the root of `variance`."""
    return Aggregate("stddev", column_or(column), float, lambda windows, values: np.sqrt(_variance(windows, values)))


def min(column: Any) -> Aggregate:
    """The least value."""
    return Aggregate("min", column_or(column), None, lambda windows, values: windows.reduced(np.minimum, values))


def max(column: Any) -> Aggregate:
    """The greatest value."""
    return Aggregate("max", column_or(column), None, lambda windows, values: windows.reduced(np.maximum, values))


def first(column: Any) -> Aggregate:
    """The value of the first event."""
    return Aggregate("first", column_or(column), None, lambda windows, values: values[windows.low])


def last(column: Any) -> Aggregate:
    """The value of the last event."""
    return Aggregate("last", column_or(column), None, lambda windows, values: values[windows.high - 1])


def _sum(windows: Windows, values: np.ndarray) -> np.ndarray:
    sizes = windows.sizes
    if len(sizes) and values.dtype == np.int64 and largest(values) * int(sizes.max()) >= HEAVY:

        def add(part: np.ndarray, starts: np.ndarray, places: np.ndarray) -> np.ndarray:
            check_runs(values[places], starts, "the values of a window")
            return np.asarray(np.add.reduceat(values[places], starts))

        return windows.each(add, np.int64)
    return windows.reduced(np.add, values)


def _mean(windows: Windows, values: np.ndarray) -> np.ndarray:
    return np.asarray(windows.reduced(np.add, values.astype(np.float64)) / windows.sizes)


def _variance(windows: Windows, values: np.ndarray) -> np.ndarray:
    floats, means, sizes = values.astype(np.float64), _mean(windows, values), windows.sizes

    def squares(part: np.ndarray, starts: np.ndarray, places: np.ndarray) -> np.ndarray:
        far = floats[places] - np.repeat(means[part], sizes[part])
        return np.asarray(np.add.reduceat(far * far, starts))

    total = windows.each(squares, np.float64)
    return np.asarray(np.where(sizes > 1, total, np.nan) / np.maximum(sizes - 1, 1))
