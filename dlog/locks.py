"""Locks of files that end with the process that has taken them, however it ends: none outlives it in what it has forked.

A forked process inherits the descriptors of the one before, and each of them holds the lock: somebody's worker, begun while a
file was written, would hold that as long as it lives. So all descriptors of locks are known here, and lead nowhere in a forked
process. Who is to hold a lock, too, gets another descriptor of it. Pipes whose end tells a process that this one has ended are
known here for the same reason.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dlog.dataclass import dataclass

TO_LOCK = (os.O_RDWR, os.O_WRONLY, os.O_RDONLY)
"""How a file is opened that is to be locked: for writing, which such a lock needs where files are another machine's (NFS),
unless its rights have that not."""
_owned_files: set[OwnedFile] = set()
_guard = threading.RLock()
"""Nobody forks while a descriptor is opened and not known yet, or closed and known still."""


@dataclass(frozen=True, eq=False)
class OwnedFile:
    """An open file whose lock, or a pipe whose end, is this process's alone."""

    descriptor: int
    about: os.stat_result

    def close(self) -> None:
        """May be called again."""
        with _guard:
            if self in _owned_files:
                _owned_files.discard(self)
                os.close(self.descriptor)

    def forget(self) -> None:
        """It has been closed."""
        with _guard:
            _owned_files.discard(self)

    @contextmanager
    def shared(self) -> Iterator[int]:
        """A descriptor for a process that is to hold the lock, too, and is started in this block."""
        descriptor = os.dup(self.descriptor)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def hold(opening: Callable[[], int]) -> OwnedFile:
    """What this opens is to be locked, or a pipe. Raises what that raises."""
    with _guard:
        descriptor = opening()
        made = OwnedFile(descriptor, os.fstat(descriptor))
        _owned_files.add(made)
        return made


def lock(file: int) -> bool:
    """Whether the lock was free and is ours now, until the file is closed. False where the system has no such locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _let_go() -> None:
    """In a process that was forked. The numbers stay taken: whoever closes them there, or writes to them, hits nothing else."""
    try:
        while _owned_files:
            _lead_nowhere(_owned_files.pop())
    finally:
        _guard.release()


def _lead_nowhere(held: OwnedFile) -> None:
    with suppress(OSError):
        if not os.path.samestat(os.fstat(held.descriptor), held.about):  # its file has closed it
            return
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
        except OSError:
            os.close(held.descriptor)
            return
        os.dup2(nowhere, held.descriptor, inheritable=False)
        os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_let_go)
