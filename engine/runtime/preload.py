"""Brings the kernels into the process: part of starting, not of the first evaluation."""

from __future__ import annotations

from functools import cache

from dlog.engine.interruption import Delayed
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.core.library import library, prepare


@cache
def preload() -> None:
    """Once per process. Compiling, where nobody has yet, may be interrupted; loading takes no time and waits."""
    if JIT:
        prepare()
        with Delayed():
            library()
