"""Values of columns as elements of groups and semigroups, and their sums as values of columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dlog.dataclass import dataclass
from dlog.dataflow.algebra import Semigroup
from dlog.dataflow.components import Folded, ValueComponent, folded
from dlog.dataflow.expressions import Expression, column_or
from dlog.dataflow.kinds import Kind, Objects, decode, encode
from dlog.dataflow.operands import Elsewhere
from dlog.engine.operators.delta import run_starts
from dlog.grammar.diagnostics import Diagnostic, DlogError


@dataclass(frozen=True, slots=True, eq=False)
class Weight(Elsewhere):
    """What a row has in a component that is no sum of numbers: a value, of which the component is made by its kind."""

    of: Expression
    name: str
    component: Callable[[Kind], ValueComponent]
    place: ClassVar = "a component of diffs, it goes into `explode(diff=...)`, and `count` has a column of what it comes to"

    def __repr__(self) -> str:
        return f"{self.name}({self.of!r})"


@dataclass(frozen=True, slots=True, eq=False)
class Elements(Elsewhere):
    """What makes components for `explode` of columns, and expressions."""

    place: ClassVar = 'called with a column, or an expression, it makes a component of diffs: `explode(diff=(1, g("x")))`'
    algebra: Semigroup

    def __call__(self, column: Any) -> Weight:
        return Weight(column_or(column), self.algebra.name, partial(folded, self.algebra))

    def __repr__(self) -> str:
        return f"dlog.dataflow.{self.algebra.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """How parts of a component become elements, and these the values of a column."""

    component: Folded
    objects: Objects

    def elements(self, words: np.ndarray, diffs: np.ndarray) -> np.ndarray:
        values = decode(self.component.kind, words, self.objects)
        algebra = self.component.algebra
        return algebra.multiplied(algebra.lifted(values), diffs)

    def sums(self, elements: np.ndarray, starts: np.ndarray) -> np.ndarray:
        ends = np.append(starts[1:], len(elements)) - 1
        return self.scan(elements, starts)[ends] if len(starts) else elements

    def scan(self, elements: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return self.component.algebra.scan(elements, starts)

    def there(self, elements: np.ndarray) -> np.ndarray:
        return self.component.algebra.there(elements)

    def words(self, elements: np.ndarray) -> np.ndarray:
        """Raises DlogError where they are no values of a column."""
        algebra = self.component.algebra
        values = algebra.values(elements)
        if algebra.result is object:
            _check_hashable(algebra, values)
        return encode(algebra.result, values.tolist() if values.dtype == object else values, self.objects)

    def by_group(self, owners: np.ndarray, words: np.ndarray, diffs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums of parts by the numbers of what they are of, which ascend: these numbers, once each, and the sums."""
        starts = run_starts((owners,), len(owners))
        return owners[starts], self.sums(self.elements(words, diffs), starts)


def _check_hashable(algebra: Semigroup, values: np.ndarray) -> None:
    for value in values:
        if value.__hash__ is None:
            note = "`lower=` makes a value of a sum that can stand in a column: `tuple` of an array or a list"
            message = f"`count` of `{algebra.name}` gives {type(value).__name__}, and values of kind object must be hashable"
            raise DlogError(Diagnostic("bad-rows", message, notes=(note,)))
