"""Linear operators: what they make of a collection is the sum of what they make of its rows.

All are instances of one, `join_function`: for each row, some rows with a time and a diff each; the time joins that of the
row, the diff multiplies its diff. `Linear` is such a function without a collection, to be composed (`followed_by`) and
applied later. Whatever is applied in sequence is one function in the end: a dataflow has no operator for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from dlog.arguments import bad_argument, check_function
from dlog.dataclass import dataclass
from dlog.dataflow import columns as C
from dlog.dataflow import functions
from dlog.dataflow.clock import has_clock, split_filter
from dlog.dataflow.columns import expressions_of
from dlog.dataflow.explode import MEANT, explode, repeat_row
from dlog.dataflow.expressions import Expression, column_or, expression
from dlog.dataflow.folds import Weight
from dlog.dataflow.given import check_calls
from dlog.dataflow.kinds import Kind
from dlog.dataflow.schema import Schema
from dlog.dataflow.series import generate_series
from dlog.dataflow.site import LinearStep
from dlog.dataflow.temporal import limit_of, temporal
from dlog.dataflow.windows import sliding


class Linear(ABC):
    """The linear operators, of a collection and of a function that is still to be applied to one."""

    @abstractmethod
    def _then(self, step: LinearStep) -> Self:
        """With one more step."""

    def map(self, *columns: str | Expression, **named: Any) -> Self:
        """Rows of these columns instead: names, expressions, or `name=expression`."""
        return self._then(LinearStep("map", C.map_columns, (expressions_of(columns, named), False)))

    def with_columns(self, **named: Any) -> Self:
        """Rows with these columns besides, or in the place of those of the name."""
        return self._then(LinearStep("map", C.map_columns, (expressions_of((), named), True)))

    def rename(self, **names: str) -> Self:
        """Columns under other names: `new=old`."""
        return self._then(LinearStep("rename", C.rename, (names,)))

    def filter(self, predicate: Expression) -> Self:
        """The rows for which an expression holds; where it compares `now()`, in the rounds for which it does."""
        wanted = expression(predicate)
        rest, spans = split_filter(wanted) if has_clock(wanted) else (wanted, [])
        found = self if rest is None else self._then(LinearStep("filter", C.filter_rows, (rest,)))
        for lower, upper in spans:
            found = found._then(LinearStep("temporal", temporal, (lower, upper, True)))
        return found

    def negate(self) -> Self:
        """All diffs with the other sign."""
        return self._then(LinearStep("negate", C.negate))

    def map_batches(self, function: Callable[..., Mapping[str, Any]], **kinds: Kind) -> Self:
        """Rows of other columns, from a Python function of many rows at once: from a dict of arrays to one."""
        check_function("function", function, "a function of columns")
        check_calls("map_batches", function, 1, "a dict of columns")
        return self._then(LinearStep("map_batches", functions.map_batches, (function, Schema.of(kinds))))

    def flat_map(self, function: Callable[..., Iterable[Any]], **kinds: Kind) -> Self:
        """Any number of rows for each, which a Python function of the row's values gives."""
        check_function("function", function, "a function of a row's values")
        return self._then(LinearStep("flat_map", functions.flat_map, (function, Schema.of(kinds))))

    def flat_map_batches(self, function: Callable[..., tuple[Mapping[str, Any], Any]], **kinds: Kind) -> Self:
        """The same, many rows at once: from a dict of arrays to one, and for each new row the number of the row it is for."""
        check_function("function", function, "a function of columns")
        check_calls("flat_map_batches", function, 1, "a dict of columns")
        return self._then(LinearStep("flat_map", functions.flat_map_batches, (function, Schema.of(kinds))))

    def explode(self, *columns: str | Expression, diff: Any, **named: Any) -> Self:
        """Rows of these columns, with what `diff` says multiplied by their diffs: a number, also a negative one, or a tuple of
        numbers, of elements of a `group`, and where rows only come of a `semigroup`: `semigroup.min("x")`. Of anything but one
        integer the collection's diffs are of another group."""
        weights = diff if isinstance(diff, tuple) else (diff,)
        if not weights:
            raise bad_argument("diff", MEANT, diff)
        given = [weight if isinstance(weight, Weight) else column_or(weight) for weight in weights]
        return self._then(LinearStep("explode", explode, (expressions_of(columns, named), given)))

    def join_function(self, function: Callable[..., Iterable[Any]] | Composed, **kinds: Kind) -> Self:
        """The general linear operator: a Python function of a row's values gives `(row, time, diff)` any number of times. Or
        what a `Linear` does."""
        if isinstance(function, Composed):
            found = self
            for step in function.steps:
                found = found._then(step)
            return found
        check_function("function", function, "a function of a row's values")
        return self._then(LinearStep("join_function", functions.join_function, (function, Schema.of(kinds))))

    def temporal(self, lower: Any = None, upper: Any = None) -> Self:
        """Each row from round `lower` until before round `upper`: columns or expressions, or Python functions from a dict of
        arrays to a bound for each row. A row with a bound that is null - None, NaN, NaT, masked - is in no round."""
        start, end = (None if bound is None else limit_of(bound) for bound in (lower, upper))
        return self._then(LinearStep("temporal", temporal, (start, end, False)))

    def generate_series(self, start: Any, stop: Any, name: str = "generate_series") -> Self:
        """Each row with every number from `start` to `stop`, that included, in a new column."""
        return self._then(LinearStep("generate_series", generate_series, (column_or(start), column_or(stop), name)))

    def tumbling_window(
        self, time: str, size: Any, origin: Any = 0, names: Sequence[str] = ("window_start", "window_end")
    ) -> Self:
        """Each row with the window of some size that its time is in, as two columns: from `window_start` until before
        `window_end`. One begins at `origin`, and there is no time between them."""
        return self._then(LinearStep("tumbling_window", sliding, (time, size, size, origin, names)))

    def sliding_window(
        self, time: str, size: Any, slide: Any, origin: Any = 0, names: Sequence[str] = ("window_start", "window_end")
    ) -> Self:
        """The same with windows that begin every `slide`: each row with all that its time is in, which may be none."""
        return self._then(LinearStep("sliding_window", sliding, (time, size, slide, origin, names)))

    def repeat_row(self, times: Any) -> Self:
        """Each row so many times; a negative number takes it away."""
        return self._then(LinearStep("repeat_row", repeat_row, (column_or(times),)))

    def unpack_changes(self, before: Mapping[str, str], after: Mapping[str, str], present: tuple[str, str]) -> Self:
        """Rows out of a stream of changes (as of Debezium): the columns `before` the change go, those `after` it come;
        `present` names the two columns that say whether there are such."""
        halves = [(before, present[0], -1), (after, present[1], 1)]
        return self._then(LinearStep("unpack_changes", C.unpack_changes, (halves,)))

    def delay(self, function: Callable[[Any], Any]) -> Self:
        """Updates at the time that a Python function makes of theirs, which must not be earlier."""
        check_function("function", function, "a function of a time")
        check_calls("delay", function, 1, "a time")
        return self._then(LinearStep("delay", functions.delay, (function,)))


@dataclass(frozen=True, slots=True)
class Composed(Linear):
    """Linear operators, one after the other, that are still to be applied."""

    steps: tuple[LinearStep, ...] = ()

    def _then(self, step: LinearStep) -> Composed:
        return Composed((*self.steps, step))

    def followed_by(self, other: Composed) -> Composed:
        """What the other makes of what this one makes."""
        if not isinstance(other, Composed):
            raise bad_argument("other", "linear operators: `linear.map(...)`", other)
        return Composed(self.steps + other.steps)

    def __repr__(self) -> str:
        return f"linear{''.join(f'.{step.name}(...)' for step in self.steps)}"


linear = Composed()
"""The linear operator that changes nothing: `linear.map(...).filter(...)` composes others."""


def is_total(step: LinearStep, schema: Schema) -> bool:
    """Whether a step is known to have an outcome for all updates of a schema, and nobody can tell when it is applied."""
    match step.name:
        case "rename" | "negate":
            return True
        case "map":
            return all(expression.total(schema) for _, expression in step.arguments[0])
        case "filter":
            return bool(step.arguments[0].total(schema))
        case _:
            return False
