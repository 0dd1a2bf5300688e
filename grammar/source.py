"""Program text and places in it.

A `Source` is the text the parser sees (after preprocessing) with the way back to the files the user wrote: `locate`
turns an offset into file, line and column. A `Span` is a half-open range of offsets in that text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from dlog.dataclass import immutable


@immutable
class Span:
    start: int
    end: int


NOWHERE = Span(-1, -1)


@immutable
class Location:
    """A place a person can go to; `line` and `column` count from 1, `text` is that line of the original file."""

    file: str
    line: int
    column: int
    text: str


class Source:
    """Program text, its name, and where each of its lines came from.

    `origins[i]` is `(file, line)` of the i-th line of `text` (from 0) where preprocessing moved it; `files` holds the original
    lines of every file for display. Without preprocessing both are derived from `text` and `name`.
    """

    def __init__(
        self,
        text: str,
        name: str = "<text>",
        origins: list[tuple[str, int]] | None = None,
        files: dict[str, list[str]] | None = None,
    ) -> None:
        self.text = text
        self.name = name
        self._origins = origins
        self._lines_by_file = files

    @property
    def files(self) -> dict[str, list[str]]:
        """The original lines of all files that the text was made of, by name."""
        return self._files

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        return self._lines_by_file or {self.name: self.text.split("\n")}

    @cached_property
    def _starts(self) -> list[int]:
        """Where the lines begin."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def locate(self, offset: int) -> Location:
        offset = max(0, min(offset, len(self.text)))
        row = bisect_right(self._starts, offset) - 1
        column = offset - self._starts[row] + 1
        if self._origins is None:
            file, line = self.name, row + 1
        else:
            file, line = self._origins[min(row, len(self._origins) - 1)] if self._origins else (self.name, row + 1)
        lines = self._files.get(file, [])
        return Location(file, line, column, lines[line - 1] if 0 < line <= len(lines) else "")

    def followed_by(self, other: Source) -> Source:
        """Both texts, the other beginning on a line of its own; every line keeps its origin. A file of the other that has the
        name, but not the lines, of one of this text gets a number."""
        names: dict[str, str] = {}
        files = dict(self._files)
        for name, lines in other._files.items():
            names[name], number = name, 2
            while files.get(names[name], lines) != lines:
                names[name], number = f"{name} ({number})", number + 1
            files[names[name]] = lines
        origins = [*self._lines(), *((names[name], line) for name, line in other._lines())]
        return Source(f"{self.text}\n{other.text}", self.name, origins, files)

    def hidden_before(self, offset: int) -> Source:
        """The same text with blanks in the place of what stands before `offset`, so that a later part can be parsed alone."""
        blank = "".join(c if c == "\n" else " " for c in self.text[:offset])
        return Source(blank + self.text[offset:], self.name, self._lines(), self._files)

    def _lines(self) -> list[tuple[str, int]]:
        """The origin of each line."""
        if self._origins is None:
            return [(self.name, row + 1) for row in range(len(self._starts))]
        return self._origins
