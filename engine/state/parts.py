"""Files of rows that others write: taken into the folder of a state when they are whole, and named by the log afterwards.

Whoever writes them has a folder of their own inside that of the state. A file that nothing names is removed when the state is
opened next.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from dlog.dataclass import dataclass
from dlog.engine.state import files, folders

SUFFIX = ".parquet"
_INCOMING = "incoming-"
_PART = re.compile(r"[0-9a-f]{32}\.parquet\Z")
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A file in the folder of a state."""

    name: str
    size: int
    checksum: int


def is_part(name: str) -> bool:
    """Whether a file or folder of that name belongs to parts, there already or on their way."""
    return _PART.match(name) is not None or name.startswith(_INCOMING)


def incoming(folder: Path) -> Path:
    """The name of a new folder, or file, that is swept where it is left."""
    return folder / f"{_INCOMING}{uuid4().hex}"


def take_in(folder: Path, written: Path) -> tuple[Part, ...]:
    """Makes the files of a folder parts of the state in the folder above: they are on the disk when this returns. Raises
    DlogError where the folder, or a file in it, is not what this user has written."""
    with files.refusals(written, "write"), files.own_folder(written) as source:
        names = sorted(name for name in os.listdir(source) if name.endswith(SUFFIX))
        parts = tuple(_taken_in(folder, written / name, source) for name in names)
        files.sync_folder(folder)
    shutil.rmtree(written, ignore_errors=True)
    return parts


def _taken_in(folder: Path, path: Path, source: int) -> Part:
    """Takes in a file of the folder that `source` describes."""
    with files.own_file(path, source) as file:
        files.sync(file.fileno())
        part = Part(f"{uuid4().hex}{SUFFIX}", *_measured(file))
    folders.rename(path, folder / part.name, source)
    return part


def check(folder: Path, part: Part) -> None:
    """Raises DlogError where a part is not what was written."""
    path = folder / part.name
    if _PART.match(part.name) is None or not folders.exists(path):
        raise files.damaged(path, "a part of a relation is missing")
    with files.refusals(path, "read"), files.to_read(path) as file:
        found = _measured(file)
    if found != (part.size, part.checksum):
        raise files.damaged(path, "a part of a relation does not fit its checksum")


def _measured(file: BinaryIO) -> tuple[int, int]:
    """Size and checksum, without all of it in memory."""
    size = checksum = 0
    while piece := file.read(_PIECE_BYTES):
        size, checksum = size + len(piece), files.checksum(piece, checksum)
    return size, checksum


def drop(folder: Path, parts: Collection[Part]) -> None:
    """Removes parts that nothing names."""
    for part in parts:
        with files.refusals(folder / part.name, "remove"):
            files.remove(folder / part.name)


def sweep(folder: Path, named: Collection[str]) -> None:
    """Removes all parts but those that are named, and what was never taken in."""
    for name in folders.names(folder):
        if is_part(name) and name not in named:
            with files.refusals(folder / name, "remove"), suppress(FileNotFoundError):
                folders.remove_tree(folder / name)
