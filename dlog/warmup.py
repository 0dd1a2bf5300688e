"""Compiles the kernels, so that no run has to."""

from __future__ import annotations


def warm() -> None:
    """Makes the library of kernels, if this version has none yet, and loads it."""
    from dlog.engine.runtime.preload import preload

    preload()
