"""Files that are written under another name beside their own, then renamed: nobody sees half of one, and none stays behind.

Each is locked by its writer before there is anything in it. The lock ends with the process, however that ends, and it alone
tells what was left: the number of a process tells nothing, as in containers many have the same one, at once and in turn.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from dlog.temporary import lock, opened

_NAME = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part", re.DOTALL)
_TRIES = 8
"""How often a file is made that cannot be locked before it is written without: the system has no such locks then."""
_begun: set[Path] = set()
"""What this process writes now."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begun.clear)


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A new file with these rights, as far as the mask leaves them, that takes the place of what is at `path` when the block
    ends well, and goes when it does not. Raises OSError."""
    file, beside = _made(path, mode)
    held = _held(file)
    try:
        with file:
            yield file
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
        _begun.discard(beside)
        if held is not None:
            os.close(held)


def _made(path: Path, mode: int) -> tuple[BinaryIO, Path]:
    """A file of a name that was free, and that name. Who looks for what was left may lock one that is not locked yet, and
    remove it: then there is another one."""
    for last in (False,) * (_TRIES - 1) + (True,):
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
        _begun.add(beside)
        try:
            # never one that was there, which may be somebody's link
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        except BaseException as error:
            _begun.discard(beside)
            if last or not isinstance(error, FileExistsError):
                raise
            continue
        if (lock(descriptor) and _is_at(descriptor, beside)) or last:
            break
        os.close(descriptor)
        beside.unlink(missing_ok=True)
        _begun.discard(beside)
    return os.fdopen(descriptor, "wb"), beside


def _held(file: BinaryIO) -> int | None:
    """Another descriptor of a file: the lock outlasts the writing until the file has its name. Where files cannot be renamed
    while they are open there are no such locks either."""
    return os.dup(file.fileno()) if os.name == "posix" else None


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


def _remove_if_left(file: Path) -> None:
    """Raises OSError."""
    with opened(file) as descriptor:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and lock(descriptor) and _is_at(descriptor, file):
            file.unlink()


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def discard() -> None:
    """Removes what this process has begun to write, and will not finish."""
    for beside in list(_begun):
        with suppress(OSError):
            beside.unlink()
