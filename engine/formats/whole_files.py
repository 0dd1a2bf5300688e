"""Files that nobody sees half of, and that are not written where links lead: others may have left these."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dlog.engine.formats.parameters import directive_error
from dlog.engine.ir.rules import Io, Program
from dlog.temporary import lock, remove_left

LISTED = 1.0
"""Seconds for which the list of a folder's files holds."""
_PART = re.compile(r"\..+\.[0-9]+\.part", re.DOTALL)
_listed: dict[Path, tuple[float, dict[str, list[Path]]]] = {}
"""The last folder that was listed: when, and what was found, by the name of the file."""


def write_whole(io: Io, program: Program, path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Writes a file under another name beside its own, then renames it; leaves nothing behind on failure. Devices are written
    to: to root the system lets them be replaced as well."""
    if path.parent == Path("/dev") or (path.is_char_device() and not path.is_symlink()):
        _write_to_device(io, program, path, write)
        return
    if not path.name:
        raise directive_error(io, program, "unwritable-file", f"cannot write {path}: it is a folder")
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    remove_left(_parts(path))
    try:
        beside.unlink(missing_ok=True)
        with beside.open("xb") as file:  # never one that was there, which may be somebody's link
            lock(file.fileno())
            write(file)
        beside.replace(path)
    except OSError as error:
        note = "" if path.parent.is_dir() else f"there is no folder {path.parent}"
        message = f"cannot write {path}: {error.strerror}"
        raise directive_error(io, program, "unwritable-file", message, *([note] if note else [])) from error
    finally:
        beside.unlink(missing_ok=True)


def _parts(path: Path) -> list[Path]:
    """The files that writers of this one may have left beside it. A run writes thousands into one folder, which is not listed
    for each of them."""
    listed, found = _listed.get(path.parent, (-LISTED, {}))
    if time.monotonic() - listed > LISTED:
        found = {}
        with suppress(OSError):
            for name in filter(_PART.fullmatch, os.listdir(path.parent)):
                found.setdefault(name[1:].rsplit(".", 2)[0], []).append(path.with_name(name))
        _listed.clear()
        _listed[path.parent] = time.monotonic(), found
    return found.get(path.name, [])


def _write_to_device(io: Io, program: Program, path: Path, write: Callable[[BinaryIO], None]) -> None:
    sys.stdout.flush()  # which may be the same
    try:
        with path.open("ab") as file:
            write(file)
    except OSError as error:
        raise directive_error(io, program, "unwritable-file", f"cannot write {path}: {error.strerror}") from error
