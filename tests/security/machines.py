"""Locks as they are where files are another machine's."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest


def as_on_nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exclusive lock needs a file that is open for writing, a shared one a file that is open for reading: flock(2)."""
    fcntl = pytest.importorskip("fcntl")
    real: Callable[[int, int], None] = fcntl.flock

    def flock(file: int, how: int) -> None:
        opened = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
        wrong = {fcntl.LOCK_EX: os.O_RDONLY, fcntl.LOCK_SH: os.O_WRONLY}
        if wrong.get(how & ~fcntl.LOCK_NB) == opened:
            raise OSError(errno.EBADF, "not open for that")
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
