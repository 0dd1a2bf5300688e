"""What others see of an engine over rounds: rows, and changes of the last commit, as they are when no batch runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial

import numpy as np

from dlog.engine.ir.rules import Program
from dlog.engine.rounds_engine import PlainRounds
from dlog.engine.runtime.incremental.access import ReadersWriterLock
from dlog.engine.runtime.incremental.batches.changes import no_updates
from dlog.engine.runtime.incremental.batches.journal import Journal
from dlog.engine.runtime.incremental.batches.last_commit import LastCommit
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.reading import ranks_of, rows_of, table_of
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError

TOUCHED_SETS = 64
"""Sets of relations that commits have touched of which the order is kept: those of small commits are few."""


class ReadableRounds(PlainRounds):
    """An engine with a dataflow, which others read between batches. A commit has the lock of `_access` while it changes any of
    this."""

    _journal: Journal

    def __init__(self, program: Program, round: int, access: ReadersWriterLock) -> None:
        self.program = program
        self.round = round
        self._in_order = lru_cache(TOUCHED_SETS)(partial(_in_order, {name: n for n, name in enumerate(program.relations)}))
        self._flow: Dataflow | None = None
        self._access = access
        self._last = LastCommit(round + 1)
        self._lending = False
        """Whether another engine takes over at this moment."""
        self._owing: Callable[[], None] | None = None
        """How to go back to the last round, where a commit failed and memory did not suffice for that, either."""

    def _go_back(self, way: Callable[[], None]) -> None:
        """Back to the last round; if that fails, nothing is read or changed before it is done."""
        self._owing, self._last.is_undone = way, True
        way()
        self._owing, self._last.is_undone = None, False

    def changes(self, relation: str) -> Updates:
        access = self._access
        access.waiting += 1
        try:
            with access.lock:  # `reading`, without a generator, which takes as long as a small round; so does `touched`
                return self._changes(self._settled(), relation)
        finally:
            access.waiting -= 1

    def _changes(self, flow: Dataflow | None, relation: str) -> Updates:
        if flow is None:
            return no_updates(self.program.relations[relation].arity)
        collection = flow.collections[relation]
        if relation in self._last.new_relations:
            return self._last.changes(relation, collection, self.round)
        if flow.running or self._last.is_forgotten or self._lending or collection.status is not flow.status:
            message = f"the changes of round {self.round} are no longer kept: the next commit is running"
            raise DlogError(Diagnostic("changes-gone", message, notes=("subscribe to a relation to see every round",)))
        return self._last.changes(relation, collection, self.round)

    @property
    def touched(self) -> Iterable[str]:
        access = self._access
        access.waiting += 1
        try:
            with access.lock:
                flow = self._settled()
                if flow is None:
                    return ()
                if flow.running or self._last.is_forgotten or self._lending:
                    return self.program.relations
                return self._in_order(self._last.touched(flow))
        finally:
            access.waiting -= 1

    def journal(self) -> int | None:
        access = self._access
        access.waiting += 1
        try:
            with access.lock:
                flow = self._settled()
                if flow is None or flow.running or self._lending or self._last.is_forgotten or not self._last.is_plain:
                    return None
                return self._journal.append(flow, self._last.first)
        finally:
            access.waiting -= 1

    def take_journal(self) -> dict[str, Updates]:
        access = self._access
        access.waiting += 1
        try:
            with access.lock:
                return self._journal.take()
        finally:
            access.waiting -= 1

    def table(self, relation: str) -> Table:
        return self._read(lambda flow: flow.collections[relation], relation)

    def external(self, relation: str) -> Table:
        return self._read(lambda flow: flow.input(relation), relation)

    def _read(self, find: Callable[[Dataflow], Collection | None], relation: str) -> Table:
        with self._reader_access() as flow:
            found = None if flow is None else find(flow)
            table = None if found is None else table_of(found)
        if table is not None:
            return table
        kinds = self.program.relations[relation].kinds
        return Table(kinds, tuple(np.empty(0, np.int64) for _ in kinds), 0)

    def rows(self, relation: str) -> int:
        with self._reader_access() as flow:
            return 0 if flow is None else rows_of(flow.collections[relation])

    def ranks(self, relation: str) -> np.ndarray:
        with self._reader_access() as flow:
            return np.empty(0, np.int32) if flow is None else ranks_of(flow.collections[relation])

    @contextmanager
    def _reader_access(self) -> Iterator[Dataflow | None]:
        """A moment at which no native work is under way."""
        with self._access.reading():
            yield self._settled()

    def _settled(self) -> Dataflow | None:
        """The dataflow at a round that is over, for who has the lock."""
        if self._owing is not None:
            self._go_back(self._owing)
        return self._flow


def _in_order(places: Mapping[str, int], names: tuple[str, ...]) -> tuple[str, ...]:
    """Those among the names that have places, in order of these."""
    return tuple(sorted(places.keys() & names, key=places.__getitem__))
