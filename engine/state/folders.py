"""Folders of states that stay the ones they were: what is in them is found by a descriptor, whatever has their names meanwhile.

Others may be able to put another folder, or a link to one of this user's, in the place of a state's: from one call to the next
the same path would lead elsewhere. So who opens a state, or looks it over, holds its folder, and all that `files.py` and its
neighbours read, write and remove is in the one that is held. Where the system knows no such descriptors paths are all there is.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

from dlog import removal

_CAN = {os.open, os.stat, os.unlink, os.rename, os.mkdir, os.readlink} <= os.supports_dir_fd and os.listdir in os.supports_fd
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_lock = threading.Lock()
_descriptors: dict[Path, list[int]] = {}
"""The descriptors of folders, by the paths that are used for them: those of a path are of one folder."""


class OpenFolder:
    """A folder, until `let_go`. Raises OSError, also where the path has led to another one that is held still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = -1
        if _CAN:
            with _lock:
                self._descriptor = _opened(folder)
                _descriptors.setdefault(folder, []).append(self._descriptor)

    def let_go(self) -> None:
        """May be called again."""
        with _lock:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                _descriptors[self.folder].remove(descriptor)
                if not _descriptors[self.folder]:
                    del _descriptors[self.folder]
                os.close(descriptor)

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.let_go()


def _opened(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    if any(not os.path.sameopenfile(descriptor, other) for other in _descriptors.get(folder, ())):
        os.close(descriptor)
        raise OSError(errno.ESTALE, "another folder has taken the place of one that is open", str(folder))
    return descriptor


def _place(path: Path) -> tuple[Path | str, int | None]:
    """How the system finds a path: its name, and the descriptor of its folder where that is held."""
    held = _descriptors.get(path.parent)
    return (path.name, held[-1]) if held else (path, None)


def open_at(path: Path, how: int, mode: int = 0o666) -> int:
    name, folder = _place(path)
    return os.open(name, how, mode, dir_fd=folder)


def unlink(path: Path) -> None:
    name, folder = _place(path)
    os.unlink(name, dir_fd=folder)


def rename(path: Path, to: Path, source: int | None = None) -> None:
    """Gives what is at `path`, in a folder of the descriptor `source`, another name, in the place of what has it."""
    (old, held), (new, target) = _place(path), _place(to)
    os.replace(old if source is None else path.name, new, src_dir_fd=held if source is None else source, dst_dir_fd=target)


def make(path: Path, mode: int) -> None:
    """A new folder."""
    name, folder = _place(path)
    os.mkdir(name, mode, dir_fd=folder)


def remove_tree(path: Path) -> None:
    """Removes a file, a link, or a folder with all that is in it."""
    name, folder = _place(path)
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        removal.remove_tree(name, folder)
    else:
        os.unlink(name, dir_fd=folder)


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    held = _descriptors.get(folder)
    return os.listdir(held[-1] if held else folder)


def sync(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    held = _descriptors.get(folder)
    descriptor = os.dup(held[-1]) if held else os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def about(path: Path, follow: bool = True) -> os.stat_result | None:
    """What the system knows of a file, or of the link itself where that is not to be followed; None where there is none."""
    name, folder = _place(path)
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=follow)
    except OSError as error:
        if error.errno not in _NOTHING:
            raise
        return None


def size(path: Path) -> int:
    """Raises OSError."""
    name, folder = _place(path)
    return os.stat(name, dir_fd=folder).st_size


def exists(path: Path) -> bool:
    return about(path) is not None


def target_of(path: Path) -> str | None:
    """Where a link leads; None for what is none."""
    found = about(path, follow=False)
    if found is None or not stat.S_ISLNK(found.st_mode):
        return None
    name, folder = _place(path)
    return os.readlink(name, dir_fd=folder)
