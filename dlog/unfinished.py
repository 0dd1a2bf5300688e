"""Files that are written under another name beside their own, then renamed: nobody sees half of one, and none stays behind.

Each is locked by its writer before there is anything in it. The lock ends with the process, however that ends, and it alone
tells what was left: the number of a process tells nothing, as in containers many have the same one, at once and in turn.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from dlog.dataclass import dataclass
from dlog.locks import TO_LOCK, OwnedFile, hold, lock
from dlog.temporary import opened

_NAME = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part", re.DOTALL)
_TRIES = 8
"""How often a file is made that cannot be locked before it is written without: the system has no such locks then."""
LISTED = 1.0
"""Seconds for which the list of a folder's files holds."""
_listed: dict[Path, tuple[float, dict[str, list[Path]]]] = {}
"""The last folder that was listed: when, and what was found, by the name of the file."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is held open: a name in it is a name in it, whatever others put in the place of the folder. Without a
    `descriptor`, where the system knows no names in such, it is found by its path each time."""

    path: Path
    descriptor: int | None

    def open(self, name: str, how: int, mode: int = 0o600) -> int:
        """The descriptor of a file, which is no link. Nobody waits for a pipe."""
        quiet = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self._name(name), how | quiet, mode, dir_fd=self.descriptor)

    def has(self, name: str, descriptor: int) -> bool:
        """Whether an open file has this name."""
        try:
            about = os.stat(self._name(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(os.fstat(descriptor), about)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._name(old), self._name(new), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def unlink(self, name: str) -> None:
        """Does nothing where there is none."""
        with suppress(FileNotFoundError):
            os.unlink(self._name(name), dir_fd=self.descriptor)

    def _name(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)


Grant = Callable[[Folder, int, int], None]
"""Gives a file that has been written, by its descriptor, its rights before it gets its name in the folder. A new file has those
that come last."""
_unfinished_files: set[tuple[Folder, str]] = set()
"""What this process writes now."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unfinished_files.clear)


@contextmanager
def replacing(path: Path, mode: int = 0o666, grant: Grant | None = None) -> Iterator[BinaryIO]:
    """A new file with these rights, as far as the mask leaves them, that takes the place of what is at `path` when the block
    ends well, and goes when it does not. Until then it is its owner's alone, who can read and write it whatever its rights are
    then: else nobody could lock it, and remove it, if its writer is killed. Raises OSError."""
    with _open_folder(path.parent) as folder:
        made, beside = _create_beside(folder, path.name, mode)
        held = _again(made)
        rights = _withheld(made.descriptor)
        try:
            with os.fdopen(made.descriptor, "wb") as file:
                yield file
                file.flush()
                if grant is None:
                    give_mode(made.descriptor, rights)
                else:
                    grant(folder, made.descriptor, rights)
            if (folder, beside) in _unfinished_files:  # else it is the process's from which this one has been forked since
                folder.rename(beside, path.name)
        finally:
            made.forget()
            _unlink_begun(folder, beside)
            if held is not None:
                held.close()


@contextmanager
def _open_folder(path: Path) -> Iterator[Folder]:
    if os.open not in os.supports_dir_fd:
        yield Folder(path, None)
        return
    # one may be for writing, and for nobody to read
    descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY)
    try:
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _create_beside(folder: Folder, name: str, mode: int) -> tuple[OwnedFile, str]:
    """A file of a name that was free, and that name. Who looks for what was left may lock one that is not locked yet, and
    remove it: then there is another one."""
    for last in (False,) * (_TRIES - 1) + (True,):
        beside = f".{name}.{secrets.token_hex(6)}.part"
        _unfinished_files.add((folder, beside))
        try:
            # never one that was there, which may be somebody's link
            made = hold(partial(folder.open, beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        except BaseException as error:
            _unfinished_files.discard((folder, beside))
            if last or not isinstance(error, FileExistsError):
                raise
            continue
        if (lock(made.descriptor) and folder.has(beside, made.descriptor)) or last:
            break
        made.close()
        _unlink_begun(folder, beside)
    return made, beside


def _unlink_begun(folder: Folder, beside: str) -> None:
    if (folder, beside) in _unfinished_files:
        folder.unlink(beside)
        _unfinished_files.discard((folder, beside))


def _withheld(descriptor: int) -> int:
    """The rights of a new file, that it gets when it is written. Where they cannot be changed they stay."""
    rights = stat.S_IMODE(os.fstat(descriptor).st_mode)
    with suppress(OSError):
        give_mode(descriptor, 0o600)
    return rights


def give_mode(descriptor: int, rights: int) -> None:
    """Raises OSError."""
    if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != rights:
        os.fchmod(descriptor, rights)


def _again(made: OwnedFile) -> OwnedFile | None:
    """Another descriptor of a file: the lock outlasts the writing until the file has its name. Where files cannot be renamed
    while they are open there are no such locks either."""
    return hold(lambda: os.dup(made.descriptor)) if os.name == "posix" else None


def named(name: str) -> str | None:
    """The name that a file will have, by the one that it is written under; None for other files."""
    found = _NAME.fullmatch(name)
    return found[1] if found else None


def remove_left(files: Iterable[Path]) -> None:
    """Removes those of files, named as unfinished ones are, whose writer was killed."""
    for file in files:
        with suppress(OSError):
            if named(file.name) is not None:
                _remove_if_left(file)


def remove_left_beside(path: Path) -> None:
    """Removes what writers of this file that were killed have left. A run writes thousands into one folder, which is not listed
    for each of them."""
    listed, found = _listed.get(path.parent, (-LISTED, {}))
    if time.monotonic() - listed > LISTED:
        found = {}
        with suppress(OSError):
            for beside in os.listdir(path.parent):
                if (name := named(beside)) is not None:
                    found.setdefault(name, []).append(path.with_name(beside))
        _listed.clear()
        _listed[path.parent] = time.monotonic(), found
    remove_left(found.get(path.name, []))


def _remove_if_left(file: Path) -> None:
    """Raises OSError."""
    with opened(file, *TO_LOCK) as descriptor:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and lock(descriptor) and _is_at(descriptor, file):
            file.unlink()


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def discard() -> None:
    """Removes what this process has begun to write, and will not finish."""
    for folder, beside in list(_unfinished_files):
        with suppress(OSError):
            folder.unlink(beside)
