"""The end of the editor is the end of the server, whoever else holds the pipe between them.

A thread waits for that. While a call into C has the interpreter for itself, as an expression of `re` may for as long as it
likes, no thread runs: so the system ends a process that has worked for some seconds without this one.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from dlog import temporary

LOOKING = 3.0
"""Seconds from one look for the editor to the next."""
WORKING = 10.0
"""Seconds of processor time without such a look after which the system ends the process."""


def begin() -> None:
    """Has the signal that ends a process which works for too long end this one, whoever has started it with another choice.
    To be called in the main thread, before there are others."""
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})


def end_with(process: int, parent: int) -> None:
    """Has this process end when another one has. One that is not there, in another container perhaps, is not looked for, unless
    it is the `parent` that has started this process, and has ended meanwhile."""
    has_ended = _waiting(process)
    if has_ended is None and process == parent != os.getppid():
        has_ended = _has_ended
    if has_ended is not None:
        threading.Thread(target=_end_after, args=(has_ended,), name="editor", daemon=True).start()


def _has_ended() -> bool:
    return True


def _end_after(has_ended: Callable[[], bool]) -> None:
    _go_on()
    while not has_ended():
        _go_on()
    temporary.remove_all()
    os._exit(0)  # an analysis may have no end, and nothing is written


def _go_on() -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, WORKING)


def _waiting(process: int) -> Callable[[], bool] | None:
    """What waits for the end of a process, some seconds, and says whether it came; None where there is no such process, or the
    system does not tell."""
    if hasattr(os, "pidfd_open"):
        with suppress(OSError, OverflowError):  # an older kernel, or no such process
            waiting = select.poll()  # `select` takes no descriptor from 1024 on
            waiting.register(os.pidfd_open(process), select.POLLIN)
            return lambda: waiting.poll(LOOKING * 1000) != []
    return (lambda: _is_gone(process)) if os.name == "posix" and _is_there(process) else None


def _is_gone(process: int) -> bool:
    time.sleep(LOOKING)
    return not _is_there(process)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
