"""Files that nobody sees half of, and that are not written where links lead: others may have left these."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dlog.engine.formats.parameters import directive_error
from dlog.engine.formats.rights import Rights, give, rights_at
from dlog.engine.ir.rules import Io, Program
from dlog.unfinished import give_mode, remove_left_beside, replacing


def write_whole(
    io: Io, program: Program, path: Path, write: Callable[[BinaryIO], None], before: Rights | None = None
) -> None:
    """Writes a file under another name beside its own, then renames it; leaves nothing behind on failure. Who could not read
    the one before cannot read it; it has all rights of that one if these are given. Devices are written to: to root the system
    lets them be replaced as well."""
    if "\0" in str(path):
        raise directive_error(io, program, "unwritable-file", f"cannot write {path}: no file has such a name")
    try:
        if (device := _opened_device(path)) is not None:
            sys.stdout.flush()  # which may be the same
            with device:
                write(device)
            return
    except OSError as error:
        raise directive_error(io, program, "unwritable-file", f"cannot write {path}: {error.strerror}") from error
    if not path.name:
        raise directive_error(io, program, "unwritable-file", f"cannot write {path}: it is a folder")
    remove_left_beside(path)
    try:
        with replacing(path, grant=lambda _, made, mode: _grant(made, mode, path, before)) as file:
            write(file)
    except OSError as error:
        note = "" if path.parent.is_dir() else f"there is no folder {path.parent}"
        message = f"cannot write {path}: {error.strerror}"
        raise directive_error(io, program, "unwritable-file", message, *([note] if note else [])) from error


def _grant(made: int, mode: int, path: Path, before: Rights | None) -> None:
    """Gives a new file all rights of the one before, or those of its mode that the one at a path has, too."""
    if before is not None:
        give(made, before)
    elif (there := rights_at(path)) is not None:
        give(made, there, mode)
    else:
        give_mode(made, mode)


def _opened_device(path: Path) -> BinaryIO | None:
    """The device of a name, None where there is none. What is there may be something else at the next look, where others can
    write: what has been opened counts, and no link is followed but those of `/dev`. Raises OSError."""
    if path.parent == Path("/dev"):
        return path.open("ab")
    try:
        if not stat.S_ISCHR(path.lstat().st_mode):
            return None
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NOCTTY", 0))
    except (FileNotFoundError, NotADirectoryError):  # a better message comes with the file
        return None
    if stat.S_ISCHR(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "ab")
    os.close(descriptor)
    return None
