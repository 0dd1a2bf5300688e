"""Append-only tables of bytes: strings and records by number, in the order in which they were made.

On disk a table is two files, the bytes one after the other and the end of each entry as 64-bit words. Both only grow; the
manifest says how much of them counts and has the checksums of that much. What is beyond is overwritten.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.state import files


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
    """The valid part of a table: its entries and bytes, and the checksums of the two files up to there."""

    entries: int = 0
    bytes: int = 0
    data: int = 0
    ends: int = 0


def paths_of(folder: Path, name: str) -> tuple[Path, Path]:
    """The two files of a table."""
    return folder / f"{name}.bytes", folder / f"{name}.ends"


def read_table(folder: Path, name: str, size: TableSize) -> Entries:
    """The entries that count, mapped. Raises DlogError where they are not those that were written."""
    data, ends = _mapped(folder, name, size)
    for path, content, expected in zip(paths_of(folder, name), (data, ends), (size.data, size.ends), strict=True):
        if files.checksum(content) != expected:
            raise files.damaged(path, f"the first {len(content)} bytes of a table do not fit their checksum")
    return Entries(data, _parting(folder, name, data, ends))


def measured(folder: Path, name: str, entries: int, bytes: int) -> TableSize:
    """The size of a table with the checksums of what is there: for states that have none."""
    data, ends = _mapped(folder, name, TableSize(entries, bytes))
    _parting(folder, name, data, ends)
    return TableSize(entries, bytes, files.checksum(data), files.checksum(ends))


def _parting(folder: Path, name: str, data: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The offsets of entries in their bytes. Raises DlogError where they lead out of these."""
    offsets = np.concatenate([np.zeros(1, np.int64), ends.view(np.int64)])
    if offsets[-1] != len(data):
        raise files.damaged(paths_of(folder, name)[1], "a table's entries do not end where its bytes do")
    if (offsets[1:] < offsets[:-1]).any():
        raise files.damaged(paths_of(folder, name)[1], "a table has an entry that ends before it begins")
    return offsets


def _mapped(folder: Path, name: str, size: TableSize) -> tuple[np.ndarray, np.ndarray]:
    data, ends = paths_of(folder, name)
    return files.mapped(data, size.bytes), files.mapped(ends, 8 * size.entries)


def extend_table(folder: Path, name: str, size: TableSize, table: Entries) -> TableSize:
    """Appends the entries of the whole `table` that are not in the files yet. They count once a manifest says so."""
    if table.count <= size.entries:
        return size
    added = table.since(size.entries)
    data, ends = np.ascontiguousarray(added.data), added.offsets[1:] + size.bytes
    for path, start, content in zip(paths_of(folder, name), (size.bytes, 8 * size.entries), (data, ends), strict=True):
        with files.refusals(path, "write"):
            descriptor = files.open_to_append(path, start)
            try:
                files.write_all(descriptor, [content.data])
                files.sync(descriptor)
            finally:
                os.close(descriptor)
    sums = files.checksum(data, size.data), files.checksum(ends, size.ends)
    return TableSize(table.count, int(ends[-1]), *sums)
