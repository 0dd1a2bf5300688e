"""Large blocks between workers of one machine: files in memory instead of messages.

Each worker has a folder of its own (dlog/temporary.py). A peer that finds there what the worker told it about
itself is on the same machine: it writes a block as one file, and only the file's name goes through the connection that knows
who speaks. The receiver maps the file and removes its name at once. What a worker that was killed leaves, the next one to begin
here removes, and so does a driver on this machine when a run ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dlog import temporary
from dlog.caches import is_own_place
from dlog.temporary import LOCK, TOKEN_SIZE, Lease, lease

KIND = "worker"
MIN_FILE_BYTES = 1 << 16
"""Bytes from which on a file costs less than a message."""
ALIGNED = 64
PIECES_PER_CALL = 512
"""Pieces that one call writes; systems take 1,024 or more."""


class SharedFile(NamedTuple):
    """A file in the receiver's folder, and the sizes of the pieces in it."""

    name: str
    sizes: tuple[int, ...]


class SharedMemory:
    """A worker's own folder. `open` finds none where the system has no such locks, no place is writable, or others
    can put something else in its place."""

    def __init__(self, folder: Lease) -> None:
        self.folder = folder.folder
        self.address = f"{folder.token}{folder.folder}"
        self._lease = folder

    @classmethod
    def open(cls) -> SharedMemory | None:
        sweep()
        for place in _places():
            with suppress(OSError):
                made = lease(KIND, place)
                if made.is_locked and is_own_place(made.folder):  # ids in blocks are believed
                    return cls(made)
                made.remove()
        return None

    def take(self, block: SharedFile) -> list[memoryview]:
        """The pieces of a block, which nobody may write to; it is gone when they are."""
        path = self.folder / block.name
        with open(path, "rb", buffering=0) as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        path.unlink()
        return [whole[start : start + size] for start, size in zip(_starts(block.sizes), block.sizes, strict=True)]

    def close(self) -> None:
        self._lease.remove()


class Slot:
    """The way into another worker's folder; `find` is None where the worker is elsewhere."""

    def __init__(self, folder: Path, sender: int) -> None:
        self._folder = folder
        self._sender = sender
        self._count = 0

    @classmethod
    def find(cls, address: str, sender: int) -> Slot | None:
        token, folder = address[:TOKEN_SIZE], Path(address[TOKEN_SIZE:])
        try:
            there = address and os.access(folder, os.W_OK | os.X_OK) and (folder / LOCK).read_bytes() == token.encode()
        except OSError:
            return None
        return cls(folder, sender) if there else None

    def put(self, pieces: Sequence[memoryview]) -> SharedFile | None:
        """Writes a block; None if it is not worth it or there is no room: then it must go as a message."""
        sizes = tuple(piece.nbytes for piece in pieces)
        if sum(sizes) < MIN_FILE_BYTES:
            return None
        self._count += 1
        block = SharedFile(f"{self._sender}-{self._count}", sizes)
        path = self._folder / block.name
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0) as file:
                _write(file.fileno(), pieces)
        except OSError:
            path.unlink(missing_ok=True)
            return None
        return block


def sweep() -> None:
    """Removes the folders of processes of this user that are no more."""
    temporary.sweep(_places())


def _places() -> Iterator[Path]:
    """The places for folders: in memory before all."""
    for place in dict.fromkeys((Path("/dev/shm"), Path(tempfile.gettempdir()))):
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            yield place


def _starts(sizes: Sequence[int]) -> Iterator[int]:
    at = 0
    for size in sizes:
        yield at
        at += -(-size // ALIGNED) * ALIGNED


def _write(file: int, pieces: Sequence[memoryview]) -> None:
    """All pieces, each where `_starts` says."""
    left: list[memoryview] = []
    for piece in pieces:
        left += [piece, memoryview(bytes(-piece.nbytes % ALIGNED))]
    while left:
        written = os.writev(file, left[:PIECES_PER_CALL])
        while left and written >= left[0].nbytes:
            written -= left.pop(0).nbytes
        if written:
            left[0] = left[0][written:]
