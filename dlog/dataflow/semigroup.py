"""Components of diffs that are of a semigroup: what `explode` may have in a tuple beside sums, where rows only come.

Sums are of a group: what has been added can be taken away. A minimum is of a semigroup: what it is without a value that goes
cannot be told from it. So rows must only come; then the best value, or the sum, is all that is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dlog.dataflow.algebra import Semigroup
from dlog.dataflow.components import Extreme
from dlog.dataflow.expressions import column_or
from dlog.dataflow.folds import Elements, Weight
from dlog.dataflow.kinds import Kind


def of(
    kind: Kind,
    *,
    plus: Callable[..., Any],
    times: Callable[..., Any] | None = None,
    lift: Callable[..., Any] | None = None,
    lower: Callable[..., Any] | None = None,
    result: Kind | None = None,
) -> Elements:
    """A semigroup of one's own, as `group.of` makes groups: unions of sets, bits of filters, sketches."""
    return Elements(Semigroup("semigroup.of", kind, plus, times, lift, lower, result, exact=True))


def min(column: Any) -> Weight:
    """The least value of a column or expression, of any kind."""
    return Weight(column_or(column), "semigroup.min", partial(Extreme, descending=False))


def max(column: Any) -> Weight:
    """The greatest value."""
    return Weight(column_or(column), "semigroup.max", partial(Extreme, descending=True))
