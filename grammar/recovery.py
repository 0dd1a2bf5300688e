"""A text that does not parse, read again with care: finds every syntax error it can tell apart.

Strings without an end and stray characters are found first and blanked out. Then the parser is fed token by token; after an
error it goes on at the next item (or, where only a final `.` was missing, right there), so that one mistake gives one
message. Only run when the fast parse has failed.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass
from typing import Any

import lark
from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from dlog.grammar.actions import Reading
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.mistakes import Failure, explain, missing_dot, strange_directive, stray_text
from dlog.grammar.source import Span

MOST = 20
"""After so many messages a person has enough to do."""

_DIRECTIVE = re.compile(r"\.[a-z_]+")
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


def diagnose(reading: Reading, tables: lark.Lark) -> list[Diagnostic]:
    """All that is wrong with the text, in order of place; at least one diagnostic."""
    text, blanked = _blank_what_is_no_token(reading, tables)
    tokens: list[Token] = list(tables.lex(text))
    run = _Run(reading, tables, text, tokens, blanked)
    run.all_items()
    if not reading.problems:  # cannot happen, but a silent failure would be worse than a plain message
        reading.problem("syntax", "this text does not parse", Span(0, 0))
    return sorted(reading.problems, key=lambda d: d.labels[0].span.start)[:MOST]


def _blank_what_is_no_token(reading: Reading, tables: lark.Lark) -> tuple[str, list[int]]:
    """The text with unlexable stretches turned to blanks (each reported), and where these are."""
    text = reading.source.text
    blanked: list[int] = []
    while len(blanked) < MOST:
        try:
            for _ in tables.lex(text):
                pass
            return text, blanked
        except UnexpectedCharacters as stop:
            at = stop.pos_in_stream or 0
            diagnostic, end = stray_text(reading.source, text, at)
            reading.problems.append(diagnostic)
            blanked.append(at)
            text = text[:at] + re.sub(r"\S", " ", text[at:end]) + text[end:]
    return text[: blanked[-1]], blanked


@dataclass
class _Run:
    """The careful parse. `checkpoint` is the parser before the current item, which starts at token `start`."""

    reading: Reading
    tables: lark.Lark
    text: str
    tokens: list[Token]
    blanked: list[int]
    start: int = 0

    def all_items(self) -> None:
        self._without_strange_directives()
        self.end = Token("$END", "", start_pos=len(self.text), end_pos=len(self.text))
        self.patterns = {t.name: t.pattern.value for t in self.tables.terminals if t.pattern.type == "str"}
        parser: Any = self.tables.parse_interactive()
        self.checkpoint = parser
        at = 0
        while at <= len(self.tokens) and len(self.reading.problems) < MOST:
            token = self.tokens[at] if at < len(self.tokens) else self.end
            before = parser.copy(deepcopy_values=False)
            if self._begins_item(before, token):
                self.checkpoint, self.start = before, at
            try:
                parser.feed_token(token)
                at += 1
            except UnexpectedToken:
                parser, at = self._recover(before, token, at)

    def _without_strange_directives(self) -> None:
        """Reports lines that begin with `.` and a word that is no directive, and takes their tokens out."""
        kept: list[Token] = []
        line_end = -1
        for i, token in enumerate(self.tokens):
            if (token.start_pos or 0) < line_end:
                continue
            if token == "." and self._glued(i) and self._opens_line(token):
                self.reading.problems.append(strange_directive(self.reading.source, token, self.tokens[i + 1]))
                line_end = self.text.find("\n", token.start_pos) % (len(self.text) + 1)
            else:
                kept.append(token)
        self.tokens = kept

    def _begins_item(self, parser: Any, token: Token) -> bool:
        """Whether an item may begin here and the token does not go on with the last one (as `=` after `.type t`)."""
        if "DECL" not in parser.choices() or "DECL" not in _accepted(parser, "DECL"):
            return False
        return token.type == "IDENT" or bool(_DIRECTIVE.fullmatch(token)) or not _accepted(parser, token.type)

    def _recover(self, parser: Any, token: Token, at: int) -> tuple[Any, int]:
        """Reports the error at `token`; gives a parser and the token to go on with."""
        accepts = _accepted(parser, *parser.choices())
        failure = Failure(
            self.reading.source,
            self.tokens,
            self.start,
            at,
            token,
            frozenset(self.patterns.get(name, name) for name in accepts),
        )
        mended = missing_dot(failure)
        if not self._spoiled(token):
            self.reading.problems.append(mended or explain(failure))
        if token.type == "$END":
            return parser, len(self.tokens) + 1
        if mended:
            parser.feed_token(Token("DOT", ".", start_pos=failure.previous_end, end_pos=failure.previous_end))
            return parser, at
        return self.checkpoint.copy(deepcopy_values=False), self._next_item(at)

    def _spoiled(self, token: Token) -> bool:
        """Whether something was blanked since the item began: then the error is only its consequence."""
        begin = self.tokens[self.start].start_pos if self.start < len(self.tokens) else len(self.text)
        return any((begin or 0) <= place <= (token.start_pos or 0) for place in self.blanked) or any(
            self.start and (self.tokens[self.start - 1].end_pos or 0) <= place <= (begin or 0) for place in self.blanked
        )

    def _next_item(self, at: int) -> int:
        """The first token after the broken item: after its final `.`, at a directive, or at the component's closing brace."""
        directive = self.start < len(self.tokens) and _DIRECTIVE.fullmatch(self.tokens[self.start]) is not None
        depth = sum((t in _OPEN) - (t in _CLOSE) for t in self.tokens[self.start : at] if t in "{}")
        at = max(at, self.start + 1)  # always on: an item has at least one token
        for i in range(at - 1, len(self.tokens)):
            token = self.tokens[i]
            if i >= at and (self._is_directive(i) or (directive and token.type == "IDENT" and self._opens_line(token))):
                return i
            if token == "." and not self._glued(i) and (i >= at or i == self.start):
                return i + 1
            if i >= at and token in ("{", "}"):
                depth += 1 if token == "{" else -1
                if depth < 0:
                    return i if "RBRACE" in self.checkpoint.choices() else i + 1
        return len(self.tokens)

    def _is_directive(self, i: int) -> bool:
        token = self.tokens[i]
        return _DIRECTIVE.fullmatch(token) is not None and token.type != "PLAN"

    def _glued(self, i: int) -> bool:
        """Whether a name follows the `.` at once, as in `c.path`."""
        if i + 1 == len(self.tokens) or self.tokens[i + 1].type != "IDENT":
            return False
        return self.tokens[i + 1].start_pos == self.tokens[i].end_pos

    def _opens_line(self, token: Token) -> bool:
        line = self.text.rfind("\n", 0, token.start_pos) + 1
        return not self.text[line : token.start_pos].strip()


def _accepted(parser: Any, *terminals: str) -> set[str]:
    """Those of the terminals that the parser would take now. (That the table has an entry is not enough: LALR reduces before it
    sees an error.)"""
    quiet = copy(parser.parser_state.parse_conf)
    quiet.callbacks = {}
    found = set()
    for terminal in terminals:
        if terminal.isupper():
            trial = parser.copy(deepcopy_values=False)
            trial.parser_state.parse_conf = quiet
            try:
                trial.feed_token(Token(terminal, ""))
                found.add(terminal)
            except UnexpectedToken:
                pass
    return found
