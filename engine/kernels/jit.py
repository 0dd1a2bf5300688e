"""The one decorator of compiled code, and where its machine code is cached.

Numba stamps a cached function with the content of its defining file only: edit a callee in another module and the caller
keeps the old machine code (numba issue 1833). So the cache folder's name is a hash of every file that holds kernels, and is
set before the first kernel is decorated: an edit means a fresh folder. `DLOG_CACHE` moves it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import config, njit

_ENGINE = Path(__file__).resolve().parent.parent


def cache_root() -> Path:
    """The folder that holds one sub-folder of machine code per version of the kernels."""
    if chosen := os.environ.get("DLOG_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dlog"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "dlog"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dlog"


def _fingerprint() -> str:
    sha = hashlib.sha256(numba.__version__.encode())
    for folder in ("kernels", "values", "formats"):
        for path in sorted((_ENGINE / folder).glob("*.py")):
            text = path.read_bytes()
            if folder == "kernels" or b"@kernel" in text:
                sha.update(path.name.encode() + text)
    return sha.hexdigest()[:16]


config.CACHE_DIR = str(cache_root() / f"kernels-{_fingerprint()}")
JIT = not config.DISABLE_JIT


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function over arrays and scalars; releases the GIL, wraps integers, divides without raising."""
    return njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)(function)  # type: ignore[no-any-return]
