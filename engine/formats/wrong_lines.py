"""Diagnoses a wrong line of a fact file. Slow and exact: runs only once the fast path has refused the line."""

from __future__ import annotations

import re
from codecs import BOM_UTF8

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.parameters import TextFormat
from dlog.engine.ir.kinds import NUMERIC
from dlog.engine.ir.rules import Domain, Kind, Relation, Type
from dlog.engine.kernels.values.numerals import BAD, GOOD, RANGE, SCRATCH, status_of
from dlog.engine.values.domains import code_of, name_of, range_of
from dlog.grammar.diagnostics import Diagnostic

_BRANCH = re.compile(rb"\$[A-Za-z0-9_?.]*\Z")
_EXAMPLES = {Domain.DATE: "a date is a day that there is, as 2026-11-25", Domain.TIMESTAMP: "a time is 2026-11-25T12:30:00"}


WINDOWS = (1 << 8, 1 << 12, 1 << 16, 1 << 20)
"""Bytes in which the end of a row is looked for, one after the other: most rows are short, and there may be many."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a line: where it starts (a byte of the line) and its text without quotes."""

    start: int
    text: bytes


class Unbalanced(Exception):
    """A bracket or quote opened at byte `start` of a line is never closed."""

    def __init__(self, start: int, what: str) -> None:
        super().__init__(what)
        self.start = start


def split_line(line: bytes, form: TextFormat) -> list[Field]:
    """The fields of a line without its end; with quotes `line` may go on behind the row's end, which is a bare newline."""
    fields, start = [], 0
    while True:
        if form.rfc4180 and line[start : start + 1] == b'"':
            text, end = _quoted(line, start)
        else:
            end = _end(line, start, form)
            text = line[start:end]
        fields.append(Field(start, text))
        if not line.startswith(form.delimiter, end):
            if form.rfc4180 and end < len(line) and line[end : end + 1] not in (b"\n", b"\r"):
                raise Unbalanced(start, "text follows the closing quote")
            return fields
        start = end + len(form.delimiter)


def _quoted(line: bytes, start: int) -> tuple[bytes, int]:
    pieces, at = [], start + 1
    while (close := line.find(b'"', at)) >= 0:
        pieces.append(line[at:close])
        if line[close + 1 : close + 2] != b'"':
            return b'"'.join(pieces), close + 1
        at = close + 2
    raise Unbalanced(start, "this quote is never closed")


def _end(line: bytes, start: int, form: TextFormat) -> int:
    if form.rfc4180:
        newline = line.find(b"\n", start)
        if newline < 0:
            newline = len(line)
        elif line[newline - 1 : newline] == b"\r":
            newline -= 1
        found = line.find(form.delimiter, start, newline)
        return newline if found < 0 else found
    if b"," not in form.delimiter:
        found = line.find(form.delimiter, start)
        return len(line) if found < 0 else found
    depth = inside = 0
    for at in range(start, len(line)):
        if depth == inside == 0 and line.startswith(form.delimiter, at):
            return at
        if line[at] == ord("["):
            depth += 1
        elif line[at] == ord("]") and depth:
            depth -= 1
        elif line[at] == ord("(") and _BRANCH.search(line, start, at):
            inside += 1
        elif line[at] == ord(")") and inside:
            inside -= 1
    if depth or inside:
        raise Unbalanced(start, f"a bracket `{'[' if depth else '('}` is never closed")
    return len(line)


def row_end(data: np.ndarray, begin: int, form: TextFormat) -> int:
    """The place behind the row that begins there, its line end with it."""
    if not form.rfc4180:
        return line_end(data, begin)
    for size in WINDOWS:
        window = data[begin : begin + size].tobytes()
        closed = _last_field_end(window, form)
        end = -1 if closed is None else window.find(b"\n", closed)
        if end >= 0:
            return begin + end + 1
        if begin + size >= len(data):
            break
    return len(data) if closed is None else line_end(data, begin + len(window))


def _last_field_end(row: bytes, form: TextFormat) -> int | None:
    """Where the last field of a row with quotes ends, or one that is wrong; None where a quote is never closed."""
    try:
        last = split_line(row, form)[-1]
    except Unbalanced as mistake:
        return None if "never" in str(mistake) else _quoted(row, mistake.start)[1]
    return _quoted(row, last.start)[1] if row[last.start : last.start + 1] == b'"' else last.start + len(last.text)


def line_end(data: np.ndarray, position: int) -> int:
    """The place behind the first line end at or after `position`."""
    size = WINDOWS[0]
    while position < len(data):
        found = data[position : position + size].tobytes().find(b"\n")
        if found >= 0:
            return position + found + 1
        position += size
        size = min(2 * size, WINDOWS[-1])
    return len(data)


def line_begin(data: np.ndarray, position: int) -> int:
    """The place behind the last line end before `position`."""
    size = WINDOWS[0]
    while position > 0:
        begin = max(0, position - size)
        found = data[begin:position].tobytes().rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        position = begin
        size = min(2 * size, WINDOWS[-1])
    return 0


def number_status(text: bytes, type_: Type) -> int:
    """GOOD, BAD or RANGE: how the whole of `text` reads as a number of this type."""
    data, scratch = np.frombuffer(text + b"\0", np.uint8), np.empty(SCRATCH, np.uint8)
    start = data.ctypes.data
    behind, status = status_of(start, start + len(text), code_of(type_), scratch.ctypes.data)
    return int(status) if status == BAD or behind == start + len(text) else BAD


def names_of(data: np.ndarray, form: TextFormat) -> tuple[str, list[str]]:
    """The first line, and the names that it has for the columns."""
    line = data[: 1 << 20].tobytes().split(b"\n", 1)[0].removesuffix(b"\r").removeprefix(BOM_UTF8)
    try:
        return _decoded(line), [_decoded(field.text).strip() for field in split_line(line, form)]
    except Unbalanced:
        return _decoded(line), []


def explain_line(data: np.ndarray, position: int, file: str, relation: Relation, form: TextFormat) -> Diagnostic:
    """The diagnostic for the line that starts at `position`."""
    number = int(np.count_nonzero(data[:position] == 10)) + 1
    rest = data[position : position + (1 << 20)].tobytes()
    shown = rest.split(b"\n", 1)[0].removesuffix(b"\r")
    text = rest if form.rfc4180 else shown

    def finding(code: str, start: int, message: str, *notes: str) -> Diagnostic:
        where = f"{file}:{number}:{len(_decoded(shown[:start])) + 1}"
        return Diagnostic(code, message, notes=notes, place=where, line=_decoded(shown))

    try:
        fields = split_line(text, form)
    except Unbalanced as mistake:
        return finding("unbalanced", mistake.start, f"line {number}: {mistake}")
    columns = form.columns if form.columns is not None else tuple(range(relation.arity))
    wanted = max(columns, default=-1) + 1
    for column, (name, type_) in sorted(zip(columns, relation.attributes, strict=True), key=lambda pair: pair[0]):
        if column >= len(fields) or _other_delimiters(shown, fields, wanted, form):
            break
        field = fields[column]
        if type_.kind in NUMERIC and (status := number_status(field.text, type_)) != GOOD:
            value = f"line {number}, column {column + 1} (`{name}`): `{_decoded(field.text)}`"
            if status == RANGE:
                return finding("number-out-of-range", field.start, f"{value} does not fit", _limits(type_))
            notes = _number_notes(field.text, type_, number == 1 and not form.headers)
            code = "bad-date" if type_.is_calendar else "bad-number"
            return finding(code, field.start, f"{value} is not {name_of(type_).split(',')[0]}", *notes)
    message = f"line {number} has {_count(len(fields))}, `{relation.name}` has {_count(wanted)}"
    extra = fields[wanted].start if len(fields) > wanted else len(shown)
    return finding("wrong-column-count", extra, message, *_count_notes(shown, fields, wanted, form))


def explain_text(data: np.ndarray, start: int, file: str, name: str) -> Diagnostic:
    """The diagnostic for the first byte from `start` on that is not UTF-8, which is in a field of attribute `name`."""
    at = start + _wrong_byte(data, start)
    number = int(np.count_nonzero(data[:at] == 10)) + 1
    before = data[max(line_begin(data, at), at - (1 << 20)) : at].tobytes()
    line = before + data[at : at + (1 << 20)].tobytes().split(b"\n", 1)[0].removesuffix(b"\r")
    message = f"line {number} (`{name}`): byte 0x{data[at]:02x} is not UTF-8"
    place = f"{file}:{number}:{len(_decoded(before)) + 1}"
    return Diagnostic("encoding", message, notes=("text files are UTF-8",), place=place, line=_decoded(line))


def _wrong_byte(data: np.ndarray, start: int) -> int:
    """The distance from `start` of the first byte that is not UTF-8."""
    size = 1 << 12
    while True:
        try:
            data[start : start + size].tobytes().decode()
        except UnicodeDecodeError as error:
            if error.start < size - 4 or start + size >= len(data):  # not a character that is cut here
                return error.start
        size *= 2


def _limits(type_: Type) -> str:
    """What numbers of a type are at most."""
    if type_.kind is Kind.FLOAT:
        return f"a float is at most {'3.4e38' if type_.domain is Domain.SHORT else '1.8e308'} in size"
    values = range_of(type_)
    return f"{name_of(type_)} lies between {values[0]} and {values[-1]}"


def _number_notes(text: bytes, type_: Type, first: bool) -> list[str]:
    notes, kind = [], type_.kind
    if type_.is_calendar:
        notes.append(_EXAMPLES[type_.domain])
    elif kind is Kind.NUMBER and text[:2] in (b"0x", b"0b"):
        notes.append("fact files hold `number` in decimal; hexadecimal and binary are read for `unsigned`")
    if kind is Kind.UNSIGNED and text.startswith(b"-"):
        notes.append("an unsigned number has no sign")
    if first:
        notes.append("if the first line holds names, say headers=true")
    return notes


def _other_delimiters(line: bytes, fields: list[Field], wanted: int, form: TextFormat) -> list[bytes]:
    """The delimiters that would part a line that is all one field into as many as are wanted."""
    if len(fields) != 1 or wanted < 2:
        return []
    return [d for d in (b"\t", b",", b";", b"|", b" ") if d != form.delimiter and line.count(d) == wanted - 1]


def _count_notes(line: bytes, fields: list[Field], wanted: int, form: TextFormat) -> list[str]:
    notes = []
    if len(fields) == 1 and wanted > 1:
        notes.append(f"columns are parted by {_decoded(form.delimiter)!r}")
        if others := _other_delimiters(line, fields, wanted, form):
            notes.append(f"did you mean delimiter={_decoded(others[0])!r}?")
    if len(fields) > wanted:
        notes.append(f'to read some columns of many, say which: columns="{":".join(map(str, range(wanted)))}"')
    return notes


def _count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
