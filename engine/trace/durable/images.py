"""Images as files: what an engine keeps, so that it goes on without deriving it. A description (JSON) and arrays of bytes.

    magic | length of the description, its checksum, checksum of all that follows | description | arrays, 8 bytes apart at most

The store does not ask what is in them. Nothing is lost with an image: a damaged one is no mistake but of no use.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlog.engine.trace.durable import files

MAGIC = b"dlogimg1"
_HEAD = struct.Struct("<QII")
_SIZES = "sizes"
Content = tuple[Mapping[str, Any], Sequence[np.ndarray]]
"""A description, and arrays of bytes (uint8)."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image on disk: of which round, and of which program."""

    name: str
    size: int
    round: int
    fingerprint: str


def write_image(folder: Path, name: str, round: int, fingerprint: str, content: Content) -> ImageFile:
    """Writes an image to a new file; nothing refers to it yet."""
    description, arrays = content
    told = json.dumps({**description, _SIZES: [a.nbytes for a in arrays]}).encode()
    told += b" " * (-len(told) % 8)
    pieces: list[files.Bytes] = []
    checksum = 0
    for array in arrays:
        for piece in (memoryview(array), bytes(-array.nbytes % 8)):
            checksum = zlib.crc32(piece, checksum)
            pieces.append(piece)
    head = MAGIC + _HEAD.pack(len(told), zlib.crc32(told), checksum)
    path = folder / name
    with files.refusals(path, "write"):
        files.create(path, [head, told, *pieces])
    return ImageFile(name, len(head) + len(told) + sum(len(p) for p in pieces), round, fingerprint)


def map_image(folder: Path, file: ImageFile) -> Content | None:
    """What is in a file, the arrays mapped; None where it is not what was written."""
    path = folder / file.name
    start = len(MAGIC) + _HEAD.size
    if not path.exists() or path.stat().st_size != file.size or file.size < start:
        return None
    memory = files.mapped(path, file.size)
    if memory[: len(MAGIC)].tobytes() != MAGIC:
        return None
    length, described, checksum = _HEAD.unpack(memory[len(MAGIC) : start].tobytes())
    told, rest = memory[start : start + length], memory[start + length :]
    if zlib.crc32(told) != described or zlib.crc32(rest) != checksum:
        return None
    description = json.loads(told.tobytes())
    arrays, at = [], 0
    for size in description.pop(_SIZES):
        arrays.append(rest[at : at + size])
        at += size + -size % 8
    return description, arrays
