"""Symbols and records between workers: each has ids of its own, and tells a peer what an id means once.

A column of ids travels as it is, with the definitions its receiver lacks; the receiver turns a sender's ids into its own by a
look-up in one array. So strings and records made while a program runs need no common table, and none is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import assert_never

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind, Relation, Type
from dlog.engine.kernels.static import partition
from dlog.engine.plan.column_types import ColumnType, declared
from dlog.engine.runtime.storage.columns import raw
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.shapes import own_types, packed, shapes
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table

Fields = tuple[np.ndarray, ...]
VALUES_WIDENED_TOGETHER = 1 << 16
"""Values that are widened at once: so few that they stay in the processor's cache."""


@dataclass
class Definitions:
    """The definitions of a message's ids: strings, then records by record type or branch, those inside others before them."""

    symbols: np.ndarray
    data: np.ndarray
    offsets: np.ndarray
    records: list[tuple[str, np.ndarray, Fields]] = field(default_factory=list)


NO_SYMBOLS = np.empty(0, np.int32)


class Dictionary:
    """One worker's side of the translation. `symbols` and `records` are its tables; `types` the program's."""

    def __init__(self, symbols: SymbolTable, records: RecordTables, types: Mapping[str, Type], size: int) -> None:
        self.symbols = symbols
        self.records = records
        self.types = types
        self._peer_entries: list[dict[str, np.ndarray]] = [{} for _ in range(size)]
        self._meaning: list[dict[str, np.ndarray]] = [{} for _ in range(size)]
        self._hashes = np.empty(0, np.uint64)

    # ----------------------------------------------------------------------------------------------------------- placing

    def owners(self, type: ColumnType, values: np.ndarray, workers: int) -> np.ndarray:
        """The worker, as int32, that owns each value: by content, so that all workers agree."""
        owners = np.empty(len(values), np.int32)
        match type.kind:
            case Kind.SYMBOL:
                partition.owners_of_ids(_words(values), self._symbol_hashes(), workers, owners)
            case Kind.RECORD:
                distinct, places = np.unique(values, return_inverse=True)
                by_id = np.empty(len(distinct), np.int32)
                partition.owners_of_ids(np.arange(len(distinct)), self._record_hashes(type.record, distinct), workers, by_id)
                owners[:] = by_id[places]
            case Kind.FLOAT | Kind.NUMBER | Kind.UNSIGNED:
                for start in range(0, len(values), VALUES_WIDENED_TOGETHER):
                    part = slice(start, start + VALUES_WIDENED_TOGETHER)
                    partition.owners_of_values(_words(values[part]), workers, owners[part])
            case _:
                assert_never(type.kind)
        return owners

    def fingerprint(self, relation: Relation, table: Table) -> int:
        """A number that is the same for the same rows in any order, whatever their ids, and hardly for others."""
        hashes = np.zeros(table.rows, np.uint64)
        for (_, type), column in zip(relation.attributes, table.columns, strict=True):
            self._mix(hashes, declared(type), raw(column))
        return int(hashes.sum())

    def hashes(self, type: ColumnType, values: np.ndarray) -> np.ndarray:
        """A hash of each value's content, of 64 bits: the same on all workers."""
        hashes = np.zeros(len(values), np.uint64)
        self._mix(hashes, type, values)
        return hashes

    def owners_of_rows(self, types: Sequence[ColumnType], columns: Sequence[np.ndarray], workers: int) -> np.ndarray:
        """A worker for each row, by the contents of all its columns."""
        hashes = np.zeros(len(columns[0]), np.uint64)
        for type, column in zip(types, columns, strict=True):
            self._mix(hashes, type, column)
        owners = np.empty(len(hashes), np.int32)
        partition.owners_of_values(hashes.view(np.int64), workers, owners)
        return owners

    def _mix(self, hashes: np.ndarray, type: ColumnType, column: np.ndarray) -> None:
        """Mixes a column's contents into the hashes of rows, in place."""
        values = _words(column)
        if type.kind is Kind.SYMBOL:
            values = self._symbol_hashes()[values].view(np.int64)
        elif type.kind is Kind.RECORD:
            values = self._record_hashes(type.record, values).view(np.int64)
        partition.hash_together(hashes, values)

    def _symbol_hashes(self) -> np.ndarray:
        """The hash of each string, kept; the table only grows."""
        heap, offsets = self.symbols.strings
        known = len(self._hashes)
        if known < len(offsets) - 1:
            hashes = np.empty(len(offsets) - 1, np.uint64)
            hashes[:known] = self._hashes
            partition.hash_strings(heap, np.ascontiguousarray(offsets), known, hashes)
            self._hashes = hashes
        return self._hashes

    def _record_hashes(self, name: str, ids: np.ndarray) -> np.ndarray:
        """A hash of each record's own fields; of records inside it only whether they are nil, or which branch they have."""
        hashes = np.zeros(len(ids), np.uint64)
        if not name:  # nil, the only record without a type
            return hashes
        for shape in shapes(self.types[name], self.types, ids, self.records):
            inner = np.zeros(len(shape.places), np.uint64)
            if shape.type.adt:
                partition.hash_together(inner, self._tags(self.types[name], ids[shape.places]))
            for type, column in zip(own_types(shape.type, self.types), shape.columns, strict=True):
                values = column.astype(np.int64)
                if type.kind is Kind.SYMBOL:
                    values = self._symbol_hashes()[values].view(np.int64)
                elif type.branches:
                    values = self._tags(type, values)
                elif type.kind is Kind.RECORD:
                    values = (values != 0).astype(np.int64)
                partition.hash_together(inner, values)
            hashes[shape.places] = inner
        return hashes

    def _tags(self, adt: Type, ids: np.ndarray) -> np.ndarray:
        return self.records.fields(len(adt.fields), ids)[0].astype(np.int64)

    def _fields(self, name: str) -> list[ColumnType]:
        """The types of the own fields of a record type or branch."""
        return [declared(type) for type in own_types(self.types[name], self.types)]

    # ----------------------------------------------------------------------------------------------------------- sending

    def define(self, peer: int, columns: Sequence[tuple[ColumnType, np.ndarray]]) -> Definitions:
        """The meaning of the ids in these columns as far as the peer has not been told."""
        records = self._untold_records(peer, columns)
        symbols = [v for t, v in columns if t.kind is Kind.SYMBOL]
        for name, _, fields in records:
            symbols += [v.astype(np.int32) for t, v in zip(self._fields(name), fields, strict=True) if t.kind is Kind.SYMBOL]
        fresh = [self._untold(peer, "", ids) for ids in symbols]
        ids = np.concatenate(fresh) if fresh else NO_SYMBOLS
        data, offsets = self.symbols.gather(ids) if len(ids) else (np.empty(0, np.uint8), np.zeros(1, np.int64))
        return Definitions(ids, data, offsets, records)

    def _untold_records(
        self, peer: int, columns: Sequence[tuple[ColumnType, np.ndarray]]
    ) -> list[tuple[str, np.ndarray, Fields]]:
        """Definitions of records, level by level from the innermost: a record is defined before those that hold it."""
        levels: list[dict[str, np.ndarray]] = []
        wanted = _by_type((t.record, v) for t, v in columns if t.record)
        while wanted := {n: i for n, ids in wanted.items() if len(i := self._unknown(peer, n, ids))}:
            levels.append(wanted)
            wanted = _by_type(pair for name, ids in wanted.items() for pair in self._inside(name, ids))
        found = []
        for level in reversed(levels):
            for name, ids in level.items():
                fresh = self._untold(peer, name, ids)
                parts = shapes(self.types[name], self.types, fresh, self.records) if len(fresh) else []
                found += [(part.type.name, fresh[part.places], tuple(part.columns)) for part in parts]
        return found

    def _inside(self, name: str, ids: np.ndarray) -> list[tuple[str, np.ndarray]]:
        return [
            (type.record, column.astype(np.int32))
            for part in shapes(self.types[name], self.types, ids, self.records)
            for type, column in zip(self._fields(part.type.name), part.columns, strict=True)
            if type.kind is Kind.RECORD
        ]

    def _unknown(self, peer: int, name: str, ids: np.ndarray) -> np.ndarray:
        """The distinct ids, without nil, that the peer has not been told."""
        told = self._marks(peer, name, ids)
        fresh = np.unique(ids[~told[ids]])
        return fresh[fresh > 0] if name else fresh

    def _untold(self, peer: int, name: str, ids: np.ndarray) -> np.ndarray:
        """The same; from now on they count as told."""
        fresh = self._unknown(peer, name, ids)
        self._peer_entries[peer][name][fresh] = True
        return fresh

    def _marks(self, peer: int, name: str, ids: np.ndarray) -> np.ndarray:
        """The marks of ids of a record type ("" for symbols) that the peer knows: long enough for these."""
        held = self._peer_entries[peer].get(name, np.zeros(0, bool))
        needed = int(ids.max()) + 1 if len(ids) else 1
        if len(held) < needed:
            larger = np.zeros(max(2 * len(held), needed), bool)
            larger[: len(held)] = held
            self._peer_entries[peer][name] = held = larger
        return held

    # --------------------------------------------------------------------------------------------------------- receiving

    def learn(self, peer: int, said: Definitions) -> None:
        """Takes in a peer's definitions."""
        if len(said.symbols):
            own = self.symbols.intern_slices(said.data, said.offsets[:-1], said.offsets[1:])
            self._mean(peer, "", said.symbols, own)
        for name, ids, fields in said.records:
            kinds = self._fields(name)
            columns = [self.translate(peer, t, v).astype(np.int64) for t, v in zip(kinds, fields, strict=True)]
            own = packed(self.types[name], self.types, columns, len(ids), self.records)
            self._mean(peer, self.types[name].whole, ids, own)

    def _mean(self, peer: int, name: str, theirs: np.ndarray, own: np.ndarray) -> None:
        held = self._meaning[peer].setdefault(name, np.zeros(1, np.int32))
        needed = int(theirs.max()) + 1
        if len(held) < needed:
            larger = np.zeros(max(2 * len(held), needed), np.int32)
            larger[: len(held)] = held
            self._meaning[peer][name] = held = larger
        held[theirs] = own

    def translate(self, peer: int, type: ColumnType, values: np.ndarray) -> np.ndarray:
        """A peer's column with this worker's ids."""
        if type.kind is Kind.SYMBOL:
            return self._meaning[peer][""][values] if len(values) else values
        if type.record:
            return self._meaning[peer].get(type.record, np.zeros(1, np.int32))[values] if len(values) else values
        return values


def _by_type(found: Iterable[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    parts: dict[str, list[np.ndarray]] = {}
    for name, ids in found:
        parts.setdefault(name, []).append(ids)
    return {name: np.concatenate(ids) for name, ids in parts.items()}


def _words(values: np.ndarray) -> np.ndarray:
    """Values, of four bytes or eight, as the library's kernels take them: for any others Numba would be loaded."""
    return np.ascontiguousarray(values, np.int64)
