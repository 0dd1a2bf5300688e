"""What becomes of a text file's rows that cannot be read: `errors` of an `.input`.

`fail`, which is meant where nothing is said, refuses the file with its first mistakes; `skip` leaves them out; `reject:FILE`
does so and writes their lines to FILE, a name in the folder of facts, in the place of what is there. What is left out is
counted in a warning.
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.parameters import TextFormat, directive_error
from dlog.engine.formats.text import BadLine, BadText
from dlog.engine.formats.whole_files import write_whole
from dlog.engine.formats.wrong_lines import explain_line, explain_text, line_begin, row_end
from dlog.engine.ir.rules import Io, Kind, Program, Relation
from dlog.grammar.diagnostics import Diagnostic, DlogError, one_line, shortened

MAX_TOLD_MISTAKES = 20
"""Mistakes of a file that are told, all with their places."""


def _places() -> array[int]:
    return array("q")


@dataclass(slots=True)
class WrongRows:
    """The wrong rows of one file."""

    io: Io
    program: Program
    file: str
    relation: Relation
    form: TextFormat
    refuses: bool = True
    rejects: Path | None = None
    """Where their lines go."""
    mistakes: list[Diagnostic] = field(default_factory=list)
    """The first of them."""
    begins: array[int] = field(default_factory=_places)
    """Where each begins in the data."""
    stops: array[int] = field(default_factory=_places)
    """The place behind each."""
    unread: array[int] = field(default_factory=_places)
    """Where those begin that are no rows of the table."""
    line_ends: np.ndarray | None = None
    before: np.ndarray | None = None
    """Of each line without a row, in their order, how many with one precede it."""

    def line(self, mistake: BadLine | BadText) -> None:
        """A row that is none, or has text that is none. Raises DlogError where these are enough."""
        data = mistake.data
        begin = mistake.position if isinstance(mistake, BadLine) else line_begin(data, mistake.start)
        self.unread.append(begin)
        self._note(data, begin)
        if len(self.mistakes) < MAX_TOLD_MISTAKES:
            self.mistakes.append(self._explained(mistake))
        self._check()

    def _note(self, data: np.ndarray, begin: int) -> None:
        self.begins.append(begin)
        self.stops.append(row_end(data, begin, self.form))

    def _explained(self, mistake: BadLine | BadText) -> Diagnostic:
        if isinstance(mistake, BadLine):
            return explain_line(mistake.data, mistake.position, self.file, self.relation, self.form)
        name = self.relation.attributes[mistake.attribute][0]
        return explain_text(mistake.data, mistake.start, self.file, name)

    def row(self, data: np.ndarray, number: int, explained: Callable[[], Diagnostic]) -> None:
        """A row with a wrong record; `number` is the line's, from 1."""
        begin = int(self._line_ends(data)[number - 2]) + 1 if number > 1 else 0
        self._note(data, begin)
        if len(self.mistakes) < MAX_TOLD_MISTAKES:
            self.mistakes.append(explained())
        self._check()

    def _check(self) -> None:
        if self.refuses and len(self.mistakes) == MAX_TOLD_MISTAKES:
            text = f"{self.file} has {MAX_TOLD_MISTAKES} wrong lines or more: the rest is not read"
            raise DlogError([*self.mistakes, Diagnostic("too-many-mistakes", text)])

    def line_of(self, data: np.ndarray, row: int) -> int:
        """The number of the line that row `row`, of those that were read, stands on. All lines without one are known then."""
        line = row + 1 + self.form.headers
        return line + int(np.searchsorted(self._rows_before(data), line, side="right"))

    def _rows_before(self, data: np.ndarray) -> np.ndarray:
        if self.before is None:
            unread = np.sort(np.frombuffer(self.unread, np.int64))
            self.before = np.searchsorted(self._line_ends(data), unread) + 1 - np.arange(len(unread)) if len(unread) else unread
        return self.before

    def _line_ends(self, data: np.ndarray) -> np.ndarray:
        if self.line_ends is None:
            self.line_ends = np.flatnonzero(data == 10)
        return self.line_ends

    def settle(self, data: np.ndarray) -> None:
        """Raises DlogError for what is to be refused; else tells how many rows were left out."""
        if not self.begins:
            return
        if self.refuses:
            raise DlogError(self.mistakes)
        count = len(self.begins)
        if self.rejects is not None:
            order = np.argsort(np.frombuffer(self.begins, np.int64), kind="stable").tolist()
            self._reject(self.rejects, (_whole_line(data, self.begins[i], self.stops[i]) for i in order))
        left = "1 wrong row is" if count == 1 else f"{count} wrong rows are"
        goes = "left out" if self.rejects is None else f"left out, and written to {self.rejects}"
        message = f"{self.file}: {left} {goes}; the first: {shortened(self.mistakes[0].message)}"
        warnings.warn(one_line(message), RuntimeWarning, stacklevel=5)

    def _reject(self, path: Path, lines: Iterable[bytes]) -> None:
        write_whole(self.io, self.program, path, lambda file: file.writelines(lines))


def wrong_rows(io: Io, program: Program, relation: Relation, form: TextFormat, file: str, folder: Path) -> WrongRows:
    """What `errors` says."""
    chosen = io.get("errors", "fail")
    way, _, name = chosen.partition(":")
    if way in ("fail", "skip") and not name:
        return WrongRows(io, program, file, relation, form, way == "fail")
    if way == "reject" and name:
        if form.rfc4180 and Kind.RECORD in relation.kinds:
            message = "lines with quotes that hold records cannot be rejected to a file"
            raise directive_error(io, program, "unsupported", message, "errors=skip leaves them out")
        return WrongRows(io, program, file, relation, form, False, folder / name)
    message = f"errors={chosen!r} says nothing about wrong rows"
    raise directive_error(io, program, "bad-parameter", message, 'it is fail, skip or, as in errors="reject:bad.txt", a file')


def _whole_line(data: np.ndarray, begin: int, end: int) -> bytes:
    line = data[begin:end].tobytes()
    return line if line.endswith(b"\n") else line + b"\n"
