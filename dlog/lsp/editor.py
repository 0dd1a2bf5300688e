"""The end of the editor is the end of the server, whoever else holds the pipe between them."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from dlog import temporary

LOOKING = 3.0
"""Seconds from one look for the editor to the next, where the system does not say when it ends."""


def end_with(process: int, parent: int) -> None:
    """Has this process end when another one has. One that is not there, in another container perhaps, is not looked for, unless
    it is the `parent` that has started this process, and has ended meanwhile."""
    wait = _waiting(process)
    if wait is None and process == parent != os.getppid():
        wait = bool
    if wait is not None:
        threading.Thread(target=_end_after, args=(wait,), name="editor", daemon=True).start()


def _end_after(wait: Callable[[], object]) -> None:
    wait()
    temporary.remove_all()
    os._exit(0)  # an analysis may have no end, and nothing is written


def _waiting(process: int) -> Callable[[], object] | None:
    """What returns when a process has ended; None where there is none, or the system does not tell."""
    if hasattr(os, "pidfd_open"):
        with suppress(OSError, OverflowError):  # an older kernel, or no such process
            descriptor = os.pidfd_open(process)
            return lambda: select.select([descriptor], [], [])
    return (lambda: _look_for(process)) if os.name == "posix" and _is_there(process) else None


def _look_for(process: int) -> None:
    while _is_there(process):
        time.sleep(LOOKING)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
