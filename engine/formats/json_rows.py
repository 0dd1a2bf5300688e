"""JSON: a list of rows, each a list of values or an object with the attributes' names; or one row on each line (NDJSON).

Records are lists or objects too, null is nil, values of algebraic data types are text. Objects on lines without records go
through Arrow by the block; else rows are Python's, as its parser makes them. Numbers that JSON does not have are NaN, Infinity
and -Infinity, as Python writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.budget import Part
from dlog.engine.formats.lines import text_of
from dlog.engine.formats.nested import BadRecord, parse_records
from dlog.engine.formats.order import sorted_columns
from dlog.engine.formats.parameters import column_map, column_names, directive_error
from dlog.engine.formats.record_texts import record_texts
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Domain, Io, Kind, Program, Relation, Type
from dlog.engine.values.domains import arrow_type, fits, from_python, from_texts, name_of, to_texts
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.suggest import closest

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 16
"""Rows that are written at a time."""
COPIES = 4
"""Times that a text is there while it is parsed, by Python: as bytes, as text, in values, and in a table of symbols."""
VALUE_BYTES = 64
"""What a value, or a list, takes in Python besides."""
_BEFORE_VALUES = b",:[{"
PIECE, SMALL_PIECE = 1 << 24, 1 << 16
"""Bytes of objects that Arrow reads at once, where they take little, and where they take much."""
MUCH = 4
"""Times as much as their text."""
COLUMN_BYTES = 8
"""What a value of a column takes, besides the bytes of a text."""

# -------------------------------------------------------------------------------------------------------------- reading


def load_json(
    io: Io,
    relation: Relation,
    program: Program,
    symbols: SymbolTable,
    records: RecordTables,
    path: Path | None,
    by_line: bool,
    budget: Part,
) -> Table:
    """Loads a file, or standard input where `path` is None."""
    reader = _Reader(io, relation, program, symbols, records, "<stdin>" if path is None else str(path), budget)
    try:
        return _loaded(reader, path, by_line)
    except RecursionError:
        raise reader.mistake("bad-json", f"{reader.file}: values are nested too deeply") from None


def _loaded(reader: _Reader, path: Path | None, by_line: bool) -> Table:
    relation = reader.relation
    data = text_of(reader.io, reader.program, path, reader.file, reader.budget)
    plain = not any(t.kind is Kind.RECORD or t.domain is not Domain.PLAIN for _, t in relation.attributes)
    if by_line and plain and relation.arity and data[:64].tobytes().lstrip()[:1] == b"{":
        return reader.objects(data)
    return reader.table(reader.lines(data) if by_line else reader.document(data))


class _Unread(Exception):
    """Objects that Arrow has not read, or that lack a value; with what it has against them, if anything."""


def _piece(data: np.ndarray, begin: int, row: int) -> tuple[int, int]:
    """The end of a piece of whole lines, and how many objects it has at most. It is smaller where these may take much more than
    their text."""
    size = PIECE
    while True:
        end = _line_end(data, begin + size)
        rows = int(np.count_nonzero(data[begin:end] == ord("{")))
        if size <= SMALL_PIECE or rows * row <= MUCH * size:
            return end, rows
        size //= 4


def _line_end(data: np.ndarray, place: int) -> int:
    while place < len(data):
        found = np.flatnonzero(data[place : place + SMALL_PIECE] == ord("\n"))
        if len(found):
            return place + int(found[0]) + 1
        place += SMALL_PIECE
    return len(data)


@dataclass(frozen=True, slots=True)
class _Reader:
    io: Io
    relation: Relation
    program: Program
    symbols: SymbolTable
    records: RecordTables
    file: str
    budget: Part

    def mistake(self, code: str, message: str, *notes: str, place: str = "") -> DlogError:
        return DlogError(Diagnostic(code, message, notes=notes, place=place or self.file))

    def document(self, data: np.ndarray) -> list[Any]:
        """The rows of a file that is one JSON value."""
        rows = self._parsed(self._text(data), 0)
        if not isinstance(rows, list):
            note = "with one row on each line, it is IO=ndjson, or is called .ndjson"
            raise self.mistake("bad-json", f"{self.file} does not hold a list of rows", note)
        return rows

    def lines(self, data: np.ndarray) -> list[Any]:
        """The rows of a file that has one on each line."""
        lines = enumerate(StringIO(self._text(data), newline="\n"))
        return [self._parsed(line, number) for number, line in lines if line.strip()]

    def _text(self, data: np.ndarray) -> str:
        """The text, for which, and for whose values, there is memory."""
        values = sum(int(np.count_nonzero(data == mark)) for mark in _BEFORE_VALUES)
        self.budget.take(COPIES * len(data) + VALUE_BYTES * values, self.file)
        try:
            return data.tobytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"byte 0x{data[error.start]:02x} is not UTF-8"
            line = int(np.count_nonzero(data[: error.start] == 10)) + 1
            raise self.mistake("encoding", f"line {line}: {message}", place=f"{self.file}:{line}") from None

    def _parsed(self, text: str, lines_before: int) -> Any:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            place = f"{self.file}:{error.lineno + lines_before}:{error.colno}"
            message = f"line {error.lineno + lines_before}: not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
            raise self.mistake("bad-json", message, place=place) from None
        except ValueError as error:  # of numbers with thousands of digits
            place = f"{self.file}:{lines_before + 1}" if lines_before else self.file
            raise self.mistake("bad-json", f"a number is too long: {error}", place=place) from None

    def objects(self, data: np.ndarray) -> Table:
        """The rows of objects on lines, without records, by Arrow."""
        import pyarrow as pa

        from dlog.engine.formats.columnar import column_values

        names = column_names(self.io, self.relation, self.program)
        types = [pa.string() if t.kind is Kind.SYMBOL else arrow_type(t) for _, t in self.relation.attributes]
        schema = pa.schema(list(zip(names, types, strict=True)))
        taken = self.budget.used
        try:
            rows = pa.concat_tables(self._read(data, schema))
        except _Unread as problem:
            self.budget.give_back(self.budget.used - taken)
            return self.table(self.lines(data), str(problem))  # which says where
        checked = zip((rows.column(name) for name in names), self.relation.attributes, strict=True)
        values = [
            column_values(self.io, self.program, column, type_, f"`{name}` of {self.file}", self.symbols, self.records)
            for column, (name, type_) in checked
        ]
        return Table(self.relation.kinds, tuple(values), len(rows))

    def _read(self, data: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Objects by the piece: what is made of one counts before the next one is read, as objects that hold nothing have as
        many values as others. Raises _Unread."""
        import pyarrow as pa
        from pyarrow import json as arrow_json

        options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        row, begin = COLUMN_BYTES * len(schema), 0
        while begin < len(data):
            end, rows = _piece(data, begin, row)
            piece, begin = data[begin:end], end
            if not piece.tobytes().strip():
                continue
            self.budget.take(rows * row, self.file)
            try:
                found = arrow_json.read_json(pa.BufferReader(pa.py_buffer(piece)), parse_options=options)
            except pa.ArrowException as error:
                raise _Unread(str(error)) from None
            self.budget.give_back(rows * row)
            if any(column.null_count for column in found.columns):
                raise _Unread
            self.budget.take(found.get_total_buffer_size() + found.num_rows * row, self.file)
            yield found

    def table(self, rows: Sequence[Any], otherwise: str = "") -> Table:
        """The rows as columns. `otherwise` is what another parser has against them, if these are found right."""
        values = self._columns(rows)
        columns = [self._column(i, column) for i, column in enumerate(values)]
        if otherwise:
            raise self.mistake("bad-json", f"{self.file}: {otherwise}")
        return Table(self.relation.kinds, tuple(columns), len(rows))

    def _columns(self, rows: Sequence[Any]) -> list[list[Any]]:
        """The values of each attribute, from objects by name and from lists by place."""
        names, arity = column_names(self.io, self.relation, self.program), self.relation.arity
        chosen = column_map(self.io, self.relation, self.program) if self.io.get("columns") else None
        places = range(arity) if chosen is None else chosen
        by_place = self.io.get("columns") != ""
        columns: list[list[Any]] = [[] for _ in range(arity)]
        for number, row in enumerate(rows, 1):
            if isinstance(row, list) and (len(row) == arity or (by_place and len(row) > max(places, default=-1))):
                picked = [row[place] for place in places] if by_place else row
            elif isinstance(row, dict) and all(name in row for name in names):
                picked = [row[name] for name in names]
            else:
                raise self._wrong_row(number, row, names)
            for column, value in zip(columns, picked, strict=True):
                column.append(value)
        return columns

    def _wrong_row(self, number: int, row: Any, names: Sequence[str]) -> DlogError:
        count = f"`{self.relation.name}` has {self.relation.arity} attributes"
        if isinstance(row, list):
            return self.mistake("wrong-column-count", f"row {number} has {len(row)} values, {count}")
        if not isinstance(row, dict):
            return self.mistake("bad-json", f"row {number} is {_abbreviated(row)}, neither a list of values nor an object")
        name = next(name for name in names if name not in row)
        close = closest(name, list(row))
        notes = [f"it has {', '.join(row)}", *([f"did you mean `{close}`?"] if close else [])]
        return self.mistake("wrong-column-count", f"row {number} has no `{name}`", *notes)

    def _column(self, attribute: int, values: list[Any]) -> np.ndarray:
        name, type_ = self.relation.attributes[attribute]
        match type_.kind:
            case Kind.RECORD:
                return self._record_column(name, type_, values)
            case Kind.SYMBOL:
                self._check(name, type_, values, lambda value: type(value) is str)
                return self._interned(self.symbols, name, values)
            case _ if type_.is_calendar:
                self._check(name, type_, values, lambda value: type(value) is str)
                found, good = from_texts(type_, values)
                self._check(name, type_, values[good : good + 1], lambda _: False, good)
                return found
            case _:
                self._check(name, type_, values, lambda value: type(value) in (int, float) and fits(type_, value))
                return from_python(type_, values)

    def _check(self, name: str, type_: Type, values: list[Any], fits: Callable[[Any], bool], before: int = 0) -> None:
        for number, value in enumerate(values, before + 1):
            if not fits(value):
                meant = "a number" if type_.kind is Kind.FLOAT else name_of(type_)
                raise self.mistake("bad-json", f"row {number} (`{name}`): {_abbreviated(value)} is not {meant}")

    def _interned(self, table: SymbolTable, name: str, texts: list[str]) -> np.ndarray:
        try:
            return table.intern_texts(texts)
        except UnicodeEncodeError as error:
            number = next(n for n, text in enumerate(texts, 1) if text == error.object)
            raise self.mistake("encoding", f"row {number} (`{name}`): half of a surrogate pair is no text") from None

    def _record_column(self, name: str, type_: Type, values: list[Any]) -> np.ndarray:
        texts = SymbolTable()
        which = self._interned(texts, name, [_record_text(value, type_, self.program.types) for value in values])
        try:
            ids: np.ndarray = parse_records(texts, type_, self.program.types, self.symbols, self.records)[which]
            return ids
        except BadRecord as mistake:
            number = int(np.argmax(which == mistake.index)) + 1
            shown = _abbreviated(values[number - 1])
            raise self.mistake("bad-record", f"row {number} (`{name}`): {shown} {mistake}") from None


def _abbreviated(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}..."


def _record_text(value: Any, type_: Type | None, types: Mapping[str, Type]) -> str:
    """A value as text of a record's field, or of a whole record; what does not fit its type is refused when that is read."""
    fields = type_.fields if type_ is not None else ()
    if value is None:
        return "nil"
    if isinstance(value, dict) and all(name in value for name, _ in fields):
        value = [value[name] for name, _ in fields]
    if isinstance(value, list):
        parts = [_record_text(part, types[fields[i][1]] if i < len(fields) else None, types) for i, part in enumerate(value)]
        return f"[{', '.join(parts)}]"
    if isinstance(value, str) and not fields and not (type_ is not None and type_.is_calendar):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return value if isinstance(value, str) else json.dumps(value)


# -------------------------------------------------------------------------------------------------------------- writing


def json_pieces(
    io: Io, relation: Relation, program: Program, table: Table, symbols: SymbolTable, records: RecordTables, by_line: bool
) -> Iterator[bytes]:
    """The bytes of a file. Rows are lists, as in Souffle; with format=object, and on lines by themselves, objects."""
    form = io.get("format", "object" if by_line else "list")
    if form not in ("list", "object"):
        raise directive_error(io, program, "bad-parameter", f"format={form!r} is neither list nor object")
    writer = _Writer(program.types, symbols, records, form == "object")
    between = "\n" if by_line else ",\n"
    yield b"" if by_line else b"["
    names = [name for name, _ in relation.attributes]
    columns = sorted_columns(table.kinds, table.columns, symbols)
    for begin in range(0, table.rows, ROWS):
        block = [
            writer.texts(type_, column[begin : begin + ROWS])
            for (_, type_), column in zip(relation.attributes, columns, strict=True)
        ]
        rows = writer.rows(names, block, min(ROWS, table.rows - begin))
        yield ((between if begin else "") + between.join(rows)).encode()
    yield b"" if by_line and not table.rows else b"\n" if by_line else b"]\n"


@dataclass(frozen=True, slots=True)
class _Writer:
    types: Mapping[str, Type]
    symbols: SymbolTable
    records: RecordTables
    as_objects: bool

    def rows(self, names: Sequence[str], columns: Sequence[Sequence[str]], count: int) -> list[str]:
        """A list or an object from the texts of each row's values."""
        if not names:
            return ["{}" if self.as_objects else "[]"] * count
        if not self.as_objects:
            return [f"[{', '.join(values)}]" for values in zip(*columns, strict=True)]
        keys = [f"{json.dumps(name, ensure_ascii=False)}: " for name in names]
        return [f"{{{', '.join(map(add, keys, values))}}}" for values in zip(*columns, strict=True)]

    def texts(self, type_: Type, column: np.ndarray) -> list[str]:
        match type_.kind:
            case Kind.RECORD if type_.branches:
                made, which = record_texts(type_, column, self.types, self.symbols, self.records, quote=True)
                heap = made.data.tobytes()
                strings = [json.dumps(heap[a:b].decode(), ensure_ascii=False) for a, b in pairwise(made.offsets.tolist())]
                return [strings[i] for i in which.tolist()]
            case Kind.RECORD:
                known = self._record_texts(type_, column)
                return [known[type_.name][id] for id in column.tolist()]
            case Kind.SYMBOL:
                distinct, inverse = np.unique(column, return_inverse=True)
                texts = [json.dumps(text, ensure_ascii=False) for text in self.symbols.to_arrow(distinct).to_pylist()]
                return [texts[i] for i in inverse.tolist()]
            case _ if type_.is_calendar:
                return [f'"{text}"' for text in to_texts(type_, column)]
            case Kind.FLOAT:
                return [json.dumps(value) for value in column.view(np.float64).tolist()]
            case Kind.UNSIGNED:
                return [str(value) for value in column.view(np.uint64).tolist()]
            case Kind.NUMBER:
                return [str(value) for value in column.tolist()]
            case _:
                assert_never(type_.kind)

    def _record_texts(self, type_: Type, ids: np.ndarray) -> dict[str, dict[int, str]]:
        """The texts of records and of those within them, by type and id: from the innermost level to the outermost."""
        levels = [{type_.name: np.unique(ids)}]
        fields: list[dict[str, list[np.ndarray]]] = []
        while levels[-1]:
            fields.append(
                {name: self.records.fields(len(self.types[name].fields), own[own != 0]) for name, own in levels[-1].items()}
            )
            levels.append(self._inner(fields[-1]))
        known: dict[str, dict[int, str]] = {}
        for level, columns in zip(reversed(levels[:-1]), reversed(fields), strict=True):
            for name, own in level.items():
                present = own[own != 0]
                attributes = zip(self._fields(name), columns[name], strict=True)
                pieces = [self._field_texts(self.types[type_name], column, known) for (_, type_name), column in attributes]
                rows = self.rows([field for field, _ in self._fields(name)], pieces, len(present))
                known.setdefault(name, {0: "null"}).update(zip(present.tolist(), rows, strict=True))
        return known

    def _fields(self, name: str) -> tuple[tuple[str, str], ...]:
        return self.types[name].fields

    def _field_texts(self, type_: Type, column: np.ndarray, known: Mapping[str, Mapping[int, str]]) -> list[str]:
        if type_.kind is Kind.RECORD and not type_.branches:
            return [known[type_.name][id] for id in column.tolist()]
        return self.texts(type_, column)

    def _inner(self, columns: Mapping[str, Sequence[np.ndarray]]) -> dict[str, np.ndarray]:
        """The distinct records in the fields of a level, by type."""
        found: dict[str, list[np.ndarray]] = {}
        for name, fields in columns.items():
            for (_, type_name), field in zip(self._fields(name), fields, strict=True):
                type_ = self.types[type_name]
                if type_.kind is Kind.RECORD and not type_.branches and len(field):
                    found.setdefault(type_name, []).append(field)
        return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}
