"""Has the library of kernels built, in a process of its own, once however many processes want it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO

from dlog.engine.kernels.jit import ENGINE


def build(path: Path) -> None:
    """Makes the library at `path` unless another process just did. Raises OSError or RuntimeError if it cannot be made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path.with_suffix(".lock")):
        if not path.exists():
            print("compiling the kernels, once for this version: a minute or two", file=sys.stderr, flush=True)
            _run(path)


def _run(path: Path) -> None:
    """Numba is made to work in a way that nothing else in its process can: so it gets a process. That one ends when its
    standard input does, which is when this one does, however it ends."""
    beside = path.with_suffix(f".{os.getpid()}")
    root = str(ENGINE.parent.parent) if ENGINE.parent.name == "dlog" else str(ENGINE.parent)
    places = [root, *(place for place in (os.environ.get("PYTHONPATH"),) if place)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-m", "dlog.engine.kernels.build", str(beside), "attached"]
    try:
        with subprocess.Popen(command, env=environment, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, text=True) as child:
            try:
                assert child.stderr is not None
                said = child.stderr.read()
            except BaseException:
                child.kill()
                raise
        if child.returncode != 0:
            raise RuntimeError((said.strip().splitlines() or [f"exit code {child.returncode}"])[-1])
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[IO[str]]:
    """Waits until no other process is in here, where the system can tell."""
    with path.open("w") as file:
        try:
            import fcntl
        except ImportError:
            yield file
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
