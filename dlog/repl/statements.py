"""Splits typed text into statements: clauses and declarations, `?-` queries, `+` and `-` changes, and commands.

A clause, a query or a change goes on until its final dot; a declaration until the end of its line, or of the line on which its
brackets close; a command is one line. Text that does not end so is left over: more of it is still to come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Final, Literal, TypeAlias

from dlog.dataclass import dataclass
from dlog.grammar.words import DIRECTIVES

Kind: TypeAlias = Literal["program", "query", "change", "command"]

WORDS: Final = ("begin", "commit", "rollback", "help", "quit", "exit")
"""Commands without a dot, alone on their line."""

TOKEN: Final = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<string>"(?:\\.|[^"\\\n])*(?:"|\\?$))'
    r"|(?P<number>0x[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*u?|0b[01]+(?:_[01]+)*u?"
    r"|[0-9]+(?:_[0-9]+)*(?:\.[0-9]+(?:_[0-9]+)*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+|u)?)"
    r"|(?P<directive>(?<![\w?)\]}\".])\.[a-z_]+\b)"
    r"|(?P<name>[?A-Za-z_][?A-Za-z0-9_]*(?:\.[?A-Za-z_][?A-Za-z0-9_]*)*)"
    r"|(?P<query>\?-)"
    r"|(?P<mark>:-|<=|>=|!=|<:|[-+*/%^.,;:!<>=|&~$@()\[\]{}]|.)",
    re.MULTILINE | re.DOTALL,
)
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, the line (from 1) on which it begins, and its offset in the text that it was cut from."""

    kind: Kind
    text: str
    line: int = 1
    start: int = field(default=0, compare=False)

    @property
    def placed(self) -> str:
        """The text below as many empty lines as there were before it, so that errors show its line."""
        return "\n" * (self.line - 1) + self.text


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens from a place on, white space and comments among them. An unknown `?-` is told from a variable `?x`."""
    at = start
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found is not None
        kind, value = found.lastgroup or "mark", found[0]
        if text.startswith("?-", at):
            kind, value = "query", "?-"
        yield Token(kind, value, at)
        at += len(value)


def split(text: str, line: int = 1) -> tuple[list[Statement], str]:
    """The statements of a text that begins on `line`, and what is left of it."""
    found: list[Statement] = []
    at = 0
    while (start := _skip(text, at)) < len(text):
        kind = _kind(text, start)
        end = _end(text, start, kind)
        if end is None:
            return found, text[start:]
        found.append(Statement(kind, text[start:end].rstrip(), line + text.count("\n", 0, start), start))
        at = end
    return found, _open_comment(text, at)


def forced(text: str, line: int = 1) -> list[Statement]:
    """The statements of a text of which no more will come; the parser finds what its last one lacks."""
    found, rest = split(text, line)
    if rest.strip():
        start = _skip(rest, 0)
        first = line + text.count("\n", 0, len(text) - len(rest) + start)
        kind = _kind(rest, start) if start < len(rest) else "program"
        found.append(Statement(kind, rest[start:].rstrip(), first, len(text) - len(rest) + start))
    return found


def is_complete(text: str) -> bool:
    """Whether nothing more is needed to execute the text."""
    return not split(text)[1]


def grouped(statements: Iterable[Statement]) -> list[list[Statement]]:
    """Statements, neighbouring parts of a program together."""
    groups: list[list[Statement]] = []
    for statement in statements:
        if groups and groups[-1][-1].kind == statement.kind == "program":
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


def joined(group: Sequence[Statement]) -> Statement:
    """Parts of a program as one, each on its line.

    >>> joined([Statement("program", "a(1).", 1), Statement("program", "a(2).", 3)]).text
    'a(1).\\n\\na(2).'
    """
    first, *others = group
    text = first.text
    for statement in others:
        text += "\n" * (statement.line - first.line - text.count("\n")) or " "
        text += statement.text
    return replace(first, text=text)


def _skip(text: str, at: int) -> int:
    """The start of the next statement."""
    for token in tokens(text, at):
        if token.kind not in ("space", "comment"):
            return token.start
    return len(text)


def _open_comment(text: str, at: int) -> str:
    """A comment at the end of the text that is not closed."""
    for token in tokens(text, at):
        if token.text.startswith("/*") and not token.text.endswith("*/"):
            return text[token.start :]
    return ""


def _kind(text: str, start: int) -> Kind:
    if text.startswith("?-", start):
        return "query"
    if text[start] in "+-":
        return "change"
    if text[start] == ".":
        word = re.compile(r"\.[a-z_]*").match(text, start)
        assert word is not None
        return "program" if word[0] in DIRECTIVES and not _is_plan_command(text, start) else "command"
    line = text[start:].split("\n", 1)[0].strip().rstrip(".").rstrip()
    return "command" if line in WORDS else "program"


def _is_plan_command(text: str, start: int) -> bool:
    """Whether `.plan` is the command; the directive names orders, `.plan 0:(2,1)`, and follows its rule."""
    return re.compile(r"\.plan\b(?!\s*\d)").match(text, start) is not None


def _end(text: str, start: int, kind: Kind) -> int | None:
    """The place behind a statement, None if it goes on."""
    if kind == "command":
        end = text.find("\n", start)
        return len(text) if end < 0 else end
    if kind == "program" and text[start] in ".#":
        return _line_end(text, start)
    depth = 0
    for token in tokens(text, start):
        depth += (token.text in _OPENING) - (token.text in _CLOSING) if token.kind == "mark" else 0
        if token.text == "." and token.kind == "mark" and depth <= 0:
            return _behind_plan(text, token.end)
    return None


def _behind_plan(text: str, end: int) -> int:
    """Behind the plan of a rule, if it has one."""
    found = re.compile(r"\s*\.plan\s+\d[^\n]*").match(text, end)
    return end if found is None else found.end()


def _line_end(text: str, start: int) -> int | None:
    """The end of a declaration: of its line, with brackets closed and clauses ended; before a query on the same line."""
    depth = 0
    clause = False
    for token in tokens(text, start):
        if token.kind == "query" and depth <= 0:
            return token.start
        if token.kind == "mark":
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            clause = (clause or token.text == ":-") and token.text != "."
        if token.kind == "space" and "\n" in token.text and depth <= 0 and not clause and not _continues(text, token.end):
            return token.start
    return len(text) if depth <= 0 and not clause else None


def _continues(text: str, at: int) -> bool:
    """Whether a line goes on with what came before: another branch of a type."""
    return text.startswith("|", at)
