"""Tasks that end with those who started their process.

When the driver ends, however it does, Spark's JVM does, then PySpark's daemon, then the processes that this has made for tasks.
Where the daemon is killed as well nobody tells these: one that waits for the driver, or for another one, would wait for ever,
with what it has in shared memory.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dlog import temporary
from dlog.dataclass import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

LOOKING = 1.0
"""Seconds from one look for the parent to the next."""


@dataclass(frozen=True)
class Attended:
    """The function of a task, for a process that ends when its parent has."""

    work: Work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with ending_with_parent():
            yield from self.work(batches)


@contextmanager
def ending_with_parent() -> Iterator[None]:
    """A block in which this process ends when its parent has: another one has taken its place then."""
    parent, done = _parent(), threading.Event()

    def look() -> None:
        while not done.wait(LOOKING):
            if os.getppid() != parent:
                temporary.remove_all()
                os._exit(1)

    threading.Thread(target=look, name="dlog-orphans", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _parent() -> int:
    """Who has started this process. It may be gone already, but PySpark's daemon leads the group in which its workers are."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return os.getpgrp() if main is not None and main.name == "pyspark.daemon" else os.getppid()
