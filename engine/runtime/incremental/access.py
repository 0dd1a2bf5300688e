"""Readers in other threads and the one that writes: who may look at collections, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class ReadersWriterLock:
    """A readers-writer lock on the collections: native code holds it to write, readers wait for a turn."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting = 0
        self.changes = 0
        """Grows before the lock is asked for by who will change or move arrays, and again when that begins."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A moment at which no native work is under way."""
        self.waiting += 1
        try:
            with self.lock:
                yield
        finally:
            self.waiting -= 1

    def yield_turn(self) -> None:
        """Lets readers look, for who has the lock."""
        self.lock.release()
        try:
            time.sleep(0)
        finally:
            self.lock.acquire()
