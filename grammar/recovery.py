"""A text that does not parse, read again with care: finds every syntax error it can tell apart.

Strings without an end and stray characters are found first and blanked out. Then the parser is fed token by token; after an
error it goes on at the next item (or, where only a final `.` was missing, right there), so that one mistake gives one
message. Only run when the fast parse has failed.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import lark
from lark import Token
from lark.exceptions import UnexpectedCharacters
from lark.parsers.lalr_analysis import Shift

from dlog.dataclass import dataclass
from dlog.grammar.actions import Reading
from dlog.grammar.diagnostics import MAX_OF_ONE_CODE, Diagnostic
from dlog.grammar.mistakes import Failure, explain, missing_dot, open_comment, strange_directive, strange_qualifier, stray_text
from dlog.grammar.source import Span

MAX_MESSAGES = MAX_OF_ONE_CODE
"""Messages for one program: after so many a person has enough to do."""

_DIRECTIVE = re.compile(r"\.[a-z_]+")
_TOP = 2
"""Values of the parser that a token behind a declaration may reduce: its qualifiers, and the last of them."""
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


def diagnose(reading: Reading, tables: lark.Lark) -> list[Diagnostic]:
    """All that is wrong with the text, in order of place; at least one diagnostic."""
    text, blanked = _blank_what_is_no_token(reading, tables)
    tokens: list[Token] = list(tables.lex(text))
    run = _Run(reading, tables, text, tokens, blanked)
    run.all_items()
    if not reading.problems:  # cannot happen, but a silent failure would be worse than a plain message
        reading.problem("syntax", "this text does not parse", Span(0, 0))
    return sorted(reading.problems, key=lambda d: d.labels[0].span.start)[:MAX_MESSAGES]


def _blank_what_is_no_token(reading: Reading, tables: lark.Lark) -> tuple[str, list[int]]:
    """The text with unlexable stretches turned to blanks (each reported), and where these are."""
    text = reading.source.text
    blanked: list[int] = []
    if (mistake := open_comment(reading.source)) is not None:
        reading.problems.append(mistake)
        blanked.append(mistake.labels[0].span.start)
        text = text[: blanked[0]]  # a lexer would look for an end from each `/*` on
    while len(blanked) < MAX_MESSAGES:
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


Stacks: TypeAlias = tuple[list[Any], list[Any]]


class _Parser:
    """The LALR parser, one token at a time, with stacks that can be kept and put back."""

    def __init__(self, tables: lark.Lark) -> None:
        self._state = tables.parse_interactive().parser_state
        self._table = self._state.parse_conf.parse_table.states

    def feed(self, token: Token) -> None:
        self._state.feed_token(token, token.type == "$END")

    def stacks(self) -> Stacks:
        """Both as they are. Reductions append to lists: those at the top are copied, but for the one of all items below."""
        values = self._state.value_stack[:]
        if len(values) > _TOP:
            values[-_TOP:] = [value[:] if isinstance(value, list) else value for value in values[-_TOP:]]
        return self._state.state_stack[:], values

    def restore(self, stacks: Stacks) -> None:
        self._state.state_stack[:], self._state.value_stack[:] = stacks

    def accepts(self, terminal: str) -> bool:
        """Whether the parser would take this terminal now. (An entry in the table is not enough: LALR reduces before it sees an
        error.)"""
        stack = self._state.state_stack
        kept, pushed = len(stack), list[Any]()
        while True:
            entry = self._table[pushed[-1] if pushed else stack[kept - 1]].get(terminal)
            if entry is None or entry[0] is Shift:
                return entry is not None
            rule: Any = entry[1]
            size = len(rule.expansion)
            kept -= max(0, size - len(pushed))
            del pushed[max(0, len(pushed) - size) :]
            top = pushed[-1] if pushed else stack[kept - 1]
            pushed.append(self._table[top][rule.origin.name][1])
            if pushed[-1] == self._state.parse_conf.end_state and terminal == "$END":
                return True

    def accepted(self) -> set[str]:
        return {t for t in self._table[self._state.state_stack[-1]] if t.isupper() and self.accepts(t)}


@dataclass
class _Run:
    """The careful parse. `checkpoint` are the parser's stacks before the current item, which starts at token `start`."""

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
        parser = _Parser(self.tables)
        self.checkpoint = parser.stacks()
        at = 0
        while at <= len(self.tokens) and len(self.reading.problems) < MAX_MESSAGES:
            token = self.tokens[at] if at < len(self.tokens) else self.end
            if self._begins_item(parser, token):
                self.checkpoint, self.start = parser.stacks(), at
            if parser.accepts(token.type):
                parser.feed(token)
                at += 1
            else:
                at = self._recover(parser, token, at)

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

    def _begins_item(self, parser: _Parser, token: Token) -> bool:
        """Whether an item may begin here and the token does not go on with the last one (as `=` after `.type t`)."""
        if not parser.accepts("DECL"):
            return False
        return token.type == "IDENT" or bool(_DIRECTIVE.fullmatch(token)) or not parser.accepts(token.type)

    def _recover(self, parser: _Parser, token: Token, at: int) -> int:
        """Reports the error at `token`, puts the parser where it can go on, and gives the number of the token to go on with."""
        failure = Failure(
            self.reading.source,
            self.tokens,
            self.start,
            at,
            token,
            frozenset(self.patterns.get(name, name) for name in parser.accepted()),
        )
        if (mistake := strange_qualifier(failure)) is not None:
            self.reading.problems.append(mistake)
            parser.restore(self.checkpoint)
            return at
        mended = missing_dot(failure)
        if not self._spoiled(token):
            self.reading.problems.append(mended or explain(failure))
        if token.type == "$END":
            return len(self.tokens) + 1
        if mended:
            parser.feed(Token("DOT", ".", start_pos=failure.previous_end, end_pos=failure.previous_end))
            return at
        parser.restore(self.checkpoint)
        return self._next_item(at)

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
                    return i  # taken by the component, or reported as closing nothing
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
