"""Bounds of temporal filters: rounds, of what rows have.

A value is a whole number or not, a date or a time, which are the numbers that inputs make of them. It may be null: None, NaN,
NaT, masked, or a null of Arrow's. No round is before or after that, so the row is in none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.codec import value_preview
from dlog.dataclass import dataclass
from dlog.dataflow.arrow import column_of
from dlog.dataflow.dates import numbers_of_dates
from dlog.dataflow.expressions import Expression
from dlog.dataflow.functions import values_of
from dlog.dataflow.given import wrong_outcome
from dlog.dataflow.site import Site
from dlog.engine.operators.delta import Delta
from dlog.engine.values.arrow_memory import is_column
from dlog.grammar.diagnostics import Diagnostic, DlogError

LAST = 2**63 - 1
"""A round that is never reached."""
_FIRST, _LARGE = -(2**63), 2.0**62
Rounds = tuple[np.ndarray, np.ndarray | None]
"""A round for each row, and which rows have none: None if all have one."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """The first round that is not before a value, or, `behind` it, the first one after it. The values are those of an
    expression, or what a Python function makes of columns."""

    of: Expression | Callable[..., Any]
    behind: bool = False

    def rounds(self, name: str, meant: str, site: Site) -> Callable[[Delta], Rounds]:
        """What gives the rounds of updates. Raises DlogError for values of a kind that has none."""
        if not isinstance(self.of, Expression):
            function = self.of
            return lambda delta: self._of_any(function(values_of(site, delta)), delta.rows)
        kind, values = self.of.kind(site.schema), self.of.values(site.schema)
        if kind is object:
            words = self.of.words(site.schema)
            return lambda delta: self._of_words(words(site.frame(delta)), site)
        if kind not in (int, float):
            raise bad_argument(name, meant, kind.__name__)
        return lambda delta: self._of_numbers(values(site.frame(delta)))

    def _of_numbers(self, values: np.ndarray) -> Rounds:
        if values.dtype.kind in "iu":
            found = values if values.dtype == np.int64 else np.minimum(values, LAST).astype(np.int64)
            return (np.minimum(found, LAST - 1) + 1 if self.behind else found), None
        null = np.isnan(values)
        small = np.flatnonzero(values < _LARGE)
        found = np.full(len(values), LAST)
        whole = np.floor(values[small]) + 1 if self.behind else np.ceil(values[small])
        found[small] = np.maximum(whole, -_LARGE).astype(np.int64)
        return found, null if null.any() else None

    def _of_words(self, words: np.ndarray, site: Site) -> Rounds:
        """The rounds of objects, of which there are often few."""
        different, places = np.unique(words, return_inverse=True)
        found, null = self._of_objects(site.objects.decode(different).tolist())
        return found[places], None if null is None else null[places]

    def _of_any(self, values: Any, rows: int) -> Rounds:
        """The rounds of an array, also one of Arrow's, or a list."""
        if is_column(values):
            values = column_of("bound", object, values)
        elif hasattr(values, "__array__"):
            values = values.tolist() if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if not isinstance(values, np.ndarray | list | tuple) or np.ndim(values[:0]) != 1 or len(values) != rows:
            raise wrong_outcome("temporal", f"a bound for each of {rows} rows", values)
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            return self._of_numbers(values)
        return self._of_objects(list(values))

    def _of_objects(self, values: list[Any]) -> Rounds:
        null = np.fromiter(map(_is_null, values), bool, len(values))
        there = [value for value, none in zip(values, null.tolist(), strict=True) if not none]
        dates = numbers_of_dates(there)
        found = np.zeros(len(values), np.int64)
        found[~null] = np.fromiter(map(self._of_object, there if dates is None else dates.tolist()), np.int64, len(there))
        return found, null if null.any() else None

    def _of_object(self, value: Any) -> int:
        if not _is_number(value):
            note = "it is a whole number, a date or a time; where it is none (None, NaN), the row is in no round"
            raise DlogError(Diagnostic("bad-rows", f"{value_preview(value)} is no bound of rounds", notes=(note,)))
        if math.isinf(value):
            return LAST if value > 0 else _FIRST
        return int(min(max(math.floor(value) + 1 if self.behind else math.ceil(value), _FIRST), LAST))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def _is_null(value: Any) -> bool:
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except TypeError:  # the one of pandas is neither true nor false
        return True
