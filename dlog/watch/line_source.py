"""The lines of a file or of standard input, as they arrive."""

from __future__ import annotations

import os
import sys
import time
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Final

from dlog.engine.runtime.storage.memory import over_limit
from dlog.engine.values.sizes import byte_size
from dlog.grammar.diagnostics import Diagnostic, DlogError

STDIN: Final = "-"
COPIES = 4
"""How often a line, or a value, is in memory until its round is committed: as bytes and text, and as the engine's own."""
_CHUNK = 1 << 18
_PAUSE = 0.05


class LineSource:
    """The lines of a file or of standard input. With `follow` the end of a file is not the end: more may be written to it.
    `memory`: bytes, if there is a limit, which no line may take with what is made of it."""

    def __init__(self, path: str, follow: bool = False, memory: int | None = None) -> None:
        self.name = "<stdin>" if path == STDIN else path
        self.number = 0
        """How many lines have been taken: the number of the last one."""
        self.line = ""
        """The last one, as far as it is text."""
        self._follow = follow
        self._memory = memory
        self._partial_line_bytes = 0
        """Bytes of the line whose end has not come yet."""
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []
        """Pieces of a line whose end has not come yet."""
        self._size = 0
        self._file = sys.stdin.fileno() if path == STDIN else os.open(Path(path), os.O_RDONLY)

    def peek(self, count: int) -> Iterator[bytes]:
        """The next lines, as many as `count` of those that have come, which stay to be taken."""
        return islice(self._lines, count)

    @property
    def ready(self) -> bool:
        """Whether a line can be taken without waiting for one."""
        return bool(self._lines)

    def __iter__(self) -> Iterator[str]:
        while self._lines or self._fill():
            self.number += 1
            self.line = self._decoded(self._lines.popleft())
            yield self.line

    def _fill(self) -> bool:
        """Reads until there is a line; false at the end."""
        while not self._lines:
            data = os.read(self._file, _CHUNK)
            self._size += len(data)
            if not data and self._follow:
                self._check_growing()
                time.sleep(_PAUSE)
            elif not data:
                last = b"".join(self._rest)
                self._rest.clear()
                if last:
                    self._lines.append(last)
                return bool(last)
            else:
                self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._rest.append(first)
        self._partial_line_bytes += len(first)
        if self._memory is not None and self._partial_line_bytes * COPIES > self._memory:
            note = f"this line takes about {byte_size(self._partial_line_bytes * COPIES)}, and has not ended"
            raise over_limit(self._memory, note, place=f"{self.name}:{self.number + 1}:1")
        if others:
            self._lines.append(b"".join(self._rest))
            *lines, rest = others
            self._lines.extend(lines)
            self._rest, self._partial_line_bytes = [rest], len(rest)

    def _check_growing(self) -> None:
        """Raises where the file has lost lines that were read: what follows would not be read from its beginning."""
        status = os.fstat(self._file)
        if S_ISREG(status.st_mode) and status.st_size < self._size:
            message = f"{self.name} has become shorter: {self._size} bytes were read, {status.st_size} are left"
            raise DlogError(Diagnostic("file-shrunk", message, notes=("a file that is followed may only grow",)))

    def _decoded(self, line: bytes) -> str:
        if self.number == 1:
            line = line.removeprefix(BOM_UTF8)
        try:
            return line.removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            self.line = line.decode("utf-8", "backslashreplace")
            column = len(line[: error.start].decode())
            raise self.mistake("encoding", f"byte 0x{line[error.start]:02x} is not UTF-8", self.line, column) from None

    def mistake(self, code: str, message: str, line: str, column: int, *notes: str) -> DlogError:
        """An error at a column (from 0) of the present line."""
        return DlogError(Diagnostic(code, message, notes=notes, place=f"{self.name}:{self.number}:{column + 1}", line=line))
