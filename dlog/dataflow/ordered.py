"""Operators on the events of each key in an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from dlog.arguments import bad_argument, check_function, whole
from dlog.dataflow.axis import Back, Events, Forth, Sorting, amount, axis, sorting
from dlog.dataflow.base import Base, Definition
from dlog.dataflow.expressions import Expression, Literal, column_or
from dlog.dataflow.given import check_calls, wrong_outcome
from dlog.dataflow.kinds import Kind, Objects, decode, encode
from dlog.dataflow.moving import Aggregate
from dlog.dataflow.operands import DeltaFrame
from dlog.dataflow.schema import Schema, column_names, plain
from dlog.dataflow.windows import Windows, check_windows, with_bounds
from dlog.engine.operators.delta import Columns
from dlog.engine.operators.groups import Groups
from dlog.engine.operators.ordered import Fold, GroupOutput, Ordered, OrderedLogic, Scan, whole_groups
from dlog.engine.operators.reach import Following, Gap, Range, Reach
from dlog.engine.operators.reduce import reduction
from dlog.engine.operators.slices import GREATEST, LEAST, bisect
from dlog.grammar.diagnostics import Diagnostic, DlogError

BOUNDS = ("window_start", "window_end")


class OrderedGroups(Base):
    """`order` names a column of numbers, the event time; events at the same time are in the order of their other columns. A row
    that is there several times is as many events. Outside of loops, changes cost what they can reach, not what a key has."""

    def session_window(self, time: str, gap: Any, by: Any = None, names: Sequence[str] = BOUNDS) -> Self:
        """Each row with its session: events of a key of which each is less than `gap` after the one before. A session ends,
        itself not included, `gap` after its last event."""
        rows, keys, kind = self._by_order("session_window", "time", time, by)
        forth = Forth(kind, amount("gap", kind, gap))
        schema = with_bounds(rows.schema, kind, names)
        found = rows._ordered_groups("session_window", time, keys, Gap(forth), _sessions(time, forth), schema)
        return found._ordered((*self.schema.names, *names))

    def moving(
        self, order: str, by: Any = None, *, rows: int | None = None, range: Any = None, **aggregates: Aggregate
    ) -> Self:
        """Each event with aggregates (`dlog.dataflow.moving`) of the window that ends with it: of the last so many `rows`, or
        of those less than `range` before it, all at its own time included."""
        if (rows is None) == (range is None):
            raise DlogError(Diagnostic("bad-argument", "`moving` needs either `rows` or `range`"))
        events, keys, kind = self._by_order("moving", "order", order, by)
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise bad_argument(name, "an aggregate of a window", aggregate, 'as in `mean=moving.mean("x")`')
        schema = _with_columns(events.schema, {name: each.kind(events.schema) for name, each in aggregates.items()})
        sort = sorting(events.schema, len(keys), self.graph.objects)
        if range is None:
            size = whole("rows", rows, 1, "a whole number, 1 or more")
            reach, bounds = _last_rows(size)
        else:
            reach, bounds = _last_range(kind, amount("range", kind, range))
        logic = _moving(events.schema, sort, bounds, list(aggregates.values()), self.graph.objects)
        return events._ordered_groups("moving", order, keys, reach, logic, schema)._ordered((*self.schema.names, *aggregates))

    def scan(
        self, order: str, function: Callable[..., Any], *arguments: str | Expression, by: Any = None, **start: Any
    ) -> Self:
        """Each event with the state of a fold after it. `start` is the state before the first event of a key, by column; a
        Python function gives the next state, a tuple if it has several columns, of the state and the arguments. After a change
        it goes on from the state before the first event that changed."""
        events, keys, _ = self._by_order("scan", "order", order, by)
        check_function("function", function, "a function of the state and the arguments")
        if not start:
            raise DlogError(Diagnostic("bad-argument", "`scan` needs the state to start from: `scan(..., total=0)`"))
        given = [*start, *(each if isinstance(each, str) else "an expression" for each in arguments)]
        check_calls("scan", function, len(given), f"the state and the arguments, {', '.join(given)}")
        kinds = {name: Literal(value).kind(events.schema) for name, value in start.items()}
        schema = _with_columns(events.schema, kinds)
        state = Schema(tuple(kinds), tuple(kinds.values()))
        objects = self.graph.objects
        words = [int(encode(kinds[name], [value], objects)[0]) for name, value in start.items()]
        sort = sorting(events.schema, len(keys), objects)
        fold = _fold(function, [column_or(a) for a in arguments], events.schema, state, sort, objects)
        if self.scope.inner.depth > 1:
            found = events._whole_groups("scan", keys, _from_start(fold, words), schema)
        else:
            source = events._arranged((*keys, order))
            self.graph.check_open()
            operator = Scan(self.graph.scheduler, self.scope.inner, source, len(keys), fold, words)
            found = events._emitted(operator, schema, Definition("scan", (events,)))
        return found._ordered((*self.schema.names, *start))

    # ----------------------------------------------------------------------------------------------------------- operators

    def _by_order(self, what: str, name: str, order: str, by: Any) -> tuple[Self, tuple[str, ...], Kind]:
        """It with the key first, then the order; the key's columns; and the kind of the order."""
        plain(self.schema, f"`{what}`")
        keys = column_names("by", by)
        kind = axis(self.schema, name, order)
        if order in keys:
            raise DlogError(Diagnostic("bad-argument", f"`{order}` is of the key: it is the same for all rows of a group"))
        return self._ordered((*keys, order, *self.schema.others((*keys, order)))), keys, kind

    def _ordered_groups(
        self, what: str, order: str, keys: tuple[str, ...], reach: Reach, logic: OrderedLogic, schema: Schema
    ) -> Self:
        if self.scope.inner.depth > 1:
            return self._whole_groups(what, keys, logic, schema)
        source = self._arranged((*keys, order))
        self.graph.check_open()
        operator = Ordered(self.graph.scheduler, self.scope.inner, source, len(keys), reach, logic)
        return self._emitted(operator, schema, Definition(what, (self,)))

    def _whole_groups(self, what: str, keys: tuple[str, ...], logic: OrderedLogic, schema: Schema) -> Self:
        """By a reduction: right at partially ordered times."""
        source = self._arranged(keys)
        self.graph.check_open()
        outputs = schema.arity - len(keys)
        operator = reduction(self.graph.scheduler, self.scope.inner, source, whole_groups(logic), outputs)
        return self._emitted(operator, schema, Definition(what, (self,)))


def _with_columns(schema: Schema, kinds: dict[str, Kind]) -> Schema:
    return schema.with_columns((*schema.names, *kinds), (*schema.kinds, *kinds.values()))


# ------------------------------------------------------------------------------------------------------------- sessions


def _sessions(name: str, forth: Forth) -> OrderedLogic:
    def run(groups: Groups, wanted: np.ndarray) -> GroupOutput:
        rows = np.flatnonzero(groups.diffs > 0)
        owners, order = groups.owners[rows], groups.columns[0][rows]
        if forth.kind is int:
            check_windows(name, order, order > GREATEST - forth.amount, "gap", forth.amount)
        begins = np.ones(len(rows), bool)
        begins[1:] = (owners[1:] != owners[:-1]) | (order[1:] >= forth(order[:-1]))
        starts = np.flatnonzero(begins)
        sizes = np.diff(starts, append=len(rows))
        bounds = np.repeat(order[starts], sizes), np.repeat(forth(order[starts + sizes - 1]), sizes)
        kept = wanted[rows]
        return GroupOutput(rows[kept], tuple(bound[kept] for bound in bounds), groups.diffs[rows[kept]])

    return run


# ------------------------------------------------------------------------------------------------------- moving windows

Bounds = Callable[[Events, np.ndarray], Windows]
"""The windows of some of the events, which are given by their places."""


def _last_rows(size: int) -> tuple[Reach, Bounds]:
    def bounds(events: Events, places: np.ndarray) -> Windows:
        return Windows(np.maximum(events.low[places], places - (size - 1)), places + 1)

    return Following(size - 1), bounds


def _last_range(kind: Kind, range: Any) -> tuple[Reach, Bounds]:
    forth = Forth(kind, range)

    def bounds(events: Events, places: np.ndarray) -> Windows:
        order = events.order[places]
        if kind is int:
            first = np.where(order < LEAST + range, LEAST, order - range + 1)
            low = bisect(events.order, events.low[places], places, first, False)
        else:
            low = bisect(forth(events.order), events.low[places], places, order, True)
        return Windows(low, bisect(events.order, places, events.high[places], order, True))

    return Range(forth, Back(kind, range)), bounds


def _moving(schema: Schema, sort: Sorting, bounds: Bounds, aggregates: list[Aggregate], objects: Objects) -> OrderedLogic:
    def run(groups: Groups, wanted: np.ndarray) -> GroupOutput:
        events = sort(groups)
        places = np.flatnonzero(wanted[events.rows])
        windows, frame = bounds(events, places), _frame(schema, groups, objects)
        columns = tuple(aggregate.words(windows, frame, events.rows) for aggregate in aggregates)
        return GroupOutput(events.rows[places], columns, np.ones(len(places), np.int64))

    return run


def _frame(schema: Schema, groups: Groups, objects: Objects) -> DeltaFrame:
    owners = groups.owners
    return DeltaFrame(schema, (*(key[owners] for key in groups.keys), *groups.columns), len(owners), objects)


# ---------------------------------------------------------------------------------------------------------------- folds


def _fold(
    function: Callable[..., Any], arguments: list[Expression], schema: Schema, state: Schema, sort: Sorting, objects: Objects
) -> Fold:
    arguments_of = [argument.values(schema) for argument in arguments]

    def run(groups: Groups, start: Columns) -> GroupOutput:
        events = sort(groups)
        frame = _frame(schema, groups, objects)
        values = [argument(frame)[events.rows].tolist() for argument in arguments_of]
        begun = [decode(kind, words, objects).tolist() for kind, words in zip(state.kinds, start, strict=True)]
        states = _states(function, list(zip(*begun, strict=True)), events.owners.tolist(), values)
        columns = zip(state.kinds, zip(*states, strict=True) if states else [()] * len(begun), strict=True)
        words = tuple(encode(kind, list(column), objects) for kind, column in columns)
        return GroupOutput(events.rows, (_places(events), *words), np.ones(len(events.rows), np.int64))

    return run


def _states(
    function: Callable[..., Any], start: list[tuple[Any, ...]], owners: list[int], values: list[list[Any]]
) -> list[tuple[Any, ...]]:
    """The state after each event: user logic, an event at a time."""
    found, before, size = [], -1, len(start[0]) if start else 0
    state: tuple[Any, ...] = ()
    for owner, given in zip(owners, zip(*values, strict=True) if values else [()] * len(owners), strict=True):
        if owner != before:
            state, before = start[owner], owner
        made = function(*state, *given)
        if size == 1:
            state = (made,)
        elif type(made) is tuple and len(made) == size:
            state = made
        else:
            state = _state_of(made, size)
        found.append(state)
    return found


def _state_of(made: Any, size: int) -> tuple[Any, ...]:
    """A state of several columns. Raises DlogError for what is none."""
    if isinstance(made, str) or not isinstance(made, Iterable) or len(found := tuple(made)) != size:
        raise wrong_outcome("scan", f"the next state, a tuple of {size} values", made)
    return found


def _places(events: Events) -> np.ndarray:
    """The number of each event among those of its group at the same time."""
    places = np.arange(len(events.rows))
    return np.asarray(places - np.maximum.accumulate(np.where(events.ties, 0, places)))


def _from_start(fold: Fold, start: list[int]) -> OrderedLogic:
    def run(groups: Groups, wanted: np.ndarray) -> GroupOutput:
        made = fold(groups, tuple(np.full(groups.count, word) for word in start))
        return GroupOutput(made.rows, made.columns[1:], made.diffs)

    return run
