"""Derivations on their way from one worker to another, with their rounds, iterations and diffs.

An outbox takes what a path derives in place of the relation of its head; an inbox feeds what arrives to that relation, as
derivations like those that are made here. Neither keeps anything from one exchange to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.cluster.exchange import OutgoingRows, Rows
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind, Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Operation
from dlog.engine.kernels.incremental.loop import batches
from dlog.engine.kernels.incremental.store import lists
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.places import Place
from dlog.engine.runtime.lowering.lower_rounds import DIFF, ITERATION, TIME, RoundLowering
from dlog.engine.runtime.lowering.lowered import LoweredPath, Tables
from dlog.engine.runtime.lowering.round_storage import RoundStorage
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import Role
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct, view

WHEN = (ColumnType(Kind.NUMBER),) * 2
"""What travels with a row: its time (the round of the batch, and the iteration in the lower half), and its diff."""


class Outbox:
    """Collects the derivations of one relation. `place` is where they go, `control` the control block of who derives
    them."""

    def __init__(self, name: str, types: Sequence[ColumnType], place: Place, memory: Memory, control: Struct) -> None:
        self.name = name
        self.types = (*types, *WHEN)
        self.place = place
        self.control = control
        kinds = (*(t.kind for t in types), Kind.NUMBER, Kind.NUMBER)
        self.collection = Collection(f"{name} sent", kinds, Role.TOTAL, memory)
        self.collection.quieten()
        self.collection.struct[L.collection.in_batch] = 1  # no batch settles it

    def empty(self) -> OutgoingRows:
        """Takes out what was derived since the last time; derivations of a row at one time that make up for each other go
        nowhere."""
        derived = self.collection.struct.keep[L.collection.derivation_derived]
        assert isinstance(derived, Struct)
        count = derived[L.items.count]
        listed = view(derived[L.items.data], count * L.change.size, np.int64) if count else np.empty(0, np.int64)
        listed = listed.reshape(count, L.change.size)
        rows, times, diffs = summed(listed[:, L.change.row], listed[:, L.change.time], listed[:, L.change.diff])
        *columns, iteration, advance = self.collection.raw_columns(rows)
        when = (times & ~np.int64(L.ROUND - 1)) + iteration + advance
        self._forget(derived)
        pairs = zip(self.types, columns, strict=False)
        narrow = (c.astype(np.int32) if t.kind in (Kind.SYMBOL, Kind.RECORD) else c for t, c in pairs)
        return OutgoingRows(self.name, self.types, self.place, Rows((*narrow, when, diffs), len(rows)))

    def _forget(self, derived: Struct) -> None:
        control = self.control.address
        batches.settle(control, self.collection.address)
        self.collection.struct[L.collection.in_batch] = 1
        lists.list_empty(control, derived.address)

    def free(self) -> None:
        self.collection.free()


def summed(rows: np.ndarray, times: np.ndarray, diffs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The diffs of each row at each time added up, without those that are 0."""
    if len(rows) < 2:
        return rows.copy(), times.copy(), diffs.copy()
    order = np.lexsort((times, rows))
    rows, times = rows[order], times[order]
    first = np.append(True, (rows[1:] != rows[:-1]) | (times[1:] != times[:-1]))
    starts = np.flatnonzero(first)
    totals = np.add.reduceat(diffs[order], starts)
    kept = starts[totals != 0]
    return rows[kept], times[kept], totals[totals != 0]


class Inbox:
    """Rows that arrived, as lowering and paths see a collection: its columns, and a log of their times and diffs."""

    def __init__(self, name: str, kinds: Sequence[Kind]) -> None:
        self.name = f"{name} received"
        self.target = name
        self.kinds = tuple(kinds)
        self.struct = Struct(L.collection.size)
        self._columns = Struct(L.column.size * max(len(kinds), 1))
        self._log = Struct(L.items.size)
        self.struct[L.relation.arity] = len(kinds)
        self.struct.point(L.relation.columns, self._columns)
        self.struct.point(L.collection.log, self._log)
        for c in range(len(kinds)):
            self._columns[c * L.column.size + L.column.width] = 8

    @property
    def address(self) -> int:
        return self.struct.address

    def path(self) -> nodes.Path:
        """Derives what arrived."""
        columns = range(len(self.kinds))
        seed = nodes.Scan(self.name, tuple((c, c) for c in columns), changes=True)
        return nodes.Path(-1, seed, (), nodes.Insert(self.target, tuple(Variable(c) for c in columns)), len(self.kinds))

    def hold(self, rows: Rows) -> None:
        """Takes rows with their times and diffs in place of those before."""
        *columns, times, diffs = (np.ascontiguousarray(c, np.int64) for c in rows.columns)
        changes = np.zeros((rows.height, L.change.size), np.int64)
        changes[:, L.change.row] = np.arange(rows.height)
        changes[:, L.change.time], changes[:, L.change.diff] = times, diffs
        self._arrays = (columns, changes)  # as long as the kernels may read them
        for c, column in enumerate(columns):
            self._columns[c * L.column.size + L.column.data] = int(column.ctypes.data)
        self.struct[L.relation.rows] = rows.height
        self._log[L.items.data], self._log[L.items.count] = int(changes.ctypes.data), rows.height


class SendingLowering(RoundLowering):
    """Lowers a path whose derivations go to an outbox."""

    def __init__(self, path: nodes.Path, outbox: Outbox, storage: RoundStorage, tables: Tables) -> None:
        super().__init__(path, storage, tables)
        self.outbox = outbox

    def _sink(self) -> None:
        sink = self.path.sink
        assert isinstance(sink, nodes.Insert)
        values = [self.terms.register(t) for t in sink.terms]
        self._delay(sink.relation, values)
        iteration = self.code.registers[ITERATION] if ITERATION in self.code.registers else self.tables.constant(0)
        advance = self.tables.constant(self.path.advance)
        tracked = (self.code.registers[TIME], -1, self.code.registers[DIFF], 0)
        self.target = self.outbox.collection.struct.address
        self.code.emit(Operation.DERIVE, self.target, *tracked, *values, iteration, advance)


class Channel:
    """The way of one relation's derivations to their owners, on one worker."""

    def __init__(self, outbox: Outbox, inbox: Inbox) -> None:
        self.outbox = outbox
        self.inbox = inbox
        self.delivery: LoweredPath | None = None
