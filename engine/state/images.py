"""Images as files: what an engine keeps, so that it goes on without deriving it. A description (JSON) and arrays.

    magic | length of the description, its checksum, checksum of all that follows, seal | description | columns of arrays

An array is a sequence of columns, which are written as narrow as their values allow; of one with a single value the description
has that. The store does not ask what is in them. Nothing is lost with an image: a damaged one is no mistake but of no use.

An engine believes an image: with numbers of somebody else's choice in it, it would write wherever that somebody likes. So an
image has a seal, which only this user can make (a message authentication code, RFC 2104), and is gone on from only if that fits
and nobody else can write to the file. Its rows hold ids, which compiled code looks up without asking, so the description has
digests of the tables that they are of: the image of another state, or of this one before somebody changed its tables, does not
fit.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dlog.caches import Untrusted, own_key, refuse_others
from dlog.dataclass import dataclass
from dlog.engine.state import files
from dlog.engine.state.entries import Entries

MAGIC = b"dlogimg3"
_HEAD = struct.Struct("<QII32s")
_ARRAYS = "arrays"
_TABLES = "tables"
_WIDTHS = {type: np.dtype(type).itemsize for type in ("<i1", "<i2", "<i4", "<i8", "|u1")}
Content = tuple[Mapping[str, Any], Sequence[Sequence[np.ndarray] | np.ndarray]]
"""A description, and arrays: their columns (int32 or uint8, when they are read also narrower, or of length one for a value that
is everywhere)."""
TableDigests = Mapping[str, tuple[int, str]]
"""Of each table how many entries it had when an image was written, and a digest of them."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image on disk: of which round, and of which program. The checksum is over its head, which has those of the rest."""

    name: str
    size: int
    round: int
    fingerprint: str
    checksum: int


def write_image(
    folder: Path, name: str, round: int, fingerprint: str, content: Content, tables: Mapping[str, Entries]
) -> ImageFile:
    """Writes an image, whose ids are those of `tables`, to a new file; nothing refers to it yet."""
    description, arrays = content
    narrow = [[_narrow(column) for column in array] for array in arrays]
    written = [[(how, size) for how, size, _ in array] for array in narrow]
    known = {name: (entries.count, _digest(entries, entries.count)) for name, entries in tables.items()}
    told = json.dumps({**description, _ARRAYS: written, _TABLES: known}).encode()
    told += b" " * (-len(told) % 8)
    pieces: list[files.Bytes] = []
    checksum, seal = 0, _seal(round, fingerprint, told)
    for column in (found for array in narrow for _, _, found in array if found is not None):
        for piece in (column.data.cast("B"), bytes(-column.nbytes % 8)):
            checksum = files.checksum(piece, checksum)
            seal.update(piece)
            pieces.append(piece)
    head = MAGIC + _HEAD.pack(len(told), files.checksum(told), checksum, seal.digest())
    path = folder / name
    with files.refusals(path, "write"):
        files.create(path, [head, told, *pieces], 0o644)
    size = len(head) + len(told) + sum(len(p) for p in pieces)
    return ImageFile(name, size, round, fingerprint, files.checksum(head))


def _seal(round: int, fingerprint: str, told: files.Bytes | np.ndarray) -> hmac.HMAC:
    """The seal of an image whose columns are yet to follow. One that nobody can verify where this user can keep no secret."""
    try:
        key = own_key()
    except OSError:
        key = secrets.token_bytes()
    told = files.buffer(told)
    # Its length is sealed, too: else the description could end elsewhere, and all columns begin there.
    made = hmac.new(key, f"{round} {fingerprint} {len(told)}\n".encode(), "sha256")
    made.update(told)
    return made


def _digest(table: Entries, count: int) -> str:
    """Stands for the first entries of a table."""
    offsets = np.ascontiguousarray(table.offsets[: count + 1])
    sha = hashlib.sha256(files.buffer(offsets))
    sha.update(files.buffer(np.ascontiguousarray(table.data[offsets[0] : offsets[-1]])))
    return sha.hexdigest()


def _fit(known: TableDigests | None, tables: Mapping[str, Entries]) -> bool:
    """Whether tables begin with the entries that an image was written with."""
    return known is not None and all(
        count == 0 or (name in tables and tables[name].count >= count and _digest(tables[name], count) == digest)
        for name, (count, digest) in known.items()
    )


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


def map_image(folder: Path, file: ImageFile, believe: Mapping[str, Entries] | None = None) -> Content | None:
    """The content of a file, the columns mapped; None where it is not what was written. Where an engine is to believe that,
    whose ids are those of the tables `believe`, raises Untrusted for an image that is not this user's own, or of other
    tables."""
    path = folder / file.name
    start = len(MAGIC) + _HEAD.size
    try:
        with files.to_read(path) as opened:
            about = os.fstat(opened.fileno())
            if about.st_size != file.size or file.size < start:
                return None
            if believe is not None:
                refuse_others(path, about)
            memory = np.memmap(opened, np.uint8, "r", shape=(file.size,)).view(np.ndarray)
    except Untrusted:
        raise
    except OSError:
        return None
    if memory[: len(MAGIC)].tobytes() != MAGIC or files.checksum(memory[:start]) != file.checksum:
        return None
    length, described, checksum, sealed = _HEAD.unpack(memory[len(MAGIC) : start].tobytes())
    told, rest = memory[start : start + length], memory[start + length :]
    if files.checksum(told) != described or files.checksum(rest) != checksum:
        return None
    if believe is not None:
        seal = _seal(file.round, file.fingerprint, told)
        seal.update(files.buffer(rest))
        if not hmac.compare_digest(seal.digest(), sealed):
            raise Untrusted(f"{path} was written by somebody else, or elsewhere")
    try:
        (description, arrays), known = _described(told, rest)
        fits = believe is None or _fit(known, believe)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    if not fits:
        raise Untrusted(f"{path} was written with other symbols or records than are there")
    return description, arrays


def _described(told: np.ndarray, rest: np.ndarray) -> tuple[Content, TableDigests | None]:
    """An image, and what it says of its tables, which images of former versions do not."""
    description = json.loads(told.tobytes())
    known = description.pop(_TABLES, None)
    at, arrays = 0, []
    for array in description.pop(_ARRAYS):
        columns = []
        for how, size in array:
            bytes = size * _WIDTHS[how] if how else 0
            if not 0 <= bytes <= len(rest) - at:
                raise ValueError("a column leads out of the image")
            columns.append(rest[at : at + bytes].view(how) if how else np.array([size]))
            at += bytes + -bytes % 8
        arrays.append(columns)
    return (description, arrays), known
