"""The past of a relation in a spine: the rival of `dlog.engine.trace.changes` in `history_spine`.

All rows are in it, with the rounds in which they came and went, and a reader that keeps the rounds of the window apart. A past
round is read from it alone; one key is sought in its layers. As there, changes wait until there are enough of them for a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.changes import MAX_BATCH_ROWS, MAX_WAITING, none
from dlog.engine.trace.cursor import TimedUpdates
from dlog.engine.trace.layer import Layer, build
from dlog.engine.trace.spine import Spine
from dlog.engine.trace.values import Sought, Values
from dlog.engine.trace.waiting import WaitingChanges
from dlog.engine.values.table import Table, from_words
from dlog.engine.values.updates import Updates
from dlog.sessions.follow import history


@contextmanager
def spines() -> Iterator[None]:
    """Sessions that are opened now have their past in spines, if they have a history from their first round on."""
    before = history.ChangeTrace
    history.ChangeTrace = SpineTrace  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        history.ChangeTrace = before  # type: ignore[misc]


class SpineTrace:
    """What a session's history asks of a `ChangeTrace`, of a spine."""

    def __init__(self, arity: int, begin: int) -> None:
        self.arity, self.begin, self.last = arity, begin, begin
        self._spine = Spine(arity, 1)
        self._reader = self._spine.handle()
        self._waiting = WaitingChanges(arity)

    @staticmethod
    def of(arity: int, batches: Sequence[Batch]) -> SpineTrace:
        found = SpineTrace(arity, 0)
        for batch in batches:
            found._spine.insert(batch)
        found._reader.set_logical_compaction(batches[0].description.since)
        found.last = batches[-1].description.upper.elements[0][0] - 1
        return found

    @property
    def rows(self) -> int:
        return self._spine.rows + self._waiting.rows

    @property
    def batches(self) -> tuple[Batch, ...]:
        self._seal()
        return self._spine.batches

    @property
    def nbytes(self) -> int:
        return self._spine.nbytes + self._waiting.nbytes

    # ------------------------------------------------------------------------------------------------------------- writing

    def note(self, updates: Updates, oldest: int, tidies: bool = True) -> None:
        if updates.last > self.last:
            self.last = updates.last
            self._waiting.add(updates)
            if tidies:
                self.tidy(oldest)

    def tidy(self, oldest: int) -> None:
        if len(self._waiting.parts) >= MAX_WAITING or self._waiting.rows >= MAX_BATCH_ROWS:
            self.forget(oldest)
            self._seal()

    def forget(self, oldest: int) -> None:
        if oldest > self.begin:
            self.begin = oldest
            self._reader.set_logical_compaction(Antichain.at(oldest))

    def _seal(self) -> None:
        if self._waiting.parts:
            found = self._waiting.take()
            lower, upper = self._spine.upper, Antichain.at(found.last + 1)
            self._spine.insert(Batch.of(lower, upper, found.columns, found.rounds[None], found.diffs, pages=self._spine.pages))

    def is_read(self, last: int) -> bool:
        return False

    # ------------------------------------------------------------------------------------------------------------- reading

    def last_needed(self, round: int, last: int) -> int:
        return round

    def table(self, round: int, now: Callable[[], Table], last: int) -> Table:
        if round == last:
            return now()
        self._seal()
        found = self._spine.upper.elements[0][0] - 1
        updates = self._reader.read_at((min(round, found),))
        return self._table(updates.columns, now)

    def selected(self, values: Values, round: int, now: Callable[[], Table], last: int) -> Table:
        if round == last:
            return now()
        self._seal()
        parts, sought = [], Sought(values)
        for layer in (layer for batch in self._spine.batches for layer in batch.layers):
            places = sought.places(layer, -1, round)
            if len(places):
                parts.append((*layer.columns(places), layer.diffs(places)))
        *columns, diffs = map(np.concatenate, zip(*parts, strict=True)) if parts else np.empty((self.arity + 1, 0), np.int64)
        net = build(columns, (0,), diffs) if len(diffs) else None
        return self._table(np.empty((self.arity, 0), np.int64) if net is None else net.columns(), now)

    def _table(self, columns: Sequence[np.ndarray], now: Callable[[], Table]) -> Table:
        kinds = self._kinds(now)
        return Table(kinds, tuple(from_words(column, kind) for column, kind in zip(columns, kinds, strict=True)), fresh=True)

    def _kinds(self, now: Callable[[], Table]):  # type: ignore[no-untyped-def]
        """Those of the columns; found once, from the rows of now."""
        if not hasattr(self, "_found_kinds"):
            self._found_kinds = now().kinds
        return self._found_kinds

    def between(self, after: int, upto: int) -> Updates:
        found = self._between(after, upto)
        return Updates(found.columns, found.diffs, found.times[0]) if found.rows else none(self.arity)

    def net(self, after: int, upto: int) -> Layer | None:
        found = self._between(after, upto)
        return build(found.columns, (0,), found.diffs) if found.rows else None

    def _between(self, after: int, upto: int) -> TimedUpdates:
        if upto >= self._spine.upper.elements[0][0]:
            self._seal()
        end = min(upto + 1, self._spine.upper.elements[0][0])
        return self._reader.updates_between(Antichain.at(after + 1), Antichain.at(end))
