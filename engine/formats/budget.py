"""The memory that inputs may take while they are read: a small file may hold much, packed or as many equal values."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from dlog.engine.values.sizes import byte_size
from dlog.grammar.diagnostics import Diagnostic, DlogError


class Budget:
    """What all inputs of a run have together. Without a limit it is the memory that the machine has left. `part` is what one of
    them takes, until its rows are somebody else's."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = _available_memory() if limit is None else limit
        self.used = 0
        self._lock = Lock()

    @contextmanager
    def part(self) -> Iterator[Part]:
        found = Part(self)
        try:
            yield found
        finally:
            self.release(found.used)

    def take(self, size: int, file: str) -> None:
        """Raises DlogError where there is not so much left."""
        with self._lock:
            if self.used + size > self.limit:
                held = f"{byte_size(self.used)} of inputs are held, {byte_size(size)} are to come"
                message = f"out of memory: {file} holds more than the {byte_size(self.limit)} that there are"
                raise DlogError(Diagnostic("out-of-memory", message, notes=(held,), place=file))
            self.used += size

    def release(self, size: int) -> None:
        with self._lock:
            self.used -= size


class Part:
    """What one input has taken."""

    def __init__(self, whole: Budget) -> None:
        self.whole = whole
        self.used = 0

    def take(self, size: int, file: str) -> None:
        """Raises DlogError where there is not so much left."""
        self.whole.take(size, file)
        self.used += size

    @property
    def free(self) -> int:
        """Bytes."""
        return max(0, self.whole.limit - self.whole.used)

    def give_back(self, size: int) -> None:
        self.whole.release(size)
        self.used -= size


def _available_memory() -> int:
    """The memory that the machine has left, or has, where it does not tell; 2^62 where it tells nothing."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 2**62
