"""Traces from outside: readers that hold the history of an arrangement back, and cursors over what it was.

Frontiers are given as a time, or as what `lower`, `upper` and `frontier` of others are. Times are those of the scope in which
the index is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any
from weakref import finalize

import numpy as np

from dlog.arguments import whole
from dlog.dataclass import dataclass
from dlog.dataflow.outputs import Update, updates_of
from dlog.dataflow.rows import Row, rows_of, time_words, words_of
from dlog.dataflow.schema import Schema, plain
from dlog.dataflow.scopes import Scope
from dlog.engine.operators.arrange import Arranged
from dlog.engine.operators.delta import Delta, Moment, empty, together
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Reading
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope as EngineScope
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace import batch as engine
from dlog.engine.trace.cursor import Cursor as EngineCursor
from dlog.engine.trace.handle import TraceHandle
from dlog.grammar.diagnostics import Diagnostic, DlogError

FUEL = 1 << 16
"""Updates that are merged at a time, where nothing else is said."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the rows of an index are: in which scope, with which columns, of which so many are the key."""

    scope: Scope
    inner: EngineScope
    schema: Schema
    keys: int

    def frontier(self, given: Any) -> Antichain:
        """Raises DlogError for what is neither a time nor a frontier."""
        if isinstance(given, Antichain):
            return given
        return Antichain((time_words(given, self.inner.depth, self.inner.scale),))

    def updates(self, delta: Delta) -> list[Update]:
        return updates_of(self.scope, self.schema, delta)


class Cursor:
    """Updates of an arrangement, as they were when the cursor was made, by key. It iterates as pairs of a key and the
    key's updates: row, time, diff."""

    def __init__(self, layout: Layout, cursor: EngineCursor) -> None:
        self._layout, self._cursor = layout, cursor

    @property
    def since(self) -> Antichain:
        """From when on times are told apart."""
        return self._cursor.since

    @property
    def upper(self) -> Antichain:
        """What no update is in advance of, but for compaction."""
        return self._cursor.upper

    def updates(self) -> list[Update]:
        """All updates, in order of words and times."""
        return self._layout.updates(self._all())

    def seek_key(self, key: Any) -> list[Update]:
        """The updates of a key: a tuple, or of one column its value."""
        layout, cursor = self._layout, self._cursor
        words, _ = words_of(layout.schema.select(layout.schema.names[: layout.keys]), [key], layout.scope.graph.objects)
        found = Reading(self._layers, cursor.arity, cursor.depth).lookup(words, 1)
        return layout.updates(found.delta.consolidated())

    def counts(self, time: Any = None) -> dict[Row, int]:
        """How often each row is there: of all updates, or at a time."""
        layout = self._layout
        plain(layout.schema, "`counts`")
        if time is None:
            found = self._all()
            found = Delta(found.columns, np.zeros_like(found.times), found.diffs).consolidated()
        else:
            at = self._cursor.read_at(time_words(time, layout.inner.depth, layout.inner.scale))
            found = Delta(at.columns, at.times, at.diffs)
        rows = rows_of(layout.schema, found.columns, found.rows, layout.scope.graph.objects)
        return dict(zip(rows, found.diffs.tolist(), strict=True))

    def __iter__(self) -> Iterator[tuple[Row, list[Update]]]:
        for key, updates in groupby(self.updates(), lambda update: update[0][: self._layout.keys]):
            yield key, list(updates)

    @property
    def _layers(self) -> list[Any]:
        return [layer for batch in self._cursor.batches for layer in batch.layers]

    def _all(self) -> Delta:
        return together([empty(self._cursor.arity, self._cursor.depth), *map(Delta.of_layer, self._layers)]).consolidated()


class Batch:
    """The updates of an arrangement at times from `lower` on and not from `upper` on."""

    def __init__(self, layout: Layout, description: tuple[Antichain, Antichain], delta: Delta) -> None:
        self.lower, self.upper = description
        self._layout, self._delta = layout, delta

    @property
    def rows(self) -> int:
        """How many updates it has."""
        return self._delta.rows

    def cursor(self) -> Cursor:
        """A cursor over its updates alone."""
        delta, since = self._delta, Antichain.start(self._delta.depth)
        batch = engine.Batch.holding(self.lower, self.upper, delta.built(), since)
        return Cursor(self._layout, EngineCursor(delta.arity, delta.depth, (batch,), since, self.upper))

    def __repr__(self) -> str:
        return f"dlog.dataflow.Batch [{self.lower}, {self.upper}), {self.rows:,} updates"


class TraceReader:
    """A reader of an arrangement's history, which others cannot compact further than to its own two frontiers. They only move
    forward; where they stay, all that comes is kept, until the reader is dropped, or gone."""

    def __init__(self, layout: Layout, arranged: Arranged) -> None:
        self._layout, self._index = layout, arranged.source
        self._index.catch_up()
        spine = self._index.trace.spine
        handle = spine.handle()
        handle.set_physical_compaction(spine.merged_to)
        self._handle: TraceHandle | None = handle
        finalize(self, handle.abandon)

    @property
    def logical_compaction(self) -> Antichain:
        """From when on it has times told apart."""
        return self._open().frontier

    @property
    def physical_compaction(self) -> Antichain:
        """From when on it has batches kept apart."""
        return self._open().apart or self.upper

    @property
    def upper(self) -> Antichain:
        """The times whose updates are still to come."""
        self._index.catch_up()
        return self._index.trace.spine.upper

    def set_logical_compaction(self, frontier: Any) -> None:
        """Gives up to tell times apart that nothing from the frontier on does. (Once `advance_by`.)"""
        self._open().set_logical_compaction(self._layout.frontier(frontier))

    def set_physical_compaction(self, frontier: Any) -> None:
        """Gives up to ask for cursors through frontiers before this one: batches up to there may be merged. (Once
        `distinguish_since`.)"""
        self._open().set_physical_compaction(self._layout.frontier(frontier))

    def cursor(self) -> Cursor:
        """All updates there are."""
        self._check()
        return Cursor(self._layout, self._open().cursor())

    def cursor_through(self, frontier: Any) -> Cursor:
        """The updates at times that are not in advance of a frontier, where a batch ends that is kept apart."""
        self._check()
        return Cursor(self._layout, self._open().cursor_through(self._layout.frontier(frontier)))

    def exert(self, fuel: int = FUEL) -> bool:
        """Merges batches and compacts, about so many updates; whether there is more to do."""
        self._index.catch_up()
        return self._index.trace.exert(whole("fuel", fuel, 1, "a whole number, 1 or more"))

    def drop(self) -> None:
        """Ends reading. Cursors stay as they are."""
        if self._handle is not None:
            self._handle.drop()
            self._handle = None

    def _check(self) -> None:
        """Has the index take what has come. Raises DlogError once a batch has failed."""
        self._layout.scope.graph.scheduler.check()
        self._index.catch_up()

    def _open(self) -> TraceHandle:
        if self._handle is None:
            raise DlogError(Diagnostic("trace-dropped", "the trace has been dropped: nothing holds its history any more"))
        return self._handle

    def __enter__(self) -> TraceReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.drop()

    def __repr__(self) -> str:
        if self._handle is None:
            return "dlog.dataflow.TraceReader, dropped"
        return f"dlog.dataflow.TraceReader since {self.logical_compaction}, batches from {self.physical_compaction} on"


class InspectBatches(Operator):
    """Shows the batches of an arrangement as they come."""

    def __init__(self, scheduler: Scheduler, scope: EngineScope, arranged: Arranged, layout: Layout, show: Any) -> None:
        super().__init__(scheduler, scope)
        self._layout, self._show = layout, show
        self._upper = Antichain.start(scope.depth)
        Arranged(arranged.source).feed(self, 0)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is not None:
            start = Antichain((self.rounds.start(self.scope.depth - 1),))
            lower = start if self._upper.precedes(start) else self._upper
            self._upper = self.rounds.after(moment)
            self._show(Batch(self._layout, (lower, self._upper), delta))
