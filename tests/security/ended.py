"""Processes that are started to be ended, and what is there of them afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dlog.temporary import PREFIX, free_lock
from tests.security.planted import LEFT_OUT, STARTER

SLOW = """.decl n(x: number)
n(0). n(x + 1) :- n(x), x < 40000000.
.output n
"""


QUICK = SLOW.replace("40000000", "100")


WATCHED = """.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@dataclass
class Place:
    """Where processes work that have these temporary files and no others."""

    folder: Path

    def start(self, *command: str, **named: str) -> subprocess.Popen[str]:
        temporary = str(self.folder / "tmp")
        environment = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        environment |= {"TMPDIR": temporary, "PYTHONPATH": str(Path(__file__).parents[2])} | named
        return subprocess.Popen(
            [sys.executable, "-P", "-c", *command], cwd=self.folder, env=environment, start_new_session=True, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def dlog(self, *arguments: str, **named: str) -> subprocess.Popen[str]:
        return self.start(STARTER, *arguments, **named)

    def left(self) -> list[str]:
        """What is there of processes that have ended."""
        return sorted(str(path) for path in (*self.folder.glob("tmp/*"), *self.folder.rglob(".*.part")))

    def left_by_workers(self) -> list[str]:
        """The same with what is in shared memory, where workers on Spark have their folders. All of this user's are there: a
        test that runs beside others would find what those leave."""
        return self.left() + sorted(str(path) for path in shared())


def shared() -> Iterator[Path]:
    """Folders in memory whose owner is no more."""
    return (folder for folder in Path("/dev/shm").glob(f"{PREFIX}*") if free_lock(folder) is not None)


def gone(process: subprocess.Popen[str], patience: float = 30.0) -> bool:
    """Whether the process and all that it has started are no more, soon after it has ended."""
    process.wait(120)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=180)
    assert gone(process)
    return process.returncode


ENDS = [signal.SIGTERM, signal.SIGKILL, signal.SIGINT]


def until(holds: Callable[[], bool], seconds: float = 100) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def runs(process: int) -> bool:
    """Whether it is there, and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
