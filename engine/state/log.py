"""The payload of a record of the log: the last round that it covers, the changes of relations, new entries of tables.

Arrays are written as narrow as their values allow, or as a single value. `records` is how records lie in a file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.state.entries import Entries
from dlog.engine.values.updates import Updates

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


def encode(round: int, changes: Mapping[str, Updates], tables: Mapping[str, Entries]) -> bytes:
    """A payload."""
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
    return b"".join(parts)


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
        if not 0 <= size <= len(self.rest):
            raise ValueError("a payload ends early")
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def name(self) -> str:
        return str(self.bytes(self.take(_NAME)[0]), "utf-8")

    def array(self, count: int) -> np.ndarray:
        width, value = self.take(_VALUE)
        if width not in (0, *_WIDTHS):
            raise ValueError("values have no such width")
        if width == 0:
            return np.full(count, value, np.int64)
        return np.frombuffer(self.bytes(count * width), _WIDTHS[width]).astype(np.int64)


def decode(payload: memoryview, last: int) -> LoggedRound:
    """Decodes the payload of a record of the rounds up to `last`. Raises ValueError where nobody can have written that."""
    reader = _Reader(payload)
    round, relations, tables = reader.take(_ROUND)
    if round != last:
        raise ValueError("a payload is of another round than its record")
    found = LoggedRound(round)
    for _ in range(relations):
        name = reader.name()
        found.changes[name] = _updates(reader, len(payload))
    for _ in range(tables):
        name = reader.name()
        found.tables[name] = _entries(reader, len(payload))
    if len(reader.rest) or len(found.changes) != relations or len(found.tables) != tables:
        raise ValueError("a payload says more than there is")
    return found


def _updates(reader: _Reader, most: int) -> Updates:
    """Rows differ, so there are no more of them than bytes."""
    rows, arrays = reader.take(_SHAPE)
    if rows > most or arrays < 2:
        raise ValueError("there cannot be so many rows, or so few columns")
    *columns, diffs, rounds = [reader.array(rows) for _ in range(arrays)]
    return Updates(tuple(columns), diffs, rounds)


def _entries(reader: _Reader, most: int) -> Entries:
    count, size = reader.take(_SHAPE)
    if count > most:
        raise ValueError("there cannot be so many entries")
    lengths = reader.array(count)
    if ((lengths < 0) | (lengths > size)).any() or int(lengths.sum()) != size:
        raise ValueError("the entries are not as long as their bytes")
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Entries(np.frombuffer(reader.bytes(size), np.uint8), offsets)
