"""Items of one shape: a program of many rules has few of them, and what one was parsed to serves for all.

    a(x, y) :- b(x, z), c(z, y).        p(i, j) :- q(i, k), r(k, j).

Clauses, declarations and directives that differ in nothing but names and literals have the same tree, but for these and for
their places. When a shape comes for the second time, a text of it is parsed in which each name and literal is told from all
others; where these and their places are in its tree, there others are put.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from dlog.grammar.alike_clauses import Build, ClauseShape, Place, placed
from dlog.grammar.literal_facts import BLANK, FACT, LiteralFact
from dlog.grammar.source import Span
from dlog.grammar.syntax import Clause, Item

Make: TypeAlias = Callable[[list[str], int], Item]
"""Makes an item of its parts and of where the first one begins."""
Shape: TypeAlias = tuple[str, ...]

_IDENT = r"[?A-Za-z][?A-Za-z0-9_]*|_[?A-Za-z0-9_]+"
_TEXT = r'"[^"\\\n]*"'
_LEAF = re.compile(rf"([?A-Za-z0-9_]+|{_TEXT})")
_IGNORED = rf"(?:{BLANK}++|//[^\n]*+|/\*[^*]*+\*+(?:[^/*][^*]*+\*+)*+/)*+"
_PLAIN = r"[A-Za-z0-9_?(),:;=<>!+\-*%^{}\[\] \t\r\n\f\v]*"
_WORD = r"\.(?:decl|type|number_type|symbol_type|functor|lattice|input|output|printsize|limitsize|pragma|comp|init)(?!\S)"
_NEXT = rf"(?={_IGNORED}(?:{_WORD}|(?!(?:history|retract)\b)(?:{_IDENT}){BLANK}*\(|\Z))"
"""What an item that has no end of its own is followed by, if nothing more belongs to it."""
_CLAUSE = re.compile(rf"{_PLAIN}(?:(?:/(?![/*])|{_TEXT}){_PLAIN})*\.(?={BLANK}|\Z)(?!{_IGNORED}(?:\.plan|@))")
_DECLARATION = re.compile(
    rf"\.decl{BLANK}+(?:{_IDENT}){BLANK}*\([A-Za-z0-9_?,: \t\r\n\f\v]*\){_NEXT}"
    rf"|\.(?:input|output|printsize|limitsize){BLANK}+(?:{_IDENT})(?![?A-Za-z0-9_]){_NEXT}"
)
"""Items without dots, comments, annotations and escapes: those that there are many of are like that."""
_BETWEEN = re.compile(_IGNORED)

MAX_PARTS = 256
"""Parts of an item up to which one serves for others: what takes long to parse takes longer to be made a builder of."""
OPENING = frozenset({"IDENT", "DECL", "INPUT", "OUTPUT", "PRINTSIZE", "LIMITSIZE"})
"""The tokens with which such items begin."""
_DIGITS = frozenset("0123456789")
_KINDS = {**dict.fromkeys(_DIGITS, "0"), '"': '"'}
_OWN = {word: word for word in ("choice", "history", "retract", "decl", "input", "output", "printsize", "limitsize", "_")}
"""Parts of words of the language that are like names, and the variable without one."""
_PLACES = frozenset({"__FILE__", "__LINE__"})
"""Values that are where they stand."""


class Unlike(Exception):
    """Part of a tree depends on the text in some other way."""


class Alike:
    """The items of one text, by shape."""

    def __init__(self, reserved: Mapping[str, str], parse: Callable[[str], tuple[Item, ...]]) -> None:
        """`parse` gives the items of a text; none if there are mistakes in it."""
        self._words = {**{word: word for word in reserved}, **_OWN}
        self._parse = parse
        self._makers: dict[Shape, Make | None] = {}
        self._first = -1
        """Where the last new shape was seen: the same text may be asked for again, behind others and by itself."""

    def read(self, text: str, start: int, items: list[Item]) -> int:
        """Adds the items from one on that follow each other and are of known shapes; returns where they end, 0 if none is."""
        end = 0
        while (found := self._item(text, start)) is not None:
            item, end = found
            items.append(item)
            between = _BETWEEN.match(text, end)
            start = end if between is None else between.end()
            if FACT.match(text, start):  # these have a way of their own
                break
        return end

    def _item(self, text: str, start: int) -> tuple[Item, int] | None:
        found = (_DECLARATION if text[start : start + 1] == "." else _CLAUSE).match(text, start)
        if found is None:
            return None
        parts = _LEAF.split(found[0])
        if len(parts) > MAX_PARTS:
            return None
        words = self._words
        shape = (*parts[::2], *[words.get(leaf) or _KINDS.get(leaf[0], "a") for leaf in parts[1::2]])
        make = self._makers.get(shape, _new)
        if make is _new:
            self._makers[shape], self._first = None, start
            return None
        if make is None:
            if start == self._first:
                return None
            make = self._makers[shape] = self._make(parts)
        if make is _parsed or ("0" in shape and not _are_decimal(parts)):
            return None
        return make(parts, start), found.end()

    def _make(self, parts: Sequence[str]) -> Make:
        if not _PLACES.isdisjoint(parts):
            return _parsed
        told = [_stand_in(i, part, self._words) for i, part in enumerate(parts)]
        items = self._parse("".join(told))
        if len(items) != 1 or type(items[0]) is LiteralFact:
            return _parsed
        try:
            return _Builders(told).item(items[0]) or _parsed
        except (Unlike, RecursionError):  # what is nested too deeply for this may be parsed
            return _parsed


def _are_decimal(parts: Sequence[str]) -> bool:
    """Whether all leaves that begin with digits are numbers without letters."""
    return all(leaf.isdecimal() for leaf in parts[1::2] if leaf[0] in _DIGITS)


def _new(parts: list[str], start: int) -> Item:
    """Stands for what makes items of a shape that has not come yet."""
    raise Unlike


def _parsed(parts: list[str], start: int) -> Item:
    """Stands for what makes items that are parsed each by itself."""
    raise Unlike


_STAND_IN = "zq"
"""Begins a name or a text that stands for another one."""
_NUMBERS = 8_000_000_000_000


def _stand_in(number: int, part: str, words: Mapping[str, str]) -> str:
    """What stands for a part of an item: for a leaf one of its kind that is like no other."""
    if number % 2 == 0 or part in words:
        return part
    kind = _KINDS.get(part[0])
    name = f"{_STAND_IN}{number}z"
    return str(_NUMBERS + number) if kind == "0" else name if kind is None else f'"{name}"'


class _Builders:
    """Functions that make values like those in the tree of an item."""

    def __init__(self, told: Sequence[str]) -> None:
        self._starts = list(accumulate(map(len, told), initial=0))
        self._leaves = {leaf.strip('"'): i for i, leaf in enumerate(told) if i % 2}
        self._texts = {leaf.strip('"') for leaf in told if leaf[:1] == '"'}

    def item(self, item: Item) -> Make | None:
        """What makes items like one."""
        if type(item) is Clause and item.body is not None:
            heads, body = self.of(item.heads), self.of(item.body)
            assert heads is not None and body is not None
            return ClauseShape(item, heads, body, self._leaves, self._placed).make
        build = self.of(item)
        if build is None:
            return None
        return lambda parts, start: build(parts, list(accumulate(map(len, parts), initial=start)))

    def of(self, value: Any) -> Build | None:
        """The builder of a value; None where it is the same in all."""
        match value:
            case str():
                return self._text(value)
            case Span():
                return self._span(value)
            case tuple():
                return self._tuple(value)
            case _ if is_dataclass(value):
                return self._node(value)
            case _:
                return None

    def _text(self, value: str) -> Build | None:
        number = self._leaves.get(value)
        if number is not None and (_STAND_IN in value or value.isdecimal()):
            if value in self._texts:
                return lambda parts, at: parts[number][1:-1]
            return lambda parts, at: parts[number]
        if _STAND_IN in value or str(_NUMBERS)[:-4] in value:
            raise Unlike
        return None

    def _span(self, span: Span) -> Build | None:
        place = self._placed(span)
        if place is None:
            return None
        first, before, last, behind = place
        if before or behind:
            return lambda parts, at: placed(place, at)
        return lambda parts, at: Span(at[first], at[last])

    def _placed(self, span: Span) -> Place | None:
        return None if span.start < 0 else (*self._place(span.start), *self._place(span.end))

    def _place(self, offset: int) -> tuple[int, int]:
        """The part in which an offset of the tree lies, and how far behind its beginning."""
        part = bisect_right(self._starts, offset) - 1
        behind = offset - self._starts[part]
        if behind and part % 2:
            raise Unlike
        return part, behind

    def _tuple(self, values: tuple[Any, ...]) -> Build | None:
        builds = [self.of(v) or _same(v) for v in values]
        return lambda parts, at: tuple([build(parts, at) for build in builds])

    def _node(self, node: Any) -> Build:
        made, named = type(node), {f.name: getattr(node, f.name) for f in fields(node)}
        inner = [self.of(named[f.name]) or _same(named[f.name]) for f in fields(node) if not f.kw_only]
        span, *others = [(f.name, self.of(named[f.name]) or _same(named[f.name])) for f in fields(node) if f.kw_only]
        place = span[1]
        if others:
            return lambda parts, at: made(
                *[build(parts, at) for build in inner],
                span=place(parts, at),
                **{name: build(parts, at) for name, build in others},
            )
        if len(inner) == 1:
            (only,) = inner
            return lambda parts, at: made(only(parts, at), span=place(parts, at))
        return lambda parts, at: made(*[build(parts, at) for build in inner], span=place(parts, at))


def _same(value: Any) -> Build:
    return lambda parts, at: value
