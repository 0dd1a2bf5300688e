"""Interruptions wait for a moment at which nothing is half done.

Python raises KeyboardInterrupt between any two bytecodes of the main thread, so also right after native code has changed
everything and before Python has taken note. Within `Delayed` a SIGINT is only noted: `check` raises it where the caller can go
back, and what is left is raised at the end of the outermost block, when all is done.
"""

from __future__ import annotations

import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from signal import SIGINT
from threading import get_ident
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

try:
    # `signal` turns each handler into a member of an enumeration, or tries to: microseconds in every commit.
    from _signal import getsignal, signal  # type: ignore[import-not-found]  # CPython's own: type stubs leave it out
except ImportError:  # another Python than CPython
    from signal import getsignal, signal

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_outermost: Delayed | None = None
_abandonable: dict[int, Callable[[], bool]] = {}
"""By thread, what says that its work is not wanted any more."""


class Delayed:
    """A block within which SIGINT is delayed. Does nothing outside the main thread, or where SIGINT has no Python handler."""

    __slots__ = ("_frame", "_nested", "_previous")

    def __enter__(self) -> Delayed:
        global _outermost
        self._previous: Any = None
        self._frame: FrameType | None = None
        self._nested = _outermost is not None
        if not self._nested and threading.current_thread() is threading.main_thread():
            previous = getsignal(SIGINT)
            if callable(previous):
                signal(SIGINT, self._note)
                self._previous = previous
                _outermost = self
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._frame = frame

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        global _outermost
        if self._previous is None:
            return
        _outermost = None
        signal(SIGINT, self._previous)
        if self._frame is not None and not (kind is not None and issubclass(kind, KeyboardInterrupt)):
            self._deliver(self._frame)

    def _deliver(self, frame: FrameType) -> None:
        self._previous(SIGINT, frame)


class DelayedInFinalizer(Delayed):
    """The same in a finalizer. Python prints and forgets what a finalizer raises, so the interruption comes a moment later."""

    __slots__ = ()

    def _deliver(self, frame: FrameType) -> None:
        threading.Timer(0.01, interrupt_main).start()


def delayed(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """A function that runs within `Delayed`."""

    @wraps(function)
    def run(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        with Delayed():
            return function(*args, **named)

    return run


class Abandoned(BaseException):
    """The work of a thread is not wanted any more."""


@contextmanager
def abandonable(is_over: Callable[[], bool]) -> Iterator[None]:
    """A block in which `check` raises Abandoned in this thread once it is over, or the process ends."""
    _abandonable[get_ident()] = is_over
    try:
        yield
    finally:
        del _abandonable[get_ident()]


def check() -> None:
    """Raises KeyboardInterrupt (or what the program's handler raises) if an interruption waits, Abandoned in a thread whose
    work is not wanted any more."""
    waiting = _outermost
    if waiting is not None and waiting._frame is not None and threading.current_thread() is threading.main_thread():
        frame, waiting._frame = waiting._frame, None
        waiting._previous(SIGINT, frame)
    if _abandonable:
        is_over = _abandonable.get(get_ident())
        if is_over is not None and (is_over() or not threading.main_thread().is_alive()):
            raise Abandoned
