"""Compiles the kernels, so that no run has to."""

from __future__ import annotations

from dlog.grammar.diagnostics import Diagnostic, DlogError


def warm() -> None:
    """Makes the library of kernels, if this version has none yet, and loads it. Raises DlogError where it cannot be made, or
    cannot be kept."""
    from dlog.engine.kernels.core.jit import JIT
    from dlog.engine.kernels.core.library import library, library_path
    from dlog.engine.runtime.preload import preload

    preload()
    if JIT and (library() is None or not library_path().exists()):
        message = f"the kernels are not kept in the folder {library_path().parent}: each run will compile what it needs"
        raise DlogError(Diagnostic("no-kernels", message, notes=("the warning above says why; DLOG_CACHE names another",)))
