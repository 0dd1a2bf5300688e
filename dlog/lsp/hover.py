"""What an editor shows about a name: its declaration, its type, the comment above it, or what the reference says of a word."""

from __future__ import annotations

import re
from typing import Final

from dlog.engine.ir.aggregates import AGGREGATES
from dlog.engine.ir.functors import find_functor, written_functors
from dlog.engine.ir.rules import NOW
from dlog.lsp.analysis import Analysis
from dlog.lsp.names import Occurrence, Role, declaration

_LANGUAGE: Final = "souffle"
_MARK: Final = re.compile(r"\s*(//+|/\*+|\*+/?)\s?")
"""What begins a line of a comment."""
_BUILT_IN: Final = {
    "number": "A signed integer of 64 bits.",
    "unsigned": "An unsigned integer of 64 bits.",
    "float": "A floating-point number of 64 bits.",
    "symbol": "A text in UTF-8.",
}
_ARITIES: Final = range(5)


def name_hover(used: Occurrence, names: list[Occurrence], text: str, analysis: Analysis) -> str:
    """Markdown about a name; empty where nothing is known."""
    if used.role is Role.VARIABLE:
        line = text.count("\n", 0, used.span.start) + 1
        kind = analysis.variable_kind(used.name, line)
        return _code(f"{used.name}: {kind.value}") if kind is not None else ""
    if used.role is Role.TYPE and used.name in _BUILT_IN:
        return f"{_code(used.name)}\n{_BUILT_IN[used.name]}"
    declared = declaration(names, used)
    if declared is None:
        return ""
    shown = text[declared.statement.start : declared.statement.end]
    if declared.role is Role.COMPONENT:
        shown = shown.partition("{")[0].rstrip()
    comment = comment_above(text, declared.statement.start)
    return f"{_code(shown)}\n{comment}".rstrip()


def word_hover(word: str) -> str:
    """What the reference says of a functor or an aggregate."""
    if word in AGGREGATES:
        row = AGGREGATES[word]
        return f"{_code(row.example)}\n{row.documentation}"
    if word == NOW:
        return f"{_code('from <= now(), now() < to')}\nThe round, while rounds pass; compared with numbers."
    if word not in written_functors():
        return ""
    functor = next((f for f in (find_functor(word, arity) for arity in _ARITIES) if f is not None), None)
    return "" if functor is None else f"{_code(functor.example)}\n{functor.documentation}"


def comment_above(text: str, start: int) -> str:
    """The comment that ends on the line before a place, without its marks."""
    lines = text[:start].split("\n")[:-1]
    above: list[str] = []
    while (lines and lines[-1].strip().startswith(("//", "/*", "*"))) or (lines and lines[-1].strip().endswith("*/")):
        above.append(_without_marks(lines.pop()))
    return "\n".join(reversed(above)).strip()


def _without_marks(line: str) -> str:
    if mark := _MARK.match(line):
        line = line[mark.end() :]
    ended = line.rstrip()
    return ended[:-1].rstrip("*").rstrip() if ended.endswith("*/") else line


def _code(text: str) -> str:
    return f"```{_LANGUAGE}\n{text}\n```"
