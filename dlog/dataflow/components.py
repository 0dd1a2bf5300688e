"""What the diffs of a collection may be made of: components, and their parts."""

from __future__ import annotations

import numpy as np

from dlog.dataclass import dataclass
from dlog.dataflow.algebra import Semigroup
from dlog.dataflow.kinds import Kind
from dlog.engine.operators.delta import Delta


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least of values of a kind, or the greatest."""

    kind: Kind
    descending: bool

    @property
    def name(self) -> str:
        return f"semigroup.{'max' if self.descending else 'min'}"

    @property
    def result(self) -> Kind:
        """The kind of what it comes to."""
        return self.kind


@dataclass(frozen=True, slots=True)
class Folded:
    """The sum, in a group or semigroup of the user's, of what it makes of values of a kind."""

    algebra: Semigroup
    kind: Kind

    @property
    def name(self) -> str:
        return self.algebra.name

    @property
    def result(self) -> Kind:
        return self.algebra.result


Component = Kind | Extreme | Folded
"""The kind of a sum of numbers, or one of the others."""
ValueComponent = Extreme | Folded
"""Those whose parts have values of their own."""


def folded(algebra: Semigroup, kind: Kind) -> Folded:
    """The component of values of a kind. Raises DlogError where they have no elements."""
    algebra.check_values(kind)
    return Folded(algebra, kind)


def part(delta: Delta, component: int, words: np.ndarray) -> Delta:
    """One component of diffs: the value of each row, as often as the row."""
    return delta.with_columns((*delta.columns, np.full(delta.rows, component, np.int64), words))


def only(wanted: np.ndarray, delta: Delta) -> Delta:
    """The parts of some components: for each, whether it is one of these."""
    return delta.only(wanted[delta.columns[-2]])
