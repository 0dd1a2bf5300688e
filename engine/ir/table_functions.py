"""The table functions: functors that give any number of rows for their arguments. One row each, which every stage reads.

    p(x) :- q(n), x = range(0, n).                each value of the range is a match of its own

To add one: a row here, a case where the machine makes rows (kernels/static/generators.py), a line of the oracle
(tests/naive_generators.py), and `python -m tests.reference` for its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from dlog.dataclass import dataclass
from dlog.engine.ir.kinds import NUMERIC, SYMBOL, Kinds
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.scalars import as_kind

LEAST: Final = {Kind.NUMBER: -(2**63), Kind.UNSIGNED: 0}
"""The least value of the integral kinds."""
DEEPEST_JSON: Final = 500
_BRACKET_OR_STRING: Final = re.compile(r'[\[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows; without a kind it has that of the arguments, which is one."""

    name: str
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class TableFunction:
    """`args` are the kinds that each argument may have, the last `optional` of which may be left out. `rows` makes the rows for
    arguments of a kind, each a tuple of Python's values, and none twice; without it values/generated makes those for many
    arguments at once. `example` is a call, which gives `example_rows`."""

    name: str
    args: tuple[Kinds, ...]
    columns: tuple[Column, ...]
    rows: Callable[..., Iterator[tuple[Any, ...]]] | None
    documentation: str
    example: str
    example_rows: tuple[tuple[Any, ...], ...]
    optional: int = 0

    def accepts(self, count: int) -> bool:
        return len(self.args) - self.optional <= count <= len(self.args)

    @property
    def is_overloaded(self) -> bool:
        return any(column.kind is None for column in self.columns)

    def kinds(self, kind: Kind) -> tuple[Kind, ...]:
        """The kinds of the columns, the arguments being of a kind."""
        return tuple(column.kind or kind for column in self.columns)


def _range(kind: Kind, first: Any, end: Any, *steps: Any) -> Iterator[tuple[Any, ...]]:
    step = steps[0] if steps else 1 if first <= end else -1
    value = first
    if not (step > 0 or step < 0):
        if first != end:
            yield (first,)
        return
    while value < end if step > 0 else end < value:
        yield (value,)
        following = as_kind(value + step, kind)
        if not (value < following if step > 0 else following < value):
            return  # beyond the last value of the kind
        value = following


def _split(_: Kind, text: str, separator: str) -> Iterator[tuple[Any, ...]]:
    yield from enumerate(text.split(separator) if separator else text)


def _json_each(_: Kind, text: str) -> Iterator[tuple[Any, ...]]:
    import json

    if _is_deeper(text, DEEPEST_JSON):
        return
    try:
        whole = json.loads(text, object_pairs_hook=_Members, parse_int=_Written, parse_float=_Written, parse_constant=_Written)
    except (ValueError, RecursionError):
        return
    rows: list[tuple[str, str, str]] = []
    if isinstance(whole, _Members):
        rows = list(dict.fromkeys((key, *_element(value)) for key, value in whole))
    elif isinstance(whole, list):
        rows = [(str(index), *_element(value)) for index, value in enumerate(whole)]
    if "\\u" not in text or all(map(_is_text, chain.from_iterable(rows))):
        yield from rows


def _is_deeper(text: str, depth: int) -> bool:
    """Whether a JSON text has values inside more than so many others. (Python's parser has limits that depend on the version,
    and on who calls it.)"""
    if text.count("[") + text.count("{") <= depth:
        return False
    deepest = level = 0
    for found in _BRACKET_OR_STRING.finditer(text):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        deepest = max(deepest, level)
    return deepest > depth


def _is_text(value: str) -> bool:
    """Whether there is no half of a surrogate pair: JSON can write one, but it is no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, those of one name included."""


class _Written(str):
    """A number as it stands in JSON."""


def _element(value: Any) -> tuple[str, str]:
    """The type of a JSON value, and its text: that of a string without quotes."""
    match value:
        case _Written():
            return "number", value
        case str():
            return "string", value
        case True | False:
            return "boolean", "true" if value else "false"
        case None:
            return "null", "null"
        case _Members():
            return "object", _text(value)
        case _:
            return "array", _text(value)


def _text(value: Any) -> str:
    """A value as JSON, with its numbers as they stood there. Values may be deep, so nothing here recurses."""
    import json

    parts: list[str] = []
    left: list[tuple[str, Any]] = [("", value)]
    """What is to be written, the next one last: some text, and a value behind it."""
    while left:
        before, value = left.pop()
        parts.append(before)
        match value:
            case _Members():
                named = [(f"{json.dumps(k, ensure_ascii=False)}: ", v) for k, v in value]
                left += [("}", _Written()), *_parted(named)]
                parts.append("{")
            case list():
                left += [("]", _Written()), *_parted([("", v) for v in value])]
                parts.append("[")
            case _Written():
                parts.append(value)
            case _:
                parts.append(json.dumps(value, ensure_ascii=False))
    return "".join(parts)


def _parted(values: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The values from the last one on, each but the first behind a comma."""
    for place in range(len(values) - 1, -1, -1):
        before, value = values[place]
        yield f", {before}" if place else before, value


_ROWS: Final = (
    TableFunction(
        "range",
        (NUMERIC,) * 3,
        (Column("value", None),),
        _range,
        "The values from the first argument on to the second one, which is none of them, in steps of the third one; without "
        "it, of 1 or, where the second is less than the first, of -1. With a step of zero it is the first argument alone, if "
        "that is not the second. A range ends where a step does not change its value any more.",
        "range(1, 6, 2)",
        ((1,), (3,), (5,)),
        optional=1,
    ),
    TableFunction(
        "split",
        (SYMBOL, SYMBOL),
        (Column("index", Kind.NUMBER), Column("part", Kind.SYMBOL)),
        _split,
        "The parts of the first text between occurrences of the second one, from index 0 on; its characters, if that is empty.",
        'split("a,b,a", ",")',
        ((0, "a"), (1, "b"), (2, "a")),
    ),
    TableFunction(
        "json_each",
        (SYMBOL,),
        (Column("key", Kind.SYMBOL), Column("type", Kind.SYMBOL), Column("value", Kind.SYMBOL)),
        _json_each,
        "The members of a JSON object, or the elements of an array with their index as key: object, array, string, number, "
        "boolean or null, and the text of the value, of a string without quotes. Nothing for a text that is no JSON, is "
        f"neither an object nor an array, is nested more than {DEEPEST_JSON} deep, or has half of a surrogate pair, which is "
        "no text.",
        'json_each("{\\"a\\": [1, 2.50], \\"b\\": \\"x\\"}")',
        (("a", "array", "[1, 2.50]"), ("b", "string", "x")),
    ),
    TableFunction(
        "regex_captures",
        (SYMBOL, SYMBOL),
        (Column("index", Kind.NUMBER), Column("group", Kind.NUMBER), Column("text", Kind.SYMBOL)),
        None,
        "What the groups of a regular expression take in the matches of a text, one after the other: the number of the match, "
        "from 0 on, that of the group, 0 being the whole match, and the text; nothing for a group without a share. "
        "The expression, which comes first, is one of Python's, whose classes are ASCII's.",
        'regex_captures("(a)(b)?", "ab-a")',
        ((0, 0, "ab"), (0, 1, "a"), (0, 2, "b"), (1, 0, "a"), (1, 1, "a")),
    ),
)

TABLE_FUNCTIONS: Final = {row.name: row for row in _ROWS}
_COPIES: Final = "a relation has a row once or not: number the copies, `i = range(0, n)`, or sum up how often it is there"
_NUMBERS: Final = "`i = range(1, n + 1)` gives the numbers from 1 to n"
_ELEMENTS: Final = "`[key, type, value] = json_each(text)` takes a JSON array or object apart"
CALLED_ELSEWHERE: Final = {
    "repeat": _COPIES,
    "repeat_row": _COPIES,
    "generate_series": _NUMBERS,
    "unnest": _ELEMENTS,
    "json_array_elements": _ELEMENTS,
    "jsonb_array_elements": _ELEMENTS,
    "jsonb_each": _ELEMENTS,
    "regexp_split_to_table": '`[index, part] = split(text, ",")` takes a text apart',
}
"""Names of table functions of other languages, and what does the same."""


def is_aggregate(function: str) -> bool:
    """Whether a table function is the planner's own, which gives the value of an aggregate for its outer variables."""
    return function.startswith("@")


def kinds_of(function: str, kind: Kind) -> tuple[Kind, ...]:
    """The kinds of the columns of a table function's rows."""
    return (kind,) if is_aggregate(function) else TABLE_FUNCTIONS[function].kinds(kind)
