"""Live progress of a long run, on a terminal and nowhere else.

The run stores a snapshot of where it stands, which costs next to nothing; a thread draws the latest one a few times a second.
The display appears only after half a second, so short runs print nothing, and rich is not imported for them.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

from dlog.dataclass import dataclass
from dlog.display.render import count
from dlog.engine.values.sizes import byte_size
from dlog.memory import current_bytes

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from dlog.engine.runtime.static.executor import Progress

DELAY = 0.5
REDRAWS_PER_SECOND = 8
MAX_NAME_CHARACTERS = 48


@dataclass(frozen=True, slots=True)
class Loading:
    done: int
    total: int
    rows: int


@dataclass(frozen=True, slots=True)
class Writing:
    done: int
    total: int


class Display:
    """A context manager; `show` takes the latest snapshot. On anything but a terminal all of it does nothing."""

    def __init__(self, stream: TextIO | None = None, delay: float = DELAY) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._started = time.perf_counter()
        self._snapshot: Loading | Writing | Progress | None = None
        self._live: Live | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(delay, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> Display:
        if self._stream.isatty():
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, snapshot: Loading | Writing | Progress) -> None:
        self._snapshot = snapshot

    def close(self) -> None:
        """Removes the display for good: results are about to be printed."""
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._live is not None:
                self._live.stop()
                self._live = None

    def _appear(self) -> None:
        from rich.console import Console
        from rich.live import Live

        with self._lock:
            if self._closed:
                return
            self._live = Live(
                get_renderable=self._draw,
                console=Console(file=self._stream),
                refresh_per_second=REDRAWS_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def _draw(self) -> Text:
        from rich.text import Text

        elapsed = time.perf_counter() - self._started
        line = f"{describe(self._snapshot, elapsed)} | {byte_size(current_bytes())} | {elapsed:.1f} s"
        return Text(line, no_wrap=True, overflow="ellipsis")


def describe(snapshot: Loading | Writing | Progress | None, elapsed: float) -> str:
    """One line: what is being done and how far it is."""
    match snapshot:
        case None:
            return "compiling"
        case Loading(done, total, rows):
            return f"loading {done}/{total} inputs | {count(rows)} rows | {rate(rows, elapsed)}"
        case Writing(done, total):
            return f"writing {done}/{total} outputs"
        case _:
            relations = ", ".join(snapshot.relations)
            names = relations if len(relations) <= MAX_NAME_CHARACTERS else relations[: MAX_NAME_CHARACTERS - 3] + "..."
            return (
                f"stratum {snapshot.stratum}/{snapshot.strata} {names} | iteration {count(snapshot.iteration)} "
                f"| +{count(snapshot.delta)} | {count(snapshot.rows)} tuples | {rate(snapshot.rows, elapsed)}"
            )


def rate(rows: int, seconds: float) -> str:
    return f"{count(int(rows / seconds)) if seconds > 0 else 0}/s"
