"""The exchange of rows between workers: they leave by owner and arrive with the receiver's ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np

from dlog.dataclass import dataclass, immutable
from dlog.engine.cluster.dictionary import Definitions, Dictionary
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.static.partition import lay_apart
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, SELF, Heavy, Place
from dlog.engine.values.array_pool import DoubleBuffer

Columns = tuple[np.ndarray, ...]
MAX_ROWS_AS_BYTES = 64
"""Rows up to which a message has their columns as bytes."""


@immutable
class Rows:
    """Rows as raw columns; `height` says how many where there is no column."""

    columns: Columns
    height: int

    def __reduce__(self) -> tuple[Callable[..., Rows], tuple[Any, int]]:
        """As for `ColumnType`; columns of few rows are bytes, which take half the time of arrays."""
        if self.height > MAX_ROWS_AS_BYTES:
            return Rows, (self.columns, self.height)
        return _few_rows, ([(c.dtype.str, c.tobytes()) for c in self.columns], self.height)

    def take(self, places: np.ndarray) -> Rows:
        return Rows(tuple(c[places] for c in self.columns), len(places))


def _few_rows(columns: Sequence[tuple[str, bytes]], height: int) -> Rows:
    return Rows(tuple([np.frombuffer(bytearray(content), dtype) for dtype, content in columns]), height)


@immutable
class OutgoingRows:
    """Rows on the way: what they are called, the types of their columns, where they go."""

    name: str
    types: tuple[ColumnType, ...]
    place: Place
    rows: Rows
    heavy: Heavy = ()
    """Rows with these values in the place's column go to all workers if they are `shared`, else to one that all of their
    columns say."""
    shared: bool = False
    buffer: DoubleBuffer | None = None
    """Where rows are written that are cut by owner."""


@dataclass
class ExchangeMessage:
    """A step's message from one worker to another."""

    rows_sent: int
    """Rows that the sender has sent in this step, to anyone."""
    rows: list[tuple[str, tuple[ColumnType, ...], Rows]] = field(default_factory=list)
    definitions: Definitions | None = None
    note: object = None

    def __reduce__(self) -> tuple[type[ExchangeMessage], tuple[object, ...]]:
        """As for `ColumnType`."""
        return ExchangeMessage, (self.rows_sent, self.rows, self.definitions, self.note)


class RowExchange:
    """Sends batches of outgoing rows; all workers call `swap` together."""

    def __init__(self, worker_group: WorkerGroup, dictionary: Dictionary) -> None:
        self.worker_group = worker_group
        self.dictionary = dictionary
        self.rows_sent = 0
        """Rows that went to another worker, so far."""

    def swap(self, batches: Sequence[OutgoingRows]) -> tuple[dict[str, Rows], bool]:
        """Hands everything over. Returns what arrived by name, and whether any worker sent anything."""
        arrived, any_sent = self.swap_parts(batches)
        return {name: joined(parts) for name, parts in arrived.items()}, any_sent

    def swap_parts(self, batches: Sequence[OutgoingRows]) -> tuple[dict[str, list[Rows]], bool]:
        """The same; what arrived in one part for each worker that sent any."""
        received = self._exchange(batches, None)
        return self._unpack(received), any(message.rows_sent for message in received)

    def swap_noting(self, batches: Sequence[OutgoingRows], note: object) -> tuple[dict[str, Rows], list[Any]]:
        """Hands everything over, with a note to all. Returns what arrived by name, and the notes of all workers by rank."""
        received = self._exchange(batches, note)
        arrived = {name: joined(parts) for name, parts in self._unpack(received).items()}
        return arrived, [message.note for message in received]

    def _exchange(self, batches: Sequence[OutgoingRows], note: object) -> list[ExchangeMessage]:
        sent = sum(c.rows.height for c in batches)
        messages = [ExchangeMessage(sent, note=note) for _ in range(self.worker_group.size)]
        for outgoing in batches:
            for worker, rows in self._parts(outgoing):
                if rows.height:
                    messages[worker].rows.append((outgoing.name, outgoing.types, rows))
        for worker, message in enumerate(messages):
            if worker != self.worker_group.rank and message.rows:
                self._define(worker, message)
        return self.worker_group.swap(messages)

    def _parts(self, outgoing: OutgoingRows) -> list[tuple[int, Rows]]:
        rows, worker_group = outgoing.rows, self.worker_group
        match outgoing.place:
            case _ if not rows.height:
                return []
            case place if place == SELF or worker_group.size == 1:
                return [(worker_group.rank, rows)]
            case place if place == ROOT:
                return [(0, rows)]
            case place if place == EVERYWHERE:
                return [(worker, rows) for worker in range(worker_group.size)]
            case column:
                return self._cut(outgoing, column)

    def _cut(self, outgoing: OutgoingRows, column: int) -> list[tuple[int, Rows]]:
        """Rows cut by the owners of a column's values, heavy ones apart."""
        rows, types, size = outgoing.rows, outgoing.types, self.worker_group.size
        heavy = heavy_rows(outgoing, column, self.dictionary)
        if not len(heavy):
            return list(enumerate(cut(rows, types, column, self.dictionary, size, outgoing.buffer)))
        light = np.ones(rows.height, np.bool_)
        light[heavy] = False
        parts = list(enumerate(cut(rows.take(np.flatnonzero(light)), types, column, self.dictionary, size)))
        chosen = rows.take(heavy)
        if outgoing.shared:
            return parts + [(worker, chosen) for worker in range(size)]
        owners = self.dictionary.owners_of_rows(types, chosen.columns, size)
        return parts + [(worker, chosen.take(np.flatnonzero(owners == worker))) for worker in range(size)]

    def _define(self, worker: int, message: ExchangeMessage) -> None:
        columns = [pair for _, types, rows in message.rows for pair in zip(types, rows.columns, strict=True)]
        self.rows_sent += sum(rows.height for _, _, rows in message.rows)
        if any(type.kind in (Kind.SYMBOL, Kind.RECORD) for type, _ in columns):
            message.definitions = self.dictionary.define(worker, columns)

    def _unpack(self, messages: Sequence[ExchangeMessage]) -> dict[str, list[Rows]]:
        arrived: dict[str, list[Rows]] = {}
        for worker, message in enumerate(messages):
            if message.definitions is not None:
                self.dictionary.learn(worker, message.definitions)
            for name, types, rows in message.rows:
                if worker != self.worker_group.rank:
                    columns = zip(types, rows.columns, strict=True)
                    rows = Rows(tuple(self.dictionary.translate(worker, t, v) for t, v in columns), rows.height)
                arrived.setdefault(name, []).append(rows)
        return arrived


def cut(
    rows: Rows,
    types: Sequence[ColumnType],
    column: int,
    dictionary: Dictionary,
    workers: int,
    buffer: DoubleBuffer | None = None,
) -> list[Rows]:
    """The rows of each worker, by who owns the value in a column, in memory whose turn it is or new one."""
    owners = dictionary.owners(types[column], rows.columns[column], workers)
    sources = [np.ascontiguousarray(c) for c in rows.columns]
    targets = (buffer or DoubleBuffer()).columns([c.dtype for c in sources], rows.height)
    starts, at = np.zeros(workers + 1, np.int64), np.empty(workers, np.int64)
    lay_apart(owners, _addresses(sources), np.array([c.itemsize for c in sources]), _addresses(targets), starts, at)
    return [Rows(tuple(c[a:b] for c in targets), int(b - a)) for a, b in pairwise(starts)]


def _addresses(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([c.ctypes.data for c in columns], np.int64)


def heavy_rows(outgoing: OutgoingRows, column: int, dictionary: Dictionary) -> np.ndarray:
    """The places of the rows that are heavy."""
    if not outgoing.heavy:
        return np.empty(0, np.int64)
    hashes = dictionary.hashes(outgoing.types[column], outgoing.rows.columns[column])
    return np.flatnonzero(np.isin(hashes, np.array(outgoing.heavy, np.uint64)))


def joined(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    columns = tuple(np.concatenate(c) for c in zip(*(p.columns for p in parts), strict=True))
    return Rows(columns, sum(p.height for p in parts))


def empty(types: Sequence[ColumnType]) -> Rows:
    return Rows(tuple(np.empty(0, np.int64) for _ in types), 0)
