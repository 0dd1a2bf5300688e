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

from dlog.grammar.alike import OPENING, Alike
from dlog.grammar.literal_facts import BLANK, FACT, read_facts

Row: TypeAlias = "dict[str, Any]"
"""A state: by terminal the next state's row or a `Reduction`, by nonterminal the next state's row."""
Reduction: TypeAlias = "tuple[int, Callable[[list[Any]], Any] | None, str]"
"""How many children, what to make of them (None: the one child stands for itself), and the nonterminal."""

FREQUENT = ("CHOICE_DOMAIN", "HISTORY", "RETRACT", "IDENT", "COMMA", "LPAR", "RPAR")
"""`choice-domain`, `history(10)` and `retract(now)` are the terminals that begin as names do."""


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
        scanner = lexer.scanner
        words = {t.pattern.value for t in tables.terminals if t.pattern.type == "str"}
        reserved = {word: lexer.callback["IDENT"].scanner.fullmatch(word) for word in words}
        self.reserved = {word: type for word, type in reserved.items() if type is not None}
        self._ignored: frozenset[str] = lexer.ignore_types
        self._token: Any = re.compile(f"{BLANK}*(?:{_alternatives(scanner)})", scanner.g_regex_flags)
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

    def run(self, text: str, alike: Alike | None = None) -> Any:
        """The value that the callbacks make of the text; raises `Unparsable`. `alike` knows the items of the text by shape."""
        ignored, reserved = self._ignored, self.reserved
        row = self._start
        rows, values, end = [row], list[Any](), 0
        next_token = self._token.scanner(text).match  # and no search: for what has no end, that takes time with the square
        while (match := next_token()) is not None:
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            if kind in ignored:
                continue
            value = text[start:end]
            if kind == "IDENT":
                kind = reserved.get(value, kind)
            while type(entry := row.get(kind)) is not dict:
                row = _reduce(entry, rows, values)
            if kind == "IDENT" and len(rows) == 2 and (fact := FACT.match(text, start)):  # between items
                end = read_facts(text, fact, reserved, values[-1])
                next_token = self._token.scanner(text, end).match
                continue
            if alike is not None and kind in OPENING and len(rows) == 2 and (read := alike.read(text, start, values[-1])):
                end = read
                next_token = self._token.scanner(text, end).match
                continue
            row = entry
            rows.append(row)
            values.append(Word(kind, value, start, end))
        if text[end:].strip(" \t\r\n\f\v"):
            raise Unparsable
        while row is not self._end:
            row = _reduce(row.get("$END"), rows, values)
        return values[-1]


def _alternatives(scanner: Any) -> str:
    """The terminals, in Lark's order but for the most frequent ones: those are nothing else's beginning."""
    terminals = {t.name: t.pattern.to_regexp() for t in scanner.terminals}
    names = [*FREQUENT, *(name for name in terminals if name not in FREQUENT)]
    return "|".join([f"(?P<{name}>{terminals[name]})" for name in names])


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
