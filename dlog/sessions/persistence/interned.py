"""The symbols and records of a session as tables of bytes on disk: an entry for each, in the order of ids, so that ids keep
their meaning when the state is opened again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from dlog.engine.runtime.storage.fact_encoder import FactEncoder
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.state.entries import Entries
from dlog.engine.state.files import damaged
from dlog.engine.values.symbols import NotText, SymbolTable
from dlog.sessions.persistence.external_relation import MIN_LARGE_ROWS

_SYMBOLS = "symbols"
_RECORDS = "records-"
"""Followed by the arity."""
MAX_SMALL_PIECES = 32
"""Small pieces before they are joined to one, as small changes are (`external_relation`)."""


class Interned:
    """The tables that ids stand for, and how many entries of each are on disk."""

    def __init__(self, memory: int | None) -> None:
        self.symbols = SymbolTable()
        self.records = RecordTables(Memory(memory))
        self.encoder = FactEncoder(self.symbols, self.records)
        self._saved: dict[str, int] = {}
        self._records: dict[str, _Pieces] = {}
        """The records that are on disk, by table, once more: their own may move whenever there are more."""
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
                    self._records.setdefault(name, _Pieces(arity)).add(entries)
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
        return _pack(self.records, arity, entries)

    def copied_records(self) -> RecordTables:
        """The records that are on disk, in tables of their own: for another thread."""
        copies = RecordTables(Memory(None))
        for name, entries in self.logged().items():
            arity = _arity(name)
            if arity is not None:
                _pack(copies, arity, entries)
        return copies

    def every(self) -> dict[str, Entries]:
        """All entries there are, in memory that does not change."""
        return self._since({})

    @property
    def logged_symbols(self) -> int:
        """How many symbols are on the disk."""
        return self._saved.get(_SYMBOLS, 0)

    def logged(self) -> Mapping[str, Entries]:
        """All symbols and records that are on disk, whatever another thread adds; tables of records are made when they are
        looked at."""
        count = self.logged_symbols
        heap, offsets = self.symbols.strings
        symbols = {_SYMBOLS: Entries(heap[: offsets[count]], offsets[: count + 1])} if count else {}
        return Logged(symbols, {name: pieces.frozen() for name, pieces in list(self._records.items())})

    def fresh(self) -> dict[str, Entries]:
        """The entries that are not on disk yet."""
        return self._since(self._saved)

    def saved(self, fresh: Mapping[str, Entries]) -> None:
        """These are on disk now."""
        for name, entries in fresh.items():
            arity = _arity(name)
            if arity is not None:
                self._records.setdefault(name, _Pieces(arity)).add(entries)
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


class _Pieces:
    """The records of a table as they came to the disk, each as the bytes of its fields."""

    def __init__(self, arity: int) -> None:
        self._arity = arity
        self._large: tuple[np.ndarray, ...] = ()
        self._small: tuple[np.ndarray, ...] = ()
        self._records = 0
        self._lock = Lock()

    def add(self, entries: Entries) -> None:
        with self._lock:
            self._records += entries.count
            is_large = entries.count >= MIN_LARGE_ROWS
            if self._small and (is_large or len(self._small) >= MAX_SMALL_PIECES):
                self._large, self._small = (*self._large, np.concatenate(self._small)), ()
            if is_large:
                self._large = (*self._large, entries.data)
            else:
                self._small = (*self._small, entries.data)

    def frozen(self) -> Callable[[], Entries]:
        """All that there are now, in one piece when that is asked for."""
        with self._lock:
            pieces, records = (*self._large, *self._small), self._records
        return lambda: Entries(np.concatenate(pieces), np.arange(records + 1, dtype=np.int64) * (8 * self._arity))


class Logged(Mapping[str, Entries]):
    """Tables some of which are made when they are looked at, once."""

    def __init__(self, there: Mapping[str, Entries], making: Mapping[str, Callable[[], Entries]]) -> None:
        self._there, self._making = dict(there), making

    def __getitem__(self, name: str) -> Entries:
        if name not in self._there:
            self._there[name] = self._making[name]()
        return self._there[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._there, **self._making})

    def __len__(self) -> int:
        return len({**self._there, **self._making})


def _pack(records: RecordTables, arity: int, entries: Entries) -> np.ndarray:
    """The ids of records that are given by the bytes of their fields."""
    if not entries.count:
        return np.empty(0, np.int64)
    fields = entries.data.copy().view(np.int64).reshape(entries.count, arity)
    return records.pack(arity, [np.ascontiguousarray(fields[:, c]) for c in range(arity)])


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
