"""Places in a text as offsets, and as the protocol has them: lines and characters, in units that editor and server agree on."""

from __future__ import annotations

from bisect import bisect_right

from lsprotocol import types
from pygls.workspace import PositionCodec

from dlog.grammar.source import Span


class Places:
    """A text and its lines. Offsets count characters; lines count from 0."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self.text = text
        self._codec = codec
        self._lines = text.splitlines(keepends=True) or [""]
        self._plain = [line.isascii() for line in self._lines]  # whose characters are units, too
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, position: types.Position) -> int:
        """The offset of a position; one behind the end, of its line or of all, is that."""
        if position.line >= len(self._lines):
            return len(self.text)
        if self._plain[position.line]:
            return self._starts[position.line] + min(position.character, len(self._lines[position.line].rstrip("\r\n")))
        own = self._codec.position_from_client_units(self._lines, position)
        return min(self._starts[own.line] + own.character, len(self.text))

    def position(self, offset: int) -> types.Position:
        offset = max(0, min(offset, len(self.text)))
        line = min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1)
        own = types.Position(line, offset - self._starts[line])
        return own if self._plain[line] else self._codec.position_to_client_units(self._lines, own)

    def range(self, span: Span) -> types.Range:
        return types.Range(self.position(span.start), self.position(span.end))

    def range_of(self, line: int, column: int, width: int) -> types.Range:
        """The range of some characters of a line; line and column count from 1."""
        start = self._starts[min(line - 1, len(self._lines) - 1)] + column - 1
        return self.range(Span(start, start + width))

    def whole(self) -> types.Range:
        return self.range(Span(0, len(self.text)))


def word_start(text: str, end: int) -> int:
    """Where the word begins that ends at an offset."""
    start = end
    while start > 0 and _is_of_word(text[start - 1]):
        start -= 1
    return start


def word_at(text: str, offset: int) -> str:
    """The word around an offset."""
    end = offset
    while end < len(text) and _is_of_word(text[end]):
        end += 1
    return text[word_start(text, offset) : end]


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character in "_?."
