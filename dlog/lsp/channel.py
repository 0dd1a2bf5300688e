"""What an editor sends, within bounds, and what is said on standard error of what cannot be understood: a line each."""

from __future__ import annotations

import logging
import re
from typing import BinaryIO, Final

from dlog.grammar.diagnostics import Diagnostic, DlogError, one_line

MAX_HEADER: Final = 1 << 12
"""Bytes of a line of a message's header."""
MAX_MESSAGE: Final = 1 << 28
"""Bytes of a message: it has the text of a document."""
_MAX_REMARK: Final = 200
_LENGTH = re.compile(rb"content-length:\s*(\d+)\s*", re.IGNORECASE)


class Channel:
    """The messages of an editor. Raises DlogError for one that no editor sends, behind which nothing can be read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def readline(self) -> bytes:
        line = self._source.readline(MAX_HEADER + 1)
        if len(line) > MAX_HEADER:
            raise _unreadable(f"a line of the header has more than {MAX_HEADER:,} bytes")
        found = _LENGTH.fullmatch(line)
        if found is not None and (len(found[1]) > 18 or int(found[1]) > MAX_MESSAGE):
            raise _unreadable(f"a message has more than {MAX_MESSAGE:,} bytes")
        return line

    def read(self, size: int) -> bytes:
        return self._source.read(size)


def _unreadable(message: str) -> DlogError:
    note = "`dlog lsp` is for editors: it speaks the Language Server Protocol on standard input and output"
    return DlogError(Diagnostic("protocol", f"cannot read what the editor sends: {message}", notes=(note,)))


class Remarks(logging.Formatter):
    """A line for each thing that went wrong, whatever there is to say of it."""

    def format(self, record: logging.LogRecord) -> str:
        said = record.getMessage().partition("\n")[0]
        if record.exc_info and record.exc_info[1] is not None:
            kind, error = type(record.exc_info[1]).__name__, record.exc_info[1]
            said = f"{said}: {kind}: {error}"
        said = one_line(f"dlog lsp: {said}")
        return said if len(said) <= _MAX_REMARK else f"{said[:_MAX_REMARK]}..."


def remark_briefly() -> None:
    """Has what would be told on standard error told in lines of their own, without tracebacks."""
    handler = logging.StreamHandler()
    handler.setFormatter(Remarks())
    handler.setLevel(logging.WARNING)
    for logger in (logging.getLogger("pygls"), logging.getLogger("dlog.lsp")):
        logger.handlers, logger.propagate = [handler], False
