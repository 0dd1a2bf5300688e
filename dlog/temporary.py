"""Folders that last as long as their process: nobody but its user can enter them, and none stays behind.

Each holds a file that its owner keeps locked. The lock ends with the process, however that ends: whoever comes later removes
the folders of this user whose locks are free. Files of others in the same place are never opened.
"""

from __future__ import annotations

import atexit
import errno
import math
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Protocol

from dlog.locks import TO_LOCK, hold, lock
from dlog.removal import remove_tree

PREFIX = "dlog-"
KINDS = ("cache", "dump", "kernels", "spark", "sqlite", "worker", "zipped")
"""What follows in a folder's name: others that begin alike are somebody's own."""
LOCK = "owner"
"""The file that a folder's owner keeps locked; it holds the folder's token."""
TOKEN_SIZE = 32
"""Characters of a token."""
LAST = -1_000
"""What is done at the end of a process of `multiprocessing`, comes by such numbers, the highest first."""
YOUNG = 60.0
"""Seconds in which a folder gets its lock."""

_leases: dict[Path, Lease] = {}
"""The folders of this process that are still there."""


class Process(Protocol):
    """One that this process has started."""

    def end(self) -> None:
        """Returns when it is no more. It may not have come to begin."""


class Lease:
    """A folder of this process, for a block of `with` or until `remove`, which does nothing the second time, and in a process
    that was forked from the owner's."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        self.folder = folder
        self.token = secrets.token_hex(TOKEN_SIZE // 2)
        self.is_own = True
        self.processes: list[Process] = []
        """Those that write in the folder, and would make it anew where they do not find it: they end before it goes."""
        # It is open as long as the process lives, and gets its name when it is locked: whoever sweeps takes it for left before.
        with _just_made(folder) as place:
            begun, named = (folder / f".{LOCK}", folder / LOCK) if place is None else (f".{LOCK}", LOCK)
            self.lock = hold(lambda: os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=place))
            try:
                self.is_locked = lock(self.lock.descriptor)
                os.write(self.lock.descriptor, self.token.encode())
                os.rename(begun, named, src_dir_fd=place, dst_dir_fd=place)
            except BaseException:
                self.lock.close()
                raise

    @property
    def is_there(self) -> bool:
        """Whether the folder is this process's, and is where it was."""
        with suppress(OSError):
            return self.is_own and os.path.samestat((self.folder / LOCK).lstat(), self.lock.about)
        return False

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def remove(self) -> None:
        try:
            if _leases.pop(self.folder, None) is not None and self.is_own:
                try:
                    while self.processes:
                        self.processes.pop().end()
                finally:
                    _remove(self.folder, self.lock.about)
        finally:
            self.lock.close()


def lease(kind: str, place: Path | None = None) -> Lease:
    """A new folder, among the temporary files by default; `kind` is a part of its name. Raises OSError."""
    sweep([place or Path(gettempdir())])
    folder = Path(mkdtemp(prefix=f"{PREFIX}{kind}-", dir=place)).absolute()
    try:
        made = _leases[folder] = Lease(folder)
    except OSError:
        _remove_begun(folder)
        raise
    _have_children_remove()
    return made


def _have_children_remove() -> None:
    """A process of `multiprocessing` ends by that one's own list of what to do, before Python 3.13 by that alone."""
    processes, ends = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    if processes is not None and ends is not None and processes.parent_process() is not None:
        ends.Finalize(None, remove_all, exitpriority=LAST)


@contextmanager
def _just_made(folder: Path) -> Iterator[int | None]:
    """The descriptor of a new folder, where the system knows such. Raises OSError if others have put another one in its place
    since, or a link to one: it may be this user's, with files of these names."""
    if os.open not in os.supports_dir_fd:
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid() or os.listdir(descriptor):
            raise OSError(errno.EPERM, "somebody else has put it there", str(folder))
        yield descriptor
    finally:
        os.close(descriptor)


def kept_above(path: Path) -> Path | None:
    """The folder of this process that a path is, or is in, known by the lock: others cannot have put another one there. None of
    the process from which this one was forked, which may be gone, and the number of the lock's file somebody's."""
    held = [made.lock.about for made in list(_leases.values()) if made.is_own]
    for place in (*reversed(path.parents), path):
        with suppress(OSError):
            found = (place / LOCK).lstat()
            if any(os.path.samestat(found, about) for about in held):
                return place
    return None


@atexit.register
def remove_all() -> None:
    """At the end of the process, which an interruption only has come sooner."""
    with suppress(KeyboardInterrupt), ExitStack() as removals:
        for made in list(_leases.values()):
            removals.callback(made.remove)


def _disown() -> None:
    """In a process that was forked: what the one before has is not its own, whatever numbers the two have."""
    for made in _leases.values():
        made.is_own = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown)


def sweep(places: Iterable[Path]) -> None:
    """Removes the folders in these places that processes of this user have left behind."""
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            found = [Path(entry.path) for entry in entries if _is_like_ours(entry)]
            for folder in found:
                if folder in _leases:
                    continue
                if (left := free_lock(folder)) is not None:
                    _remove(folder, left)
                else:
                    _remove_begun(folder, YOUNG)


def sweep_temporary() -> None:
    """`sweep` where temporary folders are by default."""
    sweep([Path(gettempdir())])


def _is_like_ours(entry: os.DirEntry[str]) -> bool:
    if not entry.name.startswith(tuple(f"{PREFIX}{kind}-" for kind in KINDS)):
        return False
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:  # gone meanwhile
        return False
    return stat.S_ISDIR(about.st_mode) and hasattr(os, "getuid") and about.st_uid == os.getuid()


def free_lock(folder: Path) -> os.stat_result | None:
    """What is known of a folder's lock that had an owner, and nobody holds any more. Others may have given the folder's name to
    what is this user's, but was never a folder of ours: that has no lock with a token in it."""
    with suppress(OSError), opened(folder / LOCK, *TO_LOCK) as file:
        about = os.fstat(file)
        if (about.st_uid, about.st_size) == (os.getuid(), TOKEN_SIZE) and lock(file):
            return about
    return None


def _remove(folder: Path, lock: os.stat_result) -> None:
    """Removes the folder that has this lock, which goes last, and no other one that others have given its name since."""
    if os.open not in os.supports_dir_fd:
        with suppress(OSError):
            remove_tree(folder)
        return
    with suppress(OSError), opened(folder) as descriptor:
        if os.path.samestat(os.stat(LOCK, dir_fd=descriptor, follow_symlinks=False), lock):
            for name in set(os.listdir(descriptor)) - {LOCK}:
                _remove_within(descriptor, name)
            if os.listdir(descriptor) == [LOCK]:  # else processes that end with this one still write: the next sweep is theirs
                _remove_emptied(folder, descriptor)


def _remove_emptied(folder: Path, descriptor: int) -> None:
    """Removes a folder with nothing but a lock; it gets another one where somebody writes there meanwhile."""
    os.unlink(LOCK, dir_fd=descriptor)
    try:
        folder.rmdir()
    except OSError:
        made = os.open(LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=descriptor)
        with open(made, "wb") as file:
            file.write(bytes(TOKEN_SIZE))


def _remove_within(folder: int, name: str) -> None:
    with suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            remove_tree(name, folder)
        else:
            os.unlink(name, dir_fd=folder)


def _remove_begun(folder: Path, age: float = -math.inf) -> None:
    """Removes a folder, if it is as old, whose owner did not come to lock it: nothing else is in it then."""
    begun = f".{LOCK}"
    with suppress(OSError), opened(folder) as descriptor:
        names = os.listdir(descriptor)
        if names not in ([], [begun]) or time.time() - os.fstat(descriptor).st_mtime <= age:  # it may be about to get one
            return
        if names and os.stat(begun, dir_fd=descriptor, follow_symlinks=False).st_size in (0, TOKEN_SIZE):
            os.unlink(begun, dir_fd=descriptor)
        folder.rmdir()


@contextmanager
def opened(path: Path, *ways: int) -> Iterator[int]:
    """The descriptor of a file or folder, which is no link, opened in the first of these ways that its rights have, by default
    to be read. Nobody waits for a pipe. Raises OSError."""
    held = hold(lambda: _open_itself(path, ways or (os.O_RDONLY,)))
    try:
        yield held.descriptor
    finally:
        held.close()


def _open_itself(path: Path, ways: tuple[int, ...]) -> int:
    quiet = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    for way in ways[:-1]:
        with suppress(PermissionError):
            return os.open(path, way | quiet)
    return os.open(path, ways[-1] | quiet)
