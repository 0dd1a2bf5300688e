"""Quotes and comments that nothing closes, found in time in proportion to the text.

pcpp looks for what closes each of them up to the end of its line, or of the text, once more for each that there is.
"""

from __future__ import annotations

import re
from itertools import filterfalse

_MARK = re.compile(r"[\"']|/[*/]")
_WITHIN = {'"': re.compile(r'[^\\\n"]*'), "'": re.compile(r"[^\\\n']*")}
_PRIVATE = range(0xE000, 0x110000)


def stand_ins(text: str, marks: str) -> dict[str, str]:
    """Characters that are not in a text, each with the mark that it stands for."""
    free = filterfalse(set(text).__contains__, map(chr, _PRIVATE))
    return {next(free): mark for mark in marks}


def without_unclosed(text: str, instead: dict[str, str]) -> str:
    """The text with stand-ins for quotes that nothing closes, and for the first character of such comments."""
    stand_in = {mark: character for character, mark in instead.items()}
    parts: list[str] = []
    begin = 0
    for place in unclosed(text):
        parts += text[begin:place], stand_in[text[place]]
        begin = place + 1
    return "".join(parts) + text[begin:]


def unclosed(text: str) -> list[int]:
    """Where they are.

    >>> unclosed("'a' \\"b // 'c\\n /* '")
    [4, 14, 17]
    """
    found: list[int] = []
    open_from: dict[str, set[int]] = {'"': set(), "'": set()}
    place, last = 0, text.rfind("*/")
    while match := _MARK.search(text, place):
        start, mark = match.start(), match[0]
        if mark == "//":
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
        elif mark == "/*":
            end = text.find("*/", start + 2) + 2 if last >= start + 2 else -1
        else:
            end = _end(text, start + 1, mark, open_from[mark])
        if end < 0:
            found.append(start)
        place = start + 1 if end < 0 else end
    return found


def _end(text: str, place: int, quote: str, open_from: set[int]) -> int:
    """The end of what is quoted from a place on, -1 where there is none. `open_from` are places from which there is none:
    whoever comes to one of them, behind an escape, need not go on."""
    passed: list[int] = []
    while place not in open_from:
        passed.append(place)
        found = _WITHIN[quote].match(text, place)
        assert found is not None
        place = found.end()
        if text[place : place + 1] == quote:
            return place + 1
        if text[place : place + 1] != "\\" or place + 1 == len(text):
            break
        place += 2
    open_from.update(passed)
    return -1
