"""The post between workers: rows leave by owner and arrive with the receiver's ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from dlog.engine.cluster.dictionary import Definitions, Dictionary
from dlog.engine.cluster.worker_group import Gang
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.static.partition import lay_apart
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, SELF, Heavy, Place
from dlog.engine.values.loans import Turns

Columns = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as raw columns; `height` says how many where there is no column."""

    columns: Columns
    height: int

    def take(self, places: np.ndarray) -> Rows:
        return Rows(tuple(c[places] for c in self.columns), len(places))


@dataclass(frozen=True, slots=True)
class Consignment:
    """Rows on the way: what they are called, the types of their columns, where they go."""

    name: str
    types: tuple[ColumnType, ...]
    place: Place
    rows: Rows
    heavy: Heavy = ()
    """Rows with these values in the place's column go to all workers if they are `shared`, else to one that all of their
    columns say."""
    shared: bool = False
    turns: Turns | None = None
    """Where rows are written that are cut by owner."""


@dataclass
class Parcel:
    """A step's message from one worker to another."""

    sent: int
    """Rows that the sender has sent in this step, to anyone."""
    rows: list[tuple[str, tuple[ColumnType, ...], Rows]] = field(default_factory=list)
    definitions: Definitions | None = None
    note: object = None


class Post:
    """Sends consignments; all workers call `swap` together."""

    def __init__(self, gang: Gang, dictionary: Dictionary) -> None:
        self.gang = gang
        self.dictionary = dictionary
        self.rows_sent = 0
        """Rows that went to another worker, so far."""

    def swap(self, consignments: Sequence[Consignment]) -> tuple[dict[str, Rows], bool]:
        """Hands everything over. Returns what arrived by name, and whether any worker sent anything."""
        arrived, any_sent = self.swap_parts(consignments)
        return {name: joined(parts) for name, parts in arrived.items()}, any_sent

    def swap_parts(self, consignments: Sequence[Consignment]) -> tuple[dict[str, list[Rows]], bool]:
        """The same; what arrived in one part for each worker that sent any."""
        received = self._exchange(consignments, None)
        return self._unpack(received), any(parcel.sent for parcel in received)

    def swap_noting(self, consignments: Sequence[Consignment], note: object) -> tuple[dict[str, Rows], list[Any]]:
        """Hands everything over, with a note to all. Returns what arrived by name, and the notes of all workers by rank."""
        received = self._exchange(consignments, note)
        arrived = {name: joined(parts) for name, parts in self._unpack(received).items()}
        return arrived, [parcel.note for parcel in received]

    def _exchange(self, consignments: Sequence[Consignment], note: object) -> list[Parcel]:
        sent = sum(c.rows.height for c in consignments)
        parcels = [Parcel(sent, note=note) for _ in range(self.gang.size)]
        for consignment in consignments:
            for worker, rows in self._parts(consignment):
                if rows.height:
                    parcels[worker].rows.append((consignment.name, consignment.types, rows))
        for worker, parcel in enumerate(parcels):
            if worker != self.gang.rank:
                self._define(worker, parcel)
        return self.gang.swap(parcels)

    def _parts(self, consignment: Consignment) -> list[tuple[int, Rows]]:
        rows, gang = consignment.rows, self.gang
        match consignment.place:
            case _ if not rows.height:
                return []
            case place if place == SELF or gang.size == 1:
                return [(gang.rank, rows)]
            case place if place == ROOT:
                return [(0, rows)]
            case place if place == EVERYWHERE:
                return [(worker, rows) for worker in range(gang.size)]
            case column:
                return self._cut(consignment, column)

    def _cut(self, consignment: Consignment, column: int) -> list[tuple[int, Rows]]:
        """By the owners of a column's values, heavy ones apart."""
        rows, types, size = consignment.rows, consignment.types, self.gang.size
        heavy = heavy_rows(consignment, column, self.dictionary)
        if not len(heavy):
            return list(enumerate(cut(rows, types, column, self.dictionary, size, consignment.turns)))
        light = np.ones(rows.height, np.bool_)
        light[heavy] = False
        parts = list(enumerate(cut(rows.take(np.flatnonzero(light)), types, column, self.dictionary, size)))
        chosen = rows.take(heavy)
        if consignment.shared:
            return parts + [(worker, chosen) for worker in range(size)]
        owners = self.dictionary.owners_of_rows(types, chosen.columns, size)
        return parts + [(worker, chosen.take(np.flatnonzero(owners == worker))) for worker in range(size)]

    def _define(self, worker: int, parcel: Parcel) -> None:
        columns = [pair for _, types, rows in parcel.rows for pair in zip(types, rows.columns, strict=True)]
        self.rows_sent += sum(rows.height for _, _, rows in parcel.rows)
        if any(type.kind in (Kind.SYMBOL, Kind.RECORD) for type, _ in columns):
            parcel.definitions = self.dictionary.define(worker, columns)

    def _unpack(self, parcels: Sequence[Parcel]) -> dict[str, list[Rows]]:
        arrived: dict[str, list[Rows]] = {}
        for worker, parcel in enumerate(parcels):
            if parcel.definitions is not None:
                self.dictionary.learn(worker, parcel.definitions)
            for name, types, rows in parcel.rows:
                if worker != self.gang.rank:
                    columns = zip(types, rows.columns, strict=True)
                    rows = Rows(tuple(self.dictionary.translate(worker, t, v) for t, v in columns), rows.height)
                arrived.setdefault(name, []).append(rows)
        return arrived


def cut(
    rows: Rows, types: Sequence[ColumnType], column: int, dictionary: Dictionary, workers: int, turns: Turns | None = None
) -> list[Rows]:
    """The rows of each worker, by who owns the value in a column, in memory whose turn it is or new one."""
    owners = dictionary.owners(types[column], rows.columns[column], workers)
    sources = [np.ascontiguousarray(c) for c in rows.columns]
    targets = (turns or Turns()).columns([c.dtype for c in sources], rows.height)
    starts, at = np.zeros(workers + 1, np.int64), np.empty(workers, np.int64)
    lay_apart(owners, _addresses(sources), np.array([c.itemsize for c in sources]), _addresses(targets), starts, at)
    return [Rows(tuple(c[a:b] for c in targets), int(b - a)) for a, b in pairwise(starts)]


def _addresses(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([c.ctypes.data for c in columns], np.int64)


def heavy_rows(consignment: Consignment, column: int, dictionary: Dictionary) -> np.ndarray:
    """The places of the rows that are heavy."""
    if not consignment.heavy:
        return np.empty(0, np.int64)
    hashes = dictionary.hashes(consignment.types[column], consignment.rows.columns[column])
    return np.flatnonzero(np.isin(hashes, np.array(consignment.heavy, np.uint64)))


def joined(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    columns = tuple(np.concatenate(c) for c in zip(*(p.columns for p in parts), strict=True))
    return Rows(columns, sum(p.height for p in parts))


def empty(types: Sequence[ColumnType]) -> Rows:
    return Rows(tuple(np.empty(0, np.int64) for _ in types), 0)
