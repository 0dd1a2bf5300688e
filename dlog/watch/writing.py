"""What `dlog watch` writes: the changes of each round, whole and by itself, as lines of CSV or JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO, TypeAlias

from dlog.branch import Branch
from dlog.codec import Row
from dlog.dataclass import dataclass
from dlog.display.render import quoted_text, value_text
from dlog.engine.formats import TO_STDOUT
from dlog.engine.state.files import cut, named, text_to_extend
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.pipeline import stage
from dlog.sessions.follow.envelopes import Delivered, Upserts
from dlog.sessions.follow.events import ChangeEvents

Format: TypeAlias = str
"""`csv` or `json`."""
CHUNK = 1 << 20
"""Bytes of a file that are looked at together."""
MAX_LINE_BYTES = 1 << 20
"""Bytes of a line with line ends of its own that is dropped."""
CHANGE = re.compile(rb"\n\d+,")
"""How a line of changes begins, behind another one."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a line has of an event besides the key and the row of now."""

    operation: str
    before: Row | None
    columns: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A change: a row that came (+1) or went (-1); or what became of a key, its row or none, with what it was where that is
    wanted."""

    round: int
    relation: str
    diff: int
    row: Row | None
    key: Row | None = None
    event: Event | None = None


def lines_of(round: int, relation: str, delivered: Delivered, sorted_already: bool) -> Iterator[Line]:
    """The changes of a round, in order, unless they are in one already: removals before additions; numbers by value, anything
    else by its text."""
    if isinstance(delivered, Upserts):
        for key, row in sorted(delivered, key=lambda pair: _order(pair[0])):
            yield Line(round, relation, 0, row, key)
    elif isinstance(delivered, ChangeEvents):
        told = zip(delivered, delivered.operations, strict=True)
        for (key, before, after), operation in sorted(told, key=lambda each: _order(each[0][0])):
            yield Line(round, relation, 0, after, key, Event(operation, before, delivered.columns, delivered.key))
    else:
        for row, diff in delivered if sorted_already else sorted(delivered, key=lambda c: (c[1], _order(c[0]))):
            yield Line(round, relation, diff, row)


def _order(row: Row) -> list[tuple[str, object]]:
    return [("", v) if isinstance(v, int | float) else ("text", value_text(v)) for v in row]


class Writer:
    """Lines on standard output or in one file for each relation, which is begun anew or goes on."""

    def __init__(self, output: str, format: Format, relations: Sequence[str], anew: bool) -> None:
        csv = format == "csv"
        self._line: Callable[[Line], str] = _csv_line if csv else _json_line
        self._progress: Callable[[int], str] = _csv_progress if csv else _json_progress
        self._files: dict[str, TextIO] = {}
        self._paths: dict[TextIO, str] = {}
        if output == TO_STDOUT and isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as files are, whatever the terminal's
        if output != TO_STDOUT:
            with stage("writing changes"):
                os.makedirs(output, exist_ok=True)
                for name in relations:
                    suffix = "csv" if csv else "jsonl"
                    path = _plain(Path(output, f"{name}.changes.{suffix}"))
                    self._files[name] = file = text_to_extend(path, anew)
                    self._paths[file] = str(path)
                    if not anew:
                        _drop_unfinished(file.fileno(), csv)

    def write(self, lines: Sequence[Line]) -> None:
        """Writes the changes of one relation in one round."""
        if lines:
            file = self._files.get(lines[0].relation, sys.stdout)
            with self._named(file):
                file.write("".join(map(self._line, lines)))

    def progress(self, round: int) -> None:
        """Says that all up to a round has been written."""
        for file in self._files.values() or (sys.stdout,):
            with self._named(file):
                file.write(self._progress(round))

    def flush(self) -> None:
        for file in self._files.values() or (sys.stdout,):
            with self._named(file):
                file.flush()

    def _named(self, file: TextIO) -> AbstractContextManager[None]:
        return named(self._paths.get(file))


def _plain(path: Path) -> Path:
    """A file that is to be written. Raises DlogError for a link, which may lead to any file of this user's, and for a pipe, of
    which nobody may read: either may have come with the folder, in an archive."""
    what = "link" if path.is_symlink() else "pipe" if path.is_fifo() else ""
    if what:
        notes = ("it may have come with the folder, from somebody else: remove it, or name another folder with -D",)
        raise DlogError(Diagnostic("unwritable-file", f"cannot write {path}: it is a {what}", notes=notes))
    return path


def _drop_unfinished(file: int, csv: bool) -> None:
    """Drops a line without an end, as a write that was cut off leaves it: others would go on in it. In quotes a line of CSV
    goes on behind what looks like its end, unless changes follow there: then the quote was left by something else."""
    with open(file, "rb", closefd=False) as content:
        content.seek(0)
        end, last = _last_ends(content, csv)
        content.seek(end)
        if last - end > MAX_LINE_BYTES or CHANGE.search(content.read(last - end)):
            end = last
    cut(file, end)


def _last_ends(content: BinaryIO, csv: bool) -> tuple[int, int]:
    """Where the last line ends, as far as CSV has it end outside of quotes, and the last one of all."""
    end, last, at, is_quoted = 0, 0, 0, False
    while chunk := content.read(CHUNK):
        found = at + chunk.rfind(b"\n") + 1
        last = max(last, found if found > at else 0)
        if csv and (is_quoted or b'"' in chunk):
            place = at
            for line in chunk.splitlines(keepends=True):
                place, is_quoted = place + len(line), is_quoted ^ (line.count(b'"') % 2 == 1)
                if line.endswith(b"\n") and not is_quoted:
                    end = place
        else:
            end = last
        at += len(chunk)
    return end, last


def _csv_line(line: Line) -> str:
    """`3,price,+1,tea,4`; by key `3,price,upsert,tea,4` or `3,price,delete,tea`; as an event `3,price,u,tea,3,tea,4`, with
    nothing between commas for a row that is not there."""
    if line.event is not None:
        nothing = [""] * len(line.event.columns)
        sides = (nothing if row is None else [*map(_csv_value, row)] for row in (line.event.before, line.row))
        return ",".join([str(line.round), line.relation, line.event.operation, *chain.from_iterable(sides)]) + "\n"
    if line.key is None:
        what, values = "+1" if line.diff > 0 else "-1", line.row or ()
    else:
        what, values = ("delete", line.key) if line.row is None else ("upsert", line.row)
    return ",".join([str(line.round), line.relation, what, *map(_csv_value, values)]) + "\n"


def _csv_progress(round: int) -> str:
    return f"{round},,progress\n"


def _csv_value(value: object) -> str:
    text = f"{value:.17g}" if isinstance(value, float) else value_text(value)
    if any(c in text for c in ',"\n\r['):
        text = '"' + text.replace('"', '""') + '"'
    return text


def _json_line(line: Line) -> str:
    item: dict[str, object] = {"round": line.round, "relation": line.relation}
    if line.event is not None:
        item |= _json_event(line.event, line.key or (), line.row)
        return json.dumps(item, ensure_ascii=False) + "\n"
    if line.key is None:
        item["diff"] = line.diff
    else:
        item["key"] = [_json_value(value) for value in line.key]
    item["row"] = None if line.row is None else [_json_value(value) for value in line.row]
    return json.dumps(item, ensure_ascii=False) + "\n"


def _json_event(event: Event, key: Row, after: Row | None) -> dict[str, object]:
    """An event as Debezium has it: rows are objects."""
    before, now = (None if row is None else _json_object(event.columns, row) for row in (event.before, after))
    return {"op": event.operation, "key": _json_object(event.key, key), "before": before, "after": now}


def _json_object(names: Sequence[str], row: Row) -> dict[str, object]:
    return dict(zip(names, map(_json_value, row), strict=True))


def _json_progress(round: int) -> str:
    return json.dumps({"round": round, "progress": True}) + "\n"


def _json_value(value: object) -> object:
    """Values of algebraic data types are text, as in files."""
    match value:
        case Branch():
            return quoted_text(value)
        case tuple():
            return [_json_value(field) for field in value]
        case date():
            return value_text(value)
        case _:
            return value
