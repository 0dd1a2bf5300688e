"""Components of diffs of which the least counts, or the greatest: what `explode` may have in a tuple beside sums.

Sums are of a group: what has been added can be taken away. A minimum is of a semigroup: what it is without a value that goes
cannot be told from it. So rows must only come; then the best value is all that is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.dataclass import dataclass
from dlog.dataflow.expressions import Expression, column_or
from dlog.dataflow.kinds import Extreme, Objects, comparable, decode
from dlog.engine.operators.delta import Delta


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """What a row's diff has in such a component."""

    of: Expression
    descending: bool

    def __repr__(self) -> str:
        return f"semigroup.{'max' if self.descending else 'min'}({self.of!r})"


def min(column: Any) -> Weight:
    """The least value of a column or expression, of any kind."""
    return Weight(column_or(column), False)


def max(column: Any) -> Weight:
    """The greatest value."""
    return Weight(column_or(column), True)


def part(delta: Delta, component: int, words: np.ndarray) -> Delta:
    """One component of diffs: the value of each row, as often as the row."""
    return delta.with_columns((*delta.columns, np.full(delta.rows, component, np.int64), words))


def only(wanted: np.ndarray, delta: Delta) -> Delta:
    """The parts of some components: for each, whether it is one of these."""
    return delta.only(wanted[delta.columns[-2]])


def shown(component: Extreme, values: np.ndarray, there: np.ndarray, starts: np.ndarray, objects: Objects) -> list[Any]:
    """The best of the values of each run of parts that are of this component and come (`there`); None where there is none."""
    rows = np.flatnonzero(there)
    owners = np.searchsorted(starts, rows, side="right") - 1
    words = comparable(component.kind, values[rows], objects)
    order = np.lexsort((~words if component.descending else words, owners))
    firsts = order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
    found: list[Any] = [None] * len(starts)
    best = decode(component.kind, values[rows[firsts]], objects)
    for owner, value in zip(owners[firsts].tolist(), best.tolist(), strict=True):
        found[owner] = value
    return found
