"""Programs as text, for people: `format_program` prints a tree; `format_source` is `dlog fmt`, which prints a text anew and
keeps its comments, its preprocessor lines and single empty lines.

Items are printed from the tree; what stands between them stays between them, and a comment behind an item stays on its line. An
item with a comment inside, or with a word the parser replaces (`__LINE__`), is left as it was written.
Formatting twice gives the same text as formatting once.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.grammar import syntax
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source, Span
from dlog.grammar.unparse import (
    INDENT,
    WIDTH,
    format_body,
    format_clause,
    format_component_head,
    format_item,
    format_program,
    format_term,
)

__all__ = ["format_body", "format_clause", "format_item", "format_program", "format_source", "format_term"]

_TRIVIA = re.compile(
    r'"[^"\\\n]*(?:\\.[^"\\\n]*)*(?:"|\\?$)'
    r"|(?P<comment>//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)|/\*[\s\S]*"
    r"|(?P<annotation>@!?\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])"
    r"|(?P<line>^[ \t]*(?:\#(?:[^\\\n]|\\\n|\\.)*|\.include\b[^\n]*|\.once\b[^\n]*))",
    re.MULTILINE,
)
_REPLACED = re.compile(r"__FILE__|__LINE__")


@dataclass(frozen=True, slots=True)
class Trivia:
    """A comment, an annotation or a preprocessor line."""

    span: Span
    text: str
    kind: str


_Piece: TypeAlias = syntax.Item | Trivia


def format_source(source: Source) -> str:
    """The text of `source` (not preprocessed), formatted. DlogError if it does not parse; but a text with preprocessor lines
    that does not parse without running them is given back as it is.

    >>> format_source(Source("path(x,y):-edge(x,y). // one step"))
    'path(x, y) :- edge(x, y).  // one step\\n'
    """
    trivia = find_trivia(source.text)
    lines = [t for t in trivia if t.kind == "line"]
    try:
        program = parse(Source(_without(source.text, lines), source.name))
    except DlogError:
        if lines:
            return source.text
        raise
    whole = Span(0, len(source.text))
    return "".join(line + "\n" for line in _Layout(source.text, trivia).lines(program.items, whole, ""))


def find_trivia(text: str) -> list[Trivia]:
    """The comments, annotations and preprocessor lines of a text, in order."""
    found = []
    for match in _TRIVIA.finditer(text):
        if match.lastgroup is not None:
            found.append(Trivia(Span(match.start(), match.end()), match[0].rstrip(), match.lastgroup))
    return found


def _without(text: str, lines: Sequence[Trivia]) -> str:
    """The text with these stretches blank, so that all places stay the same."""
    parts: list[str] = []
    end = 0
    for line in lines:
        blank = re.sub(r"[^\n]", " ", text[line.span.start : line.span.end])
        parts += text[end : line.span.start], blank
        end = line.span.end
    return "".join((*parts, text[end:]))


@dataclass(frozen=True, slots=True)
class _Layout:
    text: str
    trivia: list[Trivia]

    def lines(self, items: Sequence[syntax.Item], region: Span, indent: str) -> list[str]:
        """The lines of a region of the text whose items are `items`."""
        out: list[str] = []
        end = region.start
        before: _Piece | None = None
        for piece in self._pieces(items, region):
            gap = self.text[end : piece.span.start].count("\n")
            if gap >= 2 and out:
                out.append("")
            new = self._piece(piece, indent)
            if out and gap == 0 and _joins(before, piece, out[-1], new):
                out[-1] += ("  " if isinstance(piece, Trivia) else " ") + new[0].lstrip()
                new = new[1:]
            out += new
            end, before = piece.span.end, piece
        return out

    def _pieces(self, items: Sequence[syntax.Item], region: Span) -> list[_Piece]:
        starts = [i.span.start for i in items]
        loose = []
        for trivia in self._within(region):
            owner = bisect_right(starts, trivia.span.start) - 1
            if owner < 0 or trivia.span.start >= items[owner].span.end:
                loose.append(trivia)
        return sorted([*items, *loose], key=_start)

    def _within(self, region: Span) -> list[Trivia]:
        first = bisect_left(self.trivia, region.start, key=_start)
        return self.trivia[first : bisect_left(self.trivia, region.end, key=_start)]

    def _piece(self, piece: _Piece, indent: str) -> list[str]:
        match piece:
            case Trivia(text=text, kind="line"):
                return text.split("\n")
            case Trivia(text=text):
                return (indent + text).split("\n")
            case syntax.ComponentDecl() if (brace := self._brace(piece)) is not None:
                return self._component(piece, brace, indent)
            case _ if self._as_written(piece):
                return (indent + self.text[piece.span.start : piece.span.end]).split("\n")
            case _:
                return [indent + line for line in format_item(piece).split("\n")]

    def _component(self, decl: syntax.ComponentDecl, brace: int, indent: str) -> list[str]:
        region = Span(brace + 1, decl.span.end - 1)
        inner = self.lines(decl.items, region, indent + INDENT)
        first = self._pieces(decl.items, region)[:1]
        head = f"{indent}{format_component_head(decl)}{{"
        if first and isinstance(first[0], Trivia) and "\n" not in self.text[brace : first[0].span.start]:
            head, inner = f"{head}  {inner[0].lstrip()}", inner[1:]
        return [head, *inner, f"{indent}}}"]

    def _brace(self, decl: syntax.ComponentDecl) -> int | None:
        """The position at which the component's items begin; None if something in its head keeps it from being printed anew."""
        last = decl.bases[-1] if decl.bases else decl.component
        brace = self.text.find("{", last.span.end)
        head = Span(decl.span.start, brace)
        return None if self._within(head) else brace

    def _as_written(self, item: syntax.Item) -> bool:
        return bool(self._within(item.span)) or _REPLACED.search(self.text, item.span.start, item.span.end) is not None


def _start(piece: _Piece) -> int:
    return piece.span.start


def _joins(before: _Piece | None, piece: _Piece, line: str, new: list[str]) -> bool:
    """Whether a piece stays on the line of the one before: a comment behind all but `//` comments, a fact behind a fact."""
    match before, piece:
        case (Trivia(), syntax.Clause()) | (None, _):
            return False
        case (Trivia(kind="line"), _):
            return False
        case (_, Trivia(kind="comment" | "annotation")):
            return not (isinstance(before, Trivia) and before.text.startswith("//"))
        case (syntax.Clause(body=None), syntax.Clause(body=None)):
            return len(new) == 1 and len(line) + 1 + len(new[0].lstrip()) <= WIDTH
        case _:
            return False
