"""The symbols and records of a session as tables of bytes on disk: an entry for each, in the order of ids, so that ids keep
their meaning when the state is opened again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dlog.engine.runtime.storage.fact_encoder import FactEncoder
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.state.entries import Entries
from dlog.engine.state.files import damaged
from dlog.engine.values.symbols import NotText, SymbolTable

_SYMBOLS = "symbols"
_RECORDS = "records-"
"""Followed by the arity."""


class Interned:
    """The tables that ids stand for, and how many entries of each are on disk."""

    def __init__(self, memory: int | None) -> None:
        self.symbols = SymbolTable()
        self.records = RecordTables(Memory(memory))
        self.encoder = FactEncoder(self.symbols, self.records)
        self._saved: dict[str, int] = {}
        self.restored: Mapping[int, int] = {}
        """How many records of each arity were on disk in the beginning."""

    def restore(self, tables: Mapping[str, Sequence[tuple[Path, Entries]]]) -> None:
        """Takes in what is on disk, in order, with the files it is from; other tables do not matter."""
        for name, parts in tables.items():
            arity = _arity(name)
            for path, entries in parts:
                if name == _SYMBOLS:
                    ids = self._intern(path, entries)
                elif arity is not None:
                    ids = self._pack(path, arity, entries) - 1
                else:
                    continue
                before = self._saved.get(name, 0)
                if not np.array_equal(ids, np.arange(before, before + entries.count)):
                    raise damaged(path, f"the table of {name} has an entry twice")
                self._saved[name] = before + entries.count
        arities = {name: _arity(name) for name in self._saved}
        self.restored = {arity: self._saved[name] for name, arity in arities.items() if arity is not None}

    def _intern(self, path: Path, entries: Entries) -> np.ndarray:
        try:
            return self.symbols.intern_slices(entries.data, entries.offsets[:-1], entries.offsets[1:])
        except NotText as wrong:
            raise damaged(path, f"a symbol is no text: {wrong.reason}") from None

    def _pack(self, path: Path, arity: int, entries: Entries) -> np.ndarray:
        if not np.array_equal(entries.offsets, np.arange(entries.count + 1) * (8 * arity)):
            raise damaged(path, f"a record has not {arity} fields")
        if not entries.count:
            return np.empty(0, np.int64)
        fields = entries.data.copy().view(np.int64).reshape(entries.count, arity)
        return self.records.pack(arity, [np.ascontiguousarray(fields[:, c]) for c in range(arity)])

    def every(self) -> dict[str, Entries]:
        """All entries there are, in memory that does not change."""
        return self._since({})

    @property
    def stays(self) -> bool:
        """Whether entries stay where they are while there are more: records may move."""
        return not self.records._tables

    @property
    def logged_symbols(self) -> int:
        """How many symbols are on the disk."""
        return self._saved.get(_SYMBOLS, 0)

    def logged(self) -> dict[str, Entries]:
        """All symbols that are on disk, whatever another thread adds; where there are no records."""
        count = self.logged_symbols
        heap, offsets = self.symbols.strings
        return {_SYMBOLS: Entries(heap[: offsets[count]], offsets[: count + 1])} if count else {}

    def fresh(self) -> dict[str, Entries]:
        """The entries that are not on disk yet."""
        return self._since(self._saved)

    def saved(self, fresh: Mapping[str, Entries]) -> None:
        """These are on disk now."""
        for name, entries in fresh.items():
            self._saved[name] = self._saved.get(name, 0) + entries.count

    def _since(self, first: Mapping[str, int]) -> dict[str, Entries]:
        found = {}
        start = first.get(_SYMBOLS, 0)
        if len(self.symbols) > start:
            heap, offsets = self.symbols.strings
            found[_SYMBOLS] = Entries(heap[: offsets[-1]], offsets).since(start)
        for arity, table in self.records._tables.items():
            name = f"{_RECORDS}{arity}"
            start = first.get(name, 0)
            if table.rows > start:
                found[name] = _entries(table, start)
        return found


def _arity(table: str) -> int | None:
    """The arity of the records in a table; None where it is one of something else."""
    arity = table.removeprefix(_RECORDS)
    return int(arity) if arity != table and re.fullmatch("0|[1-9][0-9]{0,5}", arity) else None


def _entries(records: StoredRelation, first: int) -> Entries:
    """Records from number `first` on, each as the bytes of its fields."""
    rows, arity = records.rows - first, records.arity
    fields = np.empty((rows, arity), np.int64)
    for c in range(arity):
        fields[:, c] = records.column(c)[first:]
    return Entries(fields.reshape(-1).view(np.uint8), np.arange(rows + 1, dtype=np.int64) * (8 * arity))
