"""Values by cases: `when(condition).then(value).otherwise(value)`."""

from __future__ import annotations

from typing import Any

from dlog.dataclass import dataclass
from dlog.dataflow.expressions import Computed, Expression, column_or, expression
from dlog.dataflow.operands import Unfinished
from dlog.dataflow.operations import Choice


@dataclass(frozen=True, eq=False)
class When(Unfinished):
    """A condition, the last one of some cases."""

    condition: Expression
    cases: tuple[tuple[Expression, Expression], ...] = ()
    missing = "`.then(...)`, and `.otherwise(...)`"

    def then(self, value: Any) -> Then:
        """The value where the condition holds, and none before it: the name of a column, an expression, or a value."""
        return Then((*self.cases, (self.condition, column_or(value))))


@dataclass(frozen=True, eq=False)
class Then(Unfinished):
    """Some cases."""

    cases: tuple[tuple[Expression, Expression], ...]
    missing = "`.otherwise(...)`"

    def when(self, condition: Any) -> When:
        """One more case, where no condition before holds."""
        return When(expression(condition), self.cases)

    def otherwise(self, value: Any) -> Expression:
        """The value where no condition holds."""
        found = column_or(value)
        for condition, chosen in reversed(self.cases):
            found = Computed(Choice(), (condition, chosen, found))
        return found


def when(condition: Any) -> When:
    """A value by cases: the first condition that holds says which. Names of columns are texts here, as in `map`: a text is
    `lit("...")`.

    >>> from dlog.dataflow import Dataflow, col, lit, when
    >>> flow = Dataflow()
    >>> orders = flow.input(price=int)
    >>> sizes = orders.map(size=when(col("price") < 10).then(lit("small")).otherwise(lit("large"))).capture()
    >>> orders.insert([(3,), (30,)])
    >>> flow.commit()
    >>> sorted(sizes)
    [('large',), ('small',)]
    """
    return When(expression(condition))
