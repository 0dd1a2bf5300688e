"""Work in the background: for each key one piece at a time, of those that wait the newest alone.

Its threads are daemons, so that nothing that has no end keeps a server that should end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Background(Generic[T]):
    """Belongs to one event loop, and is called from it alone."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._waiting: dict[str, tuple[Callable[[], T], Callable[[T], None]]] = {}

    def start(self, key: str, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Has `work` done in a thread, once what is being done for the key has ended, and its result taken by `done` in the
        loop, unless newer work came meanwhile."""
        self._waiting[key] = work, done
        if key not in self._running:
            self._run(key)

    def forget(self, key: str) -> None:
        """Leaves out what waits."""
        self._waiting.pop(key, None)

    def _run(self, key: str) -> None:
        work, done = self._waiting.pop(key)
        self._running.add(key)
        loop = asyncio.get_running_loop()

        def ended(result: list[T]) -> None:
            self._running.discard(key)
            if key in self._waiting:
                self._run(key)
            elif result:
                done(result[0])

        def run() -> None:
            result: list[T] = []
            try:
                result.append(work())
            except Exception:
                _log.exception("the analysis failed")
            with suppress(RuntimeError):  # the loop is closed: nobody wants to know
                loop.call_soon_threadsafe(ended, result)

        threading.Thread(target=run, name=f"background: {key}", daemon=True).start()
