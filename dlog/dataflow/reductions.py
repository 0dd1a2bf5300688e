"""Reductions of collections: what is made of all rows with the same key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from dlog.arguments import bad_argument, check_function, truth, whole
from dlog.dataflow import aggregates
from dlog.dataflow.aggregates import Ordering
from dlog.dataflow.base import Definition
from dlog.dataflow.counting import Counting, goes
from dlog.dataflow.expressions import Expression, column_or
from dlog.dataflow.given import check_calls
from dlog.dataflow.kinds import Kind
from dlog.dataflow.operands import DeltaFrame
from dlog.dataflow.schema import Schema, check_names, column_names, plain
from dlog.engine.operators.first_rows import FirstRows
from dlog.engine.operators.groups import Logic
from dlog.grammar.diagnostics import Diagnostic, DlogError

COUNTS = Schema(("count",), (int,))
"""What an expression over counts is about."""
_GROUPS_GIVEN = {
    "reduce": ("the key", "the list of its (row, count)"),
    "reduce_batches": ("the columns of the keys", "those of the rows", "their counts", "where the rows of each group begin"),
}
"""What functions of groups get."""


class Reductions(Counting):
    """`by` names the columns of the key; without any, all rows are one group. A key without rows has no result."""

    def distinct(self) -> Self:
        """Each row once that is there at least once."""
        plain(self.schema, "`distinct`")
        logic = aggregates.Threshold(aggregates.at_least_once)
        return self._reduced(self.schema.names, logic, self.schema, Definition("distinct", (self,)))

    def threshold(self, function: Callable[..., Any] | Expression) -> Self:
        """Each row as often as a Python function of how often it is there says, an array of such numbers; or an expression over
        a column `count`, which may also say whether it is there."""
        plain(self.schema, "`threshold`")
        if not isinstance(function, Expression):
            check_function("function", function, "a function of counts, or an expression over `count`")
            check_calls("threshold", function, 1, "an array of counts")
        logic = aggregates.Threshold(self._of_counts(function) if isinstance(function, Expression) else function)
        return self._reduced(self.schema.names, logic, self.schema, Definition("threshold", (self,), (function,)))

    def _of_counts(self, expression: Expression) -> Callable[[np.ndarray], np.ndarray]:
        kind = expression.kind(COUNTS)
        if kind not in (int, bool):
            raise bad_argument("function", "an expression that is an integer, or true or false", kind.__name__)
        objects, values = self.graph.objects, expression.values(COUNTS)
        return lambda counts: values(DeltaFrame(COUNTS, (counts,), len(counts), objects))

    def sum(self, *key: Any, by: Any = None, **columns: Any) -> Self:
        """Sums of columns or expressions over each group, each by its name; one argument without a name is `by`."""
        if len(key) > 1 or (key and by is not None):
            raise _no_sum(self.schema, (), "columns whose sums have no names")
        keys = column_names("by", *(key or (by,)))
        if not columns:
            raise _no_sum(self.schema, keys, "no column to sum")
        check_names((*keys, *columns))
        for name, column in columns.items():
            kind = column_or(column).kind(self.schema)
            if kind not in (int, float, bool):
                raise bad_argument(name, "a sum of numbers", kind.__name__)
        totals = self.explode(*keys, diff=(1, *columns.values())).count("#rows", *columns)
        return totals.map(*keys, *columns)

    def min(self, column: str, by: Any = None, *, insert_only: bool = False) -> Self:
        """The least value of a column in each group. Of a collection whose rows never go, `insert_only` keeps one row of each
        group, and refuses one that goes."""
        return self._extreme(column, by, False, insert_only)

    def max(self, column: str, by: Any = None, *, insert_only: bool = False) -> Self:
        """The greatest value of a column in each group; `insert_only` as for `min`."""
        return self._extreme(column, by, True, insert_only)

    def _extreme(self, column: str, by: Any, descending: bool, insert_only: bool) -> Self:
        truth("insert_only", insert_only)
        keys = column_names("by", by)
        if not isinstance(column, str):
            note = "`map` makes a column of an expression: `map(\"k\", best=...).min(\"best\", by=\"k\")`"
            raise bad_argument("column", "the name of a column", column, note)
        chosen = self._ordered((*keys, column)) if {*keys, column} == {*self.schema.names} else self.map(*keys, column)
        name = "max" if descending else "min"
        definition = Definition(name, (self,), (keys, column))
        if insert_only:
            return chosen._first_rows(name, keys, 1, chosen._ordering(keys, (column,), (descending,)), definition)
        return chosen._first_of(keys, (column,), (descending,), 1, aggregates.first, definition)

    def top_k(
        self,
        count: int,
        order: Any,
        by: Any = None,
        descending: bool | Sequence[bool] = False,
        *,
        insert_only: bool = False,
    ) -> Self:
        """The first rows of each group in the order of some columns, so many in all; rows that are there several times count as
        often. `descending` is of all of these columns, or a list with one of each. Among equal rows the other columns decide,
        objects by which was met first. `insert_only` as for `min`: so many rows of each group are kept."""
        plain(self.schema, "`top_k`")
        count = whole("count", count, 1, "a whole number, 1 or more")
        truth("insert_only", insert_only)
        keys, names = column_names("by", by), column_names("order", order)
        if not names:
            raise bad_argument("order", "the name of a column, or a list of them", order)
        downs = _directions(descending, names)
        others = self._tie_breakers((*keys, *names))
        named, down = (*names, *others), downs + (False,) * len(others)
        definition = Definition("top_k", (self,), (count, keys, names, downs))
        if insert_only:
            ordered = self._ordered((*keys, *self.schema.others(keys)))
            found = ordered._first_rows("top_k", keys, count, self._ordering(keys, named, down), definition)
        else:
            found = self._first_of(keys, named, down, count, partial(aggregates.top, count), definition)
        return found._ordered(self.schema.names)

    def _first_of(
        self,
        keys: tuple[str, ...],
        names: tuple[str, ...],
        descending: tuple[bool, ...],
        count: int,
        logic: Callable[[Ordering], Logic],
        definition: Definition,
    ) -> Self:
        """The first rows of each group, so many in all, of which any may go. The columns of the key come first, then that of
        the order where an index has rows in it: numbers of texts and objects are in none."""
        ordering = self._ordering(keys, names, descending)
        if self.scope.inner.depth > 1 or self.schema.kind(names[0]) in (str, object):
            schema = self.schema.select((*keys, *self.schema.others(keys)))
            return self._reduced(keys, logic(ordering), schema, definition)
        schema = self.schema.select((*keys, names[0], *self.schema.others((*keys, names[0]))))
        # An index by the key alone has other readers; where the order's column comes first behind it, rows are in this order.
        source = self._arranged(keys if self.schema.others(keys) == schema.others(keys) else (*keys, names[0]))
        self.graph.check_open()
        found = logic(replace(ordering, places=tuple(place - len(keys) for place in schema.places(names))))
        operator = FirstRows(self.graph.scheduler, self.scope.inner, source, len(keys), count, descending[0], found)
        return self._emitted(operator, schema, definition)

    def _first_rows(self, name: str, keys: Sequence[str], count: int, ordering: Ordering, definition: Definition) -> Self:
        """The first rows of each group, where none goes. The key's columns come first."""
        name, note = f"`{name}` with `insert_only`", "without `insert_only` rows may go: then all of them are kept"
        refused = partial(goes, self.scope, self.schema, name, note)
        return self._first_inserted(name, len(keys), count, ordering, refused, definition)

    def _tie_breakers(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """The other columns, where rows do not stand in their order anyway: texts have numbers."""
        others = self.schema.others(known)
        if str not in map(self.schema.kind, others):
            return ()
        return tuple(sorted(others, key=lambda name: self.schema.kind(name) is object))

    def _ordering(self, keys: tuple[str, ...], names: tuple[str, ...], descending: tuple[bool, ...]) -> Ordering:
        plain(self.schema, "an order")
        values = self.schema.others(keys)
        for name in names:
            if name not in values:
                self.schema.place(name)
                raise DlogError(Diagnostic("bad-argument", f"`{name}` is of the key: it is the same for all rows of a group"))
        places = tuple(values.index(name) for name in names)
        return Ordering(places, tuple(self.schema.kind(name) for name in names), descending, self.graph.objects)

    def reduce(self, by: Any, function: Callable[..., Iterable[Any]], **kinds: Kind) -> Self:
        """What a Python function gives for each group: from the key and the list of its (row, count), any number of (row,
        count). The rows have the columns of `kinds`."""
        return self._by_function("reduce", by, function, kinds, aggregates.by_group)

    def reduce_batches(self, by: Any, function: Callable[..., tuple[Mapping[str, Any], Any]], **kinds: Kind) -> Self:
        """The same for many groups at once: the function gets the columns of the keys, those of the rows, the rows' counts and
        where the rows of each group begin; it gives columns, and for each row the number of its group."""
        return self._by_function("reduce_batches", by, function, kinds, aggregates.by_batch)

    def _by_function(
        self, name: str, by: Any, function: Callable[..., Any], kinds: Mapping[str, Kind], adapt: Callable[..., Logic]
    ) -> Self:
        plain(self.schema, f"`{name}`")
        check_function("function", function, "a function of groups")
        given = _GROUPS_GIVEN[name]
        check_calls(name, function, len(given), ", ".join(given))
        keys, made = column_names("by", by), Schema.of(kinds)
        values = self.schema.select(self.schema.others(keys))
        logic = adapt(function, self.schema.select(keys), values, made, self.graph.objects)
        key = self.schema.select(keys)
        schema = Schema((*key.names, *made.names), (*key.kinds, *made.kinds))
        return self._reduced(keys, logic, schema, Definition("reduce", (self,)))


def _no_sum(schema: Schema, keys: Sequence[str], given: str) -> DlogError:
    numbers = (name for name in (*keys, *schema.names) if schema.kind(name) is not str)
    example = f'`sum(total="{next(numbers, "x")}")`'
    note = f"{example} sums a column, for each group that `by=` names; `count` says how many rows there are"
    return DlogError(Diagnostic("bad-argument", f"`sum` is given {given}", notes=(note,)))


def _directions(descending: Any, names: Sequence[str]) -> tuple[bool, ...]:
    """Whether the greatest come first, for each column of an order."""
    if isinstance(descending, bool):
        return (descending,) * len(names)
    several = isinstance(descending, list | tuple) and all(isinstance(each, bool) for each in descending)
    if not several or len(descending) != len(names):
        meant = f"True or False, or a list of these for each of the {len(names)} columns of the order"
        raise bad_argument("descending", meant, descending)
    return tuple(descending)
