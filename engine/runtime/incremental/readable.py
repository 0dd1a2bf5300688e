"""What others see of an engine over rounds: rows, and changes of the last commit, as they are when no batch runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from dlog.engine.ir.rules import Program
from dlog.engine.rounds_engine import PlainRounds
from dlog.engine.runtime.incremental.access import ReadersWriterLock
from dlog.engine.runtime.incremental.batches.changes import no_updates
from dlog.engine.runtime.incremental.batches.last_commit import LastCommit
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.reading import ranks_of, rows_of, table_of
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError


class ReadableRounds(PlainRounds):
    """An engine with a dataflow, which others read between batches. A commit has the lock of `_access` while it changes any of
    this."""

    def __init__(self, program: Program, round: int, access: ReadersWriterLock) -> None:
        self.program = program
        self.round = round
        self._places = {name: number for number, name in enumerate(program.relations)}
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
            with access.lock:  # `reading`, without a generator, which takes as long as a small round
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
        with self._reader_access() as flow:
            if flow is None:
                return ()
            if flow.running or self._last.is_forgotten or self._lending:
                return self.program.relations
            found = self._last.touched(flow)
        return sorted(found.intersection(self._places), key=self._places.__getitem__)

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
