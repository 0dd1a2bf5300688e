"""Images as files: what an engine keeps, so that it goes on without deriving it. A description (JSON) and arrays.

    magic | length of the description, its checksum, checksum of all that follows | description | columns of arrays

An array is a sequence of columns, which are written as narrow as their values allow; of one with a single value the description
has that. The store does not ask what is in them. Nothing is lost with an image: a damaged one is no mistake but of no use.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlog.engine.trace.durable import files

MAGIC = b"dlogimg1"
_HEAD = struct.Struct("<QII")
_ARRAYS = "arrays"
Content = tuple[Mapping[str, Any], Sequence[Sequence[np.ndarray]]]
"""A description, and arrays: their columns (int32 or uint8, when they are read also narrower, or of length one for a value that
is everywhere)."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image on disk: of which round, and of which program. The checksum is over its head, which has those of the rest."""

    name: str
    size: int
    round: int
    fingerprint: str
    checksum: int


def write_image(folder: Path, name: str, round: int, fingerprint: str, content: Content) -> ImageFile:
    """Writes an image to a new file; nothing refers to it yet."""
    description, arrays = content
    narrow = [[_narrow(column) for column in array] for array in arrays]
    written = [[(how, size) for how, size, _ in array] for array in narrow]
    told = json.dumps({**description, _ARRAYS: written}).encode()
    told += b" " * (-len(told) % 8)
    pieces: list[files.Bytes] = []
    checksum = 0
    for column in (found for array in narrow for _, _, found in array if found is not None):
        for piece in (memoryview(column).cast("B"), bytes(-column.nbytes % 8)):
            checksum = files.checksum(piece, checksum)
            pieces.append(piece)
    head = MAGIC + _HEAD.pack(len(told), files.checksum(told), checksum)
    path = folder / name
    with files.refusals(path, "write"):
        files.create(path, [head, told, *pieces])
    size = len(head) + len(told) + sum(len(p) for p in pieces)
    return ImageFile(name, size, round, fingerprint, files.checksum(head))


def _narrow(column: np.ndarray) -> tuple[str, int, np.ndarray | None]:
    """A column of at least one value, as it is written: its type and how many values it has, or nothing and the one value."""
    column = np.ascontiguousarray(column)
    low, high = int(column.min()), int(column.max())
    if low == high:
        return "", low, None
    for type in ("<i1", "<i2"):
        if column.dtype.kind == "i" and np.iinfo(type).min <= low and high <= np.iinfo(type).max:
            return type, len(column), column.astype(type)
    return column.dtype.str, len(column), column


def map_image(folder: Path, file: ImageFile) -> Content | None:
    """What is in a file, the columns mapped; None where it is not what was written."""
    path = folder / file.name
    start = len(MAGIC) + _HEAD.size
    if not path.exists() or path.stat().st_size != file.size or file.size < start:
        return None
    memory = files.mapped(path, file.size)
    if memory[: len(MAGIC)].tobytes() != MAGIC or files.checksum(memory[:start]) != file.checksum:
        return None
    length, described, checksum = _HEAD.unpack(memory[len(MAGIC) : start].tobytes())
    told, rest = memory[start : start + length], memory[start + length :]
    if files.checksum(told) != described or files.checksum(rest) != checksum:
        return None
    description = json.loads(told.tobytes())
    at, arrays = 0, []
    for array in description.pop(_ARRAYS):
        columns = []
        for how, size in array:
            bytes = size * np.dtype(how).itemsize if how else 0
            columns.append(rest[at : at + bytes].view(how) if how else np.array([size]))
            at += bytes + -bytes % 8
        arrays.append(columns)
    return description, arrays
