"""Program files as text, and dlog's own spellings of what the preprocessor knows."""

from __future__ import annotations

import re
from pathlib import Path

from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import Source, Span

TEXT_NAME = "<text>"
"""The name of a program that is no file."""

_INCLUDE = re.compile(r"^([ \t]*)\.include[ \t]+(\"[^\"\n]*\")", re.MULTILINE)
_ONCE = re.compile(r"^([ \t]*)\.once\b", re.MULTILINE)


def read_file(path: Path) -> str:
    """The text of a program file; DlogError if there is none or it is not UTF-8."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DlogError(Diagnostic("program-file", f"cannot read `{path}`: {reason}", place=str(path))) from None
    try:
        return text_of(data)
    except UnicodeDecodeError as error:
        raise DlogError(_not_text(path, error)) from None


def text_of(data: bytes) -> str:
    """The text of what a file holds. Raises UnicodeDecodeError."""
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _not_text(path: Path, error: UnicodeDecodeError) -> Diagnostic:
    before, behind = (part.decode("utf-8", "backslashreplace").replace("\r\n", "\n") for part in _parts(error))
    message = f"`{path}` is not UTF-8 text: byte 0x{error.object[error.start]:02x}"
    place = Label(Span(len(before), len(before) + len("\\xff")))
    return Diagnostic("encoding", message, (place,), (), Source(before + behind, str(path)))


def _parts(error: UnicodeDecodeError) -> tuple[bytes, bytes]:
    return error.object[: error.start], error.object[error.start :]


def dialect_lines(text: str) -> str:
    """`.include "x"` and `.once` in the preprocessor's spelling, line by line."""
    return _ONCE.sub(r"\1#pragma once", _INCLUDE.sub(r"\1#include \2", text))
