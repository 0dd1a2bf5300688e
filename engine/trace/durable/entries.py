"""Append-only tables of bytes: strings and records by number, in the order in which they were made.

On disk a table is two files, the bytes one after the other and the end of each entry as 64-bit words. Both only grow; the
manifest says how much of them counts, and what is beyond is overwritten.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlog.engine.trace.durable import files


@dataclass(frozen=True, slots=True)
class Entries:
    """Entry i is `data[offsets[i]:offsets[i + 1]]`: uint8, and int64 with one more than there are entries."""

    data: np.ndarray
    offsets: np.ndarray

    @staticmethod
    def none() -> Entries:
        return Entries(np.empty(0, np.uint8), np.zeros(1, np.int64))

    @staticmethod
    def of(pieces: list[bytes]) -> Entries:
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(p) for p in pieces], out=offsets[1:])
        return Entries(np.frombuffer(b"".join(pieces), np.uint8), offsets)

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def since(self, first: int) -> Entries:
        """The entries from number `first` on."""
        offsets = self.offsets[first:]
        return Entries(self.data[offsets[0] : offsets[-1]], offsets - offsets[0])

    def pieces(self) -> list[bytes]:
        """Each entry on its own: for tests and messages."""
        return [self.data[a:b].tobytes() for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


@dataclass(frozen=True, slots=True)
class TableSize:
    """How much of a table counts."""

    entries: int = 0
    bytes: int = 0


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.bytes", folder / f"{name}.ends"


def read_table(folder: Path, name: str, size: TableSize) -> Entries:
    """The entries that count, mapped."""
    data, ends = (files.mapped(p, n) for p, n in zip(_paths(folder, name), (size.bytes, 8 * size.entries), strict=True))
    offsets = np.concatenate([np.zeros(1, np.int64), ends.view(np.int64)])
    if offsets[-1] != size.bytes:
        raise files.damaged(_paths(folder, name)[1], "a table's entries do not end where its bytes do")
    if (np.diff(offsets) < 0).any():
        raise files.damaged(_paths(folder, name)[1], "a table has an entry that ends before it begins")
    return Entries(data, offsets)


def extend_table(folder: Path, name: str, size: TableSize, table: Entries) -> TableSize:
    """Appends the entries of the whole `table` that are not in the files yet. They count once a manifest says so."""
    if table.count <= size.entries:
        return size
    added = table.since(size.entries)
    ends = added.offsets[1:] + size.bytes
    for path, start, content in zip(_paths(folder, name), (size.bytes, 8 * size.entries), (added.data, ends), strict=True):
        with files.refusals(path, "write"):
            descriptor = files.open_to_append(path, start)
            try:
                files.write_all(descriptor, [np.ascontiguousarray(content).data])
                files.sync(descriptor)
            finally:
                os.close(descriptor)
    return TableSize(table.count, int(ends[-1]))
