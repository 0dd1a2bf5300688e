"""What goes wrong in a user's function, in words."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from dlog.codec import value_preview
from dlog.engine.ir.rules import UserFunctor
from dlog.grammar.diagnostics import Diagnostic, DlogError

_OWN: Final = str(Path(__file__).parent)


def failed(functor: UserFunctor, arguments: tuple[Any, ...] | None, error: Exception) -> DlogError:
    """The user's mistake: which functor, which arguments, what Python says, and where."""
    message = f"the functor `@{functor.name}` failed: {type(error).__name__}: {error}"
    what = "a block of rows" if arguments is None else call_text(functor, arguments)
    notes = (f"it was called for {what}", f"in {place_of(error.__traceback__, '')}")
    return DlogError(Diagnostic("functor-failed", message, notes=notes))


def wrong_value(functor: UserFunctor, message: str, arguments: tuple[Any, ...] | None) -> DlogError:
    """The user's mistake: a function gives what its functor cannot."""
    text = f"the functor `@{functor.name}` gives what it must not: {message}"
    notes = () if arguments is None else (f"of {call_text(functor, arguments)}",)
    return DlogError(Diagnostic("functor-failed", text, notes=notes))


def call_text(functor: UserFunctor, arguments: tuple[Any, ...]) -> str:
    return f"@{functor.name}({', '.join(map(value_preview, arguments))})"


def place_of(trace: TracebackType | None, otherwise: str) -> str:
    """The line of the user's where it happened."""
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith((_OWN, "<frozen"))]
    if not frames:
        return otherwise or "the call itself"
    last = frames[-1]
    return f"{last.filename}, line {last.lineno}: {last.line}"
