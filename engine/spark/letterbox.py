"""Large blocks between workers of one machine: files in memory instead of messages.

Each worker has a folder of its own, which nobody but its user can enter. A peer that finds there what the worker told it about
itself is on the same machine: it writes a block as one file, and only the file's name goes through the connection that knows
who speaks. The receiver maps the file and removes its name at once. The folder of a worker that was killed has a lock that
nobody holds: the next worker to begin here removes it, and so does a driver on this machine when a run ends.
"""

from __future__ import annotations

import mmap
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from io import FileIO

PREFIX = "dlog-worker-"
LOCK = "owner"
"""The file that a folder's owner keeps locked; it holds the folder's token."""
LARGE = 1 << 16
"""Bytes from which on a file costs less than a message."""
ALIGNED = 64
YOUNG = 60.0
"""Seconds in which a folder gets its lock."""
AT_ONCE = 512
"""Pieces that one call writes; systems take 1,024 or more."""


class Block(NamedTuple):
    """A file in the receiver's folder, and the sizes of the pieces in it."""

    name: str
    sizes: tuple[int, ...]


class Letterbox:
    """A worker's own folder. `open` finds none where the system has no such locks or no place is writable."""

    def __init__(self, folder: Path, lock: FileIO, token: str) -> None:
        self.folder = folder
        self.address = f"{token}{folder}"
        self._lock = lock

    @classmethod
    def open(cls) -> Letterbox | None:
        sweep()
        for place in _places():
            try:
                folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
                token = secrets.token_hex(16)
                # It is open as long as the worker lives.
                lock = open(folder / LOCK, "xb", buffering=0)  # noqa: SIM115
                if _locked(lock):
                    lock.write(token.encode())
                    return cls(folder, lock, token)
            except OSError:
                continue
        return None

    def take(self, block: Block) -> list[memoryview]:
        """The pieces of a block, which nobody may write to; it is gone when they are."""
        path = self.folder / block.name
        with open(path, "rb", buffering=0) as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        path.unlink()
        return [whole[start : start + size] for start, size in zip(_starts(block.sizes), block.sizes, strict=True)]

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


class Slot:
    """The way into another worker's folder; `found` is None where the worker is elsewhere."""

    def __init__(self, folder: Path, sender: int) -> None:
        self._folder = folder
        self._sender = sender
        self._count = 0

    @classmethod
    def found(cls, address: str, sender: int) -> Slot | None:
        token, folder = address[:32], Path(address[32:])
        try:
            there = address and os.access(folder, os.W_OK | os.X_OK) and (folder / LOCK).read_bytes() == token.encode()
        except OSError:
            return None
        return cls(folder, sender) if there else None

    def put(self, pieces: Sequence[memoryview]) -> Block | None:
        """Writes a block; None if it is not worth it or there is no room: then it must go as a message."""
        sizes = tuple(piece.nbytes for piece in pieces)
        if sum(sizes) < LARGE:
            return None
        self._count += 1
        block = Block(f"{self._sender}-{self._count}", sizes)
        path = self._folder / block.name
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0) as file:
                _write(file.fileno(), pieces)
        except OSError:
            path.unlink(missing_ok=True)
            return None
        return block


def sweep() -> None:
    """Removes the folders of workers of this user that are no more."""
    for place in _places():
        for folder in place.glob(f"{PREFIX}*"):
            try:
                with open(folder / LOCK, "rb", buffering=0) as lock:
                    if _locked(lock):
                        shutil.rmtree(folder, ignore_errors=True)
            except FileNotFoundError:  # it may be about to get one
                with suppress(OSError):
                    if time.time() - folder.stat().st_mtime > YOUNG:
                        shutil.rmtree(folder, ignore_errors=True)
            except OSError:
                continue


def _places() -> Iterator[Path]:
    """Where folders may be: in memory before all."""
    for place in dict.fromkeys((Path("/dev/shm"), Path(tempfile.gettempdir()))):
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            yield place


def _locked(file: Any) -> bool:
    """Whether the lock was free and is ours now, until the file is closed."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


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
        written = os.writev(file, left[:AT_ONCE])
        while left and written >= left[0].nbytes:
            written -= left.pop(0).nbytes
        if written:
            left[0] = left[0][written:]
