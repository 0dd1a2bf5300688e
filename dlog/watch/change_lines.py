"""Streams of changes as lines of text, read as they arrive.

CSV, `round,relation,+1|-1,values...`, with or without a first line of names, or JSON lines, `{"round": 1, "relation": "edge",
"diff": 1, "row": [1, 2]}`, whose row may name its columns; the first line tells which. Every mistake has its file, line and
column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from sys import getsizeof
from typing import Any, Final

from dlog.arguments import MAX_COUNT
from dlog.codec import Codec, Row, is_text
from dlog.engine.formats.nested import BadRecord, parse_records
from dlog.engine.formats.parameters import TextFormat
from dlog.engine.formats.wrong_lines import Unbalanced, split_line
from dlog.engine.ir.rules import Kind, Relation, Type
from dlog.engine.runtime.storage.memory import over_limit
from dlog.engine.values.domains import fits, from_texts, name_of
from dlog.engine.values.sizes import byte_size
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.suggest import closest
from dlog.watch.line_source import COPIES, LineSource

Change = tuple[int, str, int, Row]
"""Round, relation, diff, row."""

_ROUND = re.compile(r'^\s*"?([0-9]+)"?\s*,|"round"\s*:\s*([0-9]+)')
"""In a line of CSV or JSON."""
_FORM = TextFormat(delimiter=b",", rfc4180=True)
_DIFFS: Final = {"+1": 1, "1": 1, "+": 1, "-1": -1, "-": -1}
_CACHED_RECORDS = 1 << 14
"""Of each type."""
_LINES_AHEAD = 1 << 12
"""Lines whose records are parsed together: one by itself takes most of a millisecond."""
_CHANGE = 400
"""Bytes of a change beside its values, as measured, rounded up."""
_MAX_DIGITS = 40
"""A number of more digits fits nothing."""
_NAMES = {Kind.NUMBER: "a number", Kind.UNSIGNED: "an unsigned number", Kind.FLOAT: "a float", Kind.SYMBOL: "a string"}


def weight(row: Row) -> int:
    """About how many bytes a change with this row takes until its round is committed: no fewer, and seldom twice as many."""
    size, waiting = 0, [row]
    while waiting:  # records may be deep
        for value in waiting.pop():
            size += getsizeof(value)
            if isinstance(value, tuple):
                waiting.append(value)
    return _CHANGE + COPIES * size


class ChangeReader:
    """Reads changes of the relations that can be changed; `rounds` may not go down and start at 1."""

    def __init__(self, source: LineSource, relations: dict[str, Relation], codec: Codec) -> None:
        self.source = source
        self._relations = relations
        self._codec = codec
        self._round = 1
        self._records: dict[str, dict[str, Any]] = {}
        """Values by type and text."""
        self._looked: dict[str, int] = {}
        """By type: the last line whose records have been parsed, if they could be."""
        self.is_json = False
        self._line = ""

    def __iter__(self) -> Iterator[Change]:
        first = True
        for line in self.source:
            self._line, text = line, line.strip()
            if not text:
                continue
            if first:
                first, self.is_json = False, text.startswith("{")
                if text.replace('"', "").lower().startswith("round,"):
                    continue
            yield self._from_json() if self.is_json else self._from_csv()

    def too_much(self, round: int, size: int, limit: int) -> DlogError:
        """What is said where the changes of a round, with that of the last line, take more than there is."""
        note = f"the changes of round {round} up to here take about {byte_size(size)} until they are committed"
        return over_limit(limit, note, place=f"{self.source.name}:{self.source.number}:1", line=self._line)

    def past(self, round: int) -> bool:
        """Whether the last line, which may be wrong, says that it belongs to a later round."""
        found = _ROUND.search(self.source.line)
        return found is not None and _integer(found[1] or found[2]) > round

    def _wrong(self, code: str, message: str, column: int, *notes: str) -> DlogError:
        return self.source.mistake(code, message, self._line, column, *notes)

    def _checked_round(self, round: int, column: int) -> int:
        if round < 1:
            notes = ("round 0 is what the facts give that are there before the first change",)
            raise self._wrong("bad-round", f"rounds count from 1, not {round}", column, *notes)
        if round > MAX_COUNT:
            raise self._wrong("bad-round", f"this round is too late: the last one is {MAX_COUNT}", column)
        if round < self._round:
            raise self._wrong("bad-round", f"round {round} comes after round {self._round}", column, "rounds do not go down")
        self._round = round
        return round

    def _relation(self, name: str, column: int) -> Relation:
        found = self._relations.get(name)
        if found is not None:
            return found
        if name in self._codec.program.relations:
            raise self._wrong("derived-relation", f"`{name}` follows from rules: it cannot be changed from outside", column)
        close = closest(name, self._relations)
        notes = [f"did you mean `{close}`?"] if close else []
        raise self._wrong("unknown-relation", f"unknown relation `{name}`", column, *notes)

    # ----------------------------------------------------------------------------------------------------------------- CSV

    def _from_csv(self) -> Change:
        fields = self._line.split(",") if '"' not in self._line else self._split()
        if len(fields) < 3:
            raise self._wrong("wrong-column-count", "a change is round,relation,+1 or -1,values...", len(self._line))
        if not (fields[0].isascii() and fields[0].isdecimal()):
            raise self._wrong("bad-round", f"`{fields[0]}` is not a round", 0)
        round = _integer(fields[0])
        if round != self._round:
            self._checked_round(round, 0)
        relation = self._relations.get(fields[1]) or self._relation(fields[1], self._at(1))
        diff = _DIFFS.get(fields[2])
        if diff is None:
            raise self._wrong("bad-diff", f"`{fields[2]}` is not +1 or -1", self._at(2))
        if len(fields) - 3 != relation.arity:
            count = f"{len(fields) - 3} value{'' if len(fields) == 4 else 's'}"
            message = f"`{relation.name}` has {relation.arity} columns, but {count} here"
            raise self._wrong("wrong-column-count", message, self._at(3))
        row = tuple([self._value(type, fields[i], i) for i, (_, type) in enumerate(relation.attributes, 3)])
        return round, relation.name, diff, row

    def _split(self) -> list[str]:
        try:
            return [field.text.decode() for field in split_line(self._line.encode(), _FORM)]
        except Unbalanced as error:
            raise self._wrong("unbalanced", str(error), len(self._line.encode()[: error.start].decode())) from None

    def _at(self, field: int) -> int:
        """The start of a field of the present line, or its end where there is no such field."""
        line = self._line.encode()
        fields = split_line(line, _FORM)
        return len(line[: fields[field].start].decode()) if field < len(fields) else len(self._line)

    def _value(self, type: Type, text: str, field: int) -> Any:
        match type.kind:
            case Kind.SYMBOL:
                return text
            case Kind.FLOAT:
                try:
                    return self._fitting(type, float(text), text, partial(self._at, field))
                except ValueError:
                    raise self._wrong("bad-number", f"`{text}` is not a float", self._at(field)) from None
            case Kind.RECORD:
                return self._record(type, text, partial(self._at, field))
            case _ if type.is_calendar:
                return self._dated(type, text, partial(self._at, field))
            case kind:
                digits = text[1:] if text.startswith("-") else text
                if not (digits.isascii() and digits.isdecimal()):
                    raise self._wrong("bad-number", f"`{text}` is not {_NAMES[kind]}", self._at(field))
                return self._fitting(type, _integer(text), text, partial(self._at, field))

    def _fitting(self, type: Type, value: float, text: str, column: Callable[[], int]) -> float:
        """A number that its type has."""
        if not fits(type, value):
            raise self._wrong("number-out-of-range", f"`{text}` does not fit {_NAMES[type.kind]}", column())
        return value

    def _dated(self, type: Type, text: str, column: Callable[[], int]) -> Any:
        found, good = from_texts(type, [text])
        if not good:
            raise self._wrong("bad-date", f"`{text}` is not {name_of(type)}", column())
        return self._codec.to_python(type, found)[0]

    def _record(self, type: Type, text: str, column: Callable[[], int]) -> Any:
        known = self._records.setdefault(type.name, {})
        if text not in known:
            if len(known) >= _CACHED_RECORDS:
                known.clear()
            ahead = [*dict.fromkeys([text, *self._texts_ahead(type)])]
            try:
                self._parse(type, ahead)
            except BadRecord:  # it may be of a later line
                try:
                    self._parse(type, ahead[:1])
                except BadRecord as error:
                    raise self._wrong("bad-record", f"`{text}` {error}", column()) from None
        return known[text]

    def _parse(self, type: Type, records: Sequence[str]) -> None:
        """Notes the values of records. Raises BadRecord."""
        texts, codec = SymbolTable(), self._codec
        for text in records:
            texts.intern(text)
        ids = parse_records(texts, type, codec.program.types, codec.symbols, codec.records)
        self._records[type.name].update(zip(records, codec.to_python(type, ids), strict=True))

    def _texts_ahead(self, type: Type) -> Iterator[str]:
        """The records of a type in the next lines, unless these have been looked at."""
        if self.source.number < self._looked.get(type.name, 0):
            return
        lines = [*self.source.peek(_LINES_AHEAD)]
        self._looked[type.name] = self.source.number + len(lines)
        for line in lines:
            with suppress(ValueError, RecursionError, Unbalanced):  # whoever takes the line says what is wrong with it
                name, values = self._ahead(line)
                relation = self._relations.get(name)
                if relation is not None and len(values) == relation.arity:
                    found = zip(values, relation.attributes, strict=True)
                    yield from (v for v, (_, of) in found if of.name == type.name and isinstance(v, str) and is_text(v))

    def _ahead(self, line: bytes) -> tuple[str, Sequence[str]]:
        """The relation and the values of a line. Raises ValueError, RecursionError, Unbalanced."""
        if self.is_json:
            item = json.loads(line)
            row = item.get("row") if isinstance(item, dict) else None
            return (str(item.get("relation")), row) if isinstance(row, list) else ("", ())
        fields = [field.text.decode() for field in split_line(line.removesuffix(b"\r"), _FORM)]
        return (fields[1], fields[3:]) if len(fields) > 3 else ("", ())

    # ---------------------------------------------------------------------------------------------------------------- JSON

    def _from_json(self) -> Change:
        try:
            return self._json_change(json.loads(self._line))
        except json.JSONDecodeError as error:
            raise self._wrong("bad-json", f"this is not JSON: {error.msg}", error.colno - 1) from None
        except (ValueError, RecursionError):  # of Python's limits for what it reads
            raise self._wrong("bad-json", "this has a number that is too long, or is nested too deeply", 0) from None

    def _json_change(self, item: object) -> Change:
        if not isinstance(item, dict):
            raise self._wrong("bad-json", 'a change is {"round": 1, "relation": "edge", "diff": 1, "row": [1, 2]}', 0)
        for key in ("round", "relation", "diff", "row"):
            if key not in item:
                raise self._wrong("bad-json", f"the change has no `{key}`", 0)
        round, name, diff = item["round"], item["relation"], item["diff"]
        if type(round) is not int:
            raise self._wrong("bad-round", f"`{json.dumps(round)}` is not a round", self._key("round"))
        self._checked_round(round, self._key("round"))
        relation = self._relation(str(name), self._key("relation"))
        if type(diff) is not int or diff not in (1, -1):
            raise self._wrong("bad-diff", f"`{json.dumps(diff)}` is not 1 or -1", self._key("diff"))
        return round, relation.name, diff, self._json_row(relation, item["row"])

    def _key(self, key: str) -> int:
        return max(self._line.find(f'"{key}"'), 0)

    def _json_row(self, relation: Relation, row: object) -> Row:
        names = [name for name, _ in relation.attributes]
        if isinstance(row, dict):
            if row.keys() != set(names):
                message = f"the columns of `{relation.name}` are {', '.join(names)}"
                raise self._wrong("wrong-column-count", message, self._key("row"))
            row = [row[name] for name in names]
        if not isinstance(row, list) or len(row) != relation.arity:
            message = f"the row of `{relation.name}` is a list of {relation.arity} values"
            raise self._wrong("wrong-column-count", message, self._key("row"))
        return tuple([self._json_value(type, value) for (_, type), value in zip(relation.attributes, row, strict=True)])

    def _json_value(self, type_: Type, value: object) -> Any:
        match type_.kind:
            case Kind.RECORD if type_.branches:
                if isinstance(value, str):
                    self._check_text(value)
                    return self._record(type_, value, partial(self._key, "row"))
                raise self._wrong("bad-value", f"`{json.dumps(value)}` is not a `{type_.name}` as text", self._key("row"))
            case Kind.RECORD:
                if value is None:
                    return None
                if isinstance(value, list) and len(value) == len(type_.fields):
                    types = self._codec.program.types
                    return tuple([self._json_value(types[f], v) for (_, f), v in zip(type_.fields, value, strict=True)])
                raise self._wrong("bad-record", f"`{json.dumps(value)}` is not a record `{type_.name}`", self._key("row"))
            case Kind.SYMBOL if isinstance(value, str):
                self._check_text(value)
                return value
            case _ if type_.is_calendar and isinstance(value, str):
                self._check_text(value)
                return self._dated(type_, value, partial(self._key, "row"))
            case Kind.FLOAT if type(value) in (int, float):
                return self._fitting(type_, self._float(value), str(value), partial(self._key, "row"))  # type: ignore[arg-type]
            case Kind.NUMBER | Kind.UNSIGNED if type(value) is int and not type_.is_calendar:
                return self._fitting(type_, value, str(value), partial(self._key, "row"))
            case _:
                meant = name_of(type_) if type_.is_calendar else _NAMES[type_.kind]
                raise self._wrong("bad-value", f"`{json.dumps(value)}` is not {meant}", self._key("row"))

    def _check_text(self, value: str) -> None:
        if not is_text(value):
            raise self._wrong("bad-value", f"`{json.dumps(value)}` has a lone surrogate, which is no text", self._key("row"))

    def _float(self, value: int | float) -> float:
        try:
            return float(value)
        except OverflowError:
            raise self._wrong("number-out-of-range", f"`{value}` does not fit a float", self._key("row")) from None


def _integer(text: str) -> int:
    """A decimal number; one of no range where Python might refuse to convert so many digits."""
    if len(text) <= _MAX_DIGITS:
        return int(text)
    return int(text.lstrip("-0")[: _MAX_DIGITS] or "0") * (-1 if text.startswith("-") else 1)
