"""Has the library of kernels built, in a process of its own, once however many processes want it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dlog.locks import hold

DAY = 86_400.0
UNUSED = 30 * DAY
"""Seconds after which what another version of the kernels has left goes."""
_FOLDER = re.compile(r"kernels-[0-9a-f]{16}")


def build(path: Path) -> None:
    """Makes the library at `path` unless another process just did. Raises OSError or RuntimeError if it cannot be made."""
    with _alone(path.with_name(f"{path.name}.lock")):
        if not path.exists():
            print("compiling the kernels, once for this version: a minute or two", file=sys.stderr, flush=True)
            _run(path)
            remove_unused(path.parent)


def note_use(path: Path) -> None:
    """Says, once a day, that a library is not among those that nobody uses."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def remove_unused(folder: Path) -> None:
    """Removes what is beside a folder of kernels of the same kind, this user's own and unused: no run needs it once it has read
    it, and one that comes back makes it anew."""
    if _FOLDER.fullmatch(folder.name) is None:
        return
    for other in folder.parent.iterdir():
        with contextlib.suppress(OSError):
            if other != folder and _FOLDER.fullmatch(other.name) and _is_unused(other):
                shutil.rmtree(other, ignore_errors=True)


def _is_unused(folder: Path) -> bool:
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
        return False
    return max(place.lstat().st_mtime for place in (folder, *folder.rglob("*"))) < time.time() - UNUSED


def _run(path: Path) -> None:
    """Numba is made to work in a way that nothing else in its process can: so it gets a process. That ends with this one,
    however this one ends: its standard input is a pipe that nobody writes to, and it knows whose child it is."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    _remove_remains(path)
    # It looks for modules, and for settings of Numba's, in no folder but these: none of them is the current one.
    places = [_root(), *filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-P", "-m", "dlog.engine.kernels.core.build", str(beside.absolute()), str(os.getpid())]
    watched, held = os.pipe()
    try:
        place = {"cwd": path.parent, "env": environment}
        done = subprocess.run(command, **place, stdin=watched, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        beside.replace(path)
    finally:
        os.close(watched)
        os.close(held)
        beside.unlink(missing_ok=True)


def _root() -> str:
    """The folder that this process has the package from: not one above it, which may be anybody's."""
    return os.path.dirname(os.path.abspath(sys.modules["dlog"].__path__[0]))


def _remove_remains(path: Path) -> None:
    """What processes that were killed have left: whoever is in here is alone."""
    for file in path.parent.glob(f"{path.name}.*"):
        if file.suffix[1:].isdigit():
            with contextlib.suppress(OSError):  # somebody's folder of such a name
                file.unlink()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Waits until no other process is in here, where the system can tell."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    held = hold(lambda: os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    try:
        fcntl.flock(held.descriptor, fcntl.LOCK_EX)
        yield
    finally:
        held.close()
