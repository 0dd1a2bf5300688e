"""Where what one run makes for the next is kept: machine code, the tables of grammars."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path


def cache_root() -> Path:
    """The folder that `DLOG_CACHE` names, else the user's. One among the temporary files where that cannot be made, or is empty
    and cannot be written to, as in the containers of clusters. It may be not there yet. Raises OSError if there is none."""
    if chosen := os.environ.get("DLOG_CACHE"):
        return Path(chosen)
    try:
        found = _users_cache()
        found.mkdir(parents=True, exist_ok=True)
        if not os.access(found, os.W_OK) and not any(found.iterdir()):
            raise PermissionError(f"{found} cannot be written to")
        return found
    except (OSError, RuntimeError) as problem:
        return _temporary(problem)


def _users_cache() -> Path:
    """Raises RuntimeError if there is no home."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dlog"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "dlog"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dlog"


def _temporary(problem: Exception) -> Path:
    """A folder that only this user can enter, for what others leave there would be run. Raises OSError."""
    import tempfile

    if not hasattr(os, "getuid"):
        raise OSError(f"{problem}") from problem
    found = Path(tempfile.gettempdir()) / f"dlog-{os.getuid()}"
    found.mkdir(mode=0o700, exist_ok=True)
    about = found.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise OSError(f"{problem}, and {found} is not for this user alone") from problem
    return found
