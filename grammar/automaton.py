"""Lark's lexer and LALR tables, run for texts that parse: the same tokens and the same callbacks in one loop.

What does not parse is only told so; `recovery` reads it again with Lark itself and says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import lark
from lark.parse_tree_builder import ExpandSingleChild
from lark.parsers.lalr_analysis import Shift

from dlog.grammar import syntax
from dlog.grammar.source import Span

Row: TypeAlias = "dict[str, Any]"
"""A state: by terminal the next state's row or a `Reduction`, by nonterminal the next state's row."""
Reduction: TypeAlias = "tuple[int, Callable[[list[Any]], Any] | None, str]"
"""How many children, what to make of them (None: the one child stands for itself), and the nonterminal."""

BLANK = r"[ \t\r\n\f\v]"
PLAIN = r'0x[0-9a-fA-F]+|0b[01]+|[0-9]+|"[^"\\\n]*"'
LITERAL = re.compile(PLAIN)
FACT = re.compile(
    rf"{BLANK}*(?P<atom>(?P<name>[?A-Za-z][?A-Za-z0-9_]*|_[?A-Za-z0-9_]+){BLANK}*\({BLANK}*"
    rf"(?P<args>(?:{PLAIN})(?:{BLANK}*,{BLANK}*(?:{PLAIN}))*){BLANK}*\)){BLANK}*\.(?={BLANK}|\Z)"
)
"""A fact of numbers and texts without escapes, as the grammar says; a text may have many thousands of them."""


class Unparsable(Exception):
    """The text is not in the language."""


class Word:
    """A token."""

    __slots__ = ("end_pos", "start_pos", "type", "value")

    def __init__(self, type: str, value: str, start_pos: int, end_pos: int) -> None:
        self.type = type
        self.value = value
        self.start_pos = start_pos
        self.end_pos = end_pos


class Automaton:
    """The tables in a form that a loop can follow quickly."""

    def __init__(self, tables: lark.Lark) -> None:
        lexer: Any = tables.parser.lexer
        (pattern,) = lexer.scanner._mres
        words = {t.pattern.value for t in tables.terminals if t.pattern.type == "str"}
        reserved = {word: lexer.callback["IDENT"].scanner.fullmatch(word) for word in words}
        self._reserved = {word: type for word, type in reserved.items() if type is not None}
        self._ignored: frozenset[str] = lexer.ignore_types
        self._token = re.compile(f"{BLANK}*(?:{pattern.pattern})", pattern.flags)
        conf: Any = tables.parse_interactive("").parser_state.parse_conf
        rows: dict[Any, Row] = {state: {} for state in conf.states}
        reductions: dict[Any, Reduction] = {}
        for state, actions in conf.states.items():
            for symbol, (action, argument) in actions.items():
                if action is Shift:
                    rows[state][symbol] = rows[argument]
                else:
                    if argument not in reductions:
                        reductions[argument] = _reduction(argument, conf.callbacks[argument])
                    rows[state][symbol] = reductions[argument]
        self._start, self._end = rows[conf.start_state], rows[conf.end_state]

    def run(self, text: str) -> Any:
        """The value that the callbacks make of the text; raises `Unparsable`."""
        ignored, reserved = self._ignored, self._reserved
        row = self._start
        rows, values, end = [row], list[Any](), 0
        tokens = self._token.finditer(text)
        while (match := next(tokens, None)) is not None:
            kind = match.lastgroup or ""
            if match.start() != end:
                raise Unparsable
            start, end = match.span(kind)
            if kind in ignored:
                continue
            value = text[start:end]
            if kind == "IDENT":
                kind = reserved.get(value, kind)
            while type(entry := row.get(kind)) is not dict:
                row = _reduce(entry, rows, values)
            if kind == "IDENT" and len(rows) == 2 and (fact := FACT.match(text, start)):  # between items
                end = self._facts(text, fact, values[-1])
                tokens = self._token.finditer(text, end)
                continue
            row = entry
            rows.append(row)
            values.append(Word(kind, value, start, end))
        if text[end:].strip(" \t\r\n\f\v"):
            raise Unparsable
        while row is not self._end:
            row = _reduce(row.get("$END"), rows, values)
        return values[-1]


    def _facts(self, text: str, fact: re.Match[str] | None, items: list[Any]) -> int:
        """Adds facts of literals that follow each other; returns where they end."""
        end = 0
        while fact is not None and fact["name"] not in self._reserved:
            (start, _), end = fact.span("name"), fact.end()
            args = [_literal(arg) for arg in LITERAL.finditer(text, *fact.span("args"))]
            atom = syntax.Atom(fact["name"], tuple(args), span=Span(start, fact.end("atom")))
            items.append(syntax.Clause((atom,), span=Span(start, end)))
            fact = FACT.match(text, end)
        return end


def _literal(match: re.Match[str]) -> syntax.Term:
    found, span = match[0], Span(*match.span())
    return syntax.String(found[1:-1], span=span) if found[0] == '"' else syntax.Number(found, span=span)


def _reduce(entry: Reduction | None, rows: list[Row], values: list[Any]) -> Row:
    """The state after a reduction."""
    if entry is None:
        raise Unparsable
    size, made, nonterminal = entry
    if made is None:
        row: Row = rows[-2][nonterminal]
        rows[-1] = row
        return row
    if size == 1:
        values[-1] = made(values[-1:])
        row = rows[-2][nonterminal]
        rows[-1] = row
        return row
    if size:
        children = values[-size:]
        del values[-size:]
        del rows[-size:]
        values.append(made(children))
    else:
        values.append(made([]))
    row = rows[-1][nonterminal]
    rows.append(row)
    return row


def _reduction(rule: Any, callback: Any) -> Reduction:
    size = len(rule.expansion)
    alone = size == 1 and type(callback) is ExpandSingleChild
    return size, None if alone else callback, rule.origin.name
