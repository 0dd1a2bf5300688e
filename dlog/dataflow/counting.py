"""Counting: the sums of the diffs of all rows with the same key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from dlog.dataflow import components as C
from dlog.dataflow import programs
from dlog.dataflow.aggregates import Ordering
from dlog.dataflow.base import Base, Definition, select_columns
from dlog.dataflow.components import Extreme, ValueComponent
from dlog.dataflow.folds import Fold
from dlog.dataflow.outputs import updates_of
from dlog.dataflow.rows import rows_of
from dlog.dataflow.schema import Schema, check_names, column_names
from dlog.dataflow.scopes import Scope
from dlog.dataflow.totals import Count, kept_apart, totals, zero_of
from dlog.engine.operators.accumulated import Accumulated
from dlog.engine.operators.column_programs import Programmed
from dlog.engine.operators.delta import Columns, Delta
from dlog.engine.operators.feedback import Gathered
from dlog.engine.operators.groups import Logic
from dlog.engine.operators.insert_only import FirstInserted
from dlog.engine.operators.reduce import reduction
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Counting(Base):
    """Components of diffs that are no numbers are kept apart where times are in one order: of each key there is one part of
    such a component then, the value that it has come to. In loops all parts are kept, and added up anew."""

    def count(self, *names: str, by: Any = None) -> Self:
        """How often each row is there, or each key if `by` names one: the sum of the diffs, in a column `count`. The sums of
        diffs of several components go into as many columns, which must be named."""
        keyed = self if by is None else self.map(*column_names("by", by))
        kinds = keyed.schema.diffs
        found = names or (() if kinds else ("count",))
        if len(found) != len(kinds or (int,)):
            needed = f"needs {len(kinds)} names: one for each component of the diffs"
            message = needed if kinds else "takes one name, of the column of numbers: `by=` names the columns of the key"
            raise DlogError(Diagnostic("bad-argument", f"`count` {message}"))
        check_names((*keyed.schema.names, *found), '`count("nodes")` gives the column of numbers another name')
        schema, definition = keyed._counted_schema(found), Definition("count", (keyed,), found)
        if not kinds:
            return keyed._reduced(keyed.schema.names, Count(), schema, definition)
        apart = keyed._apart()
        if len(kinds) == len(apart) == 1:
            return keyed._only_part(schema, found[0])._defined("count", (keyed,), *found)
        logic = totals(kinds, self.graph.objects, bool(apart), partial(_never_came, self.scope, keyed.schema))
        parts = keyed._with_parts_apart(apart, found) if apart else keyed
        return parts._reduced(keyed.schema.names, logic, schema, definition)

    def _counted_schema(self, names: Sequence[str]) -> Schema:
        """The columns, and those of the sums of the diffs."""
        sums = [each.result if isinstance(each, ValueComponent) else each for each in self.schema.diffs or (int,)]
        return Schema((*self.schema.names, *names), (*self.schema.kinds, *sums))

    def _apart(self) -> dict[int, ValueComponent]:
        """The components that are kept apart, by number. Raises DlogError in a loop for those that have no way back."""
        of_values = self.schema.of_values
        if self.scope.inner.depth == 1:
            return {number: each for number, each in of_values.items() if kept_apart(each)}
        for each in of_values.values():
            if zero_of(each, self.graph.objects) is None:
                raise _in_loop(_shown(each))
        return {}

    def _with_parts_apart(self, apart: dict[int, ValueComponent], names: Sequence[str]) -> Self:
        """With one part alone of each row and each of these components, and all of the others."""
        numbers, parts = np.arange(len(self.schema.diffs)), []
        whole = self._emitted(self._operator(Gathered), self.schema, Definition("count", (self,)))
        if len(apart) < len(numbers):
            parts.append(whole._changed("filter", partial(C.only, ~np.isin(numbers, list(apart)))))
        for number, each in apart.items():
            parts.append(whole._changed("filter", partial(C.only, numbers == number))._one_part(each, names[number]))
        return parts[0].concat(*parts[1:])

    def _only_part(self, counted: Schema, name: str) -> Self:
        """The sums of diffs of one component, which is kept apart."""
        (component,), arity = self.schema.diffs, len(self.schema.names)
        assert isinstance(component, ValueComponent)
        places = (*range(arity), arity + 1)
        select = Programmed(partial(select_columns, places), programs.ordered(places))
        return self._one_part(component, name)._changed("select", select, counted, total=True)

    def _one_part(self, component: ValueComponent, name: str) -> Self:
        """What the parts of a component, which are these, come to in each row: one part. `name` is that of its column."""
        arity, objects, definition = len(self.schema.names), self.graph.objects, Definition("count", (self,))
        refused = self._refused(component, name)
        if isinstance(component, Extreme):
            ordering = Ordering((0,), (component.kind,), (component.descending,), objects)
            return self._first_inserted(_shown(component), arity + 1, 1, ordering, refused, definition)
        fold, goes_back = Fold(component, objects), zero_of(component, objects) is not None
        return self._emitted(self._operator(Accumulated, arity, fold, None if goes_back else refused), self.schema, definition)

    def _refused(self, component: ValueComponent, name: str) -> Callable[[Delta], DlogError]:
        """The mistake of a part that goes."""
        note = "it keeps the sum alone"
        if isinstance(component, Extreme):
            note = "it keeps the best value alone; `min` and `max` keep all rows"
        shown = Schema((*self.schema.names, name), (*self.schema.kinds, component.kind))
        return partial(goes, self.scope, shown, _shown(component), note)

    def _first_inserted(
        self,
        name: str,
        keys: int,
        count: int,
        ordering: Ordering,
        refused: Callable[[Delta], DlogError],
        definition: Definition,
    ) -> Self:
        """The same by words, of which so many are the key."""
        if self.scope.inner.depth > 1:
            raise _in_loop(name)
        operator = self._operator(FirstInserted, self.schema.arity, keys, count, ordering.words, refused)
        return self._emitted(operator, self.schema, definition)

    def _reduced(self, keys: tuple[str, ...], logic: Logic, schema: Schema, definition: Definition) -> Self:
        source = self._arranged(keys)
        self.graph.check_open()
        outputs = schema.arity - len(keys)
        operator = reduction(self.graph.scheduler, self.scope.inner, source, logic, outputs)
        return self._emitted(operator, schema, definition)


def _in_loop(name: str) -> DlogError:
    note = "in a loop rows are taken back and come again from round to round: there `min`, `max` and a `group` keep all of them"
    return DlogError(Diagnostic("partially-ordered", f"{name} is in a loop", notes=(note,)))


def _shown(component: ValueComponent) -> str:
    return f"`count` of `{component.name}`"


def goes(scope: Scope, schema: Schema, name: str, note: str, delta: Delta) -> DlogError:
    """The mistake of an update that takes a row away; of one that is a part of a diff, its value is the last of its columns."""
    hidden = len(delta.columns) - len(schema.names)
    columns = (*delta.columns[: -1 - hidden], delta.columns[-1]) if hidden else delta.columns
    ((row, round, _),) = updates_of(scope, schema, delta.with_columns(columns))
    return DlogError(
        Diagnostic("row-gone", f"{name} is given a row that goes, in round {round}: {_named(schema, row)}", notes=(note,))
    )


def _never_came(scope: Scope, schema: Schema, keys: Columns) -> DlogError:
    """The mistake of sums for a key of which there is no value for an extreme."""
    (row,) = rows_of(schema, keys, 1, scope.graph.objects)
    message = f"`count` beside an extreme is given a row that goes and has not come: {_named(schema, row)}"
    return DlogError(Diagnostic("row-gone", message, notes=("what comes with an extreme (`semigroup`) does not go",)))


def _named(schema: Schema, row: Sequence[Any]) -> str:
    """A row as one writes it; of no columns there is one."""
    return ", ".join(f"{column}={value!r}" for column, value in zip(schema.names, row, strict=True)) or "the only one"
