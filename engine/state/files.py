"""Files that survive: written beside and renamed, synchronized before anything refers to them.

Everything that changes the disk goes through this module, into the folder that is held where one is (`folders.py`). What the
system refuses (no room, no permission) is the user's to know: a DlogError with the path.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import numpy as np

from dlog.caches import is_own_place, stays
from dlog.engine.state import folders
from dlog.grammar.diagnostics import Diagnostic, DlogError

Bytes = bytes | bytearray | memoryview
ITSELF = getattr(os, "O_NOFOLLOW", 0)
"""What is opened to be written is the file of this name, not one that a link leads to: others' links may lead anywhere."""
NONBLOCKING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Nobody waits for the other end of a pipe."""


@contextmanager
def refusals(path: Path, action: str) -> Iterator[None]:
    """Turns what the operating system refuses into an error that names the file."""
    try:
        yield
    except OSError as error:
        message = f"cannot {action} the state: {error.strerror or error}"
        raise DlogError(Diagnostic("state-file", message, place=str(path))) from error


@contextmanager
def named(place: str | None) -> Iterator[None]:
    """What is opened already, and cannot be written, as on a full disk, is told by its name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or place
        raise


def damaged(path: Path, what: str, *notes: str) -> DlogError:
    """A file in the folder of a state is not what was written."""
    folder = shlex.quote(str(path.parent))
    cures = (
        f"`dlog state check {folder}` lists all damage, `dlog state repair {folder}` brings back what can be brought back",
        f"`dlog state dump {folder} OUT` writes what can be read to files",
    )
    return DlogError(Diagnostic("state-corrupt", f"the state is damaged: {what}", notes=(*notes, *cures), place=str(path)))


def buffer(content: Bytes | np.ndarray) -> Bytes:
    """The bytes of a content; those of an array must be contiguous."""
    return content.data if isinstance(content, np.ndarray) else content


def checksum(content: Bytes | np.ndarray, before: int = 0) -> int:
    """The checksum of what follows on contents with the checksum `before`."""
    return zlib.crc32(buffer(content), before)


def write_all(descriptor: int, pieces: Sequence[Bytes]) -> None:
    """Writes all bytes of all pieces at the end of the file."""
    for piece in pieces:
        view = memoryview(piece).cast("B")
        while view:
            view = view[os.write(descriptor, view) :]


def sync(descriptor: int) -> None:
    """Waits until the file's contents are on the disk."""
    os.fsync(descriptor)


def to_read(path: Path) -> BinaryIO:
    """Opens what is a file: a pipe in its place would have everybody wait. Raises OSError."""
    return cast("BinaryIO", open(_plain(folders.open_at(path, os.O_RDONLY | NONBLOCKING), path), "rb"))


def content(path: Path) -> bytes:
    """All that is in a file."""
    with refusals(path, "read"), to_read(path) as file:
        try:
            return file.read()
        except MemoryError:  # others may have made it of any size, and of nothing
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), str(path)) from None


def _plain(descriptor: int, path: Path) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return descriptor


def only_name(descriptor: int, path: Path) -> int:
    """Refuses a file with another name, where somebody else may have given it this one."""
    if os.fstat(descriptor).st_nlink > 1 and not is_own_place(path.parent):
        os.close(descriptor)
        raise OSError(errno.EMLINK, "it has another name elsewhere", str(path))
    return descriptor


def sync_folder(path: Path) -> None:
    """Waits until names made, renamed and removed in a folder are on the disk."""
    if os.name == "posix":
        folders.sync(path)


def create(path: Path, pieces: Sequence[Bytes], mode: int = 0o666) -> None:
    """A new file that is wholly on the disk, under a name nothing refers to yet: what is there goes, and is not written to, as
    it may be a link or be somebody's by another name, too."""
    remove(path)
    descriptor = folders.open_at(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | ITSELF, mode)
    try:
        write_all(descriptor, pieces)
        sync(descriptor)
    finally:
        os.close(descriptor)


def fill(empty: Path, path: Path, content: Bytes) -> None:
    """Gives an empty file that `create` has made its content, and a new name."""
    descriptor = only_name(folders.open_at(empty, os.O_WRONLY | ITSELF), empty)
    try:
        write_all(descriptor, [content])
        sync(descriptor)
    finally:
        os.close(descriptor)
    folders.rename(empty, path)


def replace(path: Path, content: bytes) -> None:
    """Gives a file new content: at any instant it has either the old or the new one, whole."""
    beside = path.with_name(path.name + ".new")
    create(beside, [content])
    folders.rename(beside, path)
    sync_folder(path.parent)


def open_to_append(path: Path, size: int) -> int:
    """Opens a file to write at its end, after cutting it to `size` bytes; made if it is not there."""
    descriptor = _plain(folders.open_at(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | ITSELF | NONBLOCKING), path)
    cut(only_name(descriptor, path), size)
    return descriptor


def text_to_extend(path: Path, anew: bool) -> TextIO:
    """A file to write text at its end, and read it, after emptying it where it is to begin `anew`. Where others can put
    something in its place it is not what a link or a pipe leads to."""
    if is_own_place(path.parent):
        return path.open("w" if anew else "a+", encoding="utf-8", newline="")
    return os.fdopen(open_to_append(path, 0 if anew else sys.maxsize), "w" if anew else "a+", encoding="utf-8", newline="")


def folder_beside(folder: Path, name: str) -> tuple[Path, int]:
    """A new folder within another one, for this user only: `name` and the first number that is free. With its descriptor, as
    others may put something else under its name. Raises OSError."""
    for number in count(1):
        path = folder / f"{name}{number}"
        with suppress(FileExistsError):
            folders.make(path, 0o700)
            descriptor = folders.open_at(path, os.O_RDONLY | os.O_DIRECTORY | ITSELF)
            if os.fstat(descriptor).st_uid != os.geteuid():
                os.close(descriptor)
                raise OSError(errno.EPERM, "somebody else has put it there", str(path))
            return path, descriptor
    raise AssertionError("numbers end")


@contextmanager
def own_folder(path: Path) -> Iterator[int]:
    """The descriptor of a folder of this user, which nobody else enters from now on. Raises OSError where others have put
    something else there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | ITSELF)
    try:
        _refuse_others(descriptor, path)
        os.fchmod(descriptor, 0o700)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def own_file(path: Path, folder: int) -> Iterator[BinaryIO]:
    """Opens a file of this user, which has no other name, in the folder of a descriptor. Raises OSError."""
    descriptor = _plain(os.open(path.name, os.O_RDONLY | ITSELF | NONBLOCKING, dir_fd=folder), path)
    with open(descriptor, "rb") as file:
        _refuse_others(descriptor, path)
        if os.fstat(descriptor).st_nlink > 1:
            raise OSError(errno.EMLINK, "it has another name elsewhere", str(path))
        yield file


def _refuse_others(descriptor: int, path: Path) -> None:
    if os.fstat(descriptor).st_uid != os.geteuid():
        raise OSError(errno.EPERM, "somebody else has put it there", str(path))


def copy_into(path: Path, folder: int) -> None:
    """Copies a file into the folder of a descriptor, under its name, for this user only: neither its mode nor what a link leads
    to, which is copied as a link. Raises OSError."""
    if (target := folders.target_of(path)) is not None:
        os.symlink(target, path.name, dir_fd=folder)
        return
    source = _plain(folders.open_at(path, os.O_RDONLY | ITSELF | NONBLOCKING), path)
    with open(source, "rb") as before:
        made = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | ITSELF, 0o600, dir_fd=folder)
        with open(made, "wb") as copy:
            shutil.copyfileobj(before, copy)
            copy.flush()
            sync(copy.fileno())


def cut(descriptor: int, size: int) -> None:
    """Drops what is beyond `size`."""
    if os.fstat(descriptor).st_size > size:
        os.ftruncate(descriptor, size)


def remove(path: Path) -> None:
    """Removes a file that may be gone already."""
    with suppress(FileNotFoundError):
        folders.unlink(path)


def mapped(path: Path, size: int) -> np.ndarray:
    """The first bytes of a file, read-only; mapped where nobody else can change them. It may grow or be removed meanwhile."""
    if size == 0:
        return np.empty(0, np.uint8)
    about = folders.about(path)
    if about is None or about.st_size < size:
        raise damaged(path, "a file is missing or too short")
    with refusals(path, "read"), to_read(path) as file:
        if stays(path, os.fstat(file.fileno())):
            return np.memmap(file, np.uint8, "r", shape=(size,)).view(np.ndarray)
        found = np.frombuffer(file.read(size), np.uint8)
    if len(found) < size:
        raise damaged(path, "a file is missing or too short")
    return found
