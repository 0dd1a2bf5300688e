"""Ctrl-C stops within a second, whatever the main thread is doing.

Python handles a signal between two bytecodes of the main thread, so inside a long kernel nothing happens. The interpreter's
C-level handler, however, writes the signal's number to a file descriptor at once: a thread waits there, gives the main thread a
grace period to raise KeyboardInterrupt and clean up, and then ends the process. No output is half-written by that: files are
written beside their place and renamed; `cleanup` removes what lies beside. What is added to files is written in a block that
is `whole`.
"""

from __future__ import annotations

import _thread
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

GRACE = 0.7
WHOLE_GRACE = 30.0
"""Seconds that a block takes at most for which an interruption waits: a reader may never take what it writes."""
EXIT_CODE = 130
_whole = threading.Event()
"""Set while such a block runs."""


@contextmanager
def prompt_interruption(grace: float = GRACE, cleanup: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within the block an interruption that is not handled after `grace` seconds ends the process, after a `cleanup`.

    Does something only in the main thread, and only where SIGINT raises KeyboardInterrupt."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    done = threading.Event()
    previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, done, grace, cleanup), name="interruption", daemon=True)
    watcher.start()
    hook = sys.unraisablehook
    sys.unraisablehook = _quiet(hook)
    try:
        yield
    finally:
        done.set()
        sys.unraisablehook = hook
        signal.set_wakeup_fd(previous)
        writer.close()
        watcher.join()
        reader.close()


@contextmanager
def whole() -> Iterator[None]:
    """A block that an interruption waits for, so that nothing is written in part."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    _whole.set()
    try:
        yield
    finally:
        _whole.clear()
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def heeded_interruption() -> Iterator[None]:
    """Within the block no interruption is lost, wherever it hits."""
    hook = sys.unraisablehook
    sys.unraisablehook = _quiet(hook)
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _quiet(hook: Callable[[sys.UnraisableHookArgs], object]) -> Callable[[sys.UnraisableHookArgs], object]:
    """A hook that raises an interruption again that hit a finalizer, where Python would print and forget it. It does so a
    moment later: right now it would hit the hook itself."""

    def handle(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            threading.Timer(0.01, _thread.interrupt_main).start()
        else:
            hook(unraisable)

    return handle


def _watch(reader: socket.socket, done: threading.Event, grace: float, cleanup: Callable[[], None]) -> None:
    while received := reader.recv(16):
        if signal.SIGINT in received:
            end = time.monotonic() + WHOLE_GRACE
            while not done.wait(grace):
                if not _whole.is_set() or time.monotonic() > end:
                    with suppress(OSError):
                        cleanup()
                    print("interrupted", file=sys.stderr, flush=True)
                    os._exit(EXIT_CODE)
            return
