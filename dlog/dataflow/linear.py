"""Linear operators: what they make of a collection is the sum of what they make of its rows.

All are instances of one, `join_function`: for each row, some rows with a time and a diff each; the time joins that of the
row, the diff multiplies its diff. `Linear` is such a function without a collection, to be composed (`followed_by`) and
applied later. Whatever is applied in sequence is one function in the end: a dataflow has no operator for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from dlog.arguments import MAX_COUNT, bad_argument, check_function
from dlog.dataclass import dataclass
from dlog.dataflow import programs, semigroup
from dlog.dataflow.clock import has_clock, split_filter
from dlog.dataflow.expressions import Column, Expression, Values, column_or, expression
from dlog.dataflow.given import check_calls, check_shape, columns_given, diffs_of, lists_of, numbers_of, pair_of
from dlog.dataflow.kinds import Component, Extreme, Kind, decode
from dlog.dataflow.rows import RowReader, shown_time, time_words, words_of
from dlog.dataflow.schema import Schema, check_names, mismatch, plain
from dlog.dataflow.site import Bound, LinearStep, Site
from dlog.dataflow.weights import constant, part, series, summed_parts, weighted
from dlog.dataflow.windows import sliding
from dlog.engine.operators.column_programs import Programmed
from dlog.engine.operators.delta import Delta, together
from dlog.engine.trace.overflow import products
from dlog.engine.values.array_pool import RecurringBlocks
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Linear(ABC):
    """The linear operators, of a collection and of a function that is still to be applied to one."""

    @abstractmethod
    def _then(self, step: LinearStep) -> Self:
        """With one more step."""

    def map(self, *columns: str | Expression, **named: Any) -> Self:
        """Rows of these columns instead: names, expressions, or `name=expression`."""
        return self._then(LinearStep("map", _map, (_expressions(columns, named), False)))

    def with_columns(self, **named: Any) -> Self:
        """Rows with these columns besides, or in the place of those of the name."""
        return self._then(LinearStep("map", _map, (_expressions((), named), True)))

    def rename(self, **names: str) -> Self:
        """Columns under other names: `new=old`."""
        return self._then(LinearStep("rename", _rename, (names,)))

    def filter(self, predicate: Expression) -> Self:
        """The rows for which an expression holds; where it compares `now()`, in the rounds for which it does."""
        wanted = expression(predicate)
        rest, spans = split_filter(wanted) if has_clock(wanted) else (wanted, [])
        found = self if rest is None else self._then(LinearStep("filter", _filter, (rest,)))
        for lower, upper in spans:
            found = found._then(LinearStep("temporal", _temporal, (lower, upper, True)))
        return found

    def negate(self) -> Self:
        """All diffs with the other sign."""
        return self._then(LinearStep("negate", _negate))

    def map_batches(self, function: Callable[..., Mapping[str, Any]], **kinds: Kind) -> Self:
        """Rows of other columns, from a Python function of many rows at once: from a dict of arrays to one."""
        check_function("function", function, "a function of columns")
        check_calls("map_batches", function, 1, "a dict of columns")
        return self._then(LinearStep("map_batches", _map_batches, (function, Schema.of(kinds))))

    def flat_map(self, function: Callable[..., Iterable[Any]], **kinds: Kind) -> Self:
        """Any number of rows for each, which a Python function of the row's values gives."""
        check_function("function", function, "a function of a row's values")
        return self._then(LinearStep("flat_map", _flat_map, (function, Schema.of(kinds))))

    def flat_map_batches(self, function: Callable[..., tuple[Mapping[str, Any], Any]], **kinds: Kind) -> Self:
        """The same, many rows at once: from a dict of arrays to one, and for each new row the number of the row it is for."""
        check_function("function", function, "a function of columns")
        check_calls("flat_map_batches", function, 1, "a dict of columns")
        return self._then(LinearStep("flat_map", _flat_map_batches, (function, Schema.of(kinds))))

    def explode(self, *columns: str | Expression, diff: Any, **named: Any) -> Self:
        """Rows of these columns, with what `diff` says multiplied by their diffs: a number, also a negative one, or a tuple of
        numbers, and of extremes (`semigroup.min("x")`) where rows only come. Of anything but one integer the collection's diffs
        are of another group."""
        weights = diff if isinstance(diff, tuple) else (diff,)
        if not weights:
            raise bad_argument("diff", "a number, or a tuple of one or more numbers and extremes", diff)
        given = [weight if isinstance(weight, semigroup.Weight) else column_or(weight) for weight in weights]
        return self._then(LinearStep("explode", _explode, (_expressions(columns, named), given)))

    def join_function(self, function: Callable[..., Iterable[Any]] | Composed, **kinds: Kind) -> Self:
        """The general linear operator: a Python function of a row's values gives `(row, time, diff)` any number of times. Or
        what a `Linear` does."""
        if isinstance(function, Composed):
            found = self
            for step in function.steps:
                found = found._then(step)
            return found
        check_function("function", function, "a function of a row's values")
        return self._then(LinearStep("join_function", _join_function, (function, Schema.of(kinds))))

    def temporal(self, lower: Any = None, upper: Any = None) -> Self:
        """Each row from round `lower` until before round `upper`: columns or expressions."""
        start, end = (None if bound is None else column_or(bound) for bound in (lower, upper))
        return self._then(LinearStep("temporal", _temporal, (start, end, False)))

    def generate_series(self, start: Any, stop: Any, name: str = "generate_series") -> Self:
        """Each row with every number from `start` to `stop`, that included, in a new column."""
        return self._then(LinearStep("generate_series", _generate_series, (column_or(start), column_or(stop), name)))

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
        return self._then(LinearStep("repeat_row", _repeat_row, (column_or(times),)))

    def unpack_changes(self, before: Mapping[str, str], after: Mapping[str, str], present: tuple[str, str]) -> Self:
        """Rows out of a stream of changes (as of Debezium): the columns `before` the change go, those `after` it come;
        `present` names the two columns that say whether there are such."""
        halves = [(before, present[0], -1), (after, present[1], 1)]
        return self._then(LinearStep("unpack_changes", _unpack_changes, (halves,)))

    def delay(self, function: Callable[[Any], Any]) -> Self:
        """Updates at the time that a Python function makes of theirs, which must not be earlier."""
        check_function("function", function, "a function of a time")
        check_calls("delay", function, 1, "a time")
        return self._then(LinearStep("delay", _delay, (function,)))


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


# -------------------------------------------------------------------------------------------------------------- columns


def _expressions(columns: Iterable[str | Expression], named: Mapping[str, Any]) -> list[tuple[str, Expression]]:
    chosen = []
    for each in columns:
        found = column_or(each)
        if found.label is None:
            raise bad_argument("columns", "names, or expressions with a name", each, "write `name=expression`")
        chosen.append((found.label, found))
    return chosen + [(name, column_or(value)) for name, value in named.items()]


def _map(chosen: list[tuple[str, Expression]], keep: bool, site: Site) -> Bound:
    if keep:
        given = dict(chosen)
        names = [*site.schema.names, *(name for name in given if name not in site.schema.names)]
        chosen = [(name, given.get(name, Column(name))) for name in names]
    names = [name for name, _ in chosen]
    schema = site.schema.with_columns(names, [e.kind(site.schema) for _, e in chosen])

    words = [e.words(site.schema) for _, e in chosen]

    def run(delta: Delta) -> Delta:
        frame = site.frame(delta)
        return delta.with_columns((*[each(frame) for each in words], *site.hidden(delta)))

    def run_quietly(delta: Delta) -> Delta:
        with np.errstate(all="ignore"):
            return run(delta)

    function = run_quietly if any(e.noisy(site.schema) for _, e in chosen) else run
    return schema, Programmed(function, programs.mapped([e for _, e in chosen], site.schema))


def _rename(names: Mapping[str, str], site: Site) -> Bound:
    site.schema.places(list(names.values()))
    back = {old: new for new, old in names.items()}
    for new, old in names.items():
        if back[old] != new:
            note = f"`map({new}={old!r}, {back[old]}={old!r})` makes two columns of one"
            raise DlogError(Diagnostic("bad-argument", f"`{old}` would have two names, {new} and {back[old]}", notes=(note,)))
    schema = site.schema.with_columns([back.get(name, name) for name in site.schema.names], site.schema.kinds)
    return schema, Programmed(lambda delta: delta, programs.unchanged)


def _negate(site: Site) -> Bound:
    return site.schema, Programmed(_negated, programs.negated)


def _negated(delta: Delta) -> Delta:
    return Delta(delta.columns, delta.times, -delta.diffs)


def _filter(predicate: Expression, site: Site) -> Bound:
    if predicate.kind(site.schema) is not bool:
        raise bad_argument("predicate", "an expression that is true or false", predicate.kind(site.schema).__name__)

    holds, blocks = predicate.values(site.schema), RecurringBlocks()

    extend = programs.kept(predicate, site.schema)
    return site.schema, Programmed(lambda delta: delta.only(holds(site.frame(delta)), blocks), extend)


# ------------------------------------------------------------------------------------------------------ Python functions


def _values(site: Site, delta: Delta) -> dict[str, np.ndarray]:
    """The columns as arrays of the function's own, which may write to them: others read the delta, too."""
    named = zip(site.schema.names, site.schema.kinds, delta.columns, strict=False)
    decoded = ((name, words, decode(kind, words, site.objects)) for name, kind, words in named)
    return {name: values.copy() if values is words else values for name, words, values in decoded}


def _map_batches(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    schema, reader = site.schema.with_columns(made.names, made.kinds), RowReader(made, site.objects)

    def run(delta: Delta) -> Delta:
        columns, rows = reader.read(function(_values(site, delta)))
        if rows != delta.rows:
            raise DlogError(Diagnostic("bad-rows", f"a function of {delta.rows} rows has given {rows}"))
        return delta.with_columns((*columns, *site.hidden(delta)))

    return schema, run


def _flat_map(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    check_calls("flat_map", function, len(site.schema.names), columns_given(site.schema.names))
    schema = site.schema.with_columns(made.names, made.kinds)

    def run(delta: Delta) -> Delta:
        found = lists_of("flat_map", "rows", function, site.rows(delta))
        columns, _ = words_of(made, [row for rows in found for row in rows], site.objects)
        chosen = delta.only(np.repeat(np.arange(delta.rows), [len(rows) for rows in found]))
        return chosen.with_columns((*columns, *site.hidden(chosen)))

    return schema, run


def _flat_map_batches(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    schema = site.schema.with_columns(made.names, made.kinds)

    def run(delta: Delta) -> Delta:
        found, owners = pair_of("flat_map_batches", "(columns, numbers of rows)", function(_values(site, delta)))
        columns, rows = words_of(made, found, site.objects)
        chosen = delta.only(numbers_of("flat_map_batches", "row", owners, rows, delta.rows))
        return chosen.with_columns((*columns, *site.hidden(chosen)))

    return schema, run


def _join_function(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    check_calls("join_function", function, len(site.schema.names), columns_given(site.schema.names))
    schema = site.schema.with_columns(made.names, made.kinds)

    def run(delta: Delta) -> Delta:
        found = lists_of("join_function", "(row, time, diff)", function, site.rows(delta))
        flat = [each for updates in found for each in updates]
        check_shape("join_function", "(row, time, diff)", flat, 3)
        columns, _ = words_of(made, [row for row, _, _ in flat], site.objects)
        times = [time_words(time, site.scope.depth, site.scope.scale) for _, time, _ in flat]
        diffs = diffs_of("join_function", [diff for _, _, diff in flat])
        chosen = delta.only(np.repeat(np.arange(delta.rows), [len(updates) for updates in found]))
        met = np.maximum(chosen.times, np.array(times, np.int64).reshape(len(times), -1).T) if times else chosen.times
        return Delta((*columns, *site.hidden(chosen)), met, products(chosen.diffs, diffs, "`join_function`"))

    return schema, run


# ---------------------------------------------------------------------------------------------------------------- diffs


def _explode(chosen: list[tuple[str, Expression]], weights: list[Expression | semigroup.Weight], site: Site) -> Bound:
    mapped, run_map = _map(chosen, False, site)
    components = tuple(_component(weight, site.schema) for weight in weights)
    values = [w.of.words(site.schema) if isinstance(w, semigroup.Weight) else w.values(site.schema) for w in weights]
    columns = [e for _, e in chosen]
    if components == (int,):
        extend = programs.multiplied(_plain_weights(weights)[0], columns, site.schema)
        return mapped, Programmed(
            lambda delta: weighted(run_map(delta), values[0](site.frame(delta)), "`explode`"), extend
        )
    plain(site.schema, "`explode` to another group")
    schema = Schema(mapped.names, mapped.kinds, components)
    if set(components) == {int}:
        sums = _plain_weights(weights)
        constants = [constant(weight, site.schema) for weight in sums]

        def run_sums(delta: Delta) -> Delta:
            frame = site.frame(delta)
            return summed_parts(run_map(delta), [value(frame) for value in values], constants)

        return schema, Programmed(run_sums, programs.summed(columns, sums, site.schema))

    def run(delta: Delta) -> Delta:
        rows, frame = run_map(delta), site.frame(delta)
        parts = enumerate(zip(components, values, strict=True))
        return together([_part(rows, k, component, value(frame)) for k, (component, value) in parts])

    return schema, run


def _plain_weights(weights: Sequence[Expression | semigroup.Weight]) -> list[Expression]:
    """Those that are numbers."""
    return [weight for weight in weights if not isinstance(weight, semigroup.Weight)]


def _component(weight: Expression | semigroup.Weight, schema: Schema) -> Component:
    if isinstance(weight, semigroup.Weight):
        return Extreme(weight.of.kind(schema), weight.descending)
    kind = weight.kind(schema)
    if kind not in (int, float, bool):
        raise bad_argument("diff", "a number, or a tuple of numbers and extremes", kind.__name__)
    return float if kind is float else int


def _part(delta: Delta, number: int, component: Component, values: np.ndarray) -> Delta:
    return semigroup.part(delta, number, values) if isinstance(component, Extreme) else part(delta, number, component, values)


def _generate_series(start: Expression, stop: Expression, name: str, site: Site) -> Bound:
    first_of, last_of = _integers(site, "start", start), _integers(site, "stop", stop)
    check_names((*site.schema.names, name), "`name=` gives the column of numbers another name")
    schema = site.schema.with_columns((*site.schema.names, name), (*site.schema.kinds, int))
    split = len(site.schema.names)

    def run(delta: Delta) -> Delta:
        frame = site.frame(delta)
        owners, numbers = series(first_of(frame), last_of(frame))
        chosen = delta.only(owners)
        return chosen.with_columns((*chosen.columns[:split], numbers, *chosen.columns[split:]))

    return schema, run


def _repeat_row(times: Expression, site: Site) -> Bound:
    values = _integers(site, "times", times)
    extend = programs.multiplied(times, None, site.schema)
    return site.schema, Programmed(lambda delta: weighted(delta, values(site.frame(delta)), "`repeat_row`"), extend)


def _integers(site: Site, name: str, given: Expression, meant: str = "a column or expression of integers") -> Values:
    """What gives the values of an argument. Raises DlogError where these are no integers."""
    if given.kind(site.schema) is not int:
        raise bad_argument(name, meant, given.kind(site.schema).__name__)
    return given.values(site.schema)


def _unpack_changes(halves: list[tuple[Mapping[str, str], str, int]], site: Site) -> Bound:
    bound = []
    for names, present, sign in halves:
        chosen: list[tuple[str, Expression]] = [(name, Column(column)) for name, column in names.items()]
        schema, run = _map(chosen, False, site)
        bound.append((schema, run, Column(present).values(site.schema), sign))
    if bound[0][0] != bound[1][0]:
        note = "`before` and `after` make the same columns, of one kind each"
        raise mismatch("unpack_changes", bound[0][0], bound[1][0], note)

    def unpack(delta: Delta) -> Delta:
        parts = []
        for _, run, present, sign in bound:
            kept = delta.only(present(site.frame(delta)).astype(bool))
            parts.append(run(kept) if sign > 0 else _negated(run(kept)))
        return together(parts)

    return bound[0][0], unpack


# ---------------------------------------------------------------------------------------------------------------- times


def _temporal(lower: Expression | None, upper: Expression | None, compared: bool, site: Site) -> Bound:
    """The bounds may be what `now()` is `compared` with."""
    names, meant = ("lower", "upper"), "a column or expression of integers, which are rounds"
    if compared:
        names, meant = ("now()", "now()"), "compared with integers, which are rounds"
    given = zip(names, (lower, upper), strict=True)
    starts, ends = (None if bound is None else _integers(site, name, bound, meant) for name, bound in given)

    def run(delta: Delta) -> Delta:
        frame = site.frame(delta)
        start = delta.rounds if starts is None else np.maximum(delta.rounds, _rounds(starts(frame), site.scope.scale))
        came = Delta(delta.columns, np.concatenate([start[None, :], delta.times[1:]]), delta.diffs)
        if ends is None:
            return came
        end = _rounds(ends(frame), site.scope.scale)
        kept = end > start
        gone = Delta(delta.columns, np.concatenate([end[None, :], delta.times[1:]]), -delta.diffs)
        return together([came.only(kept), gone.only(kept)])

    return site.schema, run


def _rounds(bounds: np.ndarray, scale: int) -> np.ndarray:
    """Rounds as a scope counts them, none beyond what nobody comes to."""
    return bounds if scale == 1 else np.clip(bounds, 0, MAX_COUNT - 1) * scale


def _delay(function: Callable[[Any], Any], site: Site) -> Bound:
    depth, scale = site.scope.depth, site.scope.scale

    def run(delta: Delta) -> Delta:
        different, places = np.unique(delta.times, axis=1, return_inverse=True)
        moved = [time_words(function(shown_time(tuple(t), scale)), depth, scale) for t in different.T.tolist()]
        times = np.array(moved, np.int64).reshape(len(moved), depth).T[:, places.reshape(-1)]
        if (times < delta.times).any():
            raise DlogError(Diagnostic("bad-time", "`delay` must not move updates to earlier times"))
        return Delta(delta.columns, np.ascontiguousarray(times), delta.diffs)

    return site.schema, run
