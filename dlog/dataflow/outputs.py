"""What can be read of a dataflow from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.dataflow.algebra import Group
from dlog.dataflow.components import Extreme, Folded
from dlog.dataflow.exact import rounded_sums
from dlog.dataflow.folds import Fold
from dlog.dataflow.kinds import Objects, comparable, decode
from dlog.dataflow.rows import Row, rows_of, shown_time, time_words
from dlog.dataflow.schema import Schema
from dlog.dataflow.scopes import Scope
from dlog.display.preview import Preview
from dlog.engine.operators.delta import Delta, run_starts
from dlog.engine.operators.sinks import Capture
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.overflow import check_runs
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

Update = tuple[Row, Any, Any]
"""A row, a time as `shown_time` has it, and a diff: an integer, or a tuple of its components."""


def updates_of(scope: Scope, schema: Schema, delta: Delta) -> list[Update]:
    """A consolidated delta as tuples."""
    diffs: list[Any] = delta.diffs.tolist()
    if schema.diffs:
        delta, diffs = _with_tuples(schema, delta, scope.graph.objects)
    rows = rows_of(schema, delta.columns, delta.rows, scope.graph.objects)
    times = [shown_time(tuple(time), scope.inner.scale) for time in delta.times.T.tolist()]
    return list(zip(rows, times, diffs, strict=True))


def _with_tuples(schema: Schema, delta: Delta, objects: Objects) -> tuple[Delta, list[Any]]:
    """An update for all parts of each row and time, and the tuples of the sums of each component; None where no
    value of an extreme, or of a semigroup, comes."""
    named = delta.columns[: len(schema.names)]
    delta = delta.only(np.lexsort([*delta.times[::-1], *named[::-1]]))
    *columns, components, values = delta.columns
    starts, sums = run_starts([*columns, *delta.times], delta.rows), []
    for number, component in enumerate(schema.diffs):
        ours = components == number
        if isinstance(component, Extreme):
            sums.append(_best(component, values, ours & (delta.diffs > 0), starts, objects))
        elif isinstance(component, Folded):
            sums.append(_folded(Fold(component, objects), values, np.where(ours, delta.diffs, 0), starts))
        elif component is float:
            rows = np.flatnonzero(ours)
            owners = np.searchsorted(starts, rows, side="right") - 1
            sums.append(rounded_sums(owners, values[rows], delta.diffs[rows], len(starts)).tolist())
        else:
            sums.append(np.add.reduceat(np.where(ours, delta.diffs, 0), starts).tolist())
    return delta.only(starts), list(zip(*sums, strict=True))


def _best(component: Extreme, values: np.ndarray, there: np.ndarray, starts: np.ndarray, objects: Objects) -> list[Any]:
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


def _folded(fold: Fold, values: np.ndarray, diffs: np.ndarray, starts: np.ndarray) -> list[Any]:
    """The elements that the values of each run of parts come to, which are of this component where their diff is not zero: of
    a semigroup by those that come, None where there is none."""
    algebra = fold.component.algebra
    zero = algebra.zero.tolist()[0] if isinstance(algebra, Group) else None
    rows = np.flatnonzero(diffs if isinstance(algebra, Group) else diffs > 0)
    owners, sums = fold.by_group(np.searchsorted(starts, rows, side="right") - 1, values[rows], diffs[rows])
    found = [zero] * len(starts)
    for owner, element in zip(owners.tolist(), sums.tolist(), strict=True):
        found[owner] = element
    return found


class Captured(Tabular):
    """A collection to be read after each batch: its rows as of the last round, and with history at any time. Raises DlogError
    once a batch has failed."""

    def __init__(self, scope: Scope, schema: Schema, capture: Capture) -> None:
        self._scope, self._schema, self._kept = scope, schema, capture

    @property
    def _capture(self) -> Capture:
        self._scope.graph.scheduler.check()
        return self._kept

    def counts(self, time: Any = None) -> dict[Row, int]:
        """How often each row is there, after the last round or at a time."""
        delta = self._at(time)
        rows = rows_of(self._schema, delta.columns, delta.rows, self._scope.graph.objects)
        return dict(zip(rows, delta.diffs.tolist(), strict=True))

    def updates(self) -> list[Update]:
        """All updates, in order of their words; with history, all there have been."""
        return updates_of(self._scope, self._schema, self._capture.updates())

    def _at(self, time: Any = None) -> Delta:
        """At a time, by default at the last one that is complete, all iterations included."""
        inner = self._scope.inner
        if time is not None:
            return self._capture.read_at(time_words(time, inner.depth, inner.scale))
        return self._capture.latest()

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, each as often as it is there. Raises DlogError for values that Arrow does not know."""
        import pyarrow as pa

        columns, found = zip(self._schema.names, self._schema.kinds, self._repeated().columns, strict=False), {}
        for name, kind, words in columns:
            try:
                found[name] = pa.array(decode(kind, words, self._scope.graph.objects))
            except pa.ArrowException as error:
                note = "iterating over it, and `counts()`, give values as they are"
                message = f"Arrow does not know the values of the column `{name}`: {error}"
                raise DlogError(Diagnostic("bad-rows", message, notes=(note,))) from None
        return pa.table(found)

    def __iter__(self) -> Iterator[Row]:
        """The rows as tuples of the values that they have, each as often as it is there."""
        chosen = self._repeated()
        return iter(rows_of(self._schema, chosen.columns, chosen.rows, self._scope.graph.objects))

    def _repeated(self) -> Delta:
        """The rows, each as often as it is there."""
        delta = self._at()
        return delta.only(np.repeat(np.arange(delta.rows), np.maximum(delta.diffs, 0)))

    def __len__(self) -> int:
        diffs = self._at().diffs.clip(0)
        check_runs(diffs, np.zeros(min(len(diffs), 1), np.int64), "the rows that are there")
        return int(diffs.sum())

    def _preview(self) -> Preview:
        try:
            return super()._preview()
        except DlogError as error:
            return Preview(f"dlog.dataflow.Captured, not to be read: {error.diagnostics[0].message}")

    def _title(self) -> str:
        rows = len(self)
        return f"dlog.dataflow.Captured ({', '.join(self._schema.names)}), {rows:,} {'row' if rows == 1 else 'rows'}"


class Probe:
    """How far a collection has come."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @property
    def frontier(self) -> Antichain:
        """The times at which it may still change."""
        self._scope.graph.scheduler.check()
        return self._reached()

    def _reached(self) -> Antichain:
        rounds = self._scope.graph.scheduler.rounds.scaled(self._scope.inner.scale)
        return Antichain((rounds.end(self._scope.inner.depth - 1),))

    def __repr__(self) -> str:
        return f"dlog.dataflow.Probe, frontier {self._reached()}"

    def less_than(self, time: Any) -> bool:
        """Whether it may still change before a time."""
        words = time_words(time, self._scope.inner.depth, self._scope.inner.scale)
        return any(each != words and all(a <= b for a, b in zip(each, words, strict=True)) for each in self.frontier)


Show = Callable[[Row, Any, Any], object]
