"""Folders that last as long as their process: nobody but its user can enter them, and none stays behind.

Each holds a file that its owner keeps locked. The lock ends with the process, however that ends: whoever comes later removes
the folders of this user whose locks are free. Files of others in the same place are never opened.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

PREFIX = "dlog-"
KINDS = ("cache", "dump", "kernels", "spark", "sqlite", "worker", "zipped")
"""What follows in a folder's name: others that begin alike are somebody's own."""
LOCK = "owner"
"""The file that a folder's owner keeps locked; it holds the folder's token."""
TOKEN_SIZE = 32
"""Characters of a token."""
_PROCESS = re.compile("[1-9][0-9]{0,8}")
"""A process's number: others may have named a file after what is none, in digits of any script and any length."""
YOUNG = 60.0
"""Seconds in which a folder gets its lock."""

_kept: dict[Path, Lease] = {}
"""The folders of this process that are still there."""


class Lease:
    """A folder of this process. `remove` does nothing the second time, and in a process that was forked from the owner's."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        self.folder = folder
        self.token = secrets.token_hex(TOKEN_SIZE // 2)
        self._owner = os.getpid()
        # It is open as long as the process lives, and gets its name when it is locked: whoever sweeps takes it for left before.
        self._lock = open(folder / f".{LOCK}", "xb", buffering=0)  # noqa: SIM115
        self.is_locked = lock(self._lock.fileno())
        self._lock.write(self.token.encode())
        os.rename(folder / f".{LOCK}", folder / LOCK)

    def remove(self) -> None:
        if _kept.pop(self.folder, None) is not None and self._owner == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def lease(kind: str, place: Path | None = None) -> Lease:
    """A new folder, among the temporary files by default; `kind` is a part of its name. Raises OSError."""
    sweep([place or Path(gettempdir())])
    folder = Path(mkdtemp(prefix=f"{PREFIX}{kind}-", dir=place)).absolute()
    try:
        made = _kept[folder] = Lease(folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return made


@contextmanager
def leased(kind: str) -> Iterator[Path]:
    """A folder for a block."""
    made = lease(kind)
    try:
        yield made.folder
    finally:
        made.remove()


def remove(folder: Path) -> None:
    """Removes a folder of this process, if it is still there."""
    if folder in _kept:
        _kept[folder].remove()


@atexit.register
def remove_all() -> None:
    """At the end of the process."""
    for made in list(_kept.values()):
        made.remove()


def sweep(places: Iterable[Path]) -> None:
    """Removes the folders in these places that processes of this user have left behind."""
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            found = [Path(entry.path) for entry in entries if _is_like_ours(entry)]
            for folder in found:
                if folder in _kept:
                    continue
                if _is_left(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                else:
                    _remove_if_begun(folder)


def _is_like_ours(entry: os.DirEntry[str]) -> bool:
    if not entry.name.startswith(tuple(f"{PREFIX}{kind}-" for kind in KINDS)):
        return False
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:  # gone meanwhile
        return False
    return stat.S_ISDIR(about.st_mode) and hasattr(os, "getuid") and about.st_uid == os.getuid()


def remove_left(files: Iterable[Path]) -> None:
    """Removes those of files, which their writers keep locked and name after their process (`.NAME.PID.part`), whose writer
    was killed."""
    for file in files if hasattr(os, "getuid") else ():
        number = file.suffixes[-2][1:] if file.suffixes[1:] else ""
        with suppress(OSError):
            if _PROCESS.fullmatch(number) and not _is_alive(int(number)) and _is_free(file):
                file.unlink()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _is_left(folder: Path) -> bool:
    """Whether a folder had an owner, and nobody holds it any more. Others may have given its name to what is this user's, but
    was never a folder of ours: that has no lock with a token in it."""
    try:
        about = (folder / LOCK).lstat()
        return (about.st_uid, about.st_size) == (os.getuid(), TOKEN_SIZE) and _is_free(folder / LOCK)
    except OSError:
        return False


def _remove_if_begun(folder: Path) -> None:
    """Removes a folder whose owner was killed before it had its lock: nothing else is in it then."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > YOUNG:  # it may be about to get one
            (folder / f".{LOCK}").unlink(missing_ok=True)
            folder.rmdir()


def _is_free(path: Path) -> bool:
    """Whether nobody holds the lock of a file. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return lock(file)
    finally:
        os.close(file)


def lock(file: int) -> bool:
    """Whether the lock was free and is ours now, until the file is closed. False where the system has no such locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
