"""Facts of literals: a text may hold many thousands of them, which one expression reads.

    edge(1, -2).  named(0x1f, "a \\"b\\"").  at(1.5, 2).

Such a fact is a clause like others, whose nodes are only made when somebody looks at them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any

from dlog.grammar.source import Span
from dlog.grammar.syntax import Atom, Call, Clause, Item, Number, String, Term

ESCAPES = {'"': '"', "'": "'", "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\(.)")

BLANK = r"[ \t\r\n\f\v]"
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = (
    r"-?(?:0x[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0b[01]+(?:_[01]+)*"
    rf"|{_DIGITS}(?:\.{_DIGITS}(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)?)"
)
_TEXT = r'"[^"\\\n]*(?:\\["\'\\abfnrtv][^"\\\n]*)*"'
_LITERAL = f"{_NUMBER}|{_TEXT}"
_LITERALS = re.compile(_LITERAL)
FACT = re.compile(
    rf"{BLANK}*(?P<atom>(?P<name>[?A-Za-z][?A-Za-z0-9_]*|_[?A-Za-z0-9_]+){BLANK}*\({BLANK}*"
    rf"(?P<args>(?:{_LITERAL})(?:{BLANK}*,{BLANK}*(?:{_LITERAL}))*){BLANK}*\)){BLANK}*\.(?={BLANK}|\Z)"
)
"""A fact of numbers and of texts without unknown escapes, as the grammar says."""


class LiteralFact(Clause):
    """A fact of literals. `literals` are these as written. It is equal to the clause of its nodes, which it passes for."""

    __slots__ = ("_heads", "_match", "literals", "name")

    __setattr__ = object.__setattr__
    body = None
    plan = None
    is_rule = False

    def __init__(self, match: re.Match[str]) -> None:
        self._match = match
        self._heads: tuple[Atom, ...] | None = None
        self.name = match["name"]
        self.literals: list[str] = _LITERALS.findall(match["args"])

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return Clause

    @property
    def heads(self) -> tuple[Atom, ...]:
        if self._heads is None:
            match = self._match
            args = tuple([_node(found) for found in _LITERALS.finditer(match.string, *match.span("args"))])
            self._heads = (Atom(self.name, args, span=Span(match.start("name"), match.end("atom"))),)
        return self._heads

    @property
    def span(self) -> Span:
        return Span(self._match.start("name"), self._match.end())


def read_facts(text: str, match: re.Match[str] | None, reserved: Container[str], items: list[Any]) -> int:
    """Adds the facts of literals that follow each other from a match on, and returns where they end."""
    end = 0
    while match is not None and match["name"] not in reserved:
        items.append(LiteralFact(match))
        end = match.end()
        match = FACT.match(text, end)
    return end


def without_literal_facts(items: Iterable[Item]) -> list[Item]:
    """The items but for facts of literals: asking these whether they are something else takes long."""
    return [item for item in items if type(item) is not LiteralFact]


def literal_value(text: str) -> str:
    """The value of a text in quotes."""
    inner = text[1:-1]
    return _ESCAPE.sub(lambda found: ESCAPES[found[1]], inner) if "\\" in inner else inner


def _node(found: re.Match[str]) -> Term:
    text, span = found[0], Span(*found.span())
    if text[0] == '"':
        return String(literal_value(text), span=span)
    if text[0] == "-":
        return Call("-", (Number(text[1:], span=Span(span.start + 1, span.end)),), span=span)
    return Number(text, span=span)
