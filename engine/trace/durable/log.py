"""The write-ahead log: one record for each append, which counts as soon as it is whole.

A record is its length, a checksum and the payload: the last round it covers, the changes of relations, new entries of tables.
Arrays are written as narrow as their values allow, or as a single value. A record that is torn at the end of the log, by
whatever killed the writer, never counted and is dropped when the state is opened.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dlog.engine.trace.durable import files
from dlog.engine.trace.durable.entries import Entries
from dlog.engine.values.updates import Updates

MAGIC = b"dloglog1"
_HEAD = struct.Struct("<QI")  # length and checksum of the payload
_ROUND = struct.Struct("<qII")  # round, relations, tables
_NAME = struct.Struct("<H")
_SHAPE = struct.Struct("<QQ")  # rows and arrays; or entries and bytes
_VALUE = struct.Struct("<Bq")  # width, and the value where the width is 0
_WIDTHS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True, slots=True)
class LoggedRound:
    """One append: `round` is the last one it covers. `tables` holds what is new in each table."""

    round: int
    changes: dict[str, Updates] = field(default_factory=dict)
    tables: dict[str, Entries] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------------------ records


def encode(round: int, changes: Mapping[str, Updates], tables: Mapping[str, Entries]) -> bytes:
    """A whole record."""
    parts = [_ROUND.pack(round, len(changes), len(tables))]
    for name, updates in changes.items():
        _put_name(parts, name)
        parts.append(_SHAPE.pack(updates.rows, len(updates.columns) + 2))
        for array in (*updates.columns, updates.diffs, updates.rounds):
            _put_array(parts, array)
    for name, entries in tables.items():
        _put_name(parts, name)
        parts.append(_SHAPE.pack(entries.count, len(entries.data)))
        _put_array(parts, np.diff(entries.offsets))
        parts.append(entries.data.tobytes())
    payload = b"".join(parts)
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def _put_name(parts: list[bytes], name: str) -> None:
    encoded = name.encode()
    parts += (_NAME.pack(len(encoded)), encoded)


def _put_array(parts: list[bytes], array: np.ndarray) -> None:
    if not len(array):
        parts.append(_VALUE.pack(0, 0))
        return
    low, high = (int(array.item(0)),) * 2 if len(array) == 1 else (int(array.min()), int(array.max()))
    if low == high:
        parts.append(_VALUE.pack(0, low))
        return
    width = next(w for w in _WIDTHS if -(1 << 8 * w - 1) <= low and high < 1 << 8 * w - 1)
    parts += (_VALUE.pack(width, 0), array.astype(_WIDTHS[width]).tobytes())


class _Reader:
    """Takes a payload apart from front to back."""

    def __init__(self, payload: memoryview) -> None:
        self.rest = payload

    def take(self, shape: struct.Struct) -> tuple[int, ...]:
        return shape.unpack(self.bytes(shape.size))

    def bytes(self, size: int) -> memoryview:
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def name(self) -> str:
        return str(self.bytes(self.take(_NAME)[0]), "utf-8")

    def array(self, count: int) -> np.ndarray:
        width, value = self.take(_VALUE)
        if width == 0:
            return np.full(count, value, np.int64)
        return np.frombuffer(self.bytes(count * width), _WIDTHS[width]).astype(np.int64)


def decode(payload: memoryview) -> LoggedRound:
    """What a payload says."""
    reader = _Reader(payload)
    round, relations, tables = reader.take(_ROUND)
    found = LoggedRound(round)
    for _ in range(relations):
        name = reader.name()
        rows, arrays = reader.take(_SHAPE)
        *columns, diffs, rounds = [reader.array(rows) for _ in range(arrays)]
        found.changes[name] = Updates(tuple(columns), diffs, rounds)
    for _ in range(tables):
        name = reader.name()
        count, size = reader.take(_SHAPE)
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(reader.array(count), out=offsets[1:])
        found.tables[name] = Entries(np.frombuffer(reader.bytes(size), np.uint8), offsets)
    return found


# ----------------------------------------------------------------------------------------------------------------- segments


def segment_path(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.log"


def number_of(path: Path) -> int:
    """The number of a segment; they are numbered without gaps."""
    return int(path.stem)


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of the log as it is found: its records end at `end`, whatever is behind is torn."""

    path: Path
    end: int
    rounds: int
    last_round: int | None

    def records(self) -> Iterator[LoggedRound]:
        """All records, in order."""
        content = self.path.read_bytes()[: self.end]
        for start, end in _whole_records(content):
            yield decode(memoryview(content)[start:end])


def scan(path: Path, last: bool) -> Segment:
    """Finds where the records of a segment end. Only the last one may be torn, and only at its end."""
    with files.refusals(path, "read"):
        content = path.read_bytes() if path.exists() else b""
    if len(content) < len(MAGIC) and last and MAGIC.startswith(content):
        return Segment(path, 0, 0, None)
    if content[: len(MAGIC)] != MAGIC:
        raise files.damaged(path, "this is no log")
    end, rounds, round = len(MAGIC), 0, None
    for start, end in _whole_records(content):  # noqa: B007
        rounds, round = rounds + 1, _ROUND.unpack_from(content, start)[0]
    if end != len(content) and not (last and _is_torn(content, end)):
        raise files.damaged(path, f"the record at byte {end} does not fit its checksum", "the rounds before it are intact")
    return Segment(path, end, rounds, round)


def _whole_records(content: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each payload, as far as they are intact."""
    at = len(MAGIC)
    while (found := _record_at(content, at)) is not None:
        yield found
        at = found[1]


def _record_at(content: bytes, at: int) -> tuple[int, int] | None:
    if at + _HEAD.size > len(content):
        return None
    size, checksum = _HEAD.unpack_from(content, at)
    start = at + _HEAD.size
    if size < _ROUND.size or start + size > len(content) or zlib.crc32(memoryview(content)[start : start + size]) != checksum:
        return None
    return start, start + size


def _is_torn(content: bytes, at: int) -> bool:
    """Whether what is at `at` can be a record whose writing was cut off: no whole record follows where it would end."""
    if at + _HEAD.size > len(content):
        return True
    size, _ = _HEAD.unpack_from(content, at)
    return _record_at(content, at + _HEAD.size + size) is None
