"""One writer at a time: a lock that the operating system releases when its holder dies, however it dies.

What its holder has forked holds it, too: it has the session, and may go on with it where the one before ends.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from dlog.engine.state import files, folders
from dlog.grammar.diagnostics import Diagnostic, DlogError

NAME = "lock"
_HOLDER = re.compile(rb"([0-9]+\n)?")


class Lock:
    """Holds the lock of a folder from when it is made until `release`; refused with a DlogError where another one holds it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        with files.refusals(self.path, "lock"):
            opened = folders.open_at(self.path, os.O_RDWR | os.O_CREAT | files.ITSELF | files.NONBLOCKING)
            self._descriptor = files.only_name(opened, self.path)
        if not _try_lock(self._descriptor):
            with files.refusals(self.path, "lock"):
                holder = os.read(self._descriptor, 64).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            notes = (f"process {holder} has it open",) if holder.isdigit() else ()
            raise DlogError(Diagnostic("state-locked", "the state is in use", notes=notes, place=str(folder)))
        with suppress(OSError):  # who holds it is only told to others: a full disk is no reason not to read what is there
            if _HOLDER.fullmatch(os.read(self._descriptor, 64)):  # else it is somebody's file that happens to have this name
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _try_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return _try_lock_windows(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _try_lock_windows(descriptor: int) -> bool:
    import msvcrt

    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
